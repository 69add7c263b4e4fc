"""PipelineHistories: the leading planner adds runs to existing ones, whoever has written them.

In a thread of its own: placement waits neither for them nor for merging.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from kfp_placement_controller.actuators.objects import merge_patch
from kfp_placement_controller.exceptions import NamespaceGoneError, SupersededError
from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.planning.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_engine.contract.fields import ObjectMetadata
from kfp_placement_engine.contract.history_status import history_status
from kfp_placement_engine.contract.pipeline_history import (
    PipelineHistory,
    PipelineHistorySpec,
    history_name,
    runs_kept,
)
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import PastRun
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError

_LOG = logging.getLogger(__name__)


class HistoryTask(NamedTuple):
    """What to do, and with which epoch it was decided."""

    action: HistoryAction
    epoch: int | None


@dataclass
class HistoryWriter:
    """Writes one history after the other, while its leader leads.

    Attributes:
        client: the API server; its requests should end before another leader can begin.
        leading_epoch: of our Lease at this moment; None = we do not lead.
    """

    client: KubeClient
    leading_epoch: Callable[[], int | None]
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))

    def write(self, task: HistoryTask) -> HistoryAnswer:
        """Write, unless another leads by now."""
        action = task.action
        try:
            match action:
                case WriteHistory():
                    self._write(action, task.epoch)
                case DeleteHistory():
                    self._delete(action, task.epoch)
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
        """Called before every write.

        Raises:
            SupersededError: another leads since this was decided.
        """
        if epoch is None or self.leading_epoch() != epoch:
            raise SupersededError(0, "Superseded", "this planner no longer leads")

    def _delete(self, delete: DeleteHistory, epoch: int | None) -> None:
        """Remove the object as it is now, unless somebody, such as a later leader, writes it first.

        Its namespace has too many.
        """
        found = self.client.get(PIPELINE_HISTORIES, delete.name, delete.namespace)
        self._must_lead(epoch)
        if found is not None:
            version = found["metadata"]["resourceVersion"]
            self.client.delete(
                PIPELINE_HISTORIES, delete.name, delete.namespace, resource_version=version
            )

    def _write(self, write: WriteHistory, epoch: int | None) -> None:
        """Add the runs; of a run that has been added before, the one that ended last counts."""
        client, name = self.client, history_name(write.pipeline)
        read = partial(client.get, PIPELINE_HISTORIES, name, write.namespace)

        def merge(raw: JsonObject | None) -> None:
            if raw is None:
                self._must_lead(epoch)
                raw = _created(client, write, name)
            patch = {
                "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
                "status": _status(raw, write),
            }
            self._must_lead(epoch)
            client.patch(PIPELINE_HISTORIES, name, write.namespace, patch, subresource="status")

        modify(read(), merge, read)


def _created(client: KubeClient, write: WriteHistory, name: str) -> JsonObject:
    metadata = ObjectMetadata(name=name, namespace=write.namespace)
    spec = PipelineHistorySpec(pipeline=write.pipeline)
    new = PipelineHistory(metadata=metadata, spec=spec).to_object()
    try:
        return client.create(PIPELINE_HISTORIES, new)
    except NotFoundError as error:
        # The same status says that the kind is not installed; only the words tell them apart.
        if f'namespaces "{write.namespace}" not found' not in error.why:
            raise
        raise NamespaceGoneError(error.status, error.reason, error.message) from error


def _status(stored: JsonObject, write: WriteHistory) -> JsonObject:
    before, seen = _runs_of(stored, write.pipeline)
    runs = {run.uid: run for run in before}
    new = [run for run in write.runs if run.uid not in runs]
    for run in write.runs:
        known = runs.get(run.uid)
        if known is None or known.ended_at <= run.ended_at:
            runs[run.uid] = run
    # What ended much later than what has just ended had a wrong clock.
    latest_at = max(run.ended_at for run in write.runs) + timedelta(days=write.keep_days)
    possible = [run for run in runs.values() if run.ended_at <= latest_at]
    kept = runs_kept(possible, write.keep_days)
    return merge_patch(history_status(kept, runs_seen=seen + len(new)))


def _runs_of(stored: JsonObject, pipeline: str) -> tuple[Sequence[PastRun], int]:
    """The runs of an object that count, and how many there ever were.

    Raises:
        InputError: it is of another pipeline, or cannot be read.
    """
    try:
        history = read_resource(PipelineHistory, stored)
        runs = history.past_runs()
    except InputError as error:
        # A later version may have written it, and may be installed again.
        raise InputError(
            f"{error}; it is left as it is: delete it if no later version has written it"
        ) from error
    if history.spec.pipeline != pipeline:
        raise InputError(
            f"PipelineHistory {history.metadata.name!r:.80} is of pipeline"
            f" {history.spec.pipeline!r:.80}, not of {pipeline!r:.80}; delete it"
        )
    seen = history.status.runs_seen if history.status is not None else None
    return runs, seen or 0
