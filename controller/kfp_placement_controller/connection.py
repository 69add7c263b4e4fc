"""Connections of the processes to the API server, a Prometheus and KFP, and what counts them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from kfp_placement_controller import metrics
from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.settings import PlanSettings, Settings
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import ConfigurationError
from kfp_placement_kube.kubeconfig import load_kubeconfig
from kfp_placement_kube.service_account import bearer, load_service_account
from kfp_placement_kube.transport import Transport, TransportParams

COMPONENT = "kfp-placement.dev/controller"
"""The component that reports our events."""

_PROMPT_TIMEOUT_SECONDS = 3.5
"""Timeout of requests for Leases and histories. A Lease is lost after seven seconds, so a request
must end well before. A history that is written too late is refused: its version is old."""

_OTHERS_TIMEOUT_SECONDS = 5.0
"""Timeout of requests to a Prometheus and to KFP's API, and of their whole answers."""

_MOST_PROMETHEUS_BYTES = 2**20
"""Size of one answer; that of 50 pods has some 10 kB."""

_MOST_KFP_BYTES = 8 * 2**20
"""Size of one answer of KFP's API; that of an average run has some 10 kB."""

_USER_AGENT = f"kfp-placement-controller/{version('kfp-placement-controller')}"


@dataclass
class ApiMetrics:
    """Observer of an API server (`kfp_placement_kube.observer`) that counts in our metrics.

    Attributes:
        process: name of the process, such as `plan`.
    """

    process: str

    def wrote(self, kind: str, verb: str) -> None:
        """Count a write."""
        metrics.API_WRITES.labels(kind, verb).inc()

    def failed(self, kind: str, verb: str, reason: str) -> None:
        """Count a refusal."""
        metrics.API_ERRORS.labels(kind, verb, reason).inc()

    def truncated(self) -> None:
        """Count an answer that was not read whole."""
        metrics.API_ANSWERS_CUT.inc()

    def watching(self, kind: str, age_seconds: Callable[[], float]) -> None:
        """Show the age of a watch."""
        metrics.WATCH_AGE_SECONDS.labels(kind).set_function(age_seconds)

    def listed(self, kind: str) -> None:
        """Count a list."""
        metrics.WATCH_LISTS.labels(kind).inc()

    def changed(self, kind: str) -> None:
        """Count a change."""
        metrics.WATCH_CHANGES.labels(kind).inc()

    def skipped(self, kind: str) -> None:
        """Count an object that is not kept."""
        metrics.WATCH_BAD_OBJECTS.labels(kind).inc()

    def leading(self, leads: bool) -> None:
        """Show whether this process leads."""
        metrics.LEADING.labels(self.process).set(leads)

    def event_dropped(self) -> None:
        """Count an event that was not written."""
        metrics.EVENTS_DROPPED.inc()


def connect(settings: Settings, *, promptly: bool = False) -> KubeClient:
    """Return a client of the API server with the settings of a process; nothing is sent yet.

    Args:
        settings: settings of the process.
        promptly: whether no request may take long, as for Leases and histories.

    Raises:
        SettingsError: no usable configuration.
    """
    timeout_seconds = _PROMPT_TIMEOUT_SECONDS if promptly else settings.request_timeout_seconds
    params = TransportParams(_USER_AGENT, timeout_seconds=timeout_seconds, renews_account=True)
    try:
        transport = Transport(partial(configuration, settings), params)
    except ConfigurationError as error:
        raise SettingsError(str(error)) from error
    return KubeClient(transport, ApiMetrics(settings.process))


def transport_to(url: str) -> Transport:
    """Return a way to a server of metrics that asks for no account; it is never given ours."""
    server = Configuration(url.rstrip("/"), lambda: None)
    return _transport_to(server, _MOST_PROMETHEUS_BYTES)


def transport_to_kfp(settings: PlanSettings) -> Transport:
    """Return a way to KFP's API; the token is read again for every request, if there is one."""
    address, token = settings.kfp_api_address.rstrip("/"), settings.kfp_api_token
    authorization = (lambda: None) if token is None else partial(bearer, token)
    server = Configuration(address, authorization, settings.kfp_api_authority)
    return _transport_to(server, _MOST_KFP_BYTES)


def _transport_to(server: Configuration, most_bytes: int) -> Transport:
    """Return a way to a server of others, which may be slow or send too much."""
    params = TransportParams(
        _USER_AGENT,
        timeout_seconds=_OTHERS_TIMEOUT_SECONDS,
        connect_timeout_seconds=_OTHERS_TIMEOUT_SECONDS,
        connections=1,
        max_answer_bytes=most_bytes,
        max_answer_seconds=_OTHERS_TIMEOUT_SECONDS,
    )
    return Transport(lambda: server, params)


def configuration(settings: Settings) -> Configuration:
    """Return the API server's address and our account: those of `--kubeconfig`, else the pod's.

    Raises:
        ConfigurationError: it cannot be used.
    """
    kubeconfig = settings.kubeconfig
    try:
        if kubeconfig is None:
            return load_service_account(settings.service_account)
        return load_kubeconfig(kubeconfig)
    except ConfigurationError as error:
        if kubeconfig is None:
            why = (
                f"this is not a pod with a service account ({error!s:.300});"
                " outside of a cluster give --kubeconfig FILE"
            )
        else:
            why = f"no way to the API server by --kubeconfig {kubeconfig}: {error!s:.300}"
        raise ConfigurationError(why) from error
