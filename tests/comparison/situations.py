"""Situations of the sample's run, as `list` and `explain` find them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.comparison.objects import JsonObject
from tests.comparison.stored import (
    MINE,
    THEIRS,
    elsewhere,
    namespace,
    pod,
    policy,
    taxi,
    workflow,
)


@dataclass(frozen=True)
class Situation:
    """A cluster in which something is the case.

    Attributes:
        objects: what there is.
        refused: status and message of answers, by how the path begins.
        unserved: plurals of kinds that are not known.
        more: further command lines.
    """

    objects: Sequence[JsonObject]
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    unserved: Sequence[str] = ()
    more: Sequence[Sequence[str]] = ()


TEAMS = [namespace("team-a"), namespace("team-b")]
_RUN_ID = "5d0a3a5e-6f0c-4c3a-9d0f-2f6b8c1d7e10"
_OF_TEAM_A = "/apis/kfp-placement.dev/v1alpha1/namespaces/team-a/"
_WORKFLOWS = "/apis/argoproj.io/v1alpha1/"
_PODS = "/api/v1/namespaces/team-a/pods"
_EVENTS = "/api/v1/namespaces/team-a/events"
_NOT_ALLOWED = (403, "pods is forbidden: User me cannot list resource pods")


def _states(*rows: Sequence[object], **status: object) -> JsonObject:
    return taxi(status={"steps": list(rows), **status})


def _condition(kind: str, reason: str, message: str, status: str = "False") -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-20T10:00:01Z",
    }


_TURN = ["waiting", -1, -1, -1, ["plan", 120, 240]]
_QUOTA = ["waiting", -1, -1, -1, ["quota", 60, -1, "exceeded quota: gpus, requested: cpu=1"]]
_NODE = ["waiting", -1, -1, -1, ["node", 60, -1, "0/3 nodes are available"]]
_REFUSED = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
_NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
_FAILED_NODES = {
    "n1": {
        "id": "n1",
        "type": "Pod",
        "phase": "Failed",
        "message": "OOMKilled (exit code 137)",
        "displayName": "train",
        "finishedAt": "2026-11-20T10:02:00Z",
        "name": "taxi-x7k2p.root.train",
    },
}

SITUATIONS: Mapping[str, Situation] = {
    "empty": Situation(TEAMS, more=(["list", "-n", "none"], ["explain", "nothing", "-A"])),
    "plain": Situation(
        [*TEAMS, taxi()],
        more=(
            ["explain", _RUN_ID],
            ["explain", _RUN_ID[:8], "-A"],
            ["explain", "team-a/taxi-x7k2p", "-n", "team-b"],
            ["explain", "team-b/taxi-x7k2p"],
            ["explain", "taxi-x7k2p", "-n", "team-b"],
            ["explain", "taxi-x7k2p", "-n", "none"],
            ["explain", "taxi-x7k2p", "-n", "Team_A"],
            ["explain", "taxi-x7k2p", "-n", "team-a", "-A"],
            ["explain", "taxi"],
            ["explain", "taxi-x7k2p", "train", "-o", "json"],
            ["explain", "taxi-x7k2p", "predict", "-o", "wide"],
            ["list", "-o", "html"],
            ["list", "--context", "none"],
        ),
    ),
    "two-of-a-name": Situation(
        [*TEAMS, taxi(), taxi(namespace="team-b"), workflow("taxi-x7k2p", "team-b")],
        more=(["explain", "taxi-x7k2p", "-A"], ["explain", _RUN_ID, "-A"]),
    ),
    "named": Situation(
        [
            *TEAMS,
            taxi(annotations={"pipelines.kubeflow.org/run_name": "Tuesday's run"}),
            workflow("daily-1"),
            workflow("daily-2"),
        ],
        more=(["explain", "Tuesday's run"], ["explain", "Run daily-1"], ["explain", "daily-2"]),
    ),
    "waits-for-turn": Situation([*TEAMS, _states(_TURN, _QUOTA, ["pending"])]),
    "waits-for-node": Situation([*TEAMS, _states(_NODE, _NODE, ["pending"]), policy()]),
    "elsewhere": Situation(
        [
            *TEAMS,
            _states(["succeeded", 1, 10, 43]),
            pod("fetch", node="nitlab-edge-node", phase="Succeeded"),
            elsewhere(
                "fetch",
                "planned on nitos-cloud-node, placed on nitlab-edge-node: it was full",
            ),
        ]
    ),
    "elsewhere-untold": Situation(
        [*TEAMS, _states(["running", 1, 10]), pod("fetch", node="nitlab-edge-node")]
    ),
    "gated": Situation(
        [
            *TEAMS,
            taxi(),
            policy({"actuator": "gates"}),
            pod("predict", gates=(MINE, THEIRS), conditions=[_REFUSED]),
            pod("train", conditions=[_REFUSED]),
        ]
    ),
    "no-image": Situation(
        [*TEAMS, taxi(), pod("train", containerStatuses=[{"name": "main", "state": _NO_IMAGE}])]
    ),
    "malformed-pods": Situation(
        [*TEAMS, taxi(), pod("train", spec={"schedulingGates": {"name": 1}})]
    ),
    "no-rights-to-pods": Situation(
        [*TEAMS, taxi()], refused={_PODS: _NOT_ALLOWED, _EVENTS: (403, "events is forbidden")}
    ),
    "no-rights": Situation([*TEAMS, taxi()], refused={_OF_TEAM_A: (403, "may not list")}),
    "unknown-account": Situation([taxi()], refused={"/": (401, "Unauthorized")}),
    "broken-server": Situation([taxi()], refused={"/": (500, "etcd is gone")}),
    "no-rights-to-workflows": Situation(
        [*TEAMS, taxi(), workflow("lost", marked=True)],
        refused={_WORKFLOWS: (403, "workflows is forbidden")},
        more=(["explain", "lost"], ["explain", "Run lost"]),
    ),
    "not-installed": Situation(
        TEAMS, unserved=("pipelineplacements", "placementpolicies", "locations")
    ),
    "no-argo": Situation([*TEAMS, taxi()], unserved=("workflows",), more=(["explain", "x"],)),
    "unplanned": Situation(
        [*TEAMS, taxi(), workflow("lost", marked=True), workflow("unmarked")],
        more=(["explain", "lost"], ["explain", "unmarked"], ["explain", "id-lost"]),
    ),
    "opted-out": Situation(
        [
            namespace("team-a", **{"kfp-placement.dev/enabled": "false"}),
            workflow("lost", marked=True),
        ],
        more=(["explain", "lost"],),
    ),
    "paused": Situation(
        [*TEAMS, taxi(), policy({"paused": True}), workflow("lost", marked=True)],
        more=(["explain", "lost"],),
    ),
    "not-ready": Situation(
        [
            *TEAMS,
            taxi(),
            policy(
                {},
                schedulerReady=False,
                gatesReady=False,
                conditions=[_condition("SchedulerReady", "NoLease", "nobody renews its Lease")],
            ),
        ]
    ),
    "failed": Situation(
        [
            *TEAMS,
            _states(["succeeded", 0, 10, 43], ["failed", 0, 49, 120], phase="Failed"),
            workflow("taxi-x7k2p", status={"phase": "Failed", "nodes": _FAILED_NODES}),
        ]
    ),
    "failed-as-argo-says": Situation(
        [
            *TEAMS,
            _states(["pending"], phase="Failed"),
            workflow("taxi-x7k2p", status={"phase": "Failed", "message": "stopped by hand"}),
        ]
    ),
    "refused": Situation(
        [
            *TEAMS,
            taxi(
                spec={"steps": [], "nodes": []},
                status={
                    "phase": "Refused",
                    "steps": [],
                    "conditions": [_condition("Planned", "TooLarge", "9,000 steps; at most 5,000")],
                },
            ),
        ]
    ),
    "unsatisfied": Situation(
        [
            *TEAMS,
            taxi(
                status={
                    "conditions": [
                        _condition("LatencySatisfied", "LatencyRuleUnsatisfied", "predict: 30 ms"),
                        _condition("Placed", "StepsWithoutNode", "1 step fits no node"),
                    ]
                }
            ),
        ]
    ),
    "other-revision": Situation([*TEAMS, taxi(status={"revision": 1})]),
    "unreadable": Situation([*TEAMS, taxi(spec={"revision": -1}), taxi("good")]),
    "newer-fields": Situation([*TEAMS, taxi(spec={"tomorrow": 1}, status={"mood": "good"})]),
    "hostile-names": Situation(
        [*TEAMS, taxi(annotations={"pipelines.kubeflow.org/run_name": "\x1b[31m<b>\n"})]
    ),
}
