"""Third-party data for tests: read where it lies, skipped with the reason where it does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.data import DATA_VARIABLE, data_folder
from kfp_placement_engine.exceptions import InputNotFoundError


def data_path(*parts: str) -> Path:
    """A file or folder of the data sets; skips the test where it is missing."""
    try:
        path = data_folder().joinpath(*parts)
    except InputNotFoundError:
        pytest.skip(f"no third-party data: name its folder in the variable {DATA_VARIABLE}")
    if not path.exists():
        pytest.skip(f"no {'/'.join(parts)} in the third-party data")
    return path


def data_json(*parts: str) -> Any:
    """Return what a JSON file of the data sets holds; skip the test where it is missing."""
    return json.loads(data_path(*parts).read_text("utf-8"))
