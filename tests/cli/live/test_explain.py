import json
import re
from datetime import UTC, datetime

import jsonschema
import pytest

from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.finding import steps_named
from kfp_placement.live.kinds import EVENTS, HISTORIES, PLACEMENTS, PODS, WORKFLOWS
from kfp_placement.schemas import schema
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION, RUN_NAME_ANNOTATION
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView
from tests.cli.live.conftest import NOW, placement
from tests.controlplane.argo.small_workflows import dag
from tests.controlplane.argo.small_workflows import step as small_step
from tests.controlplane.argo.small_workflows import task as small_task
from tests.controlplane.argo.small_workflows import workflow as small_workflow
from tests.support.fake_cluster import executor_pod, workflow
from tests.support.histories import history_object, past_run, with_memory
from tests.support.json_schemas import closed

RUN_ID = "5d0a3a5e-6f0c-4c3a-9d0f-2f6b8c1d7e10"
FORBIDDEN = ClusterForbiddenError("forbidden")


def block_of(result):
    """Label -> texts of what is said of a step."""
    found: dict[str, list[str]] = {}
    for line in result.stdout.split("\n\n")[1].splitlines()[1:]:
        label, _, text = line.strip().partition(": ")
        found.setdefault(label, []).append(text)
    return found


def elsewhere_event(step, message):
    return {
        "metadata": {"name": f"event-{step}", "namespace": "team-a"},
        "reason": "PlacedElsewhere",
        "message": message,
        "eventTime": "2026-11-20T10:01:00.000000Z",
        "involvedObject": {"kind": "Pod", "uid": f"uid-{step}"},
    }


def test_every_step_in_a_line(live, golden):
    result = live("explain", "taxi-x7k2p")
    assert result.exit_code == 0
    golden(result.stdout)
    head, table = result.stdout.split("\n\n")
    assert len(head.splitlines()) == 3
    heading, fetch, train, predict = table.splitlines()
    assert heading.split() == ["STEP", "STATE", "NODE", "PLANNED", "ACTUAL", "WHY"]
    assert fetch.split()[:2] == ["fetch", "succeeded"]
    assert "10s to 42s   10s to 43s   " in re.sub(" {3,}", "   ", fetch)
    assert "47s to 20m49s" in train
    assert "49s to now" in train
    assert "nitlab-edge-node" in train
    assert "HOME-EDGE" in predict


def test_one_step_in_full(live, golden):
    result = live("explain", "taxi-x7k2p", "train")
    golden(result.stdout)
    block = block_of(result)
    assert list(block) == ["planned", "actual", "why there", "else"]
    assert [text.partition(":")[0] for text in block["else"]] == [
        "nitlab-edge-node",
        "home-edge-node",
    ]
    # The rule, not the time, has decided where this one goes.
    ruled = live("explain", "taxi-x7k2p", "predict")
    golden(ruled.stdout, "ruled")
    assert [text.partition(";")[0] for text in block_of(ruled)["else"]] == [
        "nitlab-edge-node: round trip 42.6 ms",
        "nitos-cloud-node: round trip 89.7 ms",
    ]
    assert "train: running" in result.stdout
    assert "fetch" not in result.stdout
    # All in full.
    everything = live("explain", "taxi-x7k2p", "-o", "wide").stdout
    golden(everything, "all in full")
    assert everything.count("why there") == 3


@pytest.mark.parametrize("wanted", [RUN_ID, "Tuesday's run"])
def test_a_run_by_its_other_names(live, cluster, wanted):
    cluster.put(WORKFLOWS, workflow("taxi-x7k2p", run_id=RUN_ID, run_name="Tuesday's run"))
    result = live("explain", wanted)
    assert result.exit_code == 0
    assert result.stdout.startswith("team-a/taxi-x7k2p")


def test_the_run_id_where_the_plan_does_not_carry_it(live, cluster):
    cluster.put(PLACEMENTS, placement(labels={}))
    cluster.put(WORKFLOWS, workflow("taxi-x7k2p", run_id=RUN_ID))
    assert live("explain", RUN_ID).exit_code == 0


def test_several_runs_may_be_meant(live, cluster, golden):
    for number in (1, 2):
        cluster.put(WORKFLOWS, workflow(f"taxi-{number}", run_name="daily"))
    result = live("explain", "daily")
    assert result.exit_code == 2
    golden(result.stderr)
    assert "team-a/taxi-1, team-a/taxi-2" in result.stderr
    cluster.put(PLACEMENTS, placement(namespace="team-b"))
    result = live("explain", "-A", "taxi-x7k2p")
    assert result.exit_code == 2
    assert "team-a/taxi-x7k2p, team-b/taxi-x7k2p" in result.stderr
    for where in ([], ["-A"], ["-n", "elsewhere"]):
        assert live("explain", "team-b/taxi-x7k2p", *where).stdout.startswith("team-b/taxi-x7k2p")


def test_a_run_by_namespace_and_name(live, cluster, golden):
    cluster.put(WORKFLOWS, workflow("new", "team-b"))
    result = live("explain", "team-b/new")
    assert result.exit_code == 3
    golden(result.stderr)
    assert "team-b/new" in result.stderr
    assert live("explain", "team-b/none").exit_code == 3
    # KFP's names of runs may look so.
    cluster.put(PLACEMENTS, placement(annotations={RUN_NAME_ANNOTATION: "2026/11"}))
    assert live("explain", "2026/11").stdout.startswith("team-a/taxi-x7k2p (2026/11)")
    for namespace in ("2026", "team-b"):
        cluster.refused[PLACEMENTS.path(namespace)] = FORBIDDEN
    assert live("explain", "2026/11").exit_code == 0
    result = live("explain", "team-b/new")
    assert (result.exit_code, result.stderr) == (1, "Error: forbidden\n")


@pytest.mark.parametrize(
    "wanted",
    ["nothing", "No name of an object!", pytest.param("x" * 5000, id="long"), "a=b,c"],
)
def test_no_such_run(live, wanted, golden):
    result = live("explain", wanted)
    assert result.exit_code == 3
    golden(result.stderr)
    assert "team-a" in result.stderr
    assert len(result.stderr) < 500


def test_a_run_name_that_may_not_be_looked_up(live, cluster, golden):
    cluster.refused[WORKFLOWS.path("team-a")] = ClusterForbiddenError("workflows is forbidden")
    result = live("explain", "daily")
    assert result.exit_code == 3
    golden(result.stderr)
    assert "workflows is forbidden" in result.stderr


def test_a_plan_bears_the_run_s_name_so_that_no_workflow_is_read(live, cluster):
    cluster.refused[WORKFLOWS.path("team-a")] = ClusterForbiddenError("workflows is forbidden")
    cluster.put(PLACEMENTS, placement(annotations={RUN_NAME_ANNOTATION: "Tuesday's run"}))
    result = live("explain", "Tuesday's run")
    assert result.exit_code == 0
    assert result.stdout.startswith("team-a/taxi-x7k2p (Tuesday's run)")


def test_a_run_without_a_plan(live, cluster, golden):
    cluster.put(WORKFLOWS, workflow("unplanned"))
    result = live("explain", "unplanned")
    assert result.exit_code == 3
    golden(result.stderr)
    assert "unplanned" in result.stderr


def test_no_such_step(live, golden):
    result = live("explain", "taxi-x7k2p", "trian")
    assert result.exit_code == 3
    golden(result.stderr)
    assert "'trian'" in result.stderr
    assert "'train'" in result.stderr


LOOPS = RunView(
    "r",
    "ns",
    NOW,
    steps=tuple(
        StepView(name, "pending")
        for name in ("a", "for[0].work", "for[1].work", "for[1].x[0].y", "work[0]", "work[1]")
    ),
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("a", ["a"]),
        ("for[1].work", ["for[1].work"]),
        ("for.work", ["for[0].work", "for[1].work"]),
        ("for[*].work", ["for[0].work", "for[1].work"]),
        ("work", ["work[0]", "work[1]"]),
        ("work[*]", ["work[0]", "work[1]"]),
        ("work[1]", ["work[1]"]),
        ("for[1].x[*].y", ["for[1].x[0].y"]),
    ],
)
def test_iterations(wanted, found):
    assert [step.name for step in steps_named(LOOPS, wanted)] == found


def test_what_a_step_waits_for_and_until_when(live, cluster, golden):
    states = [
        ["waiting", -1, -1, -1, ["plan", 120, 240]],
        ["waiting", -1, -1, -1, ["quota", 60, -1, "exceeded quota: gpus, requested: cpu=1"]],
        ["pending"],
    ]
    cluster.put(PLACEMENTS, placement(status={"steps": states}))
    (turn,) = block_of(live("explain", "taxi-x7k2p", "fetch"))["waits"]
    (quota,) = block_of(live("explain", "taxi-x7k2p", "train"))["waits"]
    golden([turn, quota], "waits")
    assert "since 1m" in turn
    assert "1m more" in turn
    assert "since 2m: exceeded quota: gpus, requested: cpu=1" in quota
    table = live("explain", "taxi-x7k2p").stdout
    golden(table, "table")
    assert "since 2m: exceeded quota" in table


def test_a_pod_that_is_elsewhere(live, cluster, golden):
    cluster.put(PLACEMENTS, placement(status={"steps": [["succeeded", 1, 10, 43]]}))
    cluster.put(PODS, executor_pod("fetch", node="nitlab-edge-node", phase="Succeeded"))
    why_elsewhere = (
        "planned on nitos-cloud-node, placed on nitlab-edge-node: nitos-cloud-node was full"
    )
    cluster.put(EVENTS, elsewhere_event("fetch", why_elsewhere))
    assert block_of(live("explain", "taxi-x7k2p", "fetch"))["elsewhere"] == [why_elsewhere]
    table = live("explain", "taxi-x7k2p").stdout
    assert "nitos-cloud-node -> nitlab-edge-node" in table
    assert why_elsewhere in table
    golden(live("list").stdout, "list")
    cluster.remove(EVENTS, "event-fetch", "team-a")
    assert "no event says why" in live("explain", "taxi-x7k2p", "fetch").stdout


def test_gates_and_what_kubernetes_says(live, cluster, golden):
    refused = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    gates = ("kfp-placement.dev/plan", "kueue.x-k8s.io/topology")
    cluster.put(PODS, executor_pod("predict", gates=gates, conditions=[refused]))
    found = block_of(live("explain", "taxi-x7k2p", "predict"))
    golden(found["pod"], "pod")
    golden(found["waits"], "waits")
    pod, *gate_lines, verdict = found["pod"]
    assert pod == "taxi-x7k2p-predict, Pending"
    assert all(gate in text for gate, text in zip(gates, gate_lines, strict=True))
    assert ["(not ours" in text for text in gate_lines] == [False, True]
    assert verdict.endswith("says: 0/3 nodes are available")
    assert len(found["waits"]) == 1


def test_the_latest_pod_counts(live, cluster):
    first = executor_pod("train", node="nitlab-edge-node", phase="Failed")
    second = executor_pod("train", node="nitos-cloud-node", phase="Running")
    second["metadata"] |= {"name": "second", "creationTimestamp": "2026-11-20T10:02:00Z"}
    cluster.put(PODS, second)
    cluster.put(PODS, first)
    assert "second, Running" in live("explain", "taxi-x7k2p", "train").stdout


def test_a_container_that_does_not_start(live, cluster):
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    statuses = [{"name": "main", "state": state}]
    cluster.put(PODS, executor_pod("train", containerStatuses=statuses))
    assert "ImagePullBackOff: no such image" in live("explain", "taxi-x7k2p", "train").stdout


def test_without_the_right_to_see_pods(live, cluster, golden):
    cluster.refused[PODS.path("team-a")] = FORBIDDEN
    cluster.refused[EVENTS.path("team-a")] = FORBIDDEN
    result = live("explain", "taxi-x7k2p", "train")
    assert result.exit_code == 0
    assert "train: running" in result.stdout
    golden(result.stderr, "stderr")
    assert result.stderr.count("Warning: forbidden; ") == len(result.stderr.splitlines()) == 2
    assert len(json.loads(live("explain", "taxi-x7k2p", "-o", "json").stdout)["missing"]) == 2


def test_the_document(live, cluster):
    cluster.put(PODS, executor_pod("train", node="nitos-cloud-node", phase="Running"))
    document = json.loads(live("explain", "taxi-x7k2p", "train", "-o", "json").stdout)
    assert (document["kind"], document["run"]["phase"]) == ("RunExplanation", "Running")
    (step,) = document["steps"]
    assert step["plannedNode"] == step["node"] == "nitos-cloud-node"
    assert (step["plannedStartSeconds"], step["startSeconds"]) == (47, 49)
    other = {"node": "nitlab-edge-node", "lossSeconds": 1200, "latencyMs": None}
    assert step["alternatives"][0] == other
    ruled = json.loads(live("explain", "taxi-x7k2p", "predict", "-o", "json").stdout)["steps"][0]
    assert [each["latencyMs"] for each in ruled["alternatives"]] == [42.551, 89.667]
    assert step["pod"]["phase"] == "Running"
    assert step["waiting"] is None


def test_malformed_pods_and_events_are_passed_over(live, cluster):
    bad = executor_pod("train")
    bad["spec"] = {"schedulingGates": {"name": 1}}
    cluster.put(PODS, bad)
    odd = elsewhere_event("fetch", "x") | {"involvedObject": ["none"]}
    cluster.put(EVENTS, odd)
    assert live("explain", "taxi-x7k2p", "-o", "wide").exit_code == 0


def test_a_plan_that_cannot_be_read(live, cluster, golden):
    cluster.put(PLACEMENTS, placement(spec={"revision": -1}))
    result = live("explain", "taxi-x7k2p")
    assert result.exit_code == 1
    golden(result.stdout)
    assert "spec.revision" in result.stdout


def test_a_status_of_another_revision_says_nothing(live, cluster):
    cluster.put(PLACEMENTS, placement(status={"revision": 1}))
    assert "train: unknown" in live("explain", "taxi-x7k2p", "train").stdout


def test_folded_steps(live, cluster, golden):
    cluster.put(PLACEMENTS, placement(status={"foldedSteps": 40}))
    text = live("explain", "taxi-x7k2p").stdout
    golden(text)
    assert "40 ended steps" in text


NO_NODE = ["unschedulable", 3, [[3, "cordoned"]]]


def test_a_step_that_has_got_a_node_is_not_said_to_fit_none(live, cluster, golden):
    rows = [["fetch", -1, -1, -1, NO_NODE], ["train", -1, -1, -1, NO_NODE]]
    states = [["running", 1, 49], ["waiting", -1, -1, -1, ["node", 60]]]
    cluster.put(PLACEMENTS, placement(spec={"steps": rows}, status={"steps": states}))
    table = live("explain", "taxi-x7k2p").stdout
    golden(table)
    fetch, train = table.splitlines()[-2:]
    assert "(3 nodes: node is cordoned)" in fetch
    assert "at the time" in fetch
    assert "(3 nodes: node is cordoned)" in train
    assert "at the time" not in train


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["fetch", -1, -1, -1, NO_NODE], ["train", 0]], "no planned end: 1 step has no node; "),
        ([["fetch", 0]], "no planned end; "),
    ],
)
def test_a_plan_without_an_end_is_a_plan(live, cluster, rows, expected):
    changed = placement(spec={"steps": rows}, status={"phase": "Planned", "steps": [["pending"]]})
    del changed["spec"]["makespan"]
    cluster.put(PLACEMENTS, changed)
    assert live("explain", "taxi-x7k2p").stdout.splitlines()[2].startswith(expected + "revision 2")


def test_no_other_node_named(live, cluster, golden):
    only = ["train", 0, 47, 1249, ["only-node"]]
    cluster.put(PLACEMENTS, placement(spec={"steps": [["fetch", 0, 10, 42, ["started"]], only]}))
    (first,) = block_of(live("explain", "taxi-x7k2p", "fetch"))["else"]
    assert "first plan" in first
    limited = executor_pod("fetch", node="nitos-cloud-node")
    limited["metadata"]["annotations"][HINTS_ANNOTATION] = '{"v":1,"maxLatency":"20ms"}'
    cluster.put(PODS, limited)
    (beyond,) = block_of(live("explain", "taxi-x7k2p", "fetch"))["else"]
    assert "20 ms" in beyond
    golden([first, beyond])
    assert "else" not in block_of(live("explain", "taxi-x7k2p", "train"))


@pytest.mark.parametrize(
    ("other", "delay"), [([1, 0.1], "83ms"), ([1, 9], "9s"), ([2, 0.1], "100ms")], ids=str
)
def test_one_figure_for_the_next_best_node(live, cluster, other, delay):
    row = ["train", 0, 47, 1249, ["run-later", 0.0833, 1], [other]]
    cluster.put(PLACEMENTS, placement(spec={"steps": [row]}))
    (text,) = block_of(live("explain", "taxi-x7k2p", "train"))["else"]
    assert f" {delay} " in text


def test_a_run_by_namespace_and_run_name(live, cluster, golden):
    named = {RUN_NAME_ANNOTATION: "Quota run"}
    cluster.put(PLACEMENTS, placement(namespace="team-b", annotations=named, labels={}))
    for where in ([], ["-A"], ["-n", "elsewhere"]):
        text = live("explain", "team-b/Quota run", *where).stdout
        assert text.startswith("team-b/taxi-x7k2p (Quota run)")
    cluster.put(WORKFLOWS, workflow("new", "team-b", run_name="Other run"))
    result = live("explain", "team-b/Other run")
    assert result.exit_code == 3
    golden(result.stderr, "without a plan")
    assert "team-b/new" in result.stderr
    result = live("explain", "team-b/No run")
    assert result.exit_code == 3
    golden(result.stderr, "not found")
    assert "'No run' in namespace team-b" in result.stderr
    # What may not be looked up there may still be KFP's name of a run here.
    cluster.put(PLACEMENTS, placement(annotations={RUN_NAME_ANNOTATION: "team-b/nightly"}))
    cluster.refused[WORKFLOWS.path("team-b")] = FORBIDDEN
    assert live("explain", "team-b/nightly").stdout.startswith("team-a/taxi-x7k2p")


def a_whole_workflow(memory="8Gi"):
    """The Workflow of the run, as far as its steps and their requests are read from it."""
    resources = {"requests": {"memory": memory}}
    templates = [small_step() | {"container": {"image": "busybox:1", "resources": resources}}]
    tasks = [small_task(name) for name in ("fetch", "train", "predict")]
    whole = small_workflow(dag("main", *tasks), *templates)
    whole["metadata"].update(name="taxi-x7k2p", namespace="team-a")
    return whole


def remembered(**memory):
    """What nine runs used; plain Workflows are known by their names."""
    ended_at = datetime(2026, 11, 1, tzinfo=UTC)
    runs = [past_run("taxi-x7k2p", number, ended_at, {"train": [9.0]}) for number in range(9)]
    return history_object(with_memory(runs, "train", **memory))


def test_what_a_step_should_ask_for(live, cluster):
    cluster.put(WORKFLOWS, a_whole_workflow())
    cluster.put(HISTORIES, remembered(peak=1.2))
    advice = "asks 8Gi, used at most 1.2Gi in 9 runs: 1.5Gi would do"
    assert block_of(live("explain", "taxi-x7k2p", "train"))["memory"] == [advice]
    assert "memory" not in block_of(live("explain", "taxi-x7k2p", "fetch"))
    assert advice in live("explain", "taxi-x7k2p", "-o", "wide").stdout
    document = json.loads(live("explain", "taxi-x7k2p", "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(schema("runs"))).validate(document)
    by_step = {each["name"]: each["memoryAdvice"] for each in document["steps"]}
    assert by_step == {"fetch": None, "train": advice, "predict": None}


def test_a_step_that_asks_for_less_than_it_used(live, cluster):
    cluster.put(WORKFLOWS, a_whole_workflow("1Gi"))
    cluster.put(HISTORIES, remembered(peak=1.2))
    advice = "asks 1Gi, used at most 1.2Gi in 9 runs: ask for 1.5Gi"
    assert block_of(live("explain", "taxi-x7k2p", "train"))["memory"] == [advice]


def test_after_a_kill_it_says_what_to_ask_for(live, cluster):
    cluster.put(WORKFLOWS, a_whole_workflow("2Gi"))
    cluster.put(HISTORIES, remembered(killed=2))
    advice = "was killed for memory with 2Gi in its last run; ask for 4Gi"
    assert block_of(live("explain", "taxi-x7k2p", "train"))["memory"] == [advice]


@pytest.mark.parametrize("kind", [WORKFLOWS, HISTORIES])
def test_what_may_not_be_read_gives_no_advice(live, cluster, kind):
    cluster.put(WORKFLOWS, a_whole_workflow())
    cluster.put(HISTORIES, remembered(peak=1.2))
    cluster.refused[kind.path("team-a")] = FORBIDDEN
    result = live("explain", "taxi-x7k2p", "train")
    assert result.exit_code == 0
    assert "memory" not in block_of(result)
    assert result.stderr == ""
