"""What `import posenc` brings along."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("heavy", ["dataclasses", "inspect", "ml_dtypes", "numpy", "torch", "transformers"])
def test_an_import_is_quick(heavy):
    code = "import sys; before = set(sys.modules); import posenc; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert heavy not in loaded.split()
