"""KFP's own Workflows, as tests submit them: marked, shortened, with what their drivers find."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from tests.controlplane.argo.kfp3_runs import read_package
from tests.controlplane.kubelet.drivers import DriverChoices, Json
from tests.controlplane.kubelet.packages import Package
from tests.controlplane.stages import LOCAL_STORAGE_CLASS
from tests.support.data import data_path
from tests.support.taxi_cluster import with_durations
from tests.support.workflow_marks import Mark, with_marks

LABELLED_FACTOR = 1 / 100
"""The longest step, training the taxi sample's model, takes 12 s at speed 1."""

CLAIM = "datasets"
"""A claim that every namespace has; pipelines that mount one by an input's name get this one."""


@dataclass(frozen=True)
class Recorded:
    """A pipeline whose Workflow is at hand.

    Attributes:
        name: of its file.
        phase: how it ends.
        choices: what its drivers find out.
        exit_codes: pattern of a node name within the run -> exit code of the main container.
        lost: pattern of the node name of a pod that somebody deletes while it runs; "" = none.
        labelled: its authors have marked it.
        is_kfp3: whether the Workflow is that of KFP 3.
    """

    name: str
    phase: str = "Succeeded"
    choices: DriverChoices = field(default_factory=DriverChoices)
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    lost: str = ""
    labelled: bool = False
    is_kfp3: bool = False

    @property
    def run(self) -> str:
        """The name of its Workflow."""
        return self.name.replace("_", "-") + ("-kfp3" if self.is_kfp3 else "")

    @property
    def package(self) -> Package:
        """The documents of its package."""
        return read_package(data_path("kfp-2.17.0", "pipelines", f"{self.name}.yaml"))

    def workflow(self) -> Json:
        """The Workflow to submit."""
        folder = "kfp-3-draft" if self.is_kfp3 else "kfp-2.17.0"
        folder = "labelled" if self.labelled else folder
        text = data_path(folder, "workflows", f"{self.name}.yaml").read_text("utf-8")
        submitted = yaml.load(text, yaml.CSafeLoader)
        if self.labelled:
            submitted = with_durations(submitted, LABELLED_FACTOR)
        else:
            submitted = _on_local_volumes(with_marks(submitted, self._mark_of))
        submitted["metadata"]["name"] = self.run
        return submitted

    def _mark_of(self, task: str) -> Mark:
        """From 0.5 to 3 s, by the task's name; long enough to be deleted meanwhile."""
        if self.lost:
            return Mark(duration="10s")
        draw = hashlib.sha256(task.encode()).digest()[0] / 255
        return Mark(duration=f"{500 + round(2500 * draw)}ms")


def _on_local_volumes(workflow: Json) -> Json:
    """Volumes that bind to the node of their first pod, as most clusters' standard class does."""
    changed: Json = json.loads(json.dumps(workflow, default=str))
    for claim in changed["spec"].get("volumeClaimTemplates", ()):
        claim["spec"]["storageClassName"] = LOCAL_STORAGE_CLASS
    return changed


def _mounting(parameter: str, **choices: Any) -> DriverChoices:
    return DriverChoices(parameters={parameter: CLAIM}, **choices)


LABELLED = tuple(
    Recorded(name, labelled=True) for name in ("control_flow", "fan_out", "shared_volume", "taxi")
)

OF_KFP = (
    # Loops: fixed and found at run time, nested, limited, over nothing.
    Recorded("pipeline_with_loops", choices=DriverChoices(iteration_counts={"for-loop-2": 5})),
    # Whether `condition-3` holds is known for each item, so not all its steps are planned.
    Recorded(
        "conditional_producer_and_consumers",
        choices=DriverChoices(iteration_count=1, conditions={"condition-3": False}),
    ),
    Recorded("nested_parallel_for_secret", choices=DriverChoices(iteration_count=0)),
    Recorded("pipeline_with_params_containing_format"),
    # Conditions that hold and do not.
    Recorded(
        "pipeline_with_nested_conditions_yaml",
        choices=DriverChoices(conditions={"condition-4": False, "condition-3": False}),
    ),
    Recorded(
        "if_else_with_oneof_artifacts", choices=DriverChoices(conditions={"condition-3": False})
    ),
    # Exit handlers.
    Recorded("pipeline_with_multiple_exit_handlers"),
    Recorded("pipeline_as_exit_task"),
    Recorded(
        "pipeline_with_task_final_status",
        phase="Failed",
        exit_codes={"*.fail-op(0).executor(0)": 1},
    ),
    # Pipelines in pipelines.
    Recorded("pipeline_in_pipeline_complex"),
    Recorded("nested_pipeline_opt_inputs_nil_compiled"),
    # Caching.
    Recorded("artifact_cache", choices=DriverChoices(cached=frozenset({"core-comp"}))),
    Recorded("two_step_pipeline", choices=DriverChoices(cached=frozenset({"write-to-gcs"}))),
    # A retry, a failure. KFP's default has only pods that are lost tried again.
    Recorded("local_execution_pipeline_with_retry", lost="*.executor(0)"),
    Recorded("fail_v2", phase="Failed", exit_codes={"*.executor(0)": 1}),
    # Volumes.
    Recorded("pipeline_with_workspace"),
    Recorded("pvc_mount", choices=_mounting("pvc_name")),
    Recorded("parallel_for_mount_pvc", choices=_mounting("pipelinechannel--createpvc-name")),
    # Importers, labels and annotations of the author's own.
    Recorded("pipeline_with_importer"),
    Recorded("pipeline_with_pod_metadata"),
)

OF_KFP_3 = tuple(
    replace(each, is_kfp3=True)
    for each in OF_KFP
    if each.name
    in (
        "artifact_cache",
        "conditional_producer_and_consumers",
        "fail_v2",
        "if_else_with_oneof_artifacts",
        "nested_parallel_for_secret",
        "pipeline_as_exit_task",
        "pipeline_with_importer",
        "pipeline_with_loops",
        "pvc_mount",
    )
)

GATED = (
    *LABELLED,
    *(
        each
        for each in OF_KFP
        if each.run in ("pipeline-with-loops", "pipeline-with-workspace", "pipeline-as-exit-task")
    ),
)
