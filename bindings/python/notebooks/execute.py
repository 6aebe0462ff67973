#!/usr/bin/env python3
"""Runs the notebooks and keeps what they show (make python PEERS=1 has what it takes): bindings/python/notebooks/execute.py"""

import os
from pathlib import Path

import nbclient
import nbformat

os.environ["PYTHONWARNINGS"] = "ignore::UserWarning"  # posenc's own, which pages show besides
os.environ["COLUMNS"] = "100"  # that pages are drawn in
for path in sorted(Path(__file__).parent.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, record_timing=False, coalesce_streams=True, kernel_name="python3").execute()
    nbformat.write(notebook, path)
    print(path)
