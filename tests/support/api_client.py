"""Client of an API server, as our processes have it, by any kubeconfig."""

from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from kfp_placement_controller.connection import ApiMetrics
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import UnreachableError
from kfp_placement_kube.kubeconfig import load_kubeconfig
from kfp_placement_kube.transport import Transport, TransportParams


def a_transport(kubeconfig: Path, timeout_seconds: float = 10.0) -> Transport:
    """Connections to the server of a kubeconfig."""
    params = TransportParams("a-test/1", timeout_seconds=timeout_seconds, renews_account=True)
    return Transport(partial(load_kubeconfig, kubeconfig), params)


def a_client(kubeconfig: Path, timeout_seconds: float = 10.0) -> KubeClient:
    """A client that counts in the metrics of the controller."""
    return KubeClient(a_transport(kubeconfig, timeout_seconds), ApiMetrics("test"))


def unreachable(*_arguments: Any, **_options: Any) -> NoReturn:
    """A client's method while the server is cut off."""
    raise UnreachableError("cut off by the test")
