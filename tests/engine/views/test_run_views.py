"""What is told of a run and of its steps, whatever its objects say."""

import json

import jsonschema
import pytest

from kfp_placement.live.documents import explanation_document, runs_document, serialized
from kfp_placement.schemas import schema
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION
from kfp_placement_engine.readers.argo.step_pods import pods_by_step
from kfp_placement_engine.render.text import document_text, table_lines
from kfp_placement_engine.views.explanation import explanation
from kfp_placement_engine.views.run_list import runs_table
from kfp_placement_engine.views.runs import run_view
from tests.cli.live.conftest import NOW, condition, placement
from tests.support.fake_cluster import executor_pod
from tests.support.json_schemas import assert_described

FETCH = ["fetch", 0, 10, 41.8, ["ends-first", 12, 1], [[1, 12], [2, 30.5]]]
TRAIN = ["train", 0, 47, 1249]
BEST = ["latency-best", "HOME-EDGE", 3, 9.8, 42.6]
OTHERS = [[1, 0, 42.551], [0, 0, 89.667]]
TOO_FAR = ["unschedulable", 3, [[3, "latency", "HOME-EDGE", 5]]]
NO_NODE = ["unschedulable", 3, [[3, "cordoned"]]]
HOME, NITLAB, NITOS = 2, 1, 0
NODES = ["nitos-cloud-node", "nitlab-edge-node", "home-edge-node"]
ELSEWHERE = "planned on nitos-cloud-node, placed on nitlab-edge-node: nitos-cloud-node was full"


def viewed(raw, *pods, events=()):
    """The run, with its pods and the events about them."""
    names = [step.name for step in run_view(raw, NOW).steps]
    return run_view(raw, NOW, pods_by_step(pods, events, "taxi-x7k2p", names))


def event(step, message=ELSEWHERE):
    return {
        "kind": "Event",
        "metadata": {"name": f"event-{step}", "namespace": "team-a"},
        "reason": "PlacedElsewhere",
        "message": message,
        "eventTime": "2026-11-20T10:01:00.000000Z",
        "involvedObject": {"kind": "Pod", "uid": f"uid-{step}"},
    }


def predicting(reason, *, planned=HOME, bound=-1, others=OTHERS):
    """The sample run with another row for predict, which runs on a node if that is named."""
    row = ["predict", planned, 1254, 1375, reason, others]
    state = ["running", bound, 1256] if bound >= 0 else ["pending"]
    done = [["succeeded", 0, 10, 42], ["succeeded", 0, 47, 1249]]
    return placement(spec={"steps": [FETCH, TRAIN, row]}, status={"steps": [*done, state]})


def limited(
    bound=HOME, *, hints='{"v":1,"maxLatency":"20ms"}', scheduler="default-scheduler", **spec
):
    """A pod of `predict` with a hard limit, as far as its hints can be read."""
    pod = executor_pod("predict", node=NODES[bound], phase="Running")
    pod["metadata"]["labels"] |= {
        "OurLocation": "HOME-EDGE",
        "kfp-placement.dev/scheduler": "kfp-placement",
    }
    pod["metadata"]["annotations"][HINTS_ANNOTATION] = hints
    pod["spec"] |= {"schedulerName": scheduler, **spec}
    return pod


def later(pod):
    pod["metadata"] |= {"name": "second", "creationTimestamp": "2026-11-20T10:02:00Z"}
    return pod


def states(*rows, **status):
    return placement(status={"steps": list(rows), **status})


def without_end(rows):
    raw = placement(spec={"steps": rows}, status={"phase": "Planned", "steps": [["pending"]]})
    del raw["spec"]["makespan"]
    return raw


REFUSED = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}

RUNS = {
    "as planned": viewed(placement()),
    "waiting for its turn, for quota": viewed(
        states(
            ["waiting", -1, -1, -1, ["plan", 120, 240]],
            ["waiting", -1, -1, -1, ["quota", 60, -1, "exceeded quota: gpus, requested: cpu=1"]],
            ["pending"],
        )
    ),
    "elsewhere, with an event": viewed(
        states(["succeeded", 1, 10, 43]),
        executor_pod("fetch", node=NODES[NITLAB], phase="Succeeded"),
        events=[event("fetch")],
    ),
    "elsewhere, no event": viewed(states(["succeeded", 1, 10, 43])),
    "gated": viewed(
        placement(),
        executor_pod(
            "predict",
            gates=("kfp-placement.dev/plan", "kueue.x-k8s.io/topology"),
            conditions=[REFUSED],
        ),
    ),
    "the latest of two pods": viewed(
        placement(),
        later(executor_pod("train", node=NODES[NITOS], phase="Running")),
        executor_pod("train", node=NODES[NITLAB], phase="Failed"),
    ),
    "no image": viewed(
        placement(),
        executor_pod(
            "train",
            containerStatuses=[
                {
                    "name": "main",
                    "state": {
                        "waiting": {"reason": "ImagePullBackOff", "message": "no such image"}
                    },
                }
            ],
        ),
    ),
    "another revision's status": viewed(placement(status={"revision": 1})),
    "not readable": viewed(placement(spec={"revision": -1})),
    "rows not readable": viewed(placement(spec={"steps": [["fetch", 17], ["train", 0]]})),
    "folded steps": viewed(placement(status={"foldedSteps": 40})),
    "a step that fitted no node": viewed(
        placement(
            spec={"steps": [["fetch", -1, -1, -1, NO_NODE], ["train", -1, -1, -1, NO_NODE]]},
            status={"steps": [["running", 1, 49], ["waiting", -1, -1, -1, ["node", 60]]]},
        )
    ),
    "a step without a node": viewed(without_end([["fetch", -1, -1, -1, NO_NODE], ["train", 0]])),
    "no planned end": viewed(without_end([["fetch", 0]])),
    "no other node named": viewed(
        placement(
            spec={
                "steps": [
                    ["fetch", 0, 10, 42, ["started"]],
                    ["train", 0, 47, 1249, ["only-node"]],
                    ["predict", 0, 47, 1249, ["started"]],
                ]
            }
        ),
        limited(NITOS, scheduler="kfp-placement"),
    ),
    "a limit that nobody kept": viewed(
        predicting(TOO_FAR, planned=-1, bound=NITOS), limited(NITOS)
    ),
    "a limit that may not be kept": viewed(
        predicting(TOO_FAR, planned=-1, bound=NITOS, others=[]),
        limited(NITOS),
    ),
    "an event before the limit": viewed(
        predicting(BEST, bound=NITLAB),
        limited(NITLAB),
        events=[event("predict", "placement was paused")],
    ),
    "failed": viewed(
        placement(
            status={
                "phase": "Failed",
                "progress": "3/3",
                "counts": {"skipped": 3},
                "conditions": [condition("Schedulable", reason="NoMatchingNode")],
            }
        )
    ),
}
each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@each_run
def test_all_that_is_told(run, golden):
    golden(document_text(explanation(run, run.steps, in_full=True)), "in full")
    golden(document_text(explanation(run, run.steps, in_full=False)), "a line each")


def test_the_schema_of_documents_is_one():
    runs_schema = schema("runs")
    jsonschema.Draft202012Validator.check_schema(runs_schema)
    assert runs_schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@each_run
def test_documents_fit_the_schema_and_hold_nothing_that_it_does_not_describe(run):
    for document in (runs_document([run]), explanation_document(run, run.steps)):
        raw = json.loads(serialized(document, "json"))
        assert_described(raw, "runs")
    waiting = [step["waiting"] for step in raw["steps"] if step["waiting"]]
    assert raw["run"]["waiting"] == waiting


def test_all_runs_in_a_list(golden):
    alike = placement(spec={"makespan": "24.6s", "firstMakespan": "24.4s"})
    holds = [condition("Planned", "True"), condition("Finished", "False")]
    runs = [*RUNS.values(), viewed(alike), viewed(placement(status={"conditions": holds}))]
    golden(table_lines(runs_table(runs, wide=False, namespaces=True)))


@pytest.mark.parametrize(
    ("reason", "bound", "trip"),
    [
        (BEST, -1, ("HOME-EDGE", 9.8, None)),
        (BEST, NITLAB, ("HOME-EDGE", 42.551, None)),
        (["latency-missed", 9.8, "HOME-EDGE", NITLAB, 5], -1, ("HOME-EDGE", 9.8, None)),
        (["latency-missed", "", "HOME-EDGE", NITLAB, 5], -1, ("HOME-EDGE", None, None)),
        (["latency-unknown", "HOME-EDGE"], -1, ("HOME-EDGE", None, None)),
        (["only-node", [[2, "latency", "HOME-EDGE", 20]]], -1, ("HOME-EDGE", None, 20)),
        (["run-later", 3, NITLAB], -1, ("", None, None)),
        (["latency-best", 7, "x", "y"], -1, ("", None, None)),
        (["only-node", [["two", "latency"], [2, "latency", 1, "x"]]], -1, ("", None, None)),
    ],
    ids=str,
)
def test_the_round_trip_that_the_plan_says(reason, bound, trip):
    step = viewed(predicting(reason, bound=bound)).steps[2]
    assert (step.location, step.latency_ms, step.max_latency_ms) == trip


@pytest.mark.parametrize(
    ("hints", "limit_ms"),
    [
        ('{"v":1,"maxLatency":"20ms"}', 20),
        ("{", None),
        ("[]", None),
        ('{"v":1,"maxLatency":[]}', None),
        ("x" * 100_000, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_limit_that_the_pod_says(hints, limit_ms):
    step = viewed(predicting(BEST), limited(hints=hints)).steps[2]
    assert step.max_latency_ms == limit_ms


HOST = "kubernetes.io/hostname"


def required(*keys, operator="In"):
    expressions = [{"key": key, "operator": operator, "values": ["home-edge-node"]} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in expressions]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("pod", "bound", "is_shown"),
    [
        ({"scheduler": "kfp-placement"}, NITLAB, False),
        ({"affinity": required(HOST)}, NITLAB, False),
        ({"affinity": required("zone")}, NITLAB, True),
        ({"affinity": required(HOST, operator="NotIn")}, NITLAB, True),
        ({"affinity": required(HOST, "zone")}, NITLAB, True),
        ({"hints": ""}, NITLAB, False),
        ({}, HOME, False),
    ],
)
def test_a_limit_that_somebody_looks_after_or_that_is_kept_is_not_told(pod, bound, is_shown):
    view = viewed(predicting(BEST, bound=bound), limited(bound, **pod))
    assert ("knows no limits" in view.steps[2].elsewhere) is is_shown


@pytest.mark.parametrize(("other", "loss"), [([1, 0.1], 0.0833), ([1, 9], 9), ([2, 0.1], 0.1)])
def test_one_figure_for_the_next_best_node(other, loss):
    row = ["train", 0, 47, 1249, ["run-later", 0.0833, 1], [other]]
    (step,) = viewed(placement(spec={"steps": [row]})).steps
    assert step.alternatives[0].loss_seconds == loss


def test_malformed_pods_and_events_are_passed_over():
    bad = executor_pod("train")
    bad["spec"] = {"schedulingGates": {"name": 1}}
    odd = event("fetch") | {"involvedObject": ["none"]}
    assert [step.pod for step in viewed(placement(), bad, events=[odd]).steps] == [None] * 3
