"""What Argo limits: parallelism, mutexes and semaphores; pauses; hooks; targets of a DAG."""

import re
from typing import Any

import pytest

from kfp_placement_engine import ReadOptions, RunGraph, read_run_file
from kfp_placement_engine.exceptions import InputError, RequestError
from kfp_placement_engine.model.notices import HIDDEN_DEMAND
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.planning.given_values import with_refusals
from kfp_placement_engine.readers.text.fields import Fields as PlainFields
from kfp_placement_engine.readers.text.place import UNNAMED
from kfp_placement_engine.readers.tree.options import ArgoObjects
from tests.controlplane.argo.small_workflows import arguments, task
from tests.engine.readers.argo.test_plain_workflows import dag, read
from tests.support.builders import cluster_of, plan_of
from tests.support.data import data_path
from tests.support.packages import Fields, notice_codes

WORK: Fields = {"name": "work", "container": {"command": ["true"]}}
SIX = [1, 2, 3, 4, 5, 6]
MINUTE = 60.0


def minutes(graph: RunGraph, **options: Any) -> float:
    """How long the run takes; each step takes a minute, and there is room for all at once."""
    plan = plan_of(graph, cluster_of(3, cpu=16), **options)
    assert plan.comparison.lower_bound.seconds <= plan.figures.makespan_seconds * (1 + 1e-9)
    return plan.figures.makespan_seconds / MINUTE


def steps(name: str, *groups: list[Fields], **fields: Any) -> Fields:
    return {"name": name, "steps": list(groups), **fields}


def locked(name: str = "work", **synchronization: Any) -> Fields:
    return {**WORK, "name": name, "synchronization": synchronization}


# Parallelism -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), [("spec", 3), ("template", 3)])
def test_parallelism_of_a_workflow_and_of_a_template(name, expected):
    graph = read_run_file(data_path("user-cases", "03-parallelism", f"{name}.yaml"))
    plan = plan_of(graph, cluster_of(3))
    assert plan.figures.makespan_seconds == pytest.approx(expected * MINUTE, rel=0.05)
    assert plan.comparison.lower_bound.seconds == pytest.approx(expected * MINUTE, rel=0.05)


@pytest.mark.parametrize(("most", "expected"), [(None, 1), (1, 6), (2, 3), (4, 2), (6, 1), (9, 1)])
def test_no_more_pods_than_the_workflow_allows(most, expected):
    graph = read([dag(task("w", withItems=SIX)), WORK], parallelism=most)
    assert minutes(graph) == expected
    assert bool(graph.limits) == (expected > 1)


def test_parallelism_of_a_dag_counts_its_children_and_not_their_pods():
    inner = {"name": "inner", "dag": {"tasks": [task("a"), task("b"), task("c", depends="a")]}}
    tasks = [task("one", "inner"), task("two", "inner"), task("three")]
    graph = read([dag(*tasks, parallelism=2), inner, WORK])
    (limit,) = graph.limits
    assert (limit.name, limit.most) == ("parallelism of template main", 2)
    assert limit.holders == (
        ("one.a", "one.b", "one.c"),
        ("three",),
        ("two.a", "two.b", "two.c"),
    )
    assert minutes(graph) == 3


def test_a_template_that_runs_twice_has_two_limits():
    inner = steps("inner", [task("w", withItems=[1, 2])], parallelism=1)
    graph = read([dag(task("one", "inner"), task("two", "inner")), inner, WORK])
    assert len(graph.limits) == 2
    assert minutes(graph) == 2
    assert minutes(read([dag(task("s", "inner", withItems=[1, 2, 3])), inner, WORK])) == 2


def test_limits_of_workflow_and_template_apply_together():
    inner = steps("inner", [task("w", withItems=[1, 2])])
    main = dag(task("s", "inner", withItems=[1, 2, 3]), parallelism=2)
    assert minutes(read([main, inner, WORK])) == 2
    assert minutes(read([main, inner, WORK], parallelism=3)) == 2
    assert minutes(read([main, inner, WORK], parallelism=1)) == 6
    # Seen with Argo 4.1.2: the default does not hold back what is ready at once.
    assert minutes(read([main, inner, WORK], templateDefaults={"parallelism": 1})) == 2


def test_pauses_are_no_children_and_no_pods():
    pause = {"name": "wait", "suspend": {"duration": "60"}}
    tasks = [task("p", "wait", withItems=SIX), task("w", withItems=[1, 2])]
    assert minutes(read([dag(*tasks, parallelism=1), pause, WORK], parallelism=1)) == 2


@pytest.mark.parametrize("value", ["2", "{{workflow.parameters.p}}", 1.5, True, [1]])
@pytest.mark.parametrize("where", ["spec", "template"])
def test_parallelism_is_a_whole_number(value, where):
    parameters = {"arguments": arguments(p="2")}
    of_spec = {"parallelism": value} if where == "spec" else {}
    main = dag(task("A"), **({} if of_spec else {"parallelism": value}))
    with pytest.raises(InputError, match="parallelism: must be a whole number, not"):
        read([main, WORK], **parameters, **of_spec)


@pytest.mark.parametrize("value", [0, -3])
def test_a_workflow_that_is_stopped_by_its_parallelism_is_planned_as_without(value):
    graph = read([dag(task("w", withItems=SIX), parallelism=value), WORK], parallelism=value)
    assert (minutes(graph), notice_codes(graph)) == (1, ["parallelism"])


# Locks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["m", "mn"])
def test_steps_with_mutexes_take_turns(names):
    graph = read(
        [dag(task("w", withItems=SIX)), locked(mutexes=[{"name": name} for name in names])]
    )
    assert minutes(graph) == 6


@pytest.mark.parametrize(
    ("synchronization", "limits"),
    [({"mutex": {"name": "m"}}, {}), ({"semaphore": {"database": {"key": "k"}}}, {"k": 1})],
)
def test_a_lock_under_its_former_name_counts_and_is_named(synchronization, limits, golden):
    """Argo 4.1.2 runs such steps beside each other, Argo 3 does not."""
    templates = [dag(task("w", withItems=SIX)), locked(**synchronization)]
    graph = read(templates, options={"semaphores": limits})
    assert (minutes(graph), notice_codes(graph)) == (6, [HIDDEN_DEMAND, "shared-lock"])
    golden(str(graph.notices[0]))


def test_a_mutex_is_one_for_all_templates_and_different_by_name_and_namespace():
    tasks = [task("a", "a"), task("b", "b"), task("c", "c"), task("d", "d")]
    graph = read(
        [
            dag(*tasks),
            locked("a", mutexes=[{"name": "m"}]),
            locked("b", mutexes=[{"name": "m"}]),
            locked("c", mutexes=[{"name": "other"}]),
            locked("d", mutexes=[{"name": "m", "namespace": "elsewhere"}]),
        ]
    )
    assert [(limit.name, limit.holders) for limit in graph.limits] == [
        ("mutex m", (("a",), ("b",)))
    ]
    assert minutes(graph) == 2


def test_the_name_of_a_mutex_may_be_a_parameter():
    mutex = {"name": "gpu-{{inputs.parameters.n}}"}
    template = {**locked(mutexes=[mutex]), "inputs": {"parameters": [{"name": "n"}]}}
    tasks = task("w", withItems=[1, 1, 2], arguments=arguments(n="{{item}}"))
    graph = read([dag(tasks), template])
    assert [limit.name for limit in graph.limits] == ["mutex gpu-1"]
    made = task("w", arguments=arguments(n="{{tasks.a.outputs.result}}"))
    graph = read([dag(task("a", "plain"), made), template, {**WORK, "name": "plain"}])
    assert (graph.limits, notice_codes(graph)) == ((), ["lock"])


def test_a_lock_of_a_dag_is_held_until_its_last_step_has_ended():
    inner = dag(task("x"), task("y", depends="x"))
    inner |= {"name": "inner", "synchronization": {"mutexes": [{"name": "m"}]}}
    graph = read([dag(task("one", "inner"), task("two", "inner"), task("w")), inner, WORK])
    assert minutes(graph) == 4


def test_a_child_that_waits_for_a_lock_counts_as_a_child():
    """Two children hold the places of their template; the second waits for the lock meanwhile."""
    tasks = [task("a", "a"), task("b", "a"), task("c"), task("d")]
    graph = read([dag(*tasks, parallelism=2), locked("a", mutexes=[{"name": "m"}]), WORK])
    assert minutes(graph) == 3


def test_a_pod_that_waits_for_a_lock_does_not_count_as_a_pod():
    tasks = [task("a", "a"), task("b", "a"), task("c"), task("d")]
    graph = read([dag(*tasks), locked("a", mutexes=[{"name": "m"}]), WORK], parallelism=2)
    assert minutes(graph) == 2


def test_several_locks_are_taken_at_once():
    """Whoever waits for one lock keeps no other: no two steps wait for each other forever."""
    both, swapped = [{"name": "m"}, {"name": "n"}], [{"name": "n"}, {"name": "m"}]
    tasks = [task("a", "a", withItems=[1, 2]), task("b", "b", withItems=[1, 2])]
    graph = read([dag(*tasks), locked("a", mutexes=both), locked("b", mutexes=swapped)])
    assert minutes(graph) == 4


def test_a_lock_inside_of_itself_is_said():
    inner = dag(task("x", "locked")) | {
        "name": "inner",
        "synchronization": {"mutexes": [{"name": "m"}]},
    }
    graph = read([dag(task("a", "inner")), inner, locked("locked", mutexes=[{"name": "m"}])])
    assert notice_codes(graph) == ["shared-lock", "lock-never-free"]
    assert graph.notices[1].message.startswith("it never starts: it waits for mutex m")


@pytest.mark.parametrize("place", ["entrypoint", "Workflow"])
@pytest.mark.parametrize(("places", "is_stuck"), [(1, True), (2, False)])
def test_what_a_run_keeps_until_its_end_its_steps_never_get(place, places, is_stuck):
    lock = {"semaphores": [SEMAPHORE]}
    main = {"synchronization": lock} if place == "entrypoint" else {}
    whole = {"synchronization": lock} if place == "Workflow" else {}
    limits = {"limits/gpu": places}
    graph = read(
        [dag(task("a", "locked"), task("w"), **main), locked("locked", **lock), WORK],
        options={"semaphores": limits},
        **whole,
    )
    assert notice_codes(graph) == ["shared-lock", "lock-never-free"][: 1 + is_stuck]
    refused = [step.name for step in with_refusals(graph).steps if step.refusal]
    assert refused == (["a"] if is_stuck else [])


def test_an_exit_handler_gets_what_the_entrypoint_has_kept():
    lock = {"mutexes": [{"name": "m"}]}
    templates = [dag(task("w"), synchronization=lock), locked("end", **lock), WORK]
    assert notice_codes(read(templates, onExit="end")) == ["shared-lock"]
    stuck = read([dag(task("w")), locked("end", **lock), WORK], onExit="end", synchronization=lock)
    assert "lock-never-free" in notice_codes(stuck)


SEMAPHORE = {"configMapKeyRef": {"name": "limits", "key": "gpu"}}


def test_the_limit_of_a_semaphore_is_given_or_named(golden):
    templates = [dag(task("w", withItems=SIX)), locked(semaphores=[SEMAPHORE])]
    graph = read(templates)
    assert (minutes(graph), notice_codes(graph)) == (1, ["lock"])
    golden(str(graph.notices[0]))
    graph = read(templates, options={"semaphores": {"limits/gpu": 2}})
    assert (minutes(graph), notice_codes(graph)) == (3, ["shared-lock"])


def beside(namespace: str, data: Fields) -> Fields:
    metadata = {"name": "limits", "namespace": namespace}
    config_map = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}
    return {"templates": ArgoObjects((PlainFields(config_map, UNNAMED),))}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"gpu": "0"}, "the limit of semaphore limits/gpu is 0"),
        ({"gpu": "-1"}, "the limit of semaphore limits/gpu is -1"),
        ({"other": "2"}, "the ConfigMap of semaphore limits/gpu has no such key"),
    ],
)
def test_a_semaphore_without_places_is_refused(data, problem):
    templates = [dag(task("w", withItems=SIX)), locked(semaphores=[SEMAPHORE])]
    graph = read(templates, metadata={"name": "r", "namespace": "n"}, options=beside("n", data))
    (notice,) = graph.notices
    assert (notice.code, notice.is_refusal) == ("lock-never-free", True)
    assert notice.message.startswith(problem)


@pytest.mark.parametrize(
    ("namespace", "beside_namespace", "is_unknown"),
    [
        ("", "n", False),
        ("n", "n", False),
        ("", "other", True),
        ("other", "n", True),
        ("other", "other", False),
    ],
)
def test_a_semaphore_of_another_namespace_has_another_limit(
    namespace, beside_namespace, is_unknown
):
    semaphore = {**SEMAPHORE, "namespace": namespace}
    templates = [dag(task("w", withItems=SIX)), locked(semaphores=[semaphore])]
    options = beside(beside_namespace, {"gpu": "2"})
    graph = read(templates, metadata={"name": "r", "namespace": "n"}, options=options)
    assert notice_codes(graph) == ["lock" if is_unknown else "shared-lock"]
    assert minutes(graph) == (1 if is_unknown else 3)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("limits/gpus", "there is no semaphore 'limits/gpus'; did you mean 'limits/gpu'?"),
        ("other", "there is no semaphore 'other'; semaphores: limits/gpu"),
    ],
)
def test_a_semaphore_that_the_run_does_not_have_is_refused(name, answer):
    templates = [dag(task("w", withItems=SIX)), locked(semaphore=SEMAPHORE)]
    with pytest.raises(RequestError, match=re.escape(answer)):
        read(templates, options={"semaphores": {name: 2}})
    with pytest.raises(RequestError, match="the run has none"):
        read([dag(task("w", "work")), WORK], options={"semaphores": {name: 2}})


def test_branches_that_are_not_taken_have_names_and_semaphores():
    inner = dag(task("b", withItems=[1, 2]), task("c", "plain"), name="inner")
    tasks = (task("a", "inner", when="1 == 2"), task("d", "plain"), task("e", withParam="[]"))
    templates = [dag(*tasks), inner, locked(semaphores=[SEMAPHORE]), {**WORK, "name": "plain"}]
    graph = read(templates, options={"semaphores": {"limits/gpu": 2}})
    assert {step.name for step in graph.steps} == {"d"}
    inside = dict.fromkeys(("a", "a.b[*]", "a.c"), "branch a")
    assert graph.left_out == {**inside, "e[*]": "loop e"}
    with pytest.raises(RequestError, match="did you mean 'limits/gpu'"):
        read(templates, options={"semaphores": {"limits/gpuu": 2}})


def test_a_semaphore_of_which_a_name_is_not_known_may_be_the_given_one():
    unknown = {"configMapKeyRef": {"name": "limits", "key": "{{workflow.uid}}"}}
    template = locked(semaphore=unknown)
    assert read([dag(task("w")), template], options={"semaphores": {"limits/gpu": 2}}).steps


def test_a_semaphore_in_a_database_has_a_key():
    template = locked(semaphores=[{"database": {"key": "gpu"}}])
    graph = read([dag(task("w", withItems=SIX)), template], options={"semaphores": {"gpu": 3}})
    assert minutes(graph) == 2


@pytest.mark.parametrize("value", [0, -1, "two", 1.5, True, None])
def test_the_limit_of_a_semaphore_is_a_whole_number(value):
    with pytest.raises(InputError, match=r"semaphore limits/gpu = .*; it must be a whole"):
        ReadOptions(semaphores={"limits/gpu": value})


@pytest.mark.parametrize(
    ("synchronization", "problem"),
    [
        ({"mutex": {}}, "mutex.name"),
        ({"semaphores": [{}]}, "key"),
        ({"semaphores": "gpu"}, "semaphores: must be a list"),
        ({"mutexes": ["m"]}, r"mutexes\[0\]: must be a mapping"),
    ],
)
def test_malformed_locks_are_refused(synchronization, problem):
    with pytest.raises(InputError, match=problem):
        read([dag(task("A")), locked(**synchronization)])


def test_a_lock_of_the_whole_workflow_and_a_daemon_are_named():
    server = {**WORK, "name": "server", "daemon": True}
    lock = {"mutexes": [{"name": "m"}]}
    graph = read([dag(task("A", "server"), task("B")), server, WORK], synchronization=lock)
    assert notice_codes(graph) == [HIDDEN_DEMAND, "shared-lock"]
    assert graph.notices[1].message.startswith("the run takes mutex m")


# Pauses ------------------------------------------------------------------------------------------


def test_a_pause_takes_its_time_and_a_person_is_named(golden):
    graph = read_run_file(data_path("user-cases", "09-suspend", "suspend.yaml"))
    plan = plan_of(graph, cluster_of(3))
    assert plan.step("deploy").start_seconds == pytest.approx(2 * 3600 + MINUTE, abs=1)
    assert (plan.step("settle").node, plan.unschedulable) == (None, ())
    assert [step.kind for step in graph.steps if not step.needs_pod] == [StepKind.SUSPEND] * 2
    golden("\n".join(map(str, plan.notices)))


@pytest.mark.parametrize(
    ("duration", "expected"),
    [("90", 3.5), ("1m30s", 3.5), (60, 3), ("{{workflow.parameters.pause}}", 4)],
)
def test_a_pause_is_read_as_by_argo(duration, expected):
    tasks = [task("A"), task("pause", "wait", depends="A"), task("B", depends="pause")]
    templates = [dag(*tasks), {"name": "wait", "suspend": {"duration": duration}}, WORK]
    assert minutes(read(templates, arguments=arguments(pause="2m"))) == expected


@pytest.mark.parametrize("duration", ["soon", "{{tasks.A.outputs.result}}"])
def test_a_pause_without_a_known_time_is_said(duration):
    template = {
        "name": "wait",
        "inputs": {"parameters": [{"name": "d"}]},
        "suspend": {"duration": "{{inputs.parameters.d}}"},
    }
    tasks = [task("A"), task("pause", "wait", depends="A", arguments=arguments(d=duration))]
    graph = read([dag(*tasks), template, WORK])
    assert (minutes(graph), notice_codes(graph)) == (1, ["unknown-pause"])


@pytest.mark.parametrize("kind", ["http", "plugin"])
def test_what_the_agent_does_has_no_pod(kind):
    tasks = [task("A"), task("call", "call", depends="A"), task("B", depends="call")]
    graph = read([dag(*tasks), {"name": "call", kind: {"url": "http://x"}}, WORK])
    plan = plan_of(graph, cluster_of(1))
    assert (plan.step("call").node, plan.unschedulable) == (None, ())
    assert plan.step("B").start_seconds == MINUTE
    assert "no-pod" in [notice.code for notice in plan.notices]


# Hooks, targets, daemons -------------------------------------------------------------------------


@pytest.mark.parametrize("hook", [{"onExit": "work"}, {"hooks": {"exit": {"template": "work"}}}])
def test_what_waits_for_a_task_waits_for_its_exit_hook(hook):
    graph = read([dag(task("A", **hook), task("B", depends="A"), task("C")), WORK])
    assert graph.step("B").depends_on == ("A", "A.onExit")
    assert minutes(graph) == 3
    groups = [[task("A", **hook)], [task("B")]]
    assert minutes(read([steps("main", *groups), WORK])) == 3
    inner = {"name": "inner", "dag": {"tasks": [task("A", **hook)]}}
    graph = read([dag(task("x", "inner"), task("y", depends="x")), inner, WORK])
    assert graph.step("y").depends_on == ("x.A", "x.A.onExit")


def test_the_exit_hook_of_a_loop_runs_for_each_iteration_and_in_a_dag_for_the_loop():
    first = task("A", onExit="work", withItems=[1, 2, 3], when="{{item}} != 2")
    graph = read([dag(first, task("B", depends="A")), WORK])
    hooks = {step.name: step.depends_on for step in graph.steps if step.exit_task}
    of_items = {"A[0].onExit": ("A[0]",), "A[2].onExit": ("A[2]",)}
    assert hooks == {**of_items, "A.onExit": ("A[0]", "A[2]")}
    assert graph.step("A[2].onExit").iteration == (2,)
    assert graph.step("B").depends_on == tuple(sorted([*hooks, "A[0]", "A[2]"]))
    graph = read([steps("main", [first]), WORK])
    assert {step.name for step in graph.steps if step.exit_task} == of_items.keys()
    nested = {"name": "inner", "dag": {"tasks": [first]}}
    graph = read([dag(task("x", "inner", withItems=[1, 2])), nested, WORK])
    assert graph.step("x[1].A[0].onExit").iteration == (1, 0)


def test_the_exit_hook_of_a_workflow_wins_over_on_exit():
    tidy = {**WORK, "name": "tidy", "nodeSelector": {"pool": "tidy"}}
    hooks = {"exit": {"template": "tidy"}}
    graph = read([dag(task("A")), WORK, tidy], onExit="work", hooks=hooks)
    assert graph.step("onExit").node_selector == {"pool": "tidy"}
    assert graph.step("onExit").depends_on == ("A",)


def test_a_task_that_does_not_run_has_no_exit_hook_to_wait_for():
    tasks = [
        task("A", onExit="work", when="false"),
        task("B", depends="A"),
        task("C", onExit="work", when="{{tasks.B.outputs.result}} == 1", depends="B"),
        task("D", depends="C"),
    ]
    graph = read([dag(*tasks), WORK])
    assert [step.name for step in graph.steps] == ["B", "C", "C.onExit", "D"]
    assert graph.step("D").conditions == ()


def test_an_exit_hook_runs_if_its_expression_is_true():
    def ended(expression: str) -> dict:
        return {"exit": {"template": "work", "expression": expression}}

    tasks = [
        task("A", hooks=ended("workflow.parameters.t == 'no'")),
        task("B", hooks=ended("tasks['B'].status == 'Failed'")),
        task("C", hooks=ended("tasks.C.status == 'Succeeded'")),
    ]
    on_exit = ended("workflow.status == 'Failed'")
    graph = read([dag(*tasks), WORK], arguments=arguments(t="yes"), hooks=on_exit)
    after_failure = {step.name: step.after_failure for step in graph.steps if step.exit_task}
    assert after_failure == {"B.onExit": True, "C.onExit": False, "onExit": True}


def test_other_hooks_are_named(golden):
    hooks = {"running": {"expression": 'tasks.A.status == "Running"', "template": "work"}}
    graph = read([dag(task("A", hooks=hooks)), WORK], hooks=hooks)
    assert notice_codes(graph) == ["lifecycle-hook", "lifecycle-hook"]
    assert [step.name for step in graph.steps] == ["A"]
    golden("\n".join(map(str, graph.notices)))


TASKS = [task("a"), task("b", depends="a"), task("c", depends="a"), task("d", depends="b")]


@pytest.mark.parametrize(
    ("target", "names"),
    [("b", "ab"), ("c b", "abc"), ("d", "abd"), ("", "abcd"), ("{{workflow.parameters.t}}", "a")],
)
def test_a_dag_runs_its_targets_and_what_they_wait_for(target, names):
    main = {"name": "main", "dag": {"tasks": TASKS, "target": target}}
    graph = read([main, WORK], arguments=arguments(t="a"))
    assert [step.name for step in graph.steps] == list(names)


def test_a_target_that_is_not_there_is_refused():
    main = {"name": "main", "dag": {"tasks": TASKS, "target": "b e"}}
    with pytest.raises(InputError, match=r"dag.target: there is no task 'e'"):
        read([main, WORK])


@pytest.mark.parametrize(
    "limit", [{"timeout": "60s"}, {"activeDeadlineSeconds": 60}, {"pendingTimeout": "1m"}]
)
def test_argo_refuses_limits_of_time_on_templates_of_tasks(limit):
    (setting,) = limit
    for tasks in (dag(task("a"), task("b")), steps("main", [task("a")], [task("b")])):
        (notice,) = read([{**tasks, **limit}, WORK]).notices
        assert notice.code == "refused-limit"
        assert notice.is_refusal
        assert f"{setting} is not for a template of tasks or steps" in notice.message
    assert read([dag(task("a")), {**WORK, **limit}]).notices == ()
