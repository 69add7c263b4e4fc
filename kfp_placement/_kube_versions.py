"""Versions of the default scheduler that can be imitated, and how people write them."""

import re

KUBE_RANGE = "the default scheduler of Kubernetes 1.25 to 1.99 can be imitated"
"""What to say of other versions."""

_OLDEST = (1, 25)
_NEWEST = (1, 99)
_RELEASE = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?", re.ASCII)
_BUILD = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\..*)?", re.ASCII)


def read_kube_version(text: str, *, any_build: bool = False) -> tuple[int, int] | None:
    """Major and minor of `1.36` or `v1.36.3`; None = it is not a version.

    Args:
        text: the version.
        any_build: whatever follows the second point is skipped, as in `v1.36.3-gke.1`.
    """
    match = (_BUILD if any_build else _RELEASE).fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]))


def is_imitated(version: tuple[int, int]) -> bool:
    """Whether the default scheduler of that version can be imitated; `KUBE_RANGE` says which."""
    return _OLDEST <= version <= _NEWEST
