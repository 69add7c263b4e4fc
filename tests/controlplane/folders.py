"""A temporary folder per control plane; those of killed owners are removed by the next one."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_PREFIX = "kfp-placement-controlplane-"
_LOCK = "owner.lock"
# A younger folder may be one whose owner is about to take the lock.
_YOUNG_SECONDS = 60.0


def new_folder() -> tuple[Path, Callable[[], None]]:
    """A folder of our own, and what to call when it is not ours any more."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = (folder / _LOCK).open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock.close


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and _age_seconds(folder) > _YOUNG_SECONDS:
                with (folder / _LOCK).open("ab") as lock:
                    if _is_free(lock):
                        shutil.rmtree(folder, ignore_errors=True)


def _age_seconds(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _is_free(lock: BinaryIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
