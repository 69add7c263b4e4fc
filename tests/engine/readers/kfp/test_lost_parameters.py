"""Parameters that a task reads and its group does not define: KFP's driver stops the run."""

import pytest

from kfp_placement_engine.readers.run_files import read_run_file
from tests.support.packages import (
    a_dag,
    a_loop,
    a_package,
    a_task,
    input_of_dag,
    inputs,
    read_package,
)
from tests.support.run_data import data_files


@pytest.mark.parametrize(
    "path",
    [
        *data_files("kfp-2.17.0/pipelines", "*.yaml"),
        *data_files("kfp-2.17.0/workflows", "*.yaml"),
        *data_files("kfp-3-draft/workflows", "*.yaml"),
    ],
)
def test_pipelines_that_kfp_runs_lose_none(path):
    """Optional inputs without a value, and Workflows without components, are no losses."""
    assert "lost-parameter" not in {notice.code for notice in read_run_file(path).notices}


@pytest.mark.parametrize("defined", [True, False])
def test_a_group_must_define_what_its_tasks_read_though_it_may_have_no_value(defined):
    group = a_dag({"work": a_task(inputs=inputs(x=input_of_dag("memory")))})
    if defined:
        optional = {"parameterType": "STRING", "isOptional": True}
        group["inputDefinitions"] = {"parameters": {"memory": optional}}
    graph = read_package(
        a_package({"group": a_task("group")}, components={"group": group}), arguments={}
    )
    assert [(notice.code, notice.step) for notice in graph.notices] == (
        [] if defined else [("lost-parameter", "group.work")]
    )


def test_a_parameter_that_an_outer_group_defines_is_lost_in_the_inner_one():
    outer = a_dag({"if": a_task("inner")})
    outer["inputDefinitions"] = {"parameters": {"memory": {"parameterType": "STRING"}}}
    inner = a_dag({"work": a_task(inputs=inputs(x=input_of_dag("memory")))})
    given = a_task("outer", inputs=inputs(memory=input_of_dag("memory")))
    parameters = {"memory": {"parameterType": "STRING", "defaultValue": "1Gi"}}
    graph = read_package(
        a_package(
            {"group": given}, components={"outer": outer, "inner": inner}, parameters=parameters
        )
    )
    assert [(each.code, each.step) for each in graph.notices] == [
        ("lost-parameter", "group.if.work")
    ]


def test_a_parameter_is_lost_in_each_iteration_of_a_loop_and_said_once():
    group = a_dag({"work": a_task(inputs=inputs(x=input_of_dag("cpu")))})
    graph = read_package(a_package({"loop": a_loop("group", [1, 2])}, components={"group": group}))
    assert [(each.code, each.step) for each in graph.notices] == [
        ("lost-parameter", "loop[*].work")
    ]
    assert all(each.is_refusal for each in graph.notices)
