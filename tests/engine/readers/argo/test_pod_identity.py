"""From node names to steps: recordings of the real Argo, and names made for what they lack."""

from collections import Counter

import pytest

from kfp_placement_engine import read_run
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.tree.run_outcomes import PodRole
from tests.engine.readers.recorded_runs import identified, recorded_pods
from tests.support.packages import a_dag, a_loop, a_package, a_task, an_exit_task, read_package


def test_every_recorded_pod_is_a_step_or_group_of_its_graph():
    """980 pods; 309 are drivers of groups; images of executors are those of the steps."""
    roles: Counter[PodRole] = Counter()
    groups = beyond = 0
    for _, identity, graph, _, pod in recorded_pods():
        roles[identity.role] += 1
        groups += identity.is_group is True
        assert identity.attempt == 0
        main = next(c for c in pod["spec"]["containers"] if c["name"] == "main")
        if "[*]" in identity.name:
            beyond += 1
        elif identity.role is PodRole.EXECUTOR:
            assert graph.step(identity.name).image == main["image"]
            assert identity.iteration == graph.step(identity.name).iteration
        if identity.role is PodRole.DRIVER:
            assert "driver" in main["image"]
    assert sum(roles.values()) == 980
    assert groups == 309
    assert roles[PodRole.OTHER] == 7
    assert beyond > 0


@pytest.mark.parametrize(
    "node_name",
    [
        "",
        "other.root.train.executor",
        "ts-ab1",
        "ts-ab1train",
        "ts-ab1x.root.train.executor",
        "ts-ab1.root.gone.executor",
        "ts-ab1.root..x",
        "ts-ab1.root.x(1",
    ],
)
def test_other_names_are_no_pods_of_the_run(node_name):
    graph = read_package(a_package({"train": a_task(), "x": a_task()}))
    assert PodIndex(graph, "ts-ab1").identify(node_name) is None


LOOPS = {"body": a_dag({"work": a_task()}), "deep": a_dag({"inner": a_loop("body", [1, 2])})}


def spellings(path: str) -> list[str]:
    """A node name without attempts, and as KFP 2.17's default retries write it."""
    head, *parts = path.split(".")
    return [f"wf.1.{path}", f"wf.1(0).{head}(0)" + "".join(f".{part}(0)" for part in parts)]


@pytest.mark.parametrize(
    ("node", "name", "role", "iteration"),
    [
        ("root-driver", "", PodRole.DRIVER, ()),
        ("root.work-driver", "work", PodRole.DRIVER, ()),
        ("root.work.executor", "work", PodRole.EXECUTOR, ()),
        ("root.loop.iteration-driver", "loop", PodRole.DRIVER, ()),
        (
            "root.loop.iteration-iterations(1:1).iteration-item-driver",
            "loop[1]",
            PodRole.DRIVER,
            (1,),
        ),
        (
            "root.loop.iteration-iterations(1:1).iteration-item.inner.iteration-driver",
            "loop[1].inner",
            PodRole.DRIVER,
            (1,),
        ),
        (
            "root.loop.iteration-iterations(1:1).iteration-item.inner"
            ".iteration-iterations(0:0).iteration-item.work.executor",
            "loop[1].inner[0].work",
            PodRole.EXECUTOR,
            (1, 0),
        ),
        (
            "root.each.iteration-iterations(1:1).iteration-item-driver",
            "each[1]",
            PodRole.DRIVER,
            (1,),
        ),
        (
            "root.each.iteration-iterations(1:1).iteration-item.executor",
            "each[1]",
            PodRole.EXECUTOR,
            (1,),
        ),
        ("root.work.onExit.tidy.executor", "tidy", PodRole.EXECUTOR, ()),
        ("root.work.onExit.tidy-driver", "tidy", PodRole.DRIVER, ()),
        ("root.make", "make", PodRole.OTHER, ()),
        ("root.bring", "bring", PodRole.OTHER, ()),
    ],
)
def test_pods_are_found_along_the_graph(read, node, name, role, iteration):
    """In both spellings, under a Workflow name with a dot."""
    executors = {"make": {"container": {"image": "argostub/createpvc"}}, "bring": {"importer": {}}}
    tasks = {
        "work": a_task(),
        "loop": a_loop("deep", [1, 2]),
        "each": a_loop("work", [1, 2]),
        "tidy": an_exit_task("work"),
        "make": a_task("make"),
        "bring": a_task("bring"),
    }
    graph = read(a_package(tasks, components=LOOPS, executors=executors))
    index = PodIndex(graph, "wf.1")
    for node_name in spellings(node):
        identity = identified(index, node_name)
        assert (identity.name, identity.role, identity.iteration) == (name, role, iteration)
        assert identity.attempt == 0


def test_attempts_are_read_from_the_last_name():
    """Absent from the recordings: retried executors, drivers and importers."""
    graph = read_package(a_package())
    index = PodIndex(graph, "wf")
    for node_name, attempt in (
        ("wf(0).root(0).work(0).executor(3)", 3),
        ("wf(0).root(0).work-driver(2)", 2),
        ("wf(0).root-driver(1)", 1),
        ("wf.root.work.executor", 0),
    ):
        assert identified(index, node_name).attempt == attempt


NESTED_LOOPS = PodIndex(
    read_package(a_package({"loop": a_loop("deep", [1, 2])}, components=LOOPS)), "wf"
)


def test_iterations_beyond_the_graph_count_for_the_whole():
    start = "wf.root.loop.iteration-iterations(5:5)"
    inner = f"{start}.iteration-item.inner"
    for node_name, name, is_group, iteration in (
        (f"{start}.iteration-item-driver", "loop[*]", True, (5,)),
        (f"{inner}.iteration-driver", "loop[*].inner", True, (5,)),
        (
            f"{inner}.iteration-iterations(0:0).iteration-item.work.executor",
            "loop[*].inner[*].work",
            False,
            (5, 0),
        ),
    ):
        identity = identified(NESTED_LOOPS, node_name)
        assert (identity.name, identity.is_group, identity.iteration) == (name, is_group, iteration)


def test_tasks_called_like_argo_s_own_levels_are_not_misread():
    """`iteration`, `x-driver`, `executor`: the graph knows better than the grammar."""
    names = ["iteration", "iteration-item", "iteration-iterations", "x-driver", "x", "executor"]
    components = {"iteration-driver": a_dag({"iteration": a_task()})}
    tasks = {
        **{name: a_task() for name in names if name not in ("x-driver", "x")},
        "y-driver": a_task(),
        "nested": a_task("iteration-driver"),
    }
    graph = read_package(a_package(tasks, components=components))
    index = PodIndex(graph, "wf")
    for node_name, name, role in (
        ("wf.root.iteration.executor", "iteration", PodRole.EXECUTOR),
        ("wf.root.iteration-driver", "iteration", PodRole.DRIVER),
        ("wf.root.iteration-item.executor", "iteration-item", PodRole.EXECUTOR),
        ("wf.root.iteration-iterations.executor", "iteration-iterations", PodRole.EXECUTOR),
        ("wf.root.y-driver.executor", "y-driver", PodRole.EXECUTOR),
        ("wf.root.y-driver-driver", "y-driver", PodRole.DRIVER),
        ("wf.root.executor.executor", "executor", PodRole.EXECUTOR),
        ("wf.root.executor-driver", "executor", PodRole.DRIVER),
        ("wf.root.nested.iteration.executor", "nested.iteration", PodRole.EXECUTOR),
        ("wf.root.nested.iteration-driver", "nested.iteration", PodRole.DRIVER),
        ("wf.root.nested-driver", "nested", PodRole.DRIVER),
    ):
        identity = identified(index, node_name)
        assert (identity.name, identity.role) == (name, role)


def test_an_importer_called_driver_is_an_importer():
    documents = a_package({"data-driver": a_task("bring")}, executors={"bring": {"importer": {}}})
    identity = identified(PodIndex(read_package(documents), "wf"), "wf.root.data-driver")
    assert (identity.name, identity.role) == ("data-driver", PodRole.OTHER)


@pytest.mark.parametrize("cut", range(0, 120, 3))
def test_any_part_of_a_name_is_read_or_refused(cut):
    """Whatever is cut off, nothing is raised."""
    name = "wf(0).root(0).loop(0).iteration-iterations(1:1)(0).iteration-item(0).inner(0)" + (
        ".iteration-iterations(0:0)(0).iteration-item(0).work(0).executor(0)"
    )
    for text in (name[:cut], name[cut:], name[:cut] + "((" + name[cut:]):
        NESTED_LOOPS.identify(text)


def test_pods_of_plain_workflows_are_their_paths():
    """Steps groups, loops over text with dots and brackets, nested DAGs, exit handlers."""
    text = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: my.flow}
spec:
  entrypoint: main
  onExit: tidy
  templates:
  - name: main
    steps:
    - - {name: first, template: work}
    - - name: each
        template: work
        withItems: ["a.b(c)", "d[1]"]
      - {name: nested, template: graph}
  - name: graph
    dag:
      tasks:
      - {name: A, template: work, onExit: tidy}
      - {name: B, template: more, dependencies: [A]}
  - name: more
    steps:
    - - {name: deep, template: work}
  - name: work
    container: {image: work}
  - name: tidy
    container: {image: tidy}
"""
    graph = read_run(text.encode(), name="flow.yaml")
    index = PodIndex(graph)
    for node_name, name, iteration, attempt in (
        ("my.flow[0].first", "first", (), 0),
        ("my.flow(0)[0].first(2)", "first", (), 2),
        ("my.flow[1].each(0:a.b(c))", "each[0]", (0,), 0),
        ("my.flow[1].each(1:d[1])(1)", "each[1]", (1,), 1),
        ("my.flow[1].nested.A", "nested.A", (), 0),
        ("my.flow[1].nested.A.onExit", "nested.A.onExit", (), 0),
        ("my.flow[1].nested.B[0].deep", "nested.B.deep", (), 0),
        ("my.flow.onExit", "onExit", (), 0),
    ):
        identity = identified(index, node_name)
        assert (identity.name, identity.iteration, identity.attempt) == (name, iteration, attempt)
        assert identity.role is PodRole.EXECUTOR


def test_a_workflow_of_one_pod_has_its_name():
    text = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: alone}
spec: {entrypoint: main, templates: [{name: main, container: {image: work}}]}
"""
    index = PodIndex(read_run(text.encode(), name="flow.yaml"))
    identity = identified(index, "alone")
    assert (identity.name, identity.role) == ("main", PodRole.EXECUTOR)
    assert identified(index, "alone(3)").attempt == 3
