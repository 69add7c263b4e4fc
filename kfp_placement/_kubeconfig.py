"""Which kubeconfig and which context are meant; nothing of the Kubernetes client."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kfp_placement.live.exceptions import ClusterMissingError

_DEFAULT = "~/.kube/config"
_SHOWN_CONTEXTS = 10


def default_kubeconfigs() -> list[Path]:
    """The files that are there of those that kubectl would read."""
    named = os.environ.get("KUBECONFIG") or _DEFAULT
    paths = [Path(each).expanduser() for each in named.split(os.pathsep) if each]
    return [path for path in paths if path.is_file()]


def kubeconfig_source(kubeconfig: Path | None) -> str:
    """What a kubeconfig is called in messages.

    Raises:
        ClusterMissingError: there is none.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ClusterMissingError(f"{kubeconfig}: no such kubeconfig file")
        return str(kubeconfig)
    found = default_kubeconfigs()
    if not found:
        named = os.environ.get("KUBECONFIG") or _DEFAULT
        raise ClusterMissingError(
            f"no kubeconfig: there is no {named}; give --kubeconfig FILE, or set KUBECONFIG"
        )
    return ", ".join(map(str, found))


def choose_context(
    contexts: Any, active: Any, wanted: str | None, source: str
) -> Mapping[str, Any]:
    """The context that is meant: the one of that name, else the current one.

    Raises:
        ClusterMissingError: there is none of that name.
    """
    if wanted is None:
        return dict(active)
    for each in contexts:
        if each.get("name") == wanted:
            return dict(each)
    known = ", ".join(str(each.get("name")) for each in contexts[:_SHOWN_CONTEXTS])
    raise ClusterMissingError(f"{source} has no context {wanted!r}; it has {known}")
