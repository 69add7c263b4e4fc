"""The thread that asks how much memory pods use, so that nobody else waits for the answer."""

import queue
import threading
from collections.abc import Callable, Mapping

from kfp_placement_controller.planning.memory_watch import MemoryAnswer, MemoryQuestion
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_kube.exceptions import KubeError

_STOP_SECONDS = 2.0


class MemoryWorker:
    """Asks one question after the other."""

    def __init__(
        self,
        peaks: Callable[[MemoryQuestion], Mapping[str, float]],
        answered: Callable[[MemoryAnswer], None],
    ) -> None:
        """Nothing is started yet.

        Args:
            peaks: asks a source, and waits for it.
            answered: is given every answer, in this worker's thread.
        """
        self._peaks = peaks
        self._answered = answered
        self._questions: queue.SimpleQueue[MemoryQuestion | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="memory", daemon=True)

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, unless it waits for an answer: then the process ends without it."""
        self._questions.put(None)
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def ask(self, question: MemoryQuestion) -> None:
        """Ask as soon as there is an answer to those before; returns at once."""
        self._questions.put(question)

    def _work(self) -> None:
        while (question := self._questions.get()) is not None:
            self._answered(self._answer(question))

    def _answer(self, question: MemoryQuestion) -> MemoryAnswer:
        try:
            return MemoryAnswer(question, self._peaks(question))
        except (KubeError, EngineError) as error:
            return MemoryAnswer(question, failure=f"{error!s:.300}")
        except Exception as error:
            # Whatever the source answers, and whatever we make of it: plans do without.
            what = f"defect: {type(error).__name__}: {error!s:.200}"
            return MemoryAnswer(question, failure=what)
