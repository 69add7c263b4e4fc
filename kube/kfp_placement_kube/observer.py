"""Notifications of the traffic with an API server, for a program that measures it."""

from collections.abc import Callable
from typing import Protocol


class Observer(Protocol):
    """Receiver of notifications about everything that is worth counting.

    All methods may be called from any thread, and none may raise. Kinds are named as in objects,
    such as `Pod`; "" = no kind. Verbs are those of RBAC.
    """

    def wrote(self, kind: str, verb: str) -> None:
        """Note that the server has accepted a write."""
        return

    def failed(self, kind: str, verb: str, reason: str) -> None:
        """Note a request that was refused or not answered; `reason` is the server's word."""
        return

    def truncated(self) -> None:
        """Note that null stands for values of an answer that were nested too deeply."""
        return

    def watching(self, kind: str, age_seconds: Callable[[], float]) -> None:
        """Note that a watch begins; `age_seconds` returns the time since its last news."""
        return

    def listed(self, kind: str) -> None:
        """Note that a watch has listed all objects."""
        return

    def changed(self, kind: str) -> None:
        """Note that a watch has reported an object as new, changed or gone."""
        return

    def skipped(self, kind: str) -> None:
        """Note that a watch could not read or keep an object."""
        return

    def leading(self, leads: bool) -> None:
        """Note that this program leads from now on, or no longer leads."""
        return

    def event_dropped(self) -> None:
        """Note an event that was not written: too many waited, or the server refused it."""
        return


class Silent(Observer):
    """Observer that ignores everything."""


SILENT = Silent()
