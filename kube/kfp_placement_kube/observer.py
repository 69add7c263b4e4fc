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
        return

    def failed(self, kind: str, verb: str, reason: str) -> None:
        """A request was refused or not answered; `reason` is the server's, in one word."""
        return

    def cut(self) -> None:
        """Of an answer, what was nested too deeply has been read as null."""
        return

    def watching(self, kind: str, age_seconds: Callable[[], float]) -> None:
        """A watch begins; `age_seconds` gives the time since it last brought anything."""
        return

    def listed(self, kind: str) -> None:
        """A watch has listed everything there is."""
        return

    def changed(self, kind: str) -> None:
        """A watch has shown an object to be new, changed or gone."""
        return

    def passed_over(self, kind: str) -> None:
        """A watch could not keep an object."""
        return

    def led(self, leads: bool) -> None:
        """This program leads from now on, or no longer leads."""
        return

    def event_dropped(self) -> None:
        """An event was not written: too many waited, or the server refused it."""
        return


class Silent(Observer):
    """Measures nothing."""


SILENT = Silent()
