"""How to get to the cluster that is meant: by a kubeconfig and a context, or by a pod's account.

The kubeconfig is looked for before anything that can read one is imported: it takes a second.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kfp_placement.live.exceptions import ClusterError, ClusterMissingError
from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import ConfigurationError
from kfp_placement_kube.kubeconfig import (
    default_kubeconfigs,
    load_kubeconfig,
    named_kubeconfigs,
    read_contexts,
)
from kfp_placement_kube.service_account import (
    is_in_pod,
    load_service_account,
    service_account_namespace,
)

_SHOWN_CONTEXTS = 10
_UNUSABLE_ACCOUNT = "the pod's service account cannot be used"


class Access(NamedTuple):
    """How to get to a cluster.

    Attributes:
        load: reads where the API server is and who asks.
        namespace: the one that is meant where none is named.
        source: where this comes from, for messages.
    """

    load: Callable[[], Configuration]
    namespace: str
    source: str


def find_access(kubeconfig: Path | None, context: str | None, option: str) -> Access:
    """How to get to the cluster that kubectl would talk to; nothing is sent.

    Args:
        kubeconfig: as for `LiveCluster.connect`.
        context: likewise.
        option: likewise.

    Raises:
        ClusterMissingError: there is no such file or context.
        ClusterError: the file cannot be used.
    """
    if kubeconfig is None and context is None and not default_kubeconfigs() and is_in_pod():
        with _unusable(_UNUSABLE_ACCOUNT):
            namespace = service_account_namespace()
        load = _unusable(_UNUSABLE_ACCOUNT)(load_service_account)
        return Access(load, namespace or "default", "the pod's service account")
    origin = _kubeconfig_source(kubeconfig, option)
    unusable = f"{origin}: no usable kubeconfig"
    with _unusable(unusable):
        namespaces, current = read_contexts(kubeconfig)
    name = current if context is None else context
    if name not in namespaces:
        known = ", ".join([*namespaces][:_SHOWN_CONTEXTS])
        raise ClusterMissingError(f"{origin} has no context {name!r}; it has {known}")
    load = _unusable(unusable)(partial(load_kubeconfig, kubeconfig, name))
    return Access(load, namespaces[name] or "default", f"context {name}")


@contextmanager
def _unusable(what: str) -> Iterator[None]:
    """Say what cannot be used: around a block, or around a function each time it is called."""
    try:
        yield
    except ConfigurationError as error:
        raise ClusterError(f"{what}: {error!s:.300}") from error


def _kubeconfig_source(kubeconfig: Path | None, option: str) -> str:
    """What a kubeconfig is called in messages.

    Raises:
        ClusterMissingError: there is none.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ClusterMissingError(f"{kubeconfig}: no such kubeconfig file")
        return str(kubeconfig)
    kubeconfigs = default_kubeconfigs()
    if not kubeconfigs:
        or_name = f", or name a file with {option}" if option else ""
        raise ClusterMissingError(
            f"no kubeconfig: there is no {named_kubeconfigs()}; set KUBECONFIG{or_name}"
        )
    return ", ".join(map(str, kubeconfigs))
