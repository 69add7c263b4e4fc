"""Stored objects for the commands that read a cluster: runs, pods, events, nodes, policies."""

import copy
import functools
import gzip
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from tests.comparison.inputs import HERE
from tests.comparison.objects import KINDS, OURS, JsonObject

ARGO = "workflows.argoproj.io"
TAXI = "taxi-x7k2p"
MINE, THEIRS = "kfp-placement.dev/plan", "kueue.x-k8s.io/topology"


class PlayedRun(NamedTuple):
    """A run as the controller wrote it while tests played it.

    Attributes:
        test: that played it.
        looks: its PipelinePlacement after each write.
    """

    test: str
    looks: list[JsonObject]

    @property
    def name(self) -> str:
        """Namespace and name."""
        metadata = self.looks[0]["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"


@functools.cache
def played_runs() -> list[PlayedRun]:
    """What the played scenarios wrote, as if submitted on 2026-11-20 at 10:00."""
    text = gzip.decompress((HERE / "data" / "played.json.gz").read_bytes())
    return [PlayedRun(each["test"], each["looks"]) for each in json.loads(text)]


def taxi(
    name: str = TAXI,
    *,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> JsonObject:
    """The sample's PipelinePlacement, with changes."""
    raw = copy.deepcopy(_sample())
    raw["metadata"] |= {"name": name, **metadata}
    raw["spec"] |= spec or {}
    raw["status"] |= status or {}
    return raw


@functools.cache
def _sample() -> JsonObject:
    found: JsonObject = yaml.safe_load((HERE / "data" / "taxi-run.yaml").read_text("utf-8"))
    return found


def dump_objects() -> list[JsonObject]:
    """The nodes, pods, claims and volumes of the dump."""
    items = yaml.safe_load((HERE / "data" / "dump.yaml").read_text("utf-8"))["items"]
    known = {kind.kind for kind in KINDS.values()}
    return [item for item in items if item["kind"] in known]


def policy(spec: Mapping[str, Any] | None = None, **status: Any) -> JsonObject:
    """The PlacementPolicy."""
    raw: JsonObject = {
        "apiVersion": OURS,
        "kind": "PlacementPolicy",
        "metadata": {"name": "default"},
        "spec": dict(spec or {}),
    }
    return {**raw, "status": status} if status else raw


def namespace(name: str, **labels: str) -> JsonObject:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def workflow(name: str, where: str = "team-a", *, marked: bool = False, **fields: Any) -> Any:
    """A Workflow as KFP's API server writes it."""
    labels = {"kfp-placement.dev/scheduler": "kfp-placement"} if marked else {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": name,
            "namespace": where,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-20T10:01:00Z",
            "labels": {"pipeline/runid": f"id-{name}"},
            "annotations": {"pipelines.kubeflow.org/run_name": f"Run {name}"},
        },
        "spec": {"templates": [{"name": "train", "metadata": {"labels": labels}}]},
        **fields,
    }


def pod(
    step: str,
    *,
    run: str = TAXI,
    where: str = "team-a",
    node: str = "",
    gates: tuple[str, ...] = (),
    spec: Mapping[str, Any] | None = None,
    **status: Any,
) -> JsonObject:
    """The pod of a step of a KFP run, as Argo makes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{run}-{step}",
            "namespace": where,
            "uid": f"uid-{run}-{step}",
            "creationTimestamp": "2026-11-20T10:00:10Z",
            "labels": {
                f"{ARGO}/workflow": run,
                "kfp-placement.dev/scheduler": "kfp-placement",
            },
            "annotations": {f"{ARGO}/node-name": f"{run}.root.{step}.executor"},
        },
        "spec": {
            "schedulerName": "kfp-placement",
            "containers": [
                {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
            ],
            **({"nodeName": node} if node else {}),
            **({"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}),
            **(spec or {}),
        },
        "status": {"phase": "Pending", **status},
    }


def elsewhere(step: str, message: str, run: str = TAXI) -> JsonObject:
    """An event about a pod that is not on its planned node."""
    about = {"kind": "Pod", "uid": f"uid-{run}-{step}", "name": f"{run}-{step}"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"event-{step}", "namespace": "team-a"},
        "reason": "PlacedElsewhere",
        "message": message,
        "eventTime": "2026-11-20T10:01:00.000000Z",
        "involvedObject": about,
    }
