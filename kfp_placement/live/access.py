"""Access to a cluster: by a kubeconfig and a context, or by the service account of a pod.

The kubeconfig is looked for before what reads kubeconfigs is imported, which takes a second.
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

_MAX_CONTEXTS = 10
"""Contexts that a message names."""

_UNUSABLE_ACCOUNT = "the pod's service account cannot be used"


class Access(NamedTuple):
    """Way to a cluster.

    Attributes:
        load: reader of the server's address and our credentials.
        namespace: namespace to use if none is named.
        source: origin of the configuration, for messages: `context kind-a`.
    """

    load: Callable[[], Configuration]
    namespace: str
    source: str


def find_access(kubeconfig: Path | None, context: str | None, option: str) -> Access:
    """Find the way to the cluster that kubectl would talk to; nothing is sent.

    Args:
        kubeconfig: file, as for `ClusterApi.connect`.
        context: name of a context, as for `ClusterApi.connect`.
        option: option that names a file, as for `ClusterApi.connect`.

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
        contexts = ", ".join([*namespaces][:_MAX_CONTEXTS])
        raise ClusterMissingError(f"{origin} has no context {name!r}; it has {contexts}")
    load = _unusable(unusable)(partial(load_kubeconfig, kubeconfig, name))
    return Access(load, namespaces[name] or "default", f"context {name}")


@contextmanager
def _unusable(problem: str) -> Iterator[None]:
    """Raise errors of the configuration as a `ClusterError`; wraps a block or a function."""
    try:
        yield
    except ConfigurationError as error:
        raise ClusterError(f"{problem}: {error!s:.300}") from error


def _kubeconfig_source(kubeconfig: Path | None, option: str) -> str:
    """Return the name of the kubeconfig for messages.

    Raises:
        ClusterMissingError: there is no kubeconfig.
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
