from datetime import UTC, datetime

import pytest

from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.finding import steps_named
from kfp_placement.live.kinds import CORE_EVENTS, HISTORIES, PLACEMENTS, WORKFLOWS
from kfp_placement_engine.contract.keys import RUN_NAME_ANNOTATION
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView
from kfp_placement_kube.kinds import PODS
from tests.cli.live.conftest import NOW, condition, placement
from tests.controlplane.argo.small_workflows import dag
from tests.controlplane.argo.small_workflows import step as small_step
from tests.controlplane.argo.small_workflows import task as small_task
from tests.controlplane.argo.small_workflows import workflow as small_workflow
from tests.engine.views.test_run_views import ELSEWHERE, event
from tests.support.fake_cluster import executor_pod, workflow
from tests.support.histories import history_object, past_run, with_memory

RUN_ID = "5d0a3a5e-6f0c-4c3a-9d0f-2f6b8c1d7e10"
FORBIDDEN = ClusterForbiddenError("forbidden")


def block_of(result):
    """Label -> texts of what is said of a step."""
    block: dict[str, list[str]] = {}
    for line in result.stdout.split("\n\n")[1].splitlines()[1:]:
        label, _, text = line.strip().partition(": ")
        block.setdefault(label, []).append(text)
    return block


def test_all_steps_in_a_line_and_one_in_full_with_its_pod_and_the_event(live, cluster):
    assert live.output("explain", "taxi-x7k2p").split("\n\n")[1].startswith("STEP      STATE ")
    cluster.put(placement(status={"steps": [["succeeded", 1, 10, 43]]}))
    cluster.put(executor_pod("fetch", node="nitlab-edge-node", phase="Succeeded"))
    cluster.put(event("fetch"))
    assert block_of(live("explain", "taxi-x7k2p", "fetch"))["elsewhere"] == [ELSEWHERE]
    assert live("explain", "taxi-x7k2p", "-o", "wide").stdout.count("why there: ") == 3


def test_a_plan_of_an_outline_says_so(live, cluster):
    assert live.document("explain", "taxi-x7k2p")["run"]["basis"] is None
    cluster.put(placement(spec={"basis": "outline"}))
    assert "planned by the outline of the run: requests" in live.output("explain", "taxi-x7k2p")
    assert live.document("explain", "taxi-x7k2p")["run"]["basis"] == "outline"


@pytest.mark.parametrize("wanted", [RUN_ID, "Tuesday's run.py"])
def test_a_run_by_its_other_names(live, cluster, wanted):
    cluster.put(workflow("taxi-x7k2p", run_id=RUN_ID, run_name="Tuesday's run.py"))
    assert live.output("explain", wanted).startswith("team-a/taxi-x7k2p")


def test_why_a_run_is_planned_without_its_package_is_said_here_alone(live, cluster):
    why = "ServiceAccount plan needs the right to get runs"
    unread = condition("SpecRead", reason="Forbidden", message=why)
    cluster.put(placement(status={"conditions": [unread]}))
    line = f"planned without its package (Forbidden): {why}"
    assert line in live.output("explain", "taxi-x7k2p").splitlines()
    assert "SpecRead" not in live.output("list")
    cluster.put(placement(status={"conditions": [condition("SpecRead", status="True")]}))
    assert "package" not in live.output("explain", "taxi-x7k2p")


def test_a_file_is_for_another_command(live):
    assert f"`kfp-placement plan {__file__} " in live.message(2, "explain", __file__)


def test_the_run_id_where_the_plan_does_not_carry_it(live, cluster):
    cluster.put(placement(labels={}))
    cluster.put(workflow("taxi-x7k2p", run_id=RUN_ID))
    assert live("explain", RUN_ID).exit_code == 0


def test_several_runs_may_be_meant(live, cluster, golden):
    for number in (1, 2):
        cluster.put(workflow(f"taxi-{number}", run_name="daily"))
    golden(live.message(2, "explain", "daily"))
    cluster.put(placement(namespace="team-b"))
    assert "team-a/taxi-x7k2p, team-b/taxi-x7k2p" in live.message(2, "explain", "-A", "taxi-x7k2p")
    for where in ([], ["-A"], ["-n", "elsewhere"]):
        assert live("explain", "team-b/taxi-x7k2p", *where).stdout.startswith("team-b/taxi-x7k2p")


def test_a_run_by_namespace_and_name(live, cluster, golden):
    cluster.put(workflow("new", "team-b"))
    golden(live.message(3, "explain", "team-b/new"))
    assert live("explain", "team-b/none").exit_code == 3
    # KFP's names of runs may look so.
    cluster.put(placement(annotations={RUN_NAME_ANNOTATION: "2026/11"}))
    assert live("explain", "2026/11").stdout.startswith("team-a/taxi-x7k2p (2026/11)")
    for namespace in ("2026", "team-b"):
        cluster.refused[PLACEMENTS.path(namespace)] = FORBIDDEN
    assert live("explain", "2026/11").exit_code == 0
    result = live("explain", "team-b/new")
    assert (result.exit_code, result.stderr) == (1, "Error: forbidden\n")


@pytest.mark.parametrize(
    "wanted",
    ["nothing", "No name of an object!", pytest.param(f"{'x' * 5000}.py", id="long"), "a=b,c"],
)
def test_no_such_run(live, wanted, golden):
    stderr = live.message(3, "explain", wanted)
    golden(stderr)
    assert len(stderr) < 500


def test_a_run_name_that_may_not_be_looked_up(live, cluster, golden):
    cluster.refused[WORKFLOWS.path("team-a")] = ClusterForbiddenError("workflows is forbidden")
    golden(live.message(3, "explain", "daily"))


def test_a_plan_bears_the_run_s_name_so_that_no_workflow_is_read(live, cluster):
    cluster.refused[WORKFLOWS.path("team-a")] = ClusterForbiddenError("workflows is forbidden")
    cluster.put(placement(annotations={RUN_NAME_ANNOTATION: "Tuesday's run"}))
    assert live.output("explain", "Tuesday's run").startswith("team-a/taxi-x7k2p (Tuesday's run)")


def test_a_run_without_a_plan(live, cluster, golden):
    cluster.put(workflow("unplanned"))
    golden(live.message(3, "explain", "unplanned"))


def test_no_such_step(live, golden):
    golden(live.message(3, "explain", "taxi-x7k2p", "trian"))


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
    ("wanted", "names"),
    [
        ("for[1].work", ["for[1].work"]),
        ("for.work", ["for[0].work", "for[1].work"]),
        ("for[*].work", ["for[0].work", "for[1].work"]),
        ("work", ["work[0]", "work[1]"]),
        ("for[1].x[*].y", ["for[1].x[0].y"]),
    ],
)
def test_iterations(wanted, names):
    assert [step.name for step in steps_named(LOOPS, wanted)] == names


def test_without_the_right_to_see_pods(live, cluster, golden):
    cluster.refused[PODS.path("team-a")] = FORBIDDEN
    cluster.refused[CORE_EVENTS.path("team-a")] = FORBIDDEN
    result = live("explain", "taxi-x7k2p", "train")
    assert result.exit_code == 0
    assert "\ntrain (running)\n" in result.stdout
    golden(result.stderr, "stderr")
    assert result.stderr.count("Warning: forbidden; ") == len(result.stderr.splitlines()) == 2
    assert len(live.document("explain", "taxi-x7k2p")["missing"]) == 2


def test_a_plan_that_cannot_be_read(live, cluster, golden):
    cluster.put(placement(spec={"revision": -1}))
    result = live("explain", "taxi-x7k2p")
    assert result.exit_code == 1
    golden(result.stdout)


def test_a_run_by_namespace_and_run_name(live, cluster, golden):
    named = {RUN_NAME_ANNOTATION: "Quota run"}
    cluster.put(placement(namespace="team-b", annotations=named, labels={}))
    for where in ([], ["-A"], ["-n", "elsewhere"]):
        text = live("explain", "team-b/Quota run", *where).stdout
        assert text.startswith("team-b/taxi-x7k2p (Quota run)")
    cluster.put(workflow("new", "team-b", run_name="Other run"))
    golden(live.message(3, "explain", "team-b/Other run"), "without a plan")
    golden(live.message(3, "explain", "team-b/No run"), "not found")
    # What may not be looked up there may still be KFP's name of a run here.
    cluster.put(placement(annotations={RUN_NAME_ANNOTATION: "team-b/nightly"}))
    cluster.refused[WORKFLOWS.path("team-b")] = FORBIDDEN
    assert live("explain", "team-b/nightly").stdout.startswith("team-a/taxi-x7k2p")


def a_whole_workflow():
    """The Workflow of the run, as far as its steps and their requests are read from it."""
    resources = {"requests": {"memory": "8Gi"}}
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
    cluster.put(a_whole_workflow())
    cluster.put(remembered(peak=1.2))
    advice = "asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do"
    assert block_of(live("explain", "taxi-x7k2p", "train"))["memory"] == [advice]
    assert "memory" not in block_of(live("explain", "taxi-x7k2p", "fetch"))
    assert advice in live("explain", "taxi-x7k2p", "-o", "wide").stdout
    document = live.document("explain", "taxi-x7k2p")
    by_step = {each["name"]: each["memoryAdvice"] for each in document["steps"]}
    assert by_step == {"fetch": None, "train": advice, "predict": None}


@pytest.mark.parametrize("kind", [WORKFLOWS, HISTORIES])
def test_what_may_not_be_read_gives_no_advice(live, cluster, kind):
    cluster.put(a_whole_workflow())
    cluster.put(remembered(peak=1.2))
    cluster.refused[kind.path("team-a")] = FORBIDDEN
    result = live("explain", "taxi-x7k2p", "train")
    assert result.exit_code == 0
    assert "memory" not in block_of(result)
    assert result.stderr == ""
