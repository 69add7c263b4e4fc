"""PipelineHistories: the leading planner adds runs to existing ones, whoever has written them.

In a thread of its own: placement waits neither for them nor for merging.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from kfp_placement_controller.actuators.objects import merge_patch
from kfp_placement_controller.exceptions import SupersededError
from kfp_placement_controller.histories.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import (
    PipelineHistory,
    PipelineHistorySpec,
    PipelineHistoryStatus,
    history_name,
    runs_kept,
)
from kfp_placement_engine.contract.history.status import history_status
from kfp_placement_engine.contract.shared_parts import ObjectMetadata
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.kinds import JsonObject


class HistoryTask(NamedTuple):
    """Change of a history, and the epoch of the planner that decided it."""

    action: HistoryAction
    epoch: int | None


@dataclass
class HistoryWriter:
    """Writes one history after the other, while its leader leads.

    Attributes:
        client: the API server; its requests should end before another leader can begin.
        leading_epoch: function that returns our Lease's epoch; None while we do not lead.
    """

    client: KubeClient
    leading_epoch: Callable[[], int | None]
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def write(self, task: HistoryTask) -> HistoryAnswer:
        """Write or delete a history, unless another planner leads by now."""
        action, outcome, why = task.action, HistoryOutcome.DONE, ""
        try:
            match action:
                case WriteHistory():
                    self._write(action, task.epoch)
                case DeleteHistory():
                    self._delete(action, task.epoch)
        except SupersededError:
            outcome = HistoryOutcome.FAILED
        except InputError as error:
            # To try it again changes nothing; the next run of the pipeline may.
            outcome, why = HistoryOutcome.REFUSED, str(error)
        except KubernetesError as error:
            # The same status says that the kind is not installed; only the words tell them apart.
            is_gone = f'namespaces "{action.namespace}" not found' in error.why
            outcome = HistoryOutcome.NAMESPACE_GONE if is_gone else HistoryOutcome.FAILED
            why = "" if is_gone else str(error)
        return HistoryAnswer(action, outcome, why)

    def failed(self, task: HistoryTask, error: Exception) -> HistoryAnswer:
        """Log a defect once, and return the answer: the change is not tried again."""
        self._warnings.warn_of_defect(
            f"some PipelineHistories of namespace {task.action.namespace} are not written", error
        )
        return HistoryAnswer(task.action, HistoryOutcome.REFUSED)

    def _must_lead(self, epoch: int | None) -> None:
        """Check that we still lead, before every write.

        Raises:
            SupersededError: another leads since this was decided.
        """
        if epoch is None or self.leading_epoch() != epoch:
            raise SupersededError(0, "Superseded", "this planner no longer leads")

    def _delete(self, delete: DeleteHistory, epoch: int | None) -> None:
        """Remove the object as it is now, unless somebody else, a later leader, writes it first."""
        stored = self.client.get(PIPELINE_HISTORIES, delete.name, delete.namespace)
        self._must_lead(epoch)
        if stored is not None and "deletionTimestamp" not in stored["metadata"]:
            version = stored["metadata"]["resourceVersion"]
            self.client.delete(
                PIPELINE_HISTORIES, delete.name, delete.namespace, resource_version=version
            )

    def _write(self, write: WriteHistory, epoch: int | None) -> None:
        """Add the runs; of a run that has been added before, the one that ended last counts.

        Where somebody else writes in between it fails, and is tried again later.
        """
        client, name = self.client, history_name(write.pipeline)
        stored = client.get(PIPELINE_HISTORIES, name, write.namespace)
        if stored is None:
            self._must_lead(epoch)
            new = PipelineHistory(
                metadata=ObjectMetadata(name=name, namespace=write.namespace),
                spec=PipelineHistorySpec(pipeline=write.pipeline),
            )
            stored = client.create(PIPELINE_HISTORIES, new.to_object())
        patch = {
            "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
            "status": merge_patch(_merged(stored, write)),
        }
        self._must_lead(epoch)
        client.patch(PIPELINE_HISTORIES, name, write.namespace, patch, subresource="status")


def _merged(stored: JsonObject, write: WriteHistory) -> PipelineHistoryStatus:
    """Return the status that has the runs of a stored object and those to write.

    Raises:
        InputError: the object is of another pipeline, or cannot be read.
    """
    try:
        history = read_resource(PipelineHistory, stored)
        runs = {run.uid: run for run in history.past_runs()}
    except InputError as error:
        # A later version may have written it, and may be installed again.
        raise InputError(
            f"{error}; it is left as it is: delete it if no later version has written it"
        ) from error
    if history.spec.pipeline != write.pipeline:
        raise InputError(
            f"PipelineHistory {history.metadata.name!r:.80} is of pipeline"
            f" {history.spec.pipeline!r:.80}, not of {write.pipeline!r:.80}; it is left as it is:"
            " delete it if nobody needs it"
        )
    seen = (history.status.runs_seen or 0) + len({run.uid for run in write.runs} - runs.keys())
    for run in write.runs:
        earlier = runs.get(run.uid, run)
        runs[run.uid] = max(run, earlier, key=lambda each: each.ended_at)
    # What ended much later than what has just ended had a wrong clock.
    latest_at = max(run.ended_at for run in write.runs) + timedelta(days=write.keep_days)
    possible = [run for run in runs.values() if run.ended_at <= latest_at]
    return history_status(runs_kept(possible, write.keep_days), runs_seen=seen)
