"""Connection to the API server of a cluster, with limits, and with errors in words for people."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kfp_placement.live.access import Access, find_access
from kfp_placement.live.exceptions import (
    ClusterConflictError,
    ClusterError,
    ClusterExpiredError,
    ClusterForbiddenError,
    ClusterMissingError,
    ClusterUnreachableError,
)
from kfp_placement_kube.exceptions import (
    GarbledError,
    KubernetesError,
    UnreachableError,
    UntrustedError,
)
from kfp_placement_kube.kinds import JsonObject, Kind

if TYPE_CHECKING:
    from kfp_placement_kube.client import KubeClient
    from kfp_placement_kube.responses import Page, StreamEvent

PAGE_SIZE = 250
"""Objects of a page, unless the caller states a number."""

MAX_ANSWER_BYTES = 128 * 2**20
"""Size of the largest answer that is read: far more than a page of pods."""

MAX_LINE_BYTES = 16 * 2**20
"""Length of the longest line of a watch that is read; etcd keeps no object above 1.5 MB."""

_SILENCE_SECONDS = 60.0
"""Silence after which a request fails."""

_WATCH_SILENCE_SECONDS = 150.0
"""Silence after which a watch counts as dead: a bookmark comes about every minute."""

_ERRORS: Mapping[int, type[ClusterError]] = {
    HTTPStatus.UNAUTHORIZED: ClusterForbiddenError,
    HTTPStatus.FORBIDDEN: ClusterForbiddenError,
    HTTPStatus.NOT_FOUND: ClusterMissingError,
    HTTPStatus.CONFLICT: ClusterConflictError,
    HTTPStatus.GONE: ClusterExpiredError,
}


class ClusterApi:
    """API server of a cluster, as one account; safe to use from several threads.

    Attributes:
        namespace: namespace to use if none is named.
    """

    def __init__(self, client: "KubeClient", address: str, access: Access) -> None:
        """Set up the connection; nothing is opened yet.

        Args:
            client: client of the API server.
            address: address of the API server, for messages.
            access: way to the cluster that the client takes.
        """
        self._client = client
        self._address = address
        self._source = access.source
        self.namespace = access.namespace

    @classmethod
    def connect(
        cls, kubeconfig: Path | None = None, context: str | None = None, option: str = ""
    ) -> Self:
        """Return a connection to the cluster that kubectl would talk to; nothing is sent yet.

        Args:
            kubeconfig: file; None = `KUBECONFIG`, else `~/.kube/config`, else, within a pod, its
                account.
            context: name of a context; None = the current one.
            option: option that names a file, for messages; "" = there is no such option.

        Raises:
            ClusterMissingError: there is no such file or context.
            ClusterError: the file cannot be used.
        """
        access = find_access(kubeconfig, context, option)
        # Imported here, after the checks above: it takes a third of a second.
        from kfp_placement_kube.client import KubeClient
        from kfp_placement_kube.transport import Transport, TransportParams

        params = TransportParams(
            f"kfp-placement/{version('kfp-placement')}",
            timeout_seconds=_SILENCE_SECONDS,
            max_answer_bytes=MAX_ANSWER_BYTES,
            max_line_bytes=MAX_LINE_BYTES,
            retries_when_busy=True,
        )
        transport = Transport(access.load, params)
        return cls(KubeClient(transport), transport.address, access)

    def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """Return an object, or None if it does not exist.

        Raises:
            ClusterError: the cluster refuses, or gives no answer.
        """
        with self._in_our_words():
            return self._client.get(kind, name, namespace)

    def pages(self, kind: Kind, **chosen: Any) -> "Iterator[Page]":
        """Yield the objects of a kind in pages; a page is requested when it is consumed.

        Args:
            kind: kind of the objects.
            **chosen: selectors and the size of a page, as for `KubeClient.pages`; by default
                `PAGE_SIZE`.

        Raises:
            ClusterError: the cluster refuses, or gives no answer.
        """
        with self._in_our_words():
            yield from self._client.pages(kind, **{"limit": PAGE_SIZE, **chosen})

    def create(self, kind: Kind, body: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create an object and return it as the server keeps it.

        Raises:
            ClusterError: the cluster refuses, or gives no answer.
        """
        with self._in_our_words():
            return self._client.create(kind, body, dry_run=dry_run)

    def patch(
        self, kind: Kind, name: str, namespace: str, patch: JsonObject, *, dry_run: bool = False
    ) -> JsonObject:
        """Change an object by a merge patch and return the changed object.

        Raises:
            ClusterError: the cluster refuses, or gives no answer.
        """
        with self._in_our_words():
            return self._client.patch(kind, name, namespace, patch, dry_run=dry_run)

    def stream(self, kind: Kind, resource_version: str, **chosen: Any) -> "Iterator[StreamEvent]":
        """Yield changes as they happen, until the server ends the stream after some minutes.

        Args:
            kind: kind of the objects.
            resource_version: version after which changes are sent; "" = from now on.
            **chosen: selectors, as for `KubeClient.stream`.

        Raises:
            ClusterError: the cluster refuses, or the connection broke.
        """
        with self._in_our_words():
            yield from self._client.stream(
                kind,
                resource_version,
                timeout_seconds=None,
                silence_seconds=_WATCH_SILENCE_SECONDS,
                **chosen,
            )

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except KubernetesError as error:
            raise self._error(error) from error

    def _error(self, error: KubernetesError) -> ClusterError:
        """Return the error that explains the server's refusal, or its silence, to people."""
        server = f"{self._address} ({self._source})"
        match error:
            case GarbledError():
                return ClusterUnreachableError(
                    f"{self._address} does not answer as an API server: {error.why}"
                )
            case UntrustedError():
                return ClusterUnreachableError(
                    f"{server} answers, but its certificate cannot be verified: {error.why:.300};"
                    " does certificate-authority in the kubeconfig belong to it?"
                )
            case UnreachableError():
                return ClusterUnreachableError(
                    f"no answer from {server}: {error.why:.300}; is it up, and can it be reached"
                    " from here?"
                )
            case _:
                return _ERRORS.get(error.status, ClusterError)(self._refusal(error))

    def _refusal(self, error: KubernetesError) -> str:
        if error.status == HTTPStatus.UNAUTHORIZED:
            return (
                f"{self._address} does not know the account of {self._source}; log in again, or"
                " name another one with --context"
            )
        forbidden = error.status == HTTPStatus.FORBIDDEN
        remedy = "; ask whoever manages the cluster for that right" if forbidden else ""
        return f"{error.why.strip()[:1000]}{remedy}"
