"""What the tests share: the test data, and generators of numbers that are the same everywhere."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

if importlib.util.find_spec("triton") and importlib.util.find_spec("torch"):
    import torch

    # Before anybody imports triton, which asks for it once.
    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"

DATA = Path(__file__).resolve().parents[3] / "tests" / "data"


@pytest.fixture
def golden():
    def read(name):
        return json.loads((DATA / "golden" / name).read_text())

    return read


@pytest.fixture
def np():
    return pytest.importorskip("numpy")


@pytest.fixture
def rng(np):
    return np.random.default_rng(1)
