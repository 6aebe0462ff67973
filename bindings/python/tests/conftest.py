"""What the tests share: the test data, and generators of numbers that are the same everywhere."""

import json
from pathlib import Path

import pytest

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
