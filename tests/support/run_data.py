"""The third-party runs, one test each; a single skipped test where the data is absent."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.data import DATA_VARIABLE, data_folder
from kfp_placement_engine.exceptions import InputNotFoundError


def data_files(folder: str, pattern: str = "*") -> list[Any]:
    """Parameters for a test over every file of a folder of the data."""
    try:
        paths = sorted(data_folder().joinpath(folder).glob(pattern))
    except InputNotFoundError:
        paths = []
    if not paths:
        reason = f"no {folder}: name the data's folder in the variable {DATA_VARIABLE}"
        return [pytest.param(Path(), marks=pytest.mark.skip(reason=reason), id="no-data")]
    return [pytest.param(path, id=path.stem) for path in paths]
