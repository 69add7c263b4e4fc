"""The thread that asks how much memory pods use."""

from collections.abc import Callable, Mapping

from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.planning.memory_watch import MemoryAnswer, MemoryQuestion
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_kube.exceptions import KubeError


class MemoryWorker(Worker[MemoryQuestion, MemoryAnswer]):
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
        super().__init__("memory", answered)
        self._peaks = peaks

    # `typing.override` came with Python 3.12.
    def answer(self, task: MemoryQuestion) -> MemoryAnswer:  # type: ignore[explicit-override]
        """What the source says."""
        try:
            return MemoryAnswer(task, self._peaks(task))
        except (KubeError, EngineError) as error:
            return MemoryAnswer(task, failure=f"{error!s:.300}")
        except Exception as error:
            # Whatever the source answers, and whatever we make of it: plans do without.
            what = f"defect: {type(error).__name__}: {error!s:.200}"
            return MemoryAnswer(task, failure=what)
