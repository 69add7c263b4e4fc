"""Files are written whole or not at all."""

import contextlib
import uuid
from pathlib import Path

from kfp_placement.exceptions import RunError


def write_whole(target: Path, text: str) -> None:
    """Write a file of text; its readers see all of it, or what it held before.

    Raises:
        RunError: it cannot be written.
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
    """The error for what cannot be written, in the system's words."""
    return RunError(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}")
