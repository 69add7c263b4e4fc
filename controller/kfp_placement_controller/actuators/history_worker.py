"""The thread that writes PipelineHistories: placement waits neither for them nor for merging."""

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kfp_placement_controller.actuators.histories import change_history
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.exceptions import NamespaceGoneError, SupersededError
from kfp_placement_controller.planning.actions import (
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
)
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError

_LOG = logging.getLogger(__name__)


class HistoryTask(NamedTuple):
    """What to do, and with which epoch it was decided."""

    action: HistoryAction
    epoch: int | None


class HistoryWorker(Worker[HistoryTask, HistoryAnswer]):
    """Writes one history after the other, while its leader leads."""

    def __init__(
        self,
        client: KubeClient,
        epoch: Callable[[], int | None],
        answered: Callable[[HistoryAnswer], None],
    ) -> None:
        """Nothing is started yet.

        Args:
            client: the API server; its requests should end before another leader can begin.
            epoch: of our Lease at this moment; None = we do not lead.
            answered: is given every answer, in this worker's thread.
        """
        super().__init__("histories", answered)
        self._client = client
        self._epoch = epoch
        self._said = SaidOnce(_LOG)

    # `typing.override` came with Python 3.12.
    def answer(self, task: HistoryTask) -> HistoryAnswer:  # type: ignore[explicit-override]
        """Write, unless another leads by now."""
        action = task.action
        try:
            change_history(self._client, action, partial(self._must_lead, task.epoch))
        except SupersededError:
            return HistoryAnswer(action, HistoryOutcome.FAILED)
        except NamespaceGoneError:
            return HistoryAnswer(action, HistoryOutcome.NAMESPACE_GONE)
        except InputError as error:
            # To try it again changes nothing; the next run of the pipeline may.
            return HistoryAnswer(action, HistoryOutcome.REFUSED, str(error))
        except KubernetesError as error:
            return HistoryAnswer(action, HistoryOutcome.FAILED, str(error))
        except Exception as error:
            self._said.defect(
                f"some PipelineHistories of namespace {action.namespace} are not written", error
            )
            return HistoryAnswer(action, HistoryOutcome.REFUSED)
        return HistoryAnswer(action, HistoryOutcome.DONE)

    def _must_lead(self, epoch: int | None) -> None:
        if epoch is None or self._epoch() != epoch:
            raise SupersededError(0, "Superseded", "this planner no longer leads")
