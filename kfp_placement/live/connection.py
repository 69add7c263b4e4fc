"""A live cluster as the commands ask it: within limits, with errors in words for people."""

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
from kfp_placement_kube.kinds import Kind

if TYPE_CHECKING:
    from kfp_placement_kube.answers import JsonObject, Page, StreamEvent
    from kfp_placement_kube.client import KubeClient

PAGE_SIZE = 250
"""Objects asked for at a time, unless a caller says how many."""

MAX_ANSWER_BYTES = 128 * 2**20
"""Largest answer that is read: far more than a page of pods."""

MAX_LINE_BYTES = 16 * 2**20
"""Longest line of a watch; etcd keeps no object above 1.5 MB."""

_SILENCE_SECONDS = 60.0
_WATCH_SILENCE_SECONDS = 150.0
"""A bookmark comes every minute or so; a watch that is silent for longer is dead."""

_ERRORS: Mapping[int, type[ClusterError]] = {
    HTTPStatus.UNAUTHORIZED: ClusterForbiddenError,
    HTTPStatus.FORBIDDEN: ClusterForbiddenError,
    HTTPStatus.NOT_FOUND: ClusterMissingError,
    HTTPStatus.CONFLICT: ClusterConflictError,
    HTTPStatus.GONE: ClusterExpiredError,
}


class LiveCluster:
    """One API server as one account; safe to use from several threads.

    Attributes:
        namespace: the one that is meant where none is named.
    """

    def __init__(self, client: "KubeClient", address: str, access: Access) -> None:
        """Nothing is opened yet.

        Args:
            client: the API server.
            address: the server's.
            access: how the client gets to it.
        """
        self._client = client
        self._address = address
        self._source = access.source
        self.namespace = access.namespace

    @classmethod
    def connect(
        cls, kubeconfig: Path | None = None, context: str | None = None, option: str = ""
    ) -> Self:
        """The cluster that kubectl would talk to; nothing is sent yet.

        Args:
            kubeconfig: file; None = `KUBECONFIG`, else `~/.kube/config`, else, within a pod, its
                account.
            context: by name; None = the current one.
            option: by which a file is named, for messages; "" = there is none.

        Raises:
            ClusterMissingError: there is no such file or context.
            ClusterError: the file cannot be used.
        """
        access = find_access(kubeconfig, context, option)
        # Only now, as they are needed: importing these takes a third of a second.
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

    def get(self, kind: Kind, name: str, namespace: str = "") -> "JsonObject | None":
        """One object, or None if there is none.

        Raises:
            ClusterError: refused, or no answer.
        """
        with self._in_our_words():
            return self._client.get(kind, name, namespace)

    def pages(self, kind: Kind, **chosen: Any) -> "Iterator[Page]":
        """All objects of a kind, a page at a time; each is asked for when it is wanted.

        Args:
            kind: which.
            **chosen: which of them, and how many at a time, as for `KubeClient.pages`; `PAGE_SIZE`
                of them if that is not said.

        Raises:
            ClusterError: refused, or no answer.
        """
        with self._in_our_words():
            yield from self._client.pages(kind, **{"limit": PAGE_SIZE, **chosen})

    def create(self, kind: Kind, body: Mapping[str, Any], *, dry_run: bool = False) -> "JsonObject":
        """Create an object; returns it as the server keeps it.

        Raises:
            ClusterError: refused, or no answer.
        """
        with self._in_our_words():
            return self._client.create(kind, body, dry_run=dry_run)

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        *,
        dry_run: bool = False,
    ) -> "JsonObject":
        """Change an object by a merge patch; returns it as it is then.

        Raises:
            ClusterError: refused, or no answer.
        """
        with self._in_our_words():
            return self._client.patch(kind, name, namespace, patch, dry_run=dry_run)

    def stream(self, kind: Kind, resource_version: str, **chosen: Any) -> "Iterator[StreamEvent]":
        """Changes as they happen; ends when the server ends it, which it does after some minutes.

        Args:
            kind: of what.
            resource_version: from where; "" = from now.
            **chosen: which of them, as for `KubeClient.stream`.

        Raises:
            ClusterError: refused, or the connection broke.
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
        """What the server's refusal, or its silence, means to people."""
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
