"""Requests to the API server: each is sent and counted, and a refusal becomes an error."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson

from kfp_placement_kube.exceptions import ConfigurationError, KubernetesError
from kfp_placement_kube.kinds import JsonObject, Kind
from kfp_placement_kube.observer import Observer
from kfp_placement_kube.responses import answered_object, refused
from kfp_placement_kube.transport import Transport

JSON = "application/json"

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
"""HTTP methods of the verbs that write."""

# Whole objects where the server knows no other form.
_METADATA = "application/json;as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1,application/json"


@dataclass(frozen=True)
class Requests:
    """Sender of requests, named by RBAC's verbs; safe to use from several threads.

    Attributes:
        transport: connections to the server; the first request opens one.
        observer: observer of requests that are refused, and of writes.
    """

    transport: Transport
    observer: Observer

    def write(
        self,
        verb: str,
        kind: Kind,
        path: str,
        body: JsonObject,
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Write an object and return it as the server answers it.

        Args:
            verb: verb of RBAC.
            kind: kind of the object.
            path: address on the server.
            body: body of the request.
            content_type: content type of the body.
            query: parameters of the address.
            dry_run: the server checks the write and keeps nothing.

        Raises:
            KubernetesError: refused, or no answer.
        """
        text = orjson.dumps(body)
        parameters = {**(query or {}), **({"dryRun": "All"} if dry_run else {})}
        written = self.ask(verb, kind, path, query=parameters, body=text, content_type=content_type)
        self.observer.wrote(kind.kind, verb)
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
        """Send a request and read the whole answer.

        Raises:
            KubernetesError: refused, or no answer.
        """
        response = self.open(verb, kind, path, query or {}, body, content_type)
        return answered_object(self.transport.read(response, path), path, self.observer)

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
        """Send a request and return the unread answer.

        Credentials that are too old are read again once, where the transport says so; if they
        cannot be read, the server's refusal stands.

        Args:
            verb: verb of RBAC.
            kind: kind of the objects; None = no kind.
            path: address on the server.
            query: parameters of the address.
            body: body of the request.
            content_type: content type of the body.
            silence: seconds without a byte after which the connection counts as broken; None = as
                for every request.

        Returns:
            The answer, whose body is still to be read.

        Raises:
            KubernetesError: refused, or no answer.
        """
        accept = JSON
        if kind is not None and kind.metadata_only:
            accept = _METADATA.format(suffix="List" if verb == "list" else "")
        send = partial(
            self.transport.send,
            *(_METHODS.get(verb, "GET"), path, query, body, content_type),
            accept=accept,
            silence_seconds=silence,
        )
        try:
            response = send()
            if response.status == HTTPStatus.UNAUTHORIZED and self.transport.renews_account:
                response.close()
                try:
                    self.transport.renew()
                except ConfigurationError as error:
                    # Whoever asks again, such as a watch, may find the account readable then.
                    raise KubernetesError(
                        response.status, "Unauthorized", f"{path}: {error}"
                    ) from error
                response = send()
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise refused(response.status, self.transport.read(response, path), path)
        except KubernetesError as error:
            self.observer.failed(kind.kind if kind else "", verb, error.reason)
            raise
        return response
