"""Answers of the API server: objects, pages of lists, streams, and refusals as errors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from kfp_placement_kube.exceptions import (
    ExpiredError,
    ForbiddenError,
    GarbledError,
    KubernetesError,
    NotFoundError,
    WriteConflictError,
)
from kfp_placement_kube.json_text import read_json
from kfp_placement_kube.kinds import JsonObject, Kind
from kfp_placement_kube.observer import SILENT, Observer
from kfp_placement_kube.transport import Lines

_ERRORS: Mapping[int, type[KubernetesError]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: WriteConflictError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.GONE: ExpiredError,
}


class Page(NamedTuple):
    """A part of a list.

    Attributes:
        items: the objects, with their kind; what is not an object is skipped.
        resource_version: version of the whole list; "" = the answer is not a list.
        continue_token: token of the next page; "" = this is the last.
    """

    items: list[JsonObject]
    resource_version: str
    continue_token: str


class StreamEvent(NamedTuple):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object."""

    type: str
    object: JsonObject


@dataclass(frozen=True)
class Stream:
    """A watch of one kind: iterate over it for changes, and `close` it from any thread.

    Attributes:
        kind: kind of the objects.
        lines: lines of the answer, unread.
        observer: observer of objects that are nested too deeply to be read.
    """

    kind: Kind
    lines: Lines
    observer: Observer = SILENT

    def __iter__(self) -> Iterator[StreamEvent]:
        """Yield changes until the server ends the stream, as it does after the time asked for.

        Raises:
            KubernetesError: the server reports an error, or the connection broke.
        """
        for line in self.lines:
            event = _event(line, f"watching {self.kind.plural}", self.observer)
            if event.type == "ERROR":
                raise _refusal(event.object.get("code", 0), event.object, self.kind.plural)
            yield event

    def close(self) -> None:
        """End the stream; the iteration ends too."""
        self.lines.close()


def answered_object(text: bytes, path: str, observer: Observer = SILENT) -> JsonObject:
    """Return the object that an answer holds.

    Args:
        text: body of the answer.
        path: address of the request, for messages.
        observer: observer of objects that are nested too deeply to be read.

    Raises:
        GarbledError: the answer is not an object: it broke off, or a proxy has answered.
    """
    try:
        answer = read_json(text, observer)
    except ValueError as error:
        message = f"reading {path}: no answer: {error!s:.300}"
        raise GarbledError(message, why="no JSON") from error
    if not isinstance(answer, dict):
        raise GarbledError(f"{path}: the answer is not an object", why="no object")
    return answer


def page_of(kind: Kind, answer: JsonObject) -> Page:
    """Return an answer to a list request as a page."""
    items, metadata = answer.get("items"), answer.get("metadata")
    # The items of a list do not say what they are. A list of metadata alone has no nulls.
    objects = items if isinstance(items, list) else []
    typed_items = [typed(kind, item) for item in objects if isinstance(item, dict)]
    if not isinstance(metadata, dict):
        return Page(typed_items, "", "")
    version, token = metadata.get("resourceVersion"), metadata.get("continue")
    return Page(typed_items, str(version or ""), str(token or ""))


def typed(kind: Kind, body: JsonObject) -> JsonObject:
    """Return an object with its API version and kind."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body}


def refused(status: int, text: bytes, path: str) -> KubernetesError:
    """Return the error for an answer of 400 and above, which may come from a proxy."""
    try:
        status_object = read_json(text)
    except ValueError:
        status_object = None
    if not isinstance(status_object, dict):
        status_object = {"message": text[:300].decode(errors="replace")}
    return _refusal(status, status_object, path)


def _event(line: bytes, path: str, observer: Observer) -> StreamEvent:
    event = answered_object(line, path, observer)
    kind, subject = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(subject, dict):
        message = f"{path}: {line[:80]!r} is not an event"
        raise GarbledError(message, why="a change without an object")
    return StreamEvent(kind, subject)


def _refusal(status: int, answer: JsonObject, path: str) -> KubernetesError:
    reason, why = str(answer.get("reason") or ""), str(answer.get("message") or "refused")
    return _ERRORS.get(status, KubernetesError)(status, reason, f"{path}: {why}", why=why)
