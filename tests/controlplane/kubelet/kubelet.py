"""Kubelets of all nodes, without an API server: pods and a time in, changes out."""

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.controlplane.kubelet.admission import admit
from tests.controlplane.kubelet.drivers import DriverChoices, Json, driver_answer
from tests.controlplane.kubelet.packages import Package, driver_arguments
from tests.controlplane.kubelet.timeline import Ending, Timeline, status_at
from tests.controlplane.kubelet.workload import (
    NODE_NAME,
    WORKFLOW,
    Workload,
    annotation,
    is_driver,
    main_container,
)

NODE_ID = "workflows.argoproj.io/node-id"
REPORTED = "workflows.argoproj.io/report-outputs-completed"
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Report:
    """An executor's WorkflowTaskResult, to be created before the pod ends."""

    result: Json


@dataclass(frozen=True)
class StatusChange:
    """A pod's new status."""

    namespace: str
    name: str
    status: Json


@dataclass(frozen=True)
class Removal:
    """A pod that was deleted and whose containers are gone."""

    namespace: str
    name: str


Change = Report | StatusChange | Removal


@dataclass
class _Life:
    pod: Json
    line: Timeline
    shown: str = ""


class Kubelets:
    """Admits, runs and ends the pods of all nodes.

    Attributes:
        exit_codes: pattern of a node name -> exit code of the main container; may be changed at any
            time.
        packages: packages that drivers of KFP 3 read, by Workflow or pipeline; likewise.
    """

    def __init__(
        self,
        workload: Workload | None = None,
        choices: DriverChoices | Callable[[str], DriverChoices] | None = None,
        exit_codes: dict[str, int] | None = None,
        packages: dict[str, Package] | None = None,
    ) -> None:
        """Make the kubelets.

        Args:
            workload: times that pods take.
            choices: choices of KFP's drivers, the same for all or by Workflow name.
            exit_codes: exit codes of main containers that fail; None = all succeed.
            packages: packages by the name of Workflow or pipeline; None = there are none.
        """
        self._workload = workload or Workload()
        self._choices = choices or DriverChoices()
        self.exit_codes = {} if exit_codes is None else exit_codes
        self.packages = {} if packages is None else packages
        self._lives: dict[str, _Life] = {}
        self._rejected: set[str] = set()

    def look(
        self,
        pods: Iterable[Mapping[str, Any]],
        nodes: Mapping[str, Mapping[str, Any]],
        now: datetime,
    ) -> list[Change]:
        """Return what has changed by now, in the order in which it is to be written.

        Args:
            pods: all pods there are.
            nodes: nodes by name.
            now: the time.
        """
        changes: list[Change] = []
        pods = list(pods)
        # First, for a new pod may have the room of one that is gone.
        present = {_uid(pod) for pod in pods}
        self._lives = {uid: life for uid, life in self._lives.items() if uid in present}
        for pod in pods:
            self._workload.learn(pod, self.packages)
            node = nodes.get(pod["spec"].get("nodeName", ""))
            if node is None:
                continue  # nobody there to do anything
            if pod["metadata"].get("deletionTimestamp"):
                changes.extend(self._remove(pod))
            else:
                changes.extend(self._advance(pod, node, now))
        return changes

    def next_change(self, now: datetime) -> datetime | None:
        """Return when something changes by itself; None = never."""
        moments = [life.line.next_change(now) for life in self._lives.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def fail(self, name: str, now: datetime, exit_code: int = 1) -> None:
        """End a pod's main container with this code at the next look."""
        self._cut(name, now, Ending(exit_code))

    def _cut(self, name: str, now: datetime, ending: Ending) -> None:
        lives = [life for life in self._lives.values() if life.pod["metadata"]["name"] == name]
        if not lives:
            raise KeyError(f"no kubelet has admitted a pod {name}")
        for life in lives:
            life.line = life.line.cut(now, ending)

    def _remove(self, pod: Mapping[str, Any]) -> list[Change]:
        self._lives.pop(_uid(pod), None)
        metadata = pod["metadata"]
        return [Removal(metadata.get("namespace", "default"), metadata["name"])]

    def _advance(
        self, pod: Mapping[str, Any], node: Mapping[str, Any], now: datetime
    ) -> list[Change]:
        uid = _uid(pod)
        if uid in self._rejected or (pod.get("status") or {}).get("phase") in FINISHED:
            self._lives.pop(uid, None)
            return []
        life = self._lives.get(uid)
        if life is None:
            rejection = admit(node, self._admitted(node), pod)
            if rejection is not None:
                self._rejected.add(uid)
                return [_status_change(pod, rejection.status)]
            life = self._lives[uid] = _Life(dict(pod), self._timeline(pod, node, now))
        stage = life.line.stage(now)
        if stage == life.shown:
            return []
        life.shown = stage
        status = status_at(pod, life.line, now)
        if status["phase"] != "Succeeded":
            return [_status_change(pod, status)]
        return [*self._report(pod), _status_change(pod, status)]

    def _admitted(self, node: Mapping[str, Any]) -> list[Json]:
        name = node["metadata"]["name"]
        lives = self._lives.values()
        return [
            life.pod
            for life in lives
            if life.pod["spec"]["nodeName"] == name and life.shown != "ended"
        ]

    def _timeline(self, pod: Mapping[str, Any], node: Mapping[str, Any], now: datetime) -> Timeline:
        duration = self._workload.duration(pod, node)
        start = now + timedelta(seconds=self._workload.settings.start_seconds)
        end = start + timedelta(seconds=duration.running)
        name = annotation(pod, NODE_NAME)
        codes = [
            code for pattern, code in self.exit_codes.items() if fnmatch.fnmatchcase(name, pattern)
        ]
        line = Timeline(now, start, end, Ending(codes[0] if codes else 0))
        return line.limited(pod["spec"].get("activeDeadlineSeconds"))

    def _report(self, pod: Mapping[str, Any]) -> list[Change]:
        if not is_driver(pod):
            return []
        workflow = (pod["metadata"].get("labels") or {}).get(WORKFLOW, "")
        choices = self._choices
        if not isinstance(choices, DriverChoices):
            choices = choices(workflow)
        line = main_container(pod).get("args") or []
        arguments = driver_arguments(line, annotation(pod, NODE_NAME), self.packages)
        return [Report(task_result(pod, driver_answer(arguments, workflow, choices)))]


def task_result(pod: Mapping[str, Any], outputs: Mapping[str, str]) -> Json:
    """The WorkflowTaskResult by which a pod's executor reports its outputs."""
    metadata = pod["metadata"]
    labels = {WORKFLOW: (metadata.get("labels") or {}).get(WORKFLOW, ""), REPORTED: "true"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTaskResult",
        "metadata": {
            "name": annotation(pod, NODE_ID),
            "namespace": metadata.get("namespace", "default"),
            "labels": labels,
        },
        "outputs": {
            "parameters": [{"name": name, "value": value} for name, value in outputs.items()]
        },
    }


def _uid(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return str(metadata.get("uid") or f"{metadata.get('namespace', '')}/{metadata['name']}")


def _status_change(pod: Mapping[str, Any], status: Json) -> StatusChange:
    metadata = pod["metadata"]
    return StatusChange(metadata.get("namespace", "default"), metadata["name"], status)
