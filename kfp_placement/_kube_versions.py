"""Versions of the default scheduler that can be simulated."""

import re

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\..*)?", re.ASCII)


def read_kube_version(text: str) -> tuple[int, int]:
    """Return major and minor version of `1.36`, `v1.36.3` or `v1.36.3-gke.1`.

    Raises:
        ValueError: the text is not a version, or this version cannot be simulated.
    """
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r:.80} is not a Kubernetes version; write for example 1.36")
    version = int(match[1]), int(match[2])
    if not (1, 25) <= version <= (1, 99):
        raise ValueError(
            f"{text!r:.80}: the default scheduler of Kubernetes 1.25 to 1.99 can be simulated"
        )
    return version
