"""One request to the API server: sent, counted, and its refusal made an error of ours."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson

from kfp_placement_controller.exceptions import KubernetesError
from kfp_placement_controller.kube.answers import parsed, refused
from kfp_placement_controller.kube.kinds import Kind
from kfp_placement_controller.kube.transport import Transport
from kfp_placement_controller.metrics import API_ERRORS, API_WRITES

JsonObject = dict[str, Any]

JSON = "application/json"

_METADATA = "application/json;as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1"


class Requests:
    """Sends; safe to use from several threads. Verbs are those of metrics and RBAC."""

    def __init__(self, transport: Transport) -> None:
        """Open nothing yet."""
        self._transport = transport

    def write(
        self,
        verb: str,
        kind: Kind,
        method: str,
        path: str,
        body: object,
        content_type: str = JSON,
    ) -> JsonObject:
        """Change something; returns what the server says of it.

        Raises:
            KubernetesError: refused, or no answer.
        """
        text = orjson.dumps(body)
        written = self.ask(verb, kind, method, path, body=text, content_type=content_type)
        API_WRITES.labels(kind.kind, verb).inc()
        return written

    def ask(
        self,
        verb: str,
        kind: Kind | None,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> JsonObject:
        """Send, and read the whole answer.

        Raises:
            KubernetesError: refused, or no answer.
        """
        response = self.open(verb, kind, method, path, query or {}, body, content_type)
        return parsed(self._transport.read(response, path), path)

    def open(
        self,
        verb: str,
        kind: Kind | None,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None = None,
        content_type: str = JSON,
        silence: float | None = None,
    ) -> Any:
        """Send; credentials that are too old are read again once.

        Args:
            verb: what is done.
            kind: to what; None = no kind.
            method: of HTTP.
            path: where.
            query: of the address.
            body: what is sent.
            content_type: of the body.
            silence: seconds without a word after which nobody is there; None = the usual.

        Returns:
            The answer, unread.

        Raises:
            KubernetesError: refused, or no answer.
        """
        send = partial(
            self._transport.send,
            *(method, path, query, body, content_type),
            accept=_accepted(verb, kind),
            silence_seconds=silence,
        )
        try:
            response = send()
            if response.status == HTTPStatus.UNAUTHORIZED:
                response.close()
                self._transport.renew()
                response = send()
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise refused(response.status, self._transport.read(response, path), path)
        except KubernetesError as error:
            API_ERRORS.labels(kind.kind if kind else "", verb, error.reason).inc()
            raise
        return response


def _accepted(verb: str, kind: Kind | None) -> str:
    if kind is None or not kind.metadata_only:
        return JSON
    return _METADATA.format(suffix="List" if verb == "list" else "")
