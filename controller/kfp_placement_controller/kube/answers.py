"""What the API server answers: objects, streams of changes, and refusals as errors of ours."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from kfp_placement_controller.exceptions import (
    ConflictError,
    ExpiredError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    UnreachableError,
)
from kfp_placement_controller.kube.json_text import read_json
from kfp_placement_controller.kube.kinds import Kind
from kfp_placement_controller.kube.transport import Lines, unreachable

_ERRORS: Mapping[int, type[KubernetesError]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.GONE: ExpiredError,
}


class StreamEvent(NamedTuple):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object."""

    type: str
    object: dict[str, Any]


class Stream:
    """Changes as they happen; `close` ends it from any thread."""

    def __init__(self, kind: Kind, lines: Lines) -> None:
        """Read nothing yet."""
        self._kind = kind
        self._lines = lines

    def __iter__(self) -> Iterator[StreamEvent]:
        """The changes, until the server ends the stream, as it does after the time asked for.

        Raises:
            KubernetesError: the server says so, or the connection broke.
        """
        for line in self._lines:
            event = _event(line, f"watching {self._kind.plural}")
            if event.type == "ERROR":
                raise _refusal(event.object.get("code", 0), event.object, self._kind.plural)
            yield event

    def close(self) -> None:
        """End it; whoever iterates sees the end."""
        self._lines.close()


def parsed(text: bytes, path: str) -> dict[str, Any]:
    """The object that an answer holds.

    Raises:
        UnreachableError: it holds none: it broke off, or something in between has answered.
    """
    try:
        found = read_json(text)
    except ValueError as error:
        raise unreachable("reading", path, error) from error
    if not isinstance(found, dict):
        raise UnreachableError(0, "Unreachable", f"{path}: the answer is no object")
    return found


def _event(line: bytes, path: str) -> StreamEvent:
    found = parsed(line, path)
    kind, subject = found.get("type"), found.get("object")
    if not isinstance(kind, str) or not isinstance(subject, dict):
        raise UnreachableError(0, "Unreachable", f"{path}: {line[:80]!r} is no event")
    return StreamEvent(kind, subject)


def refused(status: int, text: bytes, path: str) -> KubernetesError:
    """The error for an answer of 400 and above, which may come from something in between."""
    try:
        found = read_json(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        found = {"message": text.decode(errors="replace")[:300]}
    return _refusal(status, found, path)


def _refusal(status: int, answer: dict[str, Any], path: str) -> KubernetesError:
    reason = str(answer.get("reason") or "")
    message = f"{path}: {answer.get('message') or 'refused'}"
    return _ERRORS.get(status, KubernetesError)(status, reason, message)
