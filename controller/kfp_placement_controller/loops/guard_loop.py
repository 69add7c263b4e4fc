"""The loop of `extend`: lets the guard look after what is dead, about once a second.

A module of its own because it catches every defect, as the outermost loop of a thread; its importer
only connects the parts of the process.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore
from kfp_placement_controller.loops.garbage import keep_what_is_there

_LOG = logging.getLogger(__name__)

TICK_SECONDS = 1.0
"""Pause between two checks of Leases and gates."""


@dataclass(eq=False)
class GuardLoop:
    """Works in a thread of its own, from when everything is known.

    Attributes:
        guard: guard, which decides and writes.
        store: store of the extender, which forgets here what mattered only for a moment.
        is_synced: function that returns whether everything is known.
    """

    guard: Guard
    store: KnowledgeStore
    is_synced: Callable[[], bool]

    def __post_init__(self) -> None:
        """Prepare the thread without starting it."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="guard")

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; returns when it has."""
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        while not self.is_synced():
            if self._stopping.wait(TICK_SECONDS):
                return
        keep_what_is_there()
        while not self._stopping.wait(TICK_SECONDS):
            try:
                try:
                    self.guard.tick()
                finally:
                    self.store.forget_moments()
            except Exception:
                # The outermost loop of this thread. Nobody else may be left to take gates off: a
                # defect ends one round, not all.
                _LOG.exception("defect in the guard")
