"""What a program may measure of its traffic with an API server."""

from collections.abc import Callable
from typing import Protocol


class Observer(Protocol):
    """Is notified of everything that is worth counting.

    All methods may be called from any thread, and none may raise. Kinds are named as in objects,
    such as `Pod`; "" = no kind. Verbs are those of RBAC.
    """

    def wrote(self, kind: str, verb: str) -> None:
        """The server has accepted a write."""
        ...

    def failed(self, kind: str, verb: str, reason: str) -> None:
        """A request was refused or not answered; `reason` is the server's, in one word."""
        ...

    def cut(self) -> None:
        """Of an answer, what was nested too deeply has been read as null."""
        ...

    def watching(self, kind: str, age_seconds: Callable[[], float]) -> None:
        """A watch begins; `age_seconds` gives the time since it last brought anything."""
        ...

    def listed(self, kind: str) -> None:
        """A watch has listed everything there is."""
        ...

    def changed(self, kind: str) -> None:
        """A watch has shown an object to be new, changed or gone."""
        ...

    def passed_over(self, kind: str) -> None:
        """A watch could not keep an object."""
        ...

    def led(self, leads: bool) -> None:
        """This program leads from now on, or no longer leads."""
        ...

    def event_dropped(self) -> None:
        """An event was not written: too many waited, or the server refused it."""
        ...


class Silent:
    """Measures nothing."""

    def wrote(self, kind: str, verb: str) -> None:
        """Do nothing."""

    def failed(self, kind: str, verb: str, reason: str) -> None:
        """Do nothing."""

    def cut(self) -> None:
        """Do nothing."""

    def watching(self, kind: str, age_seconds: Callable[[], float]) -> None:
        """Do nothing."""

    def listed(self, kind: str) -> None:
        """Do nothing."""

    def changed(self, kind: str) -> None:
        """Do nothing."""

    def passed_over(self, kind: str) -> None:
        """Do nothing."""

    def led(self, leads: bool) -> None:
        """Do nothing."""

    def event_dropped(self) -> None:
        """Do nothing."""


SILENT = Silent()
