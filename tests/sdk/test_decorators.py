"""`@placed` and `@placed_pipeline`: who is marked, who wins, and that all else stays as it was."""

import copy
import inspect

import pytest
from kfp import compiler, components, dsl, kubernetes
from kfp.dsl import base_component, python_component

from kfp_placement import (
    ConflictError,
    MarkValueError,
    NotConstantError,
    UnknownOptionError,
    UsageError,
    place,
    placed,
    placed_pipeline,
)
from tests.support.pipelines import (
    HINTS,
    MARK,
    UNPLANNED,
    documents,
    echo,
    fetch,
    id_of,
    metadata,
    one_step,
    platform_spec,
    pod,
    predict,
    resources,
    tidy,
    train,
    work,
    work_metadata,
)


def labels(pipeline):
    return {name: item.get("labels", {}) for name, item in metadata(pipeline).items()}


def types(pipeline):
    return {
        name.removeprefix("exec-"): item.get("typeOfComponent", "")
        for name, item in labels(pipeline).items()
    }


# --- @placed ------------------------------------------------------------------------------------


def test_placed_marks_every_step_of_the_component():
    training = placed(type="Training", duration="20m", outputs={"model": "50Mi"}, cpu=2)(train)

    @dsl.pipeline(name="twice")
    def pipeline():
        table = fetch(rows=1).outputs["table"]
        training(table=table)
        training(table=table)
        train(table=table)

    marked = {
        "podMetadata": pod(
            '{"duration":"20m","outputs":{"model":"50Mi"},"v":1}',
            {"typeOfComponent": "Training", **MARK},
        )
    }
    assert platform_spec(pipeline) == {
        "platforms": {
            "kubernetes": {
                "deploymentSpec": {"executors": {"exec-train": marked, "exec-train-2": marked}}
            }
        }
    }
    assert resources(pipeline, "exec-train-2") == {"resourceCpuRequest": "2"}
    assert resources(pipeline, "exec-train-3") == {}


def test_placed_works_as_a_decorator_line():
    @placed(type="Evaluate")
    @dsl.component(base_image="python:3.12")
    def score(x: int) -> float:
        """How good it is."""
        return x / 2

    assert labels(one_step(lambda task: task, score, x=1)) == {
        "exec-score": {"typeOfComponent": "Evaluate", **MARK}
    }
    assert score.python_func(x=3) == 1.5


def test_the_result_is_the_same_kind_of_component():
    marked = placed(type="Training")(train)
    assert isinstance(marked, python_component.PythonComponent)
    assert isinstance(marked, base_component.BaseComponent)
    assert marked is not train
    assert marked.name == train.name
    assert marked.description == train.description
    assert marked.component_spec is train.component_spec
    assert marked.python_func is train.python_func
    assert marked.required_inputs == train.required_inputs
    assert inspect.getdoc(marked) == inspect.getdoc(train)
    assert type(marked).__name__ == "PlacedPythonComponent"


def test_alone_it_compiles_to_the_same_package(tmp_path):
    assert documents(placed(type="Training")(train), tmp_path) == documents(train, tmp_path)


def test_containers_and_yaml_components_are_components_too(tmp_path):
    compiler.Compiler().compile(work, str(tmp_path / "work.yaml"))
    loaded = components.load_component_from_file(str(tmp_path / "work.yaml"))
    marked = placed(type="Transform")(loaded)

    @dsl.pipeline(name="mixed")
    def pipeline():
        marked(item=1)
        placed(type="Fetch")(echo)(text="a")

    assert types(pipeline) == {"work": "Transform", "echo": "Fetch"}


def test_place_refines_placed():
    marked = placed(type="Training", duration="20m", cpu=1, scheduler="one")(work)

    def refine(task):
        place(task, duration="1h", cpu=2, priority=3, scheduler="two")

    pipeline = one_step(refine, marked, item=1)
    assert work_metadata(pipeline) == pod(
        '{"duration":"1h","priority":3,"v":1}',
        {"typeOfComponent": "Training", "kfp-placement.dev/scheduler": "two"},
    )
    assert resources(pipeline) == {"resourceCpuRequest": "2"}


def test_placed_twice_merges_and_the_outer_wins():
    sizes = {"Output": 1}
    marked = placed(type="B", priority=2)(placed(type="A", duration=1, outputs=sizes)(work))
    assert work_metadata(one_step(lambda task: task, marked, item=1)) == pod(
        '{"duration":"1s","outputs":{"Output":"1"},"priority":2,"v":1}',
        {"typeOfComponent": "B", **MARK},
    )


def test_placed_does_not_overwrite_the_component_s_resources():
    sized = copy.deepcopy(echo)
    container = sized.component_spec.implementation.container
    container.resources = dsl.structures.ResourceSpec(cpu_request="4")
    with pytest.raises(ConflictError, match="step 'echo': cpu = '2' contradicts '4'"):
        one_step(lambda task: task, placed(cpu=2)(sized), text="a")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"location": "A B"}, MarkValueError),
        ({"durations": "1m"}, UnknownOptionError),
        ({"outputs": {"modle": 1}}, MarkValueError),
        ({"inputs": {"model": 1}}, MarkValueError),
    ],
    ids=id_of,
)
def test_wrong_values_fail_where_the_component_is_marked(options, error, golden):
    with golden.error(error):
        placed(**options)(train)


def test_pipeline_parameters_cannot_reach_a_decorator():
    @dsl.pipeline(name="inside")
    def pipeline(cpu: str = "1"):
        with pytest.raises(NotConstantError, match="component 'work': cpu is taken from"):
            placed(cpu=cpu)(work)
        work(item=1)

    assert platform_spec(pipeline) == {}


def test_what_is_no_component_is_refused():
    def plain(x: int) -> int:
        return x

    with pytest.raises(
        UsageError, match=r"plain is not one; put @placed\(...\) above @dsl.component"
    ):
        placed(type="A")(plain)


def test_a_pipeline_is_refused_with_advice(tmp_path):
    pipeline = one_step(lambda task: task)
    with pytest.raises(UsageError, match=r"'one-step' is a pipeline; put @placed_pipeline"):
        placed(type="A")(pipeline)
    compiler.Compiler().compile(pipeline, str(tmp_path / "package.yaml"))
    loaded = components.load_component_from_file(str(tmp_path / "package.yaml"))
    with pytest.raises(UsageError, match=r"is a pipeline; put @placed_pipeline"):
        placed(loaded)


# --- @placed_pipeline ---------------------------------------------------------------------------


def control_flow(decorate=lambda function: function):
    @dsl.pipeline(name="inner")
    def inner(item: int) -> int:
        return tidy(item=item).output

    @dsl.pipeline(name="control-flow", description="Everything there is.")
    @decorate
    def pipeline(x: int = 1, where: str = "a"):
        """Documented."""
        last = echo(text=where)
        with dsl.ExitHandler(last):
            table = fetch(rows=x)
            with dsl.ParallelFor(items=[1, 2]):
                with dsl.ParallelFor(items=[3]) as other:
                    work(item=other)
                train(table=table.outputs["table"])
            with dsl.If(x > 1):
                predict(model=train(table=table.outputs["table"]).outputs["model"])
            with dsl.Else():
                work(item=2)
            dsl.importer(artifact_uri="gs://a", artifact_class=dsl.Dataset)
            inner(item=x)

    return pipeline


def test_placed_pipeline_reaches_every_step_but_those_of_nested_pipelines():
    pipeline = control_flow(placed_pipeline(location="HOME-EDGE", scheduler="other", priority=2))
    marks = {"OurLocation": "HOME-EDGE", "kfp-placement.dev/scheduler": "other"}

    def guessed(kind):
        hints = '{"priority":2,"typeGuessed":true,"v":1}'
        return pod(hints, {"typeOfComponent": kind, **marks})

    plain = pod('{"priority":2,"v":1}', marks)
    assert metadata(pipeline) == {
        "exec-echo": plain,
        "exec-fetch": guessed("Fetch"),
        "exec-predict": guessed("Predict"),
        "exec-train": guessed("Training"),
        "exec-train-2": guessed("Training"),
        "exec-work": plain,
        "exec-work-2": plain,
    }


def test_a_placed_pipeline_compiles_unchanged_but_for_the_marks(tmp_path):
    plain, marked = control_flow(), control_flow(placed_pipeline(location="X"))
    before, after = documents(plain, tmp_path), documents(marked, tmp_path)
    assert after[:1] == before
    platforms = after[1].pop("platforms")
    assert after[1] == {}
    executors = platforms.pop("kubernetes")["deploymentSpec"]["executors"]
    assert platforms == {}
    assert all(set(config) == {"podMetadata"} for config in executors.values())
    assert before[0]["pipelineInfo"] == {
        "name": "control-flow",
        "description": "Everything there is.",
    }


def test_a_nested_pipeline_carries_its_own_marks():
    @dsl.pipeline(name="inner")
    @placed_pipeline(type="Inner")
    def inner(item: int) -> int:
        return work(item=item).output

    @dsl.pipeline(name="outer")
    @placed_pipeline(type="Outer")
    def outer(x: int = 1):
        inner(item=work(item=x).output)

    assert types(outer) == {"work": "Outer", "work-2": "Inner"}


def test_placed_pipeline_overwrites_nothing():
    marked = placed(type="A", location="B", image_size=5000, priority=1, scheduler="C")(work)

    @dsl.pipeline(name="filled")
    @placed_pipeline(type="X", location="Y", image_size=7000, priority=9, scheduler="Z")
    def pipeline():
        marked(item=1)
        place(work(item=2), type="D", location="E", priority=2, scheduler="F")
        kubernetes.add_pod_label(work(item=3), "OurLocation", "G")
        place(work(item=4), scheduler="default-scheduler")

    key = "kfp-placement.dev/scheduler"
    assert metadata(pipeline) == {
        "exec-work": pod(
            '{"imageSize":"5000","priority":1,"v":1}',
            {"typeOfComponent": "A", "OurLocation": "B", key: "C"},
        ),
        "exec-work-2": pod(
            '{"imageSize":"7000","priority":2,"v":1}',
            {"typeOfComponent": "D", "OurLocation": "E", key: "F"},
        ),
        "exec-work-3": pod(
            '{"imageSize":"7000","priority":9,"v":1}',
            {"typeOfComponent": "X", "OurLocation": "G", key: "Z"},
        ),
        "exec-work-4": pod(
            '{"imageSize":"7000","priority":9,"v":1}',
            {"typeOfComponent": "X", "OurLocation": "Y", **UNPLANNED},
        ),
    }


def test_an_explicit_priority_of_0_is_kept():
    marked = placed(priority=0)(work)

    @dsl.pipeline(name="filled")
    @placed_pipeline(priority=5, guess_types=False)
    def pipeline():
        marked(item=1)
        place(work(item=2), priority=0)
        work(item=3)

    assert {name: step["annotations"][HINTS] for name, step in metadata(pipeline).items()} == {
        "exec-work": '{"priority":0,"v":1}',
        "exec-work-2": '{"priority":0,"v":1}',
        "exec-work-3": '{"priority":5,"v":1}',
    }


def test_a_whole_pipeline_can_stay_with_the_default_scheduler():
    @dsl.pipeline(name="looked-at")
    @placed_pipeline(scheduler="default-scheduler")
    def pipeline():
        fetch(rows=1)
        place(work(item=1), scheduler="kfp-placement")

    fetched = {"typeOfComponent": "Fetch", **UNPLANNED}
    assert labels(pipeline) == {"exec-fetch": fetched, "exec-work": MARK}


def test_guessing_can_be_switched_off():
    @dsl.pipeline(name="plain")
    @placed_pipeline(guess_types=False)
    def pipeline():
        fetch(rows=1)

    assert metadata(pipeline) == {"exec-fetch": {"labels": MARK}}


def test_a_given_type_is_not_marked_as_guessed():
    @dsl.pipeline(name="mixed")
    @placed_pipeline
    def pipeline():
        table = fetch(rows=1).outputs["table"]
        place(train(table=table), type="Training")

    assert metadata(pipeline) == {
        "exec-fetch": pod('{"typeGuessed":true,"v":1}', {"typeOfComponent": "Fetch", **MARK}),
        "exec-train": {"labels": {"typeOfComponent": "Training", **MARK}},
    }


def test_a_function_called_inside_a_pipeline_marks_its_own_steps_only():
    @placed_pipeline(type="Part")
    def part():
        work(item=1)

    @dsl.pipeline(name="whole")
    def whole():
        work(item=0)
        part()

    assert types(whole) == {"work-2": "Part"}


def test_the_pipeline_keeps_name_signature_and_docs():
    @placed_pipeline(location="X")
    def plain(rows: int = 3) -> int:
        """Documented."""
        return work(item=rows).output

    assert plain.__name__ == "plain"
    assert plain.__doc__ == "Documented."
    assert str(inspect.signature(plain)) == "(rows: int = 3) -> int"
    pipeline = dsl.pipeline(name="kept")(plain)
    assert list(pipeline.component_spec.inputs) == ["rows"]
    assert list(pipeline.component_spec.outputs) == ["Output"]
    assert pipeline.description == "Documented."


@pytest.mark.parametrize(
    ("thing", "advice"),
    [
        (one_step(lambda task: task), r"below @dsl.pipeline of 'one-step'.*swap the two lines"),
        (work, r"'work' is a component; use @placed\(...\)"),
        ("taxi", "marks a pipeline function, not"),
        (7, "marks a pipeline function, not"),
    ],
    ids=["pipeline", "component", "text", "number"],
)
def test_on_anything_but_a_function_it_is_refused_with_advice(thing, advice):
    with pytest.raises(UsageError, match=advice):
        placed_pipeline(location="X")(thing)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"location": "A B"}, MarkValueError),
        ({"duration": "1m"}, UnknownOptionError),
        ({"locations": "X"}, UnknownOptionError),
        ({"queue": "GPU jobs"}, MarkValueError),
        ({"workers": 3}, UnknownOptionError),
    ],
    ids=id_of,
)
def test_wrong_values_fail_where_the_pipeline_is_marked(options, error, golden):
    def taxi():
        work(item=1)

    with golden.error(error):
        placed_pipeline(**options)(taxi)
