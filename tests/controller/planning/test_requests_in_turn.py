"""RunRequests of more runs than the planner has memory or time for: whose graphs are kept."""

import pytest

from kfp_placement_controller.planning.needs.corrections import IN_LINE
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION
from tests.controller.planning.simulated_cluster import SimulatedCluster, a_coordinator
from tests.controller.planning.test_namespace_limits import ROOM
from tests.controller.planning.test_run_requests import QueuedCluster
from tests.controller.planning.test_scenarios import a_chain, a_step
from tests.controlplane.argo.small_workflows import dag, task, workflow
from tests.support.kubernetes import node_object

STEPS = 8


@pytest.fixture
def cluster():
    """Runs of `STEPS` steps wait in it, for two of which the budget has room."""
    policy = {"namespaceLimits": {"plannedSteps": 2 * STEPS}}
    simulated = SimulatedCluster(
        node_object("n0", allocatable=ROOM), coordinator=a_coordinator(policy)
    )
    return QueuedCluster(simulated=simulated)


def submit(cluster: QueuedCluster, *names: str) -> None:
    """Held runs of steps one after another, of 1 and 2 CPUs in turn."""
    for name in names:
        tasks = [task("s0", template="two")]
        tasks += [task(f"s{number}", depends=f"s{number - 1}") for number in range(1, STEPS)]
        run = workflow(dag("main", *tasks), a_step(cpu="1"), a_step("two", cpu="2"))
        run["metadata"]["name"] = name
        cluster.submit(run)
        cluster.settle()


def graphs(cluster: QueuedCluster) -> list[str]:
    """Names of the runs whose graphs are kept for their needs."""
    return sorted(key.name for key in cluster.coordinator.requests.graphs.kept("team"))


def peak(cluster: QueuedCluster, name: str) -> dict[str, float]:
    return dict(cluster.spec(name).demand.to_demand().peak)


def test_of_runs_that_wait_the_graphs_of_the_oldest_are_kept_and_all_demands(cluster):
    submit(cluster, *"abcd")
    assert graphs(cluster) == ["a", "b"]
    demands = [cluster.spec(name).demand for name in "abcd"]
    assert demands == demands[:1] * 4
    assert peak(cluster, "a") == {"cpu": 2000, "pods": 1}


def test_the_graph_of_a_run_that_begins_is_read_again_and_its_demand_shrinks(cluster):
    submit(cluster, *"abcd")
    cluster.release("d")
    cluster.simulated.run(lambda: peak(cluster, "d") == {"cpu": 1000, "pods": 1})
    assert graphs(cluster) == ["a", "d"]
    assert peak(cluster, "c") == {"cpu": 2000, "pods": 1}


def test_a_run_that_goes_on_beyond_the_budget_keeps_its_demand_until_another_ends(cluster):
    submit(cluster, *"abc")
    for name in "abc":
        cluster.release(name)
    cluster.simulated.run(lambda: peak(cluster, "b") == {"cpu": 1000, "pods": 1})
    assert peak(cluster, "c") == {"cpu": 2000, "pods": 1}
    cluster.simulated.run(lambda: cluster.spec("a").end)
    cluster.settle()
    assert cluster.spec("c").end or graphs(cluster)[-1:] == ["c"]


def test_a_run_whose_turn_does_not_come_is_known_before_the_deadline_of_its_queue():
    """Its RunRequest says neither a demand nor a problem, so that its queue lets it wait."""
    cluster = QueuedCluster()
    for number in range(5 * PLANS_PER_EVALUATION):
        cluster.submit(a_chain(f"wf-{number}"))
    cluster.simulated.tell()
    requests = cluster.coordinator.requests
    for seconds, count in ((0.0, 0), (29.0, 0), (31.0, PLANS_PER_EVALUATION)):
        written = list(requests.due(seconds))
        in_line = [each for each in written if each.spec.demand is None]
        assert len(in_line) == count
        assert all(each.spec.notes == (IN_LINE,) and not each.spec.problem for each in in_line)
        for each in written:
            cluster.carry_out(each)
    cluster.settle()
    specs = [each.spec for each in cluster.requests.values()]
    assert len(specs) == 5 * PLANS_PER_EVALUATION
    assert all(spec and spec.demand and not spec.notes for spec in specs)
