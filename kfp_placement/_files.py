"""Writing of files, whole or not at all."""

import contextlib
import uuid
from pathlib import Path

from kfp_placement.exceptions import RunError


def write_whole(target: Path, text: str) -> None:
    """Write a file; its readers see all of it, or the old content.

    Raises:
        RunError: the file cannot be written.
    """
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("x", encoding="utf-8") as stream:
            stream.write(text)
        beside.replace(target)
    except (OSError, ValueError) as error:
        raise unwritable(target, error) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            beside.unlink()


def unwritable(target: object, error: OSError | ValueError) -> RunError:
    """Return the error for a file that cannot be written, with the system's reason."""
    return RunError(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}")
