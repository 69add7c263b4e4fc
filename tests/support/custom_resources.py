"""Custom resource definitions on a real API server."""

import contextlib
from collections.abc import Iterable, Iterator

from tests.controlplane.api import Api, JsonObject
from tests.controlplane.waiting import wait_until
from tests.support.structural_schemas import crds

CRD_VERSION = "apiextensions.k8s.io/v1"


@contextlib.contextmanager
def installed_crds(api: Api, definitions: Iterable[JsonObject] | None = None) -> Iterator[None]:
    """Install definitions; they go again with all their objects, and are gone then.

    Args:
        api: the server, as someone who may do this.
        definitions: which; by default what `deploy/crds` defines.
    """
    wanted = list(crds().values() if definitions is None else definitions)
    names = [crd["metadata"]["name"] for crd in wanted]
    for crd in wanted:
        api.create(crd)
    wait_until(lambda: all(is_established(api, name) for name in names), "kinds to be served")
    try:
        yield
    finally:
        for crd in wanted:
            api.delete(crd)
        wait_until(
            lambda: not any(_find(api, name) for name in names),
            "kinds to be gone",
            timeout_seconds=90.0,
            state=lambda: [_find(api, name) for name in names],
        )


def is_established(api: Api, name: str) -> bool:
    """Whether objects of a definition can be made."""
    status = (_find(api, name) or {}).get("status", {})
    return any(
        each["type"] == "Established" and each["status"] == "True"
        for each in status.get("conditions") or []
    )


def _find(api: Api, name: str) -> JsonObject | None:
    return api.find(CRD_VERSION, "CustomResourceDefinition", name)
