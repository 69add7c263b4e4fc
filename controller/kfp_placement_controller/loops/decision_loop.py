"""A loop that decides: one thread takes in what has come, decides, and carries that out."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Generic, Protocol, TypeVar

from kfp_placement_controller.loops.garbage import keep_what_is_there, look_less_often
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_engine.units.durations import whole_seconds_text

LEAST_PAUSE_SECONDS = 0.05
"""Between two looks: changes come in bursts."""

STUCK_SECONDS = 120.0
"""A loop that has not come round for this long hangs; a look takes a second at most."""

MAX_BATCH_SECONDS = 0.1
"""Longest time spent on changes between two looks: reading a graph takes tens of milliseconds."""


class Decider(Protocol):
    """Decides, from the messages and the time."""

    def next_at(self, now: datetime, /) -> datetime:
        """Return when to decide again if nothing changes before."""
        ...


DeciderT = TypeVar("DeciderT", bound=Decider)


@dataclass
class DecisionLoop(ABC, Generic[DeciderT]):
    """The one thread that calls a decider.

    Attributes:
        name: name of the process, for messages.
        decider: decides.
        inbox: the messages for it.
        clock: time of day.
        monotonic: count of seconds that nobody sets.
        caught_up: everything there was at the start has been taken in.
    """

    name: ClassVar[str]
    decider: DeciderT
    inbox: Inbox[DeciderT]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    caught_up: bool = field(init=False, default=False)
    _stopping: threading.Event = field(init=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Count from now for how long the loop has not come round."""
        self._came_round_at = self.monotonic()

    @abstractmethod
    def _decide(self) -> None:
        """Let the decider decide, and carry out what it has decided; end early if stopping."""

    def stop(self) -> None:
        """Let it end; from any thread, or a signal."""
        self._stopping.set()
        self.inbox.wake()

    def stuck(self) -> str:
        """Return for how long the loop hangs, in words, or "" while it works."""
        seconds = self.monotonic() - self._came_round_at
        if seconds <= STUCK_SECONDS:
            return ""
        return f"the {self.name}'s loop has not come round for {whole_seconds_text(seconds)}"

    def run(self, is_synced: Callable[[], bool], stand_for_election: Callable[[], None]) -> None:
        """Work in this thread until `stop`.

        Args:
            is_synced: whether everything there was at the start is in the inbox or was taken in.
            stand_for_election: called once, when it was all taken in.
        """
        look_less_often()
        while not self._stopping.is_set():
            self._came_round_at = self.monotonic()
            is_complete = not self.caught_up and is_synced()
            if self._take() and is_complete:
                # A replica that has not seen everything does not stand for election: others can
                # lead, and report if none does.
                keep_what_is_there()
                stand_for_election()
                self.caught_up = True
            if self.caught_up and not self._stopping.is_set():
                self._decide()
                self._stopping.wait(LEAST_PAUSE_SECONDS)

    def _take(self) -> bool:
        """Take in what has come, or wait until it is time to look; returns whether none is left.

        What there was at the start is taken in whole: plans are adopted by runs that are known.
        """
        now = self.clock()
        pause_seconds = max(0.0, (self.decider.next_at(now) - now).total_seconds())
        message = self.inbox.next_message(pause_seconds)
        until = self.monotonic() + MAX_BATCH_SECONDS
        while message is not None:
            if self._stopping.is_set():
                return False
            self._came_round_at = self.monotonic()
            message(self.decider, self.clock())
            if self.caught_up and self._came_round_at >= until:
                return False
            message = self.inbox.next_message()
        return True
