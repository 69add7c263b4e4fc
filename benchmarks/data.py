"""Third-party data of benchmarks and checks; none of it ships with this project."""

import os
from collections.abc import Callable
from pathlib import Path

from kfp_placement_engine.exceptions import InputNotFoundError

DATA_VARIABLE = "KFP_PLACEMENT_DATA"
"""Environment variable that names the data folder."""

DEFAULT_FOLDER = Path("..", "shared", "data")
"""Data folder as seen from the repository and from the current folder."""


def data_folder(explicit: Path | None = None) -> Path:
    """Return the folder of the data sets: the given one, the variable's, or `../shared/data`.

    The last is looked for beside the repository and beside the current folder.

    Raises:
        InputNotFoundError: it is not there.
    """
    named = explicit or (Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None)
    if named is not None:
        if not named.is_dir():
            raise InputNotFoundError(f"{named}: no such folder of benchmark data")
        return named
    for start in (Path(__file__).resolve().parents[1], Path.cwd()):
        folder = start / DEFAULT_FOLDER
        if folder.is_dir():
            return folder.resolve()
    raise InputNotFoundError(
        f"no benchmark data found: name its folder with --data or in the variable {DATA_VARIABLE}"
    )


def data_file(explicit: Path | None, *parts: str) -> Path:
    """Return a file of a data set.

    Args:
        explicit: the file itself, a folder that holds it, the data folder, or None to look for it.
        parts: path within the data folder.

    Raises:
        InputNotFoundError: it is not there.
    """
    if explicit is not None and not explicit.is_dir():
        if not explicit.exists():
            raise InputNotFoundError(f"{explicit}: no such file or folder")
        return explicit
    folder = data_folder(explicit)
    for candidate in (folder.joinpath(*parts), folder / parts[-1]):
        if candidate.is_file():
            return candidate
    raise InputNotFoundError(f"{folder.joinpath(*parts)}: no such file")


def data_files(
    explicit: Path | None, name: str, is_one: Callable[[Path], bool], what: str
) -> list[Path]:
    """Return the files of a data set by name.

    Args:
        explicit: the data folder, that of the set, one of its files, or None to look for the first.
        name: name of the set.
        is_one: whether a path in its folder is one of the files.
        what: name of the files for people.

    Raises:
        InputNotFoundError: there are none.
    """
    if explicit is not None and explicit.is_file():
        return [explicit]
    folder = data_folder(explicit)
    inside = folder / name if (folder / name).is_dir() else folder
    files = sorted(path for path in inside.iterdir() if is_one(path))
    if not files:
        raise InputNotFoundError(f"{inside}: holds no {what}")
    return files
