"""The main loop of a process: one thread takes messages, decides, and carries the decision out."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Generic, Protocol, TypeVar

from kfp_placement_controller.loops.garbage import keep_what_is_there, look_less_often
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_engine.units.durations import whole_seconds_text

PAUSE_SECONDS = 0.2
"""Pause after a decision, in which changes that come in bursts collect."""

BACKLOG_PAUSE_SECONDS = 0.05
"""Pause after a decision that has left work."""

STUCK_SECONDS = 120.0
"""Time without progress after which a loop counts as hung; a decision takes 1 s at most."""

MAX_BATCH_SECONDS = 0.1
"""Longest time spent on messages between two decisions; reading a graph takes tens of ms."""


class Decider(Protocol):
    """The state of a process, which messages change and from which it decides."""

    def next_at(self, now: datetime, /) -> datetime:
        """Return the time of the next decision if no message comes before."""
        ...


DeciderT = TypeVar("DeciderT", bound=Decider)


@dataclass
class DecisionLoop(ABC, Generic[DeciderT]):
    """The loop of the only thread that calls a decider.

    Attributes:
        name: name of the process, for messages.
        decider: state of the process, which decides.
        inbox: messages for the decider.
        clock: time of day.
        monotonic: monotonic clock, in seconds.
        caught_up: whether all objects that existed at the start have been taken in.
    """

    name: ClassVar[str]
    decider: DeciderT
    inbox: Inbox[DeciderT]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    caught_up: bool = field(init=False, default=False)
    _stopping: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Measure the time without progress from now on."""
        self._came_round_at = self.monotonic()

    @abstractmethod
    def _decide(self) -> None:
        """Ask the decider for actions and carry them out; return early while stopping."""

    def stop(self) -> None:
        """Make `run` return soon; safe to call from any thread or signal handler.

        It takes no lock, since the thread that a signal interrupts may hold that lock.
        """
        self._stopping = True
        self.inbox.wake()

    def stuck(self) -> str:
        """Return a message that says for how long the loop hangs, or "" while it works."""
        seconds = self.monotonic() - self._came_round_at
        if seconds <= STUCK_SECONDS:
            return ""
        return f"the {self.name}'s loop has not come round for {whole_seconds_text(seconds)}"

    def run(self, is_synced: Callable[[], bool], stand_for_election: Callable[[], None]) -> None:
        """Work in this thread until `stop`.

        Args:
            is_synced: function that returns whether all objects of the start are in the inbox.
            stand_for_election: function to call once, when all those objects have been taken in.
        """
        look_less_often()
        due = self.decider.next_at(self.clock())
        while not self._stopping:
            self._came_round_at = self.monotonic()
            is_complete = not self.caught_up and is_synced()
            if self._take(due) and is_complete:
                # A replica stands for election only after it has seen everything. Until then
                # others can lead.
                keep_what_is_there()
                stand_for_election()
                self.caught_up = True
            if self.caught_up and not self._stopping:
                self._decide()
            now = self.clock()
            due = self.decider.next_at(now)
            if self.caught_up and not self._stopping:
                time.sleep(PAUSE_SECONDS if due > now else BACKLOG_PAUSE_SECONDS)

    def _take(self, due: datetime) -> bool:
        """Take messages until the next decision is due; return whether no message is left.

        Before `caught_up` there is no time limit: a run adopts its stored plan only if all objects
        of the start are known.
        """
        pause_seconds = max(0.0, (due - self.clock()).total_seconds())
        message = self.inbox.next_message(pause_seconds)
        until = self.monotonic() + MAX_BATCH_SECONDS
        while message is not None:
            if self._stopping:
                return False
            self._came_round_at = self.monotonic()
            message(self.decider, self.clock())
            if self.caught_up and self._came_round_at >= until:
                return False
            message = self.inbox.next_message()
        return True
