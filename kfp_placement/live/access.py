"""How to get to the cluster that is meant: by a kubeconfig and a context, or by a pod's account.

The kubeconfig is looked for before anything that can read one is imported: it takes a second.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kfp_placement.live.exceptions import ClusterError, ClusterMissingError
from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import ConfigurationError, NotAKubeconfigError, NotYamlError
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
_POD_ACCOUNT = "the pod's service account"


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


def find_access(kubeconfig: Path | None, context: str | None, option: str = "") -> Access:
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
        with _unusable(f"{_POD_ACCOUNT} cannot be used", _reason):
            namespace = service_account_namespace()
        return Access(_load_service_account, namespace or "default", _POD_ACCOUNT)
    origin = _kubeconfig_source(kubeconfig, option)
    with _unusable(f"{origin}: no usable kubeconfig", _what_is_wrong):
        contexts = read_contexts(kubeconfig)
        chosen = _choose_context(contexts.all, contexts.current, context, origin)
        name = str(chosen["name"])
    own = (chosen.get("context") or {}).get("namespace")
    load = partial(_load_kubeconfig, kubeconfig, name, origin)
    return Access(load, str(own or "default"), f"context {name}")


def _load_service_account() -> Configuration:
    with _unusable(f"{_POD_ACCOUNT} cannot be used", _reason):
        return load_service_account()


def _load_kubeconfig(kubeconfig: Path | None, context: str, origin: str) -> Configuration:
    with _unusable(f"{origin}: no usable kubeconfig", _what_is_wrong):
        return load_kubeconfig(kubeconfig, context)


@contextmanager
def _unusable(what: str, why: Callable[[Exception], str]) -> Iterator[None]:
    try:
        yield
    except (ConfigurationError, LookupError, TypeError, AttributeError) as error:
        raise ClusterError(f"{what}: {why(error)}") from error


def _reason(error: Exception) -> str:
    return str(error)


def _what_is_wrong(error: Exception) -> str:
    """A sentence; what the official client's reader stumbles over says nothing to people."""
    if isinstance(error, NotYamlError):
        return f"no YAML: {error!s:.300}"
    if isinstance(error, ConfigurationError) and not isinstance(error, NotAKubeconfigError):
        return f"{error!s:.300}"
    return "it must be a mapping with contexts, clusters and users, as kubectl writes it"


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


def _choose_context(
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
