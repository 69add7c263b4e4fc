"""One request to the API server: sent, counted, and its refusal made an error."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson

from kfp_placement_kube.answers import JsonObject, parsed, refused
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.kinds import Kind
from kfp_placement_kube.observer import Observer
from kfp_placement_kube.transport import Transport

JSON = "application/json"

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
"""Methods of HTTP for the verbs that write."""

# Whole objects where the server knows no other form.
_METADATA = "application/json;as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1,application/json"


class Requests:
    """Sends; safe to use from several threads. Verbs are those of RBAC."""

    def __init__(self, transport: Transport, observer: Observer) -> None:
        """Nothing is opened yet."""
        self._transport = transport
        self._observer = observer

    def write(
        self,
        verb: str,
        kind: Kind,
        path: str,
        body: Mapping[str, Any],
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Change something; returns what the server says of it.

        Args:
            verb: what is done.
            kind: to what.
            path: where.
            body: what is sent.
            content_type: of the body.
            query: parameters.
            dry_run: the server checks the write and keeps nothing.

        Raises:
            KubernetesError: refused, or no answer.
        """
        text = orjson.dumps(body)
        asked = {**(query or {}), **({"dryRun": "All"} if dry_run else {})}
        written = self.ask(verb, kind, path, query=asked, body=text, content_type=content_type)
        self._observer.wrote(kind.kind, verb)
        return written

    def ask(
        self,
        verb: str,
        kind: Kind | None,
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
        response = self.open(verb, kind, path, query or {}, body, content_type)
        return parsed(self._transport.read(response, path), path, self._observer)

    def open(
        self,
        verb: str,
        kind: Kind | None,
        path: str,
        query: Mapping[str, str],
        body: bytes | None = None,
        content_type: str = JSON,
        silence: float | None = None,
    ) -> Any:
        """Send; credentials that are too old are read again once, where the transport says so.

        Args:
            verb: what is done.
            kind: to what; None = no kind.
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
        accept = JSON
        if kind is not None and kind.metadata_only:
            accept = _METADATA.format(suffix="List" if verb == "list" else "")
        send = partial(
            self._transport.send,
            *(_METHODS.get(verb, "GET"), path, query, body, content_type),
            accept=accept,
            silence_seconds=silence,
        )
        try:
            response = send()
            if response.status == HTTPStatus.UNAUTHORIZED and self._transport.renews_account:
                response.close()
                self._transport.renew()
                response = send()
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise refused(response.status, self._transport.read(response, path), path)
        except KubernetesError as error:
            self._observer.failed(kind.kind if kind else "", verb, error.reason)
            raise
        return response
