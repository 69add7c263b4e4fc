"""Threads that do one thing after another, so that nobody else waits for the answers.

If `failed` is given, a defect in a task becomes an answer and its thread goes on.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")

_STOP_SECONDS = 2.0


@dataclass(eq=False)
class Worker(Generic[TaskT, AnswerT]):
    """Thread, or several, that does one task after another and passes on the answer to each.

    Attributes:
        name: name of the threads.
        answer: function that does a task; a failure is an answer, too.
        answered: function that is given every answer, in the thread that did the task.
        failed: function that returns the answer after a defect in `answer`; None = a defect ends
            that thread.
        threads: number of threads that share the tasks.
    """

    name: str
    answer: Callable[[TaskT], AnswerT]
    answered: Callable[[AnswerT], None]
    failed: Callable[[TaskT, Exception], AnswerT] | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        """Prepare the threads without starting them."""
        self._tasks: queue.SimpleQueue[TaskT | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=self.name, daemon=True)
            for _ in range(self.threads)
        ]

    def start(self) -> None:
        """Start; returns at once."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads, unless they wait for somebody: then the process ends without them."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_STOP_SECONDS)

    def submit(self, task: TaskT) -> None:
        """Let a task be done as soon as those before it are; returns at once."""
        self._tasks.put(task)

    def alive(self) -> bool:
        """Return whether all threads work."""
        return all(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                answer = self.answer(task)
            except Exception as error:
                if self.failed is None:
                    raise
                answer = self.failed(task, error)
            self.answered(answer)
