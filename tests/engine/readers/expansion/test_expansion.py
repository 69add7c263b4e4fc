"""From tasks to steps: names, loops, dependencies, exit tasks, limits; both KFP sources."""

import pytest

from kfp_placement_engine import ReadOptions
from kfp_placement_engine.exceptions import InputError, LimitError, UnknownLoopError
from kfp_placement_engine.model.run_graph import GroupKind, StepKind
from kfp_placement_engine.readers.expansion.expand import expand
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.tasks import Dag, Task, TaskTree
from tests.support.effort import cpu_seconds, growth
from tests.support.packages import (
    a_dag,
    a_loop,
    a_loop_over,
    a_package,
    a_task,
    an_exit_task,
    constant,
    input_of_dag,
    inputs,
    list_parameter,
    notice_codes,
    output_of,
    read_as_workflow,
    read_package,
)


def test_groups_have_the_path_of_their_steps(read):
    components = {"outer": a_dag({"loop": a_loop("body", ["a", "b"])})}
    tasks = {"before": a_task(), "nested": a_task("outer", after=["before"])}
    graph = read(a_package(tasks, components=components))
    names = [step.name for step in graph.steps]
    assert names == ["before", "nested.loop[0].work", "nested.loop[1].work"]
    assert {step.task for step in graph.steps} == {"before", "nested.loop[*].work"}
    assert [group.depends_on for group in graph.groups] == [(), *[("before",)] * 4]
    assert [(group.name, group.kind, group.parent) for group in graph.groups] == [
        ("", GroupKind.ROOT, ""),
        ("nested", GroupKind.DAG, ""),
        ("nested.loop", GroupKind.LOOP, "nested"),
        ("nested.loop[0]", GroupKind.ITERATION, "nested.loop"),
        ("nested.loop[1]", GroupKind.ITERATION, "nested.loop"),
    ]
    assert graph.step("nested.loop[1].work").group == "nested.loop[1]"
    assert graph.step("nested.loop[1].work").iteration == (1,)


def test_a_loop_over_a_container_is_a_step_per_item(read):
    """Without a DAG inside there are no iteration groups."""
    graph = read(a_package({"each": a_loop("work", [1, 2])}))
    assert [step.name for step in graph.steps] == ["each[0]", "each[1]"]
    assert [group.name for group in graph.groups] == ["", "each"]
    assert graph.step("each[1]").group == "each"


def test_an_empty_loop_lets_the_next_task_start(read):
    tasks = {
        "before": a_task(),
        "loop": a_loop("body", [], dependentTasks=["before"]),
        "after": a_task(after=["loop"]),
    }
    graph = read(a_package(tasks))
    assert graph.step("after").depends_on == ("before",)


def test_widths_follow_parameters_down_to_their_default(read):
    """From the pipeline's parameter through a nested pipeline's into the loop's input."""
    loop = a_loop_over(input_of_dag("inner"))
    components = {"outer": a_dag({"loop": loop})}
    nested = a_task("outer", inputs=inputs(inner=input_of_dag("numbers")))
    parameters = list_parameter("numbers", [4, 5, 6, 7])
    graph = read(a_package({"nested": nested}, components=components, parameters=parameters))
    assert len(graph.steps) == 4
    assert not any(step.assumed for step in graph.steps)
    assert graph.notices == ()


def test_an_argument_changes_the_width():
    loop = a_loop_over(input_of_dag("numbers"))
    parameters = list_parameter("numbers", [4])
    documents = a_package({"loop": loop}, parameters=parameters)
    assert len(read_package(documents, arguments={"numbers": [1, 2]}).steps) == 2
    assert len(read_package(documents, arguments={"numbers": "[1, 2, 3]"}).steps) == 3


def test_a_component_s_default_gives_a_width(read):
    """A nested pipeline's own default, where its caller gives nothing."""
    loop = a_loop_over(input_of_dag("inner"))
    definitions = {"parameters": list_parameter("inner", [1, 2])}
    components = {"outer": a_dag({"loop": loop}, inputDefinitions=definitions)}
    assert len(read(a_package({"nested": a_task("outer")}, components=components)).steps) == 2


def test_inner_loops_over_parts_of_outer_items_have_their_own_width(read):
    """`ParallelFor(item.parts)`: a selector on the item of the outer loop."""
    selector = {
        "componentInputParameter": "item",
        "parameterExpressionSelector": 'parseJson(string_value)["parts"]',
    }
    inner = a_loop("body", "parts", inputs=inputs(parts=selector))
    components = {"outer": a_dag({"inner": inner})}
    items = [{"parts": [1, 2, 3]}, {"parts": "[1]"}, {"other": 1}]
    graph = read(a_package({"outer": a_loop("outer", items)}, components=components))
    widths = {group.name: group.width for group in graph.groups if group.kind is GroupKind.LOOP}
    assert widths == {"outer": 3, "outer[0].inner": 3, "outer[1].inner": 1, "outer[2].inner": 3}
    assert graph.step("outer[2].inner[2].work").assumed
    assert not graph.step("outer[0].inner[2].work").assumed


def test_a_loop_over_a_parameter_without_a_value_names_it(read):
    loop = a_loop_over(input_of_dag("rows"))
    rows = {"rows": {"parameterType": "LIST"}}
    graph = read(a_package({"loop": loop}, parameters=rows))
    (message,) = (each.message for each in graph.notices if each.code == "loop-width-assumed")
    assert message.startswith("it loops over parameter rows, which has no value; 3 ")


def test_unknown_widths_are_assumed_and_shown(read):
    loop = a_loop_over(output_of("list"))
    tasks = {"list": a_task(), "loop": loop}
    documents = a_package(tasks)
    graph = read(documents)
    assert [step.assumed for step in graph.steps] == [False, True, True, True]
    assert [group.width_assumed for group in graph.groups if group.name == "loop"] == [True]
    assert notice_codes(graph) == ["loop-width-assumed"]
    assert "--loop-width loop=N" in graph.notices[0].message
    assert "parameter" not in graph.notices[0].message
    assert len(read(documents, default_loop_width=5).steps) == 6
    assert len(read(documents, loop_widths={"loop": 0}).steps) == 1


def test_widths_of_nested_loops_are_given_by_name_or_for_all(read):
    source = output_of("list")
    components = {"outer": a_dag({"list": a_task(), "inner": a_loop_over(source)})}
    documents = a_package({"outer": a_loop("outer", [1, 2])}, components=components)

    def widths(**given: int) -> list[int]:
        graph = read(documents, loop_widths=given)
        return [group.width for group in graph.groups if group.name.endswith(".inner")]

    assert widths(**{"outer[1].inner": 5}) == [3, 5]
    assert widths(**{"outer[*].inner": 4}) == [4, 4]
    assert widths(**{"outer.inner": 4, "outer[0].inner": 1}) == [1, 4]


def test_a_width_for_a_loop_that_is_not_there_is_an_error():
    documents = a_package({"loop": a_loop("body", [1])})
    with pytest.raises(UnknownLoopError, match=r"no loop 'lopp'; did you mean 'loop'\?"):
        read_package(documents, loop_widths={"lopp": 2})
    with pytest.raises(UnknownLoopError, match=r"no loop 'shards'; loops: loop$"):
        read_package(documents, loop_widths={"shards": 2})
    with pytest.raises(UnknownLoopError, match="the run has none"):
        read_package(a_package(), loop_widths={"loop": 2})
    with pytest.raises(InputError, match="whole number"):
        ReadOptions(loop_widths={"loop": -1})


def test_a_loop_s_width_is_given_by_the_author_s_name_for_it(read):
    """`ParallelFor(name="shards")`."""
    loop = a_loop_over(output_of("list"))
    tasks = {"list": a_task(), "for-loop-1": {**loop, "taskInfo": {"name": "shards"}}}
    one = a_package(tasks)
    assert len(read(one, loop_widths={"shards": 5}).steps) == 6
    assert "shards" in {group.display_name for group in read(one).groups}
    assert len(read(one, loop_widths={"shards": 5, "for-loop-1": 2}).steps) == 3
    two = a_package({**tasks, "for-loop-2": {**loop, "taskInfo": {"name": "shards"}}})
    with pytest.raises(UnknownLoopError, match=r"2 loops .* name one of for-loop-1, for-loop-2"):
        read(two, loop_widths={"shards": 5})
    assert len(read(two, loop_widths={"for-loop-1": 5, "for-loop-2": 1}).steps) == 7
    with pytest.raises(UnknownLoopError, match=r"did you mean 'shards'\?"):
        read(one, loop_widths={"shard": 5})


def test_a_known_width_is_kept_and_said():
    documents = a_package({"loop": a_loop("body", [1, 2])})
    graph = read_package(documents, loop_widths={"loop": 7})
    assert len(graph.steps) == 2
    assert notice_codes(graph) == ["loop-width-known"]


def test_conditions_add_up_from_outside_in(read):
    inner = a_task("body", triggerPolicy={"condition": "b"})
    components = {"outer": a_dag({"inner": inner})}
    tasks = {"outer": a_task("outer", triggerPolicy={"condition": "a"})}
    graph = read(a_package(tasks, components=components))
    assert graph.step("outer.inner.work").conditions == ("a", "b")


def test_an_exit_task_inside_a_pipeline_is_not_its_end(read):
    inner = {"fails": a_task(), "notify": an_exit_task("fails")}
    tasks = {"nested": a_task("inner"), "after": a_task(after=["nested"])}
    graph = read(a_package(tasks, components={"inner": a_dag(inner)}))
    assert graph.step("nested.notify").exit_task
    assert graph.step("after").depends_on == ("nested.fails",)


def test_exit_tasks_that_kfp_never_runs_are_left_out_and_said():
    """Two exit tasks of one task, or one of a loop: KFP's compiler keeps the last, or none."""
    tasks = {"fails": a_task(), "one": an_exit_task("fails"), "two": an_exit_task("fails")}
    documents = a_package(tasks)
    graph = read_package(documents)
    assert [step.name for step in graph.steps] == ["fails", "two"]
    assert notice_codes(graph) == ["exit-task-lost"]
    assert [step.name for step in read_as_workflow(documents).steps] == ["fails", "two"]
    tasks = {"loop": a_loop("body", [1]), "one": an_exit_task("loop")}
    assert len(read_package(a_package(tasks)).steps) == 1


def test_an_importer_waits_although_kfp_forgets_to_say_so(read):
    """KFP sets no `depends` on importers; their task spec still tells."""
    executors = {"import": {"importer": {"artifactUri": {"runtimeParameter": "uri"}}}}
    tasks = {
        "find": a_task(),
        "importer": a_task("import", inputs=inputs(uri=output_of("find"))),
        "use": a_task(after=["importer"]),
    }
    graph = read(a_package(tasks, executors=executors))
    importer = graph.step("importer")
    assert importer.kind is StepKind.IMPORTER
    assert importer.depends_on == ("find",)
    assert not importer.has_driver
    assert importer.image == ""
    assert importer.requests == {"cpu": 100, "memory": 64 * 2**20}
    assert graph.step("use").depends_on == ("importer",)


def test_createpvc_is_a_driver_pod_of_its_own_kind(read):
    labels = {"exec-createpvc": {"podMetadata": {"labels": {"typeOfComponent": "Fetch"}}}}
    documents = a_package(
        {"make": a_task("createpvc", cachingOptions={"enableCache": True}), "use": a_task()},
        executors={"createpvc": {"container": {"image": "argostub/createpvc"}}},
        kubernetes=labels,
    )
    make = read(documents).step("make")
    assert make.kind is StepKind.CREATE_PVC
    assert (make.has_driver, make.caching_enabled, make.labels, make.type) == (False, False, {}, "")


def test_many_steps_cost_as_much_each_as_few(read):
    components = {"outer": a_dag({"inner": a_loop("body", list(range(100)))})}

    def expand(width: int) -> None:
        documents = a_package({"outer": a_loop("outer", list(range(width)))}, components=components)
        assert len(read(documents).steps) == 100 * width

    # Four times the size: what grows with the square would cost 16 times as much.
    assert growth(expand, 25, 100) < 12


@pytest.mark.parametrize(
    ("tasks", "components"),
    [
        ({"loop": a_loop("body", list(range(20_001)))}, {}),
        (
            {"outer": a_loop("outer", list(range(3000)))},
            {"outer": a_dag({"inner": a_loop("body", list(range(3000)))})},
        ),
        (
            {"top": a_task("level0")},
            {
                **{
                    f"level{depth}": a_dag(
                        {"a": a_task(f"level{depth + 1}"), "b": a_task(f"level{depth + 1}")}
                    )
                    for depth in range(40)
                },
                "level40": a_dag({"work": a_task()}),
            },
        ),
    ],
    ids=["wide", "nested", "doubling"],
)
def test_absurd_sizes_are_refused_before_anything_is_expanded(tasks, components):
    def refuse() -> None:
        with pytest.raises(LimitError, match="at most 20000"):
            read_package(a_package(tasks, components=components))

    allowed = a_package({"loop": a_loop("body", list(range(5000)))})
    assert cpu_seconds(refuse) < cpu_seconds(read_package, allowed)


def test_a_given_width_beyond_the_limit_is_refused():
    source = output_of("list")
    tasks = {"list": a_task(), "loop": a_loop_over(source)}
    documents = a_package(tasks)
    with pytest.raises(LimitError, match="loop loop has"):
        read_package(documents, loop_widths={"loop": 10**9})
    with pytest.raises(LimitError, match="more than 10 steps"):
        read_package(documents, loop_widths={"loop": 10}, max_steps=10)


def test_too_many_dependencies_are_refused():
    tasks = {
        "one": a_loop("body", list(range(100))),
        "two": a_loop("body", list(range(100)), dependentTasks=["one"]),
    }
    documents = a_package(tasks)
    assert len(read_package(documents).steps) == 200
    with pytest.raises(LimitError, match="dependencies"):
        read_package(documents, max_dependencies=9_999)


def test_deep_nesting_is_refused():
    components = {f"d{depth}": a_dag({"x": a_task(f"d{depth + 1}")}) for depth in range(500)}
    components["d500"] = a_dag({"work": a_task()})
    with pytest.raises(LimitError, match="deeper"):
        read_package(a_package({"top": a_task("d0")}, components=components))


def test_text_that_doubles_at_each_level_stays_unknown():
    """No memory is filled with it."""
    gap = "{{$.inputs.parameters['x']}}"
    passed = inputs(y=gap + gap, x=input_of_dag("y"))
    components = {
        f"d{depth}": a_dag({"t": a_task(f"d{depth + 1}", inputs=passed)}) for depth in range(45)
    }
    components["d45"] = a_dag({"work": a_task()})
    top = a_task("d0", inputs=inputs(y="0123456789"))
    assert len(read_package(a_package({"top": top}, components=components)).steps) == 1


def test_order_is_that_of_dependencies_then_of_names(read):
    """`work-2` before `work-10`, whatever the order in the file."""
    tasks = {
        "work-10": a_task(),
        "work-2": a_task(),
        "first": a_task(after=["work-10"]),
        "work-1": a_task(),
    }
    assert [step.name for step in read(a_package(tasks)).steps] == [
        "work-1",
        "work-2",
        "work-10",
        "first",
    ]


def test_items_with_gaps_are_filled_where_they_can_be(read):
    """A list written out in the pipeline that holds parameters and outputs of tasks."""
    gap = "{{{{$.inputs.parameters['{}']}}}}".format
    items = [
        gap("given"),
        gap("made"),
        gap("gone"),
        "plain",
        {"x": gap("given")},
        f"a{gap('made')}",
    ]
    given = inputs(given=input_of_dag("number"), made=output_of("work"))
    inner = a_loop_over(input_of_dag("item"))
    documents = a_package(
        {"work": a_task(), "outer": a_loop("outer", items, inputs=given)},
        components={"outer": a_dag({"inner": inner})},
        parameters=list_parameter("number", [7, 8]),
    )
    widths = {
        group.name: (group.width, group.width_assumed)
        for group in read(documents).groups
        if group.kind is GroupKind.LOOP
    }
    assert widths.pop("outer") == (6, False)
    assert widths.pop("outer[0].inner") == (2, False)
    # KFP's driver stops at text that is not a list.
    assert widths.pop("outer[3].inner") == (1, False)
    assert set(widths.values()) == {(3, True)}


def test_loops_over_artifacts_have_an_assumed_width():
    """No KFP backend runs them yet; packages may hold them."""
    loop = a_task("body", artifactIterator={"itemInput": "item", "items": {"inputArtifact": "x"}})
    graph = read_package(a_package({"loop": loop}))
    assert [step.assumed for step in graph.steps] == [True, True, True]


@pytest.mark.parametrize(
    ("source", "width"),
    [
        (constant([1, 2]), 2),
        ({"runtimeValue": {"constantValue": {"stringValue": "[1, 2]"}}}, 2),
        ({"runtimeValue": {"runtimeParameter": "numbers"}}, 4),
        ({"componentInputParameter": "numbers", "parameterExpressionSelector": "x"}, 3),
        ({"runtimeValue": {}}, 3),
        ({"taskFinalStatus": {"producerTask": "x"}}, 3),
        ({"componentInputParameter": "gone"}, 3),
    ],
)
def test_items_come_from_any_kind_of_source(read, source, width):
    """Also in the form of the oldest packages; what is not understood is not known."""
    loop = a_loop("body", "items", inputs={"parameters": {"items": source}})
    parameters = list_parameter("numbers", [4, 5, 6, 7])
    documents = a_package({"loop": loop}, parameters=parameters)
    assert len(read(documents).steps) == width


@pytest.mark.parametrize("is_outline", [False, True])
def test_an_outline_is_one_as_a_graph_too(is_outline):
    root = Dag({"train": Task("train", Leaf())})
    tree = TaskTree("taxi", "argo-workflow", root, {}, (), is_outline=is_outline)
    assert expand(tree, ReadOptions()).is_outline is is_outline
