"""Tasks with conditions: which never run, which exclude each other, which run after a failure."""

import time
from typing import Any

import pytest

from kfp_placement_engine import RunGraph
from kfp_placement_engine.exceptions import InputError, UnknownBranchError
from kfp_placement_engine.model.concurrency import Branch, alternatives, exclude_each_other
from kfp_placement_engine.planning.given_values import with_refusals
from kfp_placement_engine.readers import ReadOptions
from kfp_placement_engine.readers.run_files import read_run_file
from tests.controlplane.argo.small_workflows import arguments, task
from tests.engine.readers.argo.test_plain_workflows import WORK, dag, read, read_tasks
from tests.support.data import data_path
from tests.support.packages import (
    Fields,
    a_dag,
    a_loop,
    a_package,
    a_task,
    input_of_dag,
    inputs,
    notice_codes,
    output_of,
    read_as_outline,
    read_package,
)


def names(graph: RunGraph) -> list[str]:
    return [step.name for step in graph.steps]


def excluded(graph: RunGraph, one: str, other: str) -> bool:
    return exclude_each_other(graph.step(one).branches, graph.step(other).branches)


def if_task(condition: str, source: Fields, **fields: Any) -> Fields:
    """A condition on `x`, which is the output or parameter of that source."""
    text = condition.replace("<x>", "inputs.parameter_values['x']")
    given = {"inputs": inputs(x=source)}
    return a_task("body", **given, triggerPolicy={"condition": text}, **fields)


def parameter(value: Any, kind: str = "STRING") -> Fields:
    return {"p": {"parameterType": kind, "defaultValue": value}}


FROM_P = input_of_dag("p")
MADE = output_of("ask")


def test_steps_know_the_author_s_names_of_the_branches_and_loops_around_them():
    sweep = a_loop("body", [1, 2], taskInfo={"name": "sweep"})
    good = if_task("<x> == 'a'", MADE, taskInfo={"name": "good"})
    good["componentRef"] = {"name": "sweeps"}
    documents = a_package(
        {"ask": a_task(taskInfo={"name": "asks"}), "condition-1": good},
        components={"sweeps": a_dag({"for-loop-2": sweep})},
    )
    graph = read_package(documents)
    assert graph.step("ask").inside == ()
    assert graph.step("condition-1.for-loop-2[0].work").inside == ("good", "sweep")


def test_a_branch_that_parameters_decide_is_left_out_but_its_driver_runs():
    tasks = {"if": if_task("<x> == 'a'", FROM_P), "else": if_task("!(<x> == 'a')", FROM_P)}
    documents = a_package(tasks, parameters=parameter("a"))
    graph = read_package(documents)
    assert names(graph) == ["if.work"]
    assert graph.step("if.work").conditions == ()
    assert [group.name for group in graph.groups] == ["", "else", "if"]
    assert names(read_package(documents, arguments={"p": "b"})) == ["else.work"]


def test_kfp_omits_what_waits_for_a_skipped_group_with_its_driver():
    tasks = {
        "if": if_task("<x> == 'b'", FROM_P),
        "next": a_task("body", after=["if"]),
        "last": a_task(after=["next"]),
        "other": a_task(),
    }
    graph = read_package(a_package(tasks, parameters=parameter("a")))
    assert names(graph) == ["other"]
    assert [group.name for group in graph.groups] == ["", "if"]


def test_a_pipeline_with_a_skipped_group_has_succeeded():
    components = {"inner": a_dag({"if": if_task("false", FROM_P)})}
    tasks = {"p": a_task("inner"), "next": a_task(after=["p"])}
    graph = read_package(a_package(tasks, components=components, parameters=parameter("a")))
    assert names(graph) == ["next"]


def test_items_of_loops_decide_in_each_iteration():
    inner = {"if": if_task("int(<x>) > 1", input_of_dag("item"))}
    components = {"each": a_dag(inner)}
    graph = read_package(a_package({"loop": a_loop("each", [1, 2, 3])}, components=components))
    assert names(graph) == ["loop[1].if.work", "loop[2].if.work"]


def test_conditions_on_what_a_step_makes_exclude_each_other():
    tasks = {
        "ask": a_task(),
        "heads": if_task("<x> == 'heads'", MADE),
        "tails": if_task("<x> == 'tails'", MADE),
        "else": if_task("!(<x> == 'heads') && !(<x> == 'tails')", MADE),
        "big": if_task("<x> != 'heads'", MADE),
        "next": a_task(after=["heads"]),
        "end": a_task(after=["ask"]),
    }
    graph = read_package(a_package(tasks))
    groups = {"heads.work": 0, "tails.work": 1, "else.work": 2}
    for one, index in groups.items():
        for other, other_index in groups.items():
            assert excluded(graph, one, other) == (index != other_index)
    assert excluded(graph, "big.work", "heads.work")
    assert not excluded(graph, "big.work", "tails.work")
    assert graph.step("next").branches == graph.step("heads.work").branches
    assert graph.step("next").conditions == graph.step("heads.work").conditions
    assert graph.step("end").branches == ()


def test_a_comparison_and_its_opposite_exclude_each_other():
    tasks = {
        "ask": a_task(),
        "if": if_task("int(<x>) > 3", MADE),
        "elif": if_task("!(int(<x>) > 3) && int(<x>) > 1", MADE),
        "else": if_task("!(int(<x>) > 3) && !(int(<x>) > 1)", MADE),
        "same": if_task("int(<x>) > 3", MADE),
    }
    graph = read_package(a_package(tasks))
    branches = ["if.work", "elif.work", "else.work"]
    assert all(excluded(graph, a, b) == (a != b) for a in branches for b in branches)
    assert not excluded(graph, "if.work", "same.work")


def test_a_choice_has_the_indexes_of_the_loops_around_it():
    inner = {
        "ask": a_task(),
        "yes": if_task("<x> == 'a'", MADE),
        "no": if_task("<x> != 'a'", MADE),
    }
    components = {"each": a_dag(inner)}
    graph = read_package(a_package({"loop": a_loop("each", [1, 2])}, components=components))
    assert excluded(graph, "loop[0].yes.work", "loop[0].no.work")
    assert not excluded(graph, "loop[0].yes.work", "loop[1].no.work")


def test_an_outline_knows_no_conditions_but_takes_choices():
    tasks = {"ask": a_task(), "yes": if_task("<x> == 'a'", MADE)}
    assert names(read_as_outline(a_package(tasks))) == ["ask", "yes.work"]
    assert names(read_as_outline(a_package(tasks), branches={"yes": False})) == ["ask"]


@pytest.mark.parametrize("name", ["heads", "Heads up", "group.heads"])
def test_a_chosen_branch_is_taken_and_those_that_it_excludes_are_not(name):
    tasks = {
        "ask": a_task(),
        "heads": if_task("<x> == 'heads'", MADE, taskInfo={"name": "Heads up"}),
        "tails": if_task("<x> == 'tails'", MADE),
    }
    if name == "group.heads":
        documents = a_package({"group": a_task("group")}, components={"group": a_dag(tasks)})
    else:
        documents = a_package(tasks)
    taken = read_package(documents, branches={name: True})
    assert [step.rpartition("heads")[1] for step in names(taken)] == ["", "heads"]
    assert not any(step.conditions for step in taken.steps)
    left_out = read_package(documents, branches={name: False})
    assert [step.rpartition("tails")[1] for step in names(left_out)] == ["", "tails"]
    assert left_out.steps[1].conditions != ()


def test_choices_of_no_branch_are_refused_with_the_names_that_exist():
    tasks = {"ask": a_task(), "heads": if_task("<x> == 'heads'", MADE)}
    with pytest.raises(UnknownBranchError, match=r"no branch 'head'; did you mean 'heads'\?"):
        read_package(a_package(tasks), branches={"head": True})
    with pytest.raises(UnknownBranchError, match="no branch 'x'; the run has none"):
        read_package(a_package(), branches={"x": True})
    named = {**tasks, "heads": if_task("<x> == 'heads'", MADE, taskInfo={"name": "lucky"})}
    with pytest.raises(UnknownBranchError, match=r"no branch 'x'; branches: heads \(lucky\)"):
        read_package(a_package(named), branches={"x": True})
    with pytest.raises(InputError, match="branch x = 'yes'; it must be True or False"):
        ReadOptions(branches={"x": "yes"})  # type: ignore[dict-item]


def test_a_branch_that_is_decided_already_stays_so():
    tasks = {"if": if_task("<x> == 'a'", FROM_P), "work": a_task()}
    graph = read_package(a_package(tasks, parameters=parameter("b")), branches={"if": True})
    assert names(graph) == ["work"]
    assert notice_codes(graph) == ["branch-known"]


def test_a_run_of_which_no_step_runs_is_refused_with_the_reason():
    documents = a_package({"if": if_task("<x> == 'a'", FROM_P)}, parameters=parameter("b"))
    with pytest.raises(InputError, match="no step runs, since the conditions"):
        read_package(documents)


GPU = {"arguments": arguments(gpu="false")}


def test_argo_goes_on_after_a_skipped_task_unless_it_is_told_otherwise():
    graph = read_tasks(
        task("a"),
        task("dead", dependencies=["a"], when="{{workflow.parameters.gpu}} == true"),
        task("after", dependencies=["dead"]),
        task("depends", depends="dead"),
        task("strict", depends="dead.Succeeded"),
        task("skipped", depends="dead.Skipped"),
        task("omitted", depends="strict"),
        task("either", depends="strict.Omitted || a.Failed"),
        **GPU,
    )
    assert names(graph) == ["a", "after", "depends", "skipped", "either"]
    assert graph.step("after").depends_on == ("a",)
    assert not any(step.conditions for step in graph.steps)


def test_steps_after_a_failure_are_marked_and_not_waited_for():
    graph = read_tasks(
        task("a"),
        task("fail", depends="a.Failed || a.Errored"),
        task("clean", depends="fail"),
        task("status", depends="a || a.Failed", when="{{tasks.a.status}} == Failed"),
        # Argo omits it if `a` fails, and skips it otherwise.
        task("never", dependencies=["a"], when="{{tasks.a.status}} == Failed"),
        task("end", depends="a.Succeeded || fail.Succeeded"),
        task("both", depends="a && (fail.Succeeded || fail.Omitted)"),
    )
    after = {step.name for step in graph.steps if step.after_failure}
    assert after == {"fail", "clean", "status"}
    assert "never" not in names(graph)
    assert set(graph.step("clean").depends_on) == {"a", "fail"}
    assert graph.step("end").depends_on == ("a",)
    assert graph.step("both").depends_on == ("a",)
    assert excluded(graph, "fail", "both")


def test_an_exit_handler_by_the_status_of_the_run():
    steps = [
        [
            task("good", when="{{workflow.status}} == Succeeded"),
            task("bad", when="{{workflow.status}} != Succeeded"),
        ]
    ]
    graph = read([dag(task("a")), {"name": "exit", "steps": steps}, WORK], onExit="exit")
    assert names(graph) == ["a", "onExit.bad", "onExit.good"]
    assert [step.after_failure for step in graph.steps] == [False, True, False]
    assert excluded(graph, "onExit.good", "onExit.bad")
    assert graph.step("onExit.good").conditions == ()


def test_the_status_of_a_run_in_which_nothing_fails_is_known():
    steps = [[task("bad", when="{{workflow.status}} =~ 'Fail|Error'")]]
    graph = read([dag(task("a")), {"name": "exit", "steps": steps}, WORK], onExit="exit")
    assert graph.step("onExit.bad").after_failure


def test_continue_on_lets_the_next_task_run_beside_the_one_after_the_failure():
    graph = read_tasks(
        task("a", continueOn={"failed": True}),
        task("fail", depends="a.Failed"),
        task("next", dependencies=["a"]),
    )
    assert not excluded(graph, "fail", "next")


def test_when_of_a_loop_is_asked_for_each_item():
    graph = read_tasks(task("a", when="{{item}} != 2", withItems=[1, 2, 3]))
    assert names(graph) == ["a[0]", "a[2]"]
    made = read_tasks(
        task("ask"),
        task(
            "a",
            dependencies=["ask"],
            when="{{item}} == {{tasks.ask.outputs.result}}",
            withItems=[1, 2],
        ),
        task(
            "b",
            dependencies=["ask"],
            when="{{item}} != {{tasks.ask.outputs.result}}",
            withItems=[2, 3],
        ),
    )
    assert len(made.steps) == 5
    assert all(step.branches == () for step in made.steps)


def test_what_an_empty_loop_decides():
    graph = read_tasks(
        task("a"),
        task("none", withParam="[]", dependencies=["a"]),
        task("strict", depends="none.Succeeded"),
        task("goes-on", depends="none"),
        # Go does not tell an empty list from none.
        task("once", withItems=[], withParam=""),
    )
    assert names(graph) == ["a", "goes-on", "once"]


@pytest.mark.parametrize("count", [10_000])
def test_ten_thousand_branches_take_seconds(count):
    tasks = [
        task(f"t{index}", dependencies=["ask"], when=f"{{{{tasks.ask.outputs.result}}}} == {index}")
        for index in range(count)
    ]
    start = time.process_time()
    graph = read_tasks(task("ask"), *tasks)
    assert time.process_time() - start < 30
    assert len({step.branches for step in graph.steps}) == count + 1


def test_tags_without_end_take_no_longer_than_other_text():
    text = "{{=a" * 250_000
    start = time.process_time()
    tasks = task("a", when=text, arguments=arguments(x=text)), task("b", when="{{=a")
    graph = read([dag(*tasks), {**WORK, "podSpecPatch": f"a: '{text}'"}])
    assert time.process_time() - start < 10
    assert names(graph) == ["a", "b"]


def test_a_user_s_known_conditions_in_argo():
    path = data_path("user-cases", "01-known-condition", "when.yaml")
    assert names(read_run_file(path)) == ["on-cpu"]
    on_gpu = read_run_file(path, ReadOptions(arguments={"gpu": "true"}))
    assert names(on_gpu) == ["on-gpu"]


R = "{{tasks.f.outputs.result}}"


def pair(one: Fields, other: Fields, **first: Any) -> bool:
    """Whether two tasks exclude each other, which the task `f` precedes."""
    graph = read_tasks(
        task("f", **first),
        task("a", **{"depends": "f", **one}),
        task("b", **{"depends": "f", **other}),
    )
    return excluded(graph, "a", "b")


@pytest.mark.parametrize(
    ("one", "other", "exclude"),
    [
        # Text in quotes stays text; without them, Argo takes `1` for a number.
        (f"'{R}' == 'true'", f"{R} == true", False),
        (f"'{R}' == '1'", f"{R} == 1", False),
        (f"'{R}' == '1'", f"'{R}' == '1.0'", True),
        (f"'{R}' == 'x'", f"'{R}' != 'x'", True),
        # Text that looks like a time is one for Argo, and may be written otherwise.
        (f"'{R}' == '2024-01-01'", f"'{R}' == '2024-01-01 00:00'", False),
        (f"'{R}' == '3:04PM'", f"'{R}' == '03:04PM'", False),
        (f"{R} > 5", f"{R} <= 5", True),
        (f"{R} >= 5", f"{R} < 5", True),
        (f"{R} >= 5", f"{R} <= 5", False),
        (f"{R} > 5", f"{R} <= 6", False),
        (f"{R} =~ '^x'", f"{R} !~ '^x'", True),
        (f"{R} in (x, y)", f"{R} in (y, z)", False),
        (f"{R} in (x, y)", f"{R} in (z, w)", True),
        ("{{=tasks.f.outputs.result == 'x'}}", "{{=tasks.f.outputs.result != 'x'}}", True),
        ("{{=tasks.f.outputs.result == 'x'}}", f"'{R}' == 'y'", True),
        ("{{=tasks.f.outputs.result == '1'}}", f"{R} == 1", False),
        (f"{R} in (x, y)", f"{R} == z", True),
        ("{{tasks.f.exitCode}} == 0", "{{tasks.f.exitCode}} != 0", True),
        (f"{R} in (x, y)", f"!({R} in (x, y))", True),
        ("{{tasks.f.startedAt}} == 0", "{{tasks.f.startedAt}} != 0", False),
        ("{{=asInt(tasks.f.outputs.result) > 1}}", "{{=asInt(tasks.f.outputs.result) < 2}}", False),
        (f"{R} > 5", f"{R} < 3", True),
        (f"{R} > 5", f"3 > {R}", True),
        (f"{R} > 5", f"{R} == 5", True),
        (f"{R} >= 5", f"{R} in (4, 5)", False),
        (f"{R} > 5", f"{R} in (4, 5)", True),
        (f"{R} > 5 && {R} < 9", f"{R} > 8 && {R} < 12", False),
        (f"{R} > 5 && {R} < 9", f"{R} == 3 || {R} >= 9", True),
        (f"{R} == a", f"{R} in (b, c)", True),
        (f"{R} == 4", f"{R} == high", True),
        (f"{R} > 4", f"!({R} <= 6)", False),
        (f"{R} < 'm'", f"{R} > 'p'", True),
        ("{{=asInt(tasks.f.outputs.result) > 1}}", "{{=asInt(tasks.f.outputs.result) < 1}}", True),
    ],
)
def test_conditions_of_argo_that_exclude_each_other(one, other, exclude):
    assert pair({"when": one}, {"when": other}) is exclude


@pytest.mark.parametrize(
    ("one", "other", "exclude"),
    [
        ("f.AnySucceeded", "f.Failed", False),
        ("f.AnySucceeded", "f.Failed || f.Errored", False),
        ("!f.AllFailed", "f.Failed", False),
        ("!f.AnySucceeded", "f.Succeeded", True),
        ("f.AllFailed", "f.Succeeded", True),
    ],
)
def test_the_end_of_a_loop_does_not_tell_that_of_each_item(one, other, exclude):
    assert pair({"depends": one}, {"depends": other}, withItems=[1, 2]) is exclude


def test_text_that_looks_like_a_time_decides_nothing():
    graph = read_tasks(task("a", when="'2024-01-01' == '2024-01-01 00:00:00'"))
    assert names(graph) == ["a"]
    assert graph.step("a").conditions != ()


def test_the_alternatives_of_each_choice_are_named():
    yes, no, inner = Branch("c", "yes"), Branch("c", "no"), Branch("c/d", "a")
    assert alternatives([(), (yes,), (yes, inner), (no,)]) == ["yes | no"]
    assert alternatives([(), (yes,), (yes, inner)]) == []
    assert alternatives([(yes, inner), (yes, Branch("c/d", "b")), (yes,)]) == ["a | b"]


@pytest.mark.parametrize(
    ("depends", "message"),
    [
        ("f.Success", r"depends: Success is not a result of a task; write Succeeded, Failed,"),
        ("f.Finished && f", "Finished is not a result"),
        ("f.succeeded", r"depends: Argo cannot read 'f.succeeded'; write it as in"),
        ("f && ", "Argo cannot read"),
        ("f || || f", "Argo cannot read"),
    ],
)
def test_depends_that_argo_refuses_are_refused(depends, message):
    with pytest.raises(InputError, match=message):
        read_tasks(task("f"), task("a", depends=depends))


@pytest.mark.parametrize(
    ("joining", "more"),
    [
        (f"{R} == heads || {R} == tails", {}),
        (f"{R} == heads || {R} == tails", {"edge": f"{R} == edge"}),
        (f"{R} == heads || {R} == tails", {"both": f"{R} == tails || {R} == edge"}),
        (f"{R} != edge", {"edge": f"{R} == edge"}),
    ],
)
def test_a_task_that_joins_branches_leaves_them_apart(joining, more):
    whens = {"heads": f"{R} == heads", "tails": f"{R} == tails", "report": joining, **more}
    graph = read_tasks(task("f"), *(task(name, depends="f", when=whens[name]) for name in whens))
    assert excluded(graph, "heads", "tails")
    assert not excluded(graph, "heads", "report")
    assert not excluded(graph, "tails", "report")
    assert excluded(graph, "heads", "edge") if "edge" in more else True


def test_a_report_after_both_sides_of_a_choice():
    graph = read_tasks(
        task("f"),
        task("heads", depends="f", when=f"{R} == heads"),
        task("tails", depends="f", when=f"{R} == tails"),
        task("report", depends="heads && tails", when=f"{R} == heads || {R} == tails"),
    )
    assert excluded(graph, "heads", "tails")
    assert not excluded(graph, "report", "heads")


@pytest.mark.parametrize("when", ["a ==", "== b", "x" * 30_000, "{{=a" * 20_000])
def test_a_when_that_argo_cannot_evaluate_is_named(when):
    graph = read_tasks(task("a"), {**task("b"), "when": when})
    [notice] = [each for each in graph.notices if each.code == "unread-condition"]
    assert notice.step == "b"
    assert notice.is_beyond_plans
    assert len(notice.message) < 250
    assert "so that the step ends with an error; write ==" in notice.message or len(when) > 9
    assert names(graph) == ["a", "b"]


@pytest.mark.parametrize("condition", ["<x> = 'a'", "'<x>' == 'True'"])
def test_a_condition_of_kfp_that_its_driver_cannot_evaluate_stops_the_run(condition):
    tasks = {"if": if_task(condition, FROM_P), "else": if_task(f"!({condition})", FROM_P)}
    graph = read_package(a_package({**tasks, "work": a_task()}, parameters=parameter("a")))
    named = {each.step: each.code for each in graph.notices if each.is_refusal}
    assert named == dict.fromkeys(("if", "else"), "refused-condition")
    refused = {step.task: bool(step.refusal) for step in with_refusals(graph).steps}
    assert sorted(refused.values()) == [False, True, True]
    assert not refused["work"]
    assert excluded(graph, *(name for name in refused if name != "work"))


def test_else_excludes_each_branch_before_it_though_none_can_be_read():
    one, two = "'<x>' == 'a'", "'<x>' == 'b'"
    whens = {"if": one, "elif": f"!({one}) && {two}", "else": f"!({one}) && !({two})"}
    tasks = {name: if_task(text, FROM_P) for name, text in whens.items()}
    graph = read_package(a_package(tasks, parameters=parameter("a")))
    first, second, third = names(graph)
    assert excluded(graph, first, second)
    assert excluded(graph, first, third)
    assert excluded(graph, second, third)


@pytest.mark.parametrize("when", ["{{tasks.a.outputs.result}} ==", "{{tasks.a.outputs.result}}"])
def test_a_when_that_a_step_completes_may_be_read(when):
    graph = read_tasks(task("a"), {**task("b", depends="a"), "when": when})
    assert "unread-condition" not in notice_codes(graph)


BRANCHES = {
    "ask": a_task(),
    "if": if_task("<x> == 'a'", MADE),
    "elif": if_task("!(<x> == 'a') && <x> == 'b'", MADE),
    "else": if_task("!(<x> == 'a') && !(<x> == 'b')", MADE),
    "next": a_task(after=["else"]),
}


@pytest.mark.parametrize(
    ("choices", "others"),
    [
        ({"if": True}, []),
        ({"if": False, "elif": False}, ["else.work", "next"]),
        ({"if": False, "else": False}, ["elif.work"]),
        ({"else": False, "elif": False}, ["if.work"]),
        ({"else": True}, ["next"]),
    ],
)
def test_choices_of_branches_decide_about_the_others(choices, others):
    graph = read_package(a_package(BRANCHES), branches=choices)
    taken = [f"{name}.work" for name, is_taken in choices.items() if is_taken]
    assert sorted(names(graph)) == sorted(["ask", *taken, *others])
    assert not any(step.conditions for step in graph.steps)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"if": True, "else": True}, "exclude each other, so that a run takes one"),
        (
            dict.fromkeys(("if", "elif", "else"), False),
            "takes one of branches elif, else, if, so that not all are left out",
        ),
    ],
)
def test_choices_of_branches_that_no_run_can_follow_are_refused(choices, message):
    with pytest.raises(UnknownBranchError, match=message):
        read_package(a_package(BRANCHES), branches=choices)


def test_numbers_decide_about_all_branches_of_a_choice():
    tasks = {
        "ask": a_task(),
        "if": if_task("int(<x>) > 5", MADE),
        "elif": if_task("!(int(<x>) > 5) && int(<x>) > 2", MADE),
        "else": if_task("!(int(<x>) > 5) && !(int(<x>) > 2)", MADE),
    }
    chosen = {"if": False, "elif": False}
    assert names(read_package(a_package(tasks), branches=chosen)) == ["ask", "else.work"]


def test_a_task_without_a_condition_is_no_branch():
    tasks = [
        task("a"),
        task("b", depends="a.Succeeded"),
        task("c", depends="b", when="{{tasks.a.outputs.result}} == 1"),
    ]
    with pytest.raises(UnknownBranchError, match="there is no branch 'b'; branches: c"):
        read([dag(*tasks), WORK], options={"branches": {"b": False}})


IN_A = task("a", depends="f", when=f"{R} == x")
IN_B = task("b", depends="f", when=f"{R} == y")


@pytest.mark.parametrize(
    ("after", "with_a", "with_b"),
    [
        (task("z", depends="a"), False, False),
        (task("z", depends="a.Succeeded"), False, True),
        (task("z", depends="a.Skipped"), True, False),
        (task("z", depends="a", when="{{tasks.a.status}} == Succeeded"), False, True),
        (task("z", depends="a", when="{{tasks.a.status}} == Skipped"), True, False),
        (task("z", depends="a || a.Failed", when="{{tasks.a.status}} == Failed"), False, True),
        (task("z", depends="a || a.Failed", when="{{tasks.a.status}} != Succeeded"), False, False),
    ],
)
def test_a_step_after_a_branch_is_in_it_if_it_needs_that_the_branch_runs(after, with_a, with_b):
    graph = read_tasks(task("f"), IN_A, IN_B, after)
    assert excluded(graph, "z", "a") is with_a
    assert excluded(graph, "z", "b") is with_b
    assert graph.step("z").after_failure is ("== Failed" in after.get("when", ""))


def test_what_needs_the_failure_of_a_step_that_argo_does_not_go_on_after_never_runs():
    def step(name: str, **fields: Any) -> Fields:
        return {"name": name, "template": "work", **fields}

    def after(**fields: Any) -> RunGraph:
        late = step("z", when="{{steps.a.status}} == Failed")
        return read([{"name": "main", "steps": [[step("a", **fields)], [late]]}, WORK])

    assert names(after()) == ["a"]
    graph = after(continueOn={"failed": True})
    assert [step.after_failure for step in graph.steps] == [False, True]


def test_a_loop_of_argo_has_succeeded_if_all_of_its_items_are_skipped():
    graph = read_tasks(
        task("a"),
        task("loop", dependencies=["a"], when="1 == 2", withItems=[1, 2]),
        task("single", dependencies=["a"], when="1 == 2"),
        task("after", depends="loop.Succeeded"),
        task("skipped", depends="loop.Skipped"),
        task("any", depends="loop.AnySucceeded"),
        task("failed", depends="loop.AllFailed"),
        task("strict", depends="single.Succeeded"),
        task("daemon", depends="a.Daemoned || single.Skipped"),
    )
    assert names(graph) == ["a", "after", "daemon"]


def test_a_loop_that_is_perhaps_skipped_succeeds_in_any_case():
    graph = read_tasks(
        task("f"),
        task("loop", depends="f", when=f"{R} == x", withItems=[1, 2]),
        task("after", depends="loop.Succeeded"),
        task("any", depends="loop.AnySucceeded"),
        task("items", depends="f", when="{{item}} != 1", withItems=[1, 1]),
        task("none", depends="items.Succeeded"),
    )
    assert graph.step("after").conditions == ()
    assert graph.step("any").conditions != ()
    assert graph.step("none").conditions == ()


@pytest.mark.parametrize(
    ("kind", "default", "condition", "given"),
    [
        ("NUMBER_INTEGER", 3, "int(<x>) > 2", 2),
        ("NUMBER_DOUBLE", 0.5, "<x> < 0.6", 0.75),
        ("BOOLEAN", True, "<x> == true", False),
        ("STRING", "3", "<x> == '3'", "4"),
        ("NUMBER_INTEGER", 3, "int(<x>) >= 3 && int(<x>) < 10", "11"),
    ],
)
def test_defaults_and_arguments_of_each_type_decide_in_nested_groups(
    kind, default, condition, given
):
    inner = a_dag({"if": if_task(condition, FROM_P), "else": if_task(f"!({condition})", FROM_P)})
    inner["inputDefinitions"] = {"parameters": {"p": {"parameterType": kind}}}
    tasks = {"group": a_task("inner", inputs=inputs(p=FROM_P))}
    documents = a_package(tasks, components={"inner": inner}, parameters=parameter(default, kind))
    assert names(read_package(documents)) == ["group.if.work"]
    assert names(read_package(documents, arguments={"p": given})) == ["group.else.work"]


def test_a_workflow_of_many_conditions_runs_what_argo_runs():
    """By hand from Argo's dag.go, steps.go and govaluate; text is compared as text."""
    steps = [
        [task("test", when="{{workflow.parameters.skip}} == false")],
        [
            task("lint", when="{{workflow.parameters.skip}}"),
            task(
                "numbers",
                when="{{workflow.parameters.n}} * 2 == 6 && !{{workflow.parameters.skip}}",
            ),
            task("text", when="'{{workflow.parameters.n}}' >= '10'"),
            task("number", when="{{workflow.parameters.n}} >= 10"),
            task("tagged", when="'{{workflow.parameters.tag}}' != ''"),
            task("release", when="'{{workflow.parameters.branch}}' =~ '^release-[0-9.]+$'"),
            task("nested", when="{{steps.test.status}} == Succeeded", template="inner"),
        ],
    ]
    inner = dag(
        task("a", when="'{{workflow.parameters.branch}}' == main"),
        task("b", when="'{{workflow.parameters.branch}}' != 'main'"),
        task("c", depends="a.Succeeded || b.Succeeded"),
        task("d", depends="a && b"),
        task("e", depends="a.Succeeded"),
        task("f", depends="e.Omitted && !b.Skipped"),
    )
    given = arguments(skip="false", n="3", tag="", branch="release-1.4")
    graph = read(
        [{"name": "main", "steps": steps}, {**inner, "name": "inner"}, WORK], arguments=given
    )
    nested = [f"nested.{name}" for name in "bcdf"]
    assert sorted(names(graph)) == sorted(["test", "numbers", "text", "release", *nested])
    assert not any(step.conditions for step in graph.steps)
