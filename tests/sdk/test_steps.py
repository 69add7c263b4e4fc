"""`place(task, ...)`: what lands in the package, and what is refused."""

import copy
import re
import warnings
from typing import Any

import pytest
from kfp import dsl, kubernetes

from kfp_placement import (
    ConflictError,
    MarkValueError,
    NotConstantError,
    PlacementWarning,
    UnknownOptionError,
    UsageError,
    place,
    placed,
    placed_pipeline,
)
from kfp_placement_engine.contract.hints import MAX_ANNOTATION_CHARACTERS
from tests.support.pipelines import (
    HINTS,
    MARK,
    UNPLANNED,
    fetch,
    id_of,
    metadata,
    one_step,
    platform_spec,
    pod,
    resources,
    train,
    work,
    work_metadata,
)


def placed_once(**options):
    return one_step(lambda task: place(task, **options))


def compiled_metadata(*marks):
    def mark(task):
        for options in marks:
            place(task, **options)

    return work_metadata(one_step(mark))


def test_place_without_options_marks_the_step():
    assert platform_spec(placed_once()) == {
        "platforms": {
            "kubernetes": {
                "deploymentSpec": {"executors": {"exec-work": {"podMetadata": {"labels": MARK}}}}
            }
        }
    }


def test_place_writes_exactly_the_contract():
    @dsl.pipeline(name="two-steps")
    def pipeline():
        place(
            train(table=fetch(rows=1).outputs["table"]),
            type="Training",
            location="HOME-EDGE",
            duration="1h30m",
            outputs={"model": "50Mi"},
            inputs={"table": 1000},
            max_latency="20ms",
            priority=5,
            scheduler="other",
        )

    hints = (
        '{"duration":"1h30m","inputs":{"table":"1000"},"maxLatency":"20ms",'
        '"outputs":{"model":"50Mi"},"priority":5,"v":1}'
    )
    labels = {
        "OurLocation": "HOME-EDGE",
        "kfp-placement.dev/scheduler": "other",
        "typeOfComponent": "Training",
    }
    pod_metadata = pod(hints, labels)
    assert platform_spec(pipeline) == {
        "platforms": {
            "kubernetes": {
                "deploymentSpec": {"executors": {"exec-train": {"podMetadata": pod_metadata}}}
            }
        }
    }


def test_place_returns_the_task_for_chaining():
    def mark(task):
        assert place(task, duration=1) is task
        place(task, priority=1).set_caching_options(False)

    assert work_metadata(one_step(mark))["annotations"] == {
        HINTS: '{"duration":"1s","priority":1,"v":1}'
    }


def test_other_labels_and_settings_of_the_author_stay():
    def mark(task):
        kubernetes.add_pod_label(task, "team", "a")
        kubernetes.add_pod_annotation(task, "note", "b")
        kubernetes.add_node_selector(task, "disk", "ssd")
        place(task, type="Training", duration=1)

    executors = platform_spec(one_step(mark))["platforms"]["kubernetes"]["deploymentSpec"]
    assert executors["executors"]["exec-work"] == {
        "nodeSelector": {"labels": {"disk": "ssd"}},
        "podMetadata": {
            "annotations": {"note": "b", HINTS: '{"duration":"1s","v":1}'},
            "labels": {"team": "a", "typeOfComponent": "Training", **MARK},
        },
    }


def test_twice_merges_and_the_later_value_wins():
    twice = compiled_metadata(
        {"type": "A", "location": "X", "duration": "1m", "priority": 1, "scheduler": "one"},
        {"type": "B", "duration": "2m", "max_latency": 3, "scheduler": "two"},
    )
    assert twice == pod(
        '{"duration":"2m","maxLatency":"3ms","priority":1,"v":1}',
        {"OurLocation": "X", "kfp-placement.dev/scheduler": "two", "typeOfComponent": "B"},
    )


def test_sizes_are_merged_by_name():
    def mark(task):
        place(task, outputs={"Output": "1Mi"}, inputs={"item": 1})
        place(task, inputs={"item": 2})

    annotation = work_metadata(one_step(mark))["annotations"][HINTS]
    assert annotation == '{"inputs":{"item":"2"},"outputs":{"Output":"1Mi"},"v":1}'


def test_default_scheduler_keeps_other_labels():
    assert compiled_metadata(
        {"type": "A", "scheduler": "default-scheduler"}, {"location": "X"}
    ) == {"labels": {"OurLocation": "X", "typeOfComponent": "A", **UNPLANNED}}


def test_who_opts_out_by_the_label_is_not_marked_after():
    def mark(task):
        kubernetes.add_pod_label(task, "kfp-placement.dev/unplanned", "true")
        place(task, type="A")

    labels = {"typeOfComponent": "A", **UNPLANNED}
    assert work_metadata(one_step(mark)) == {"labels": labels}


def test_a_step_can_opt_in_again():
    marks = ({"scheduler": "default-scheduler"}, {"scheduler": "kfp-placement"})
    assert compiled_metadata(*marks) == {"labels": MARK}


def test_a_mark_by_the_author_is_kept():
    def mark(task):
        kubernetes.add_pod_label(task, "kfp-placement.dev/scheduler", "mine")
        place(task, type="A")

    assert work_metadata(one_step(mark))["labels"] == {
        "kfp-placement.dev/scheduler": "mine",
        "typeOfComponent": "A",
    }


@pytest.mark.parametrize(
    ("label", "options"),
    [
        ("OurLocation", {"location": "X"}),
        ("typeOfComponent", {"type": "X"}),
        ("kfp-placement.dev/scheduler", {"scheduler": "X"}),
        ("kfp-placement.dev/scheduler", {"scheduler": "default-scheduler"}),
        ("kfp-placement.dev/unplanned", {"scheduler": "X"}),
        ("kfp-placement.dev/unplanned", {"scheduler": "default-scheduler"}),
    ],
)
def test_a_label_of_the_author_is_never_overwritten(label, options):
    def mark(task):
        kubernetes.add_pod_label(task, label, "Y")
        with pytest.raises(ConflictError, match=f"^step 'work': .*{re.escape(label)}: Y"):
            place(task, duration=1, **options)

    assert work_metadata(one_step(mark)) == {"labels": {label: "Y"}}


def test_hints_of_the_author_are_never_overwritten():
    """What changes none of them is no conflict, nor is what place() has written itself."""
    text = '{"v": 1, "duration": "5m"}'

    def mark(task):
        kubernetes.add_pod_annotation(task, HINTS, text)
        with pytest.raises(ConflictError, match=f"^step 'work': .*{HINTS}: .*add_pod_annotation"):
            place(task, type="A", duration="1m")
        with pytest.raises(ConflictError):
            place(task, priority=3)
        place(task, location="X", duration="5m")

    labels = {"OurLocation": "X", **MARK}
    assert work_metadata(one_step(mark)) == pod(text, labels)


def test_hints_that_the_author_sets_later_win():
    def mark(task):
        place(task, duration="1m")
        place(task, duration="2m")
        kubernetes.add_pod_annotation(task, HINTS, '{"duration":"9m"}')
        with pytest.raises(ConflictError):
            place(task, duration="3m")

    annotations = work_metadata(one_step(mark))["annotations"]
    assert annotations == {HINTS: '{"duration":"9m"}'}


def test_the_same_label_by_the_author_is_no_conflict():
    def mark(task):
        kubernetes.add_pod_label(task, "OurLocation", "X")
        place(task, location="X")

    assert work_metadata(one_step(mark)) == {"labels": {"OurLocation": "X", **MARK}}


def test_what_the_author_sets_later_wins():
    def mark(task):
        place(task, location="X", cpu=1)
        kubernetes.add_pod_label(task, "OurLocation", "Y")
        task.set_cpu_request("3")

    pipeline = one_step(mark)
    assert work_metadata(pipeline)["labels"]["OurLocation"] == "Y"
    assert resources(pipeline) == {"resourceCpuRequest": "3"}


def test_resources_become_requests():
    pipeline = placed_once(cpu="1500m", memory="2Gi", gpu=2, accelerator_type="amd.com/gpu")
    assert resources(pipeline) == {
        "accelerator": {
            "count": "2",
            "resourceCount": "2",
            "resourceType": "amd.com/gpu",
            "type": "amd.com/gpu",
        },
        "resourceCpuRequest": "1500m",
        "resourceMemoryRequest": "2Gi",
    }


def accelerators(pipeline):
    """Type and number of the accelerators that the step asks for."""
    asked = resources(pipeline)["accelerator"]
    return asked["resourceType"], asked["resourceCount"]


def test_a_gpu_is_nvidia_unless_said_otherwise():
    assert accelerators(placed_once(gpu=1)) == ("nvidia.com/gpu", "1")


def test_an_accelerator_type_alone_is_one_of_it():
    pipeline = one_step(lambda task: place(place(task, accelerator_type="a.b/c"), gpu=4))
    assert accelerators(pipeline) == ("a.b/c", "4")


def test_a_number_of_accelerators_keeps_the_author_s_type():
    def mark(task):
        task.container_spec.resources = dsl.structures.ResourceSpec(accelerator_type="a.b/c")
        place(task, gpu=2)

    assert accelerators(one_step(mark)) == ("a.b/c", "2")


def test_resources_may_be_pipeline_parameters():
    @dsl.pipeline(name="parameters")
    def pipeline(cpu: str = "1", memory: str = "1Gi", gpu: str = "1"):
        place(work(item=1), cpu=cpu, memory=memory, gpu=gpu)

    assert resources(pipeline) == {
        "accelerator": {
            "resourceCount": "{{$.inputs.parameters['pipelinechannel--gpu']}}",
            "resourceType": "nvidia.com/gpu",
            "type": "nvidia.com/gpu",
        },
        "resourceCpuRequest": "{{$.inputs.parameters['pipelinechannel--cpu']}}",
        "resourceMemoryRequest": "{{$.inputs.parameters['pipelinechannel--memory']}}",
    }


SETTERS: dict[str, tuple[str, Any, Any]] = {
    "cpu": ("set_cpu_request", "2", "3"),
    "memory": ("set_memory_request", "2Gi", "3Gi"),
    "gpu": ("set_accelerator_limit", "2", "3"),
    "accelerator_type": ("set_accelerator_type", "a.b/c", "nvidia.com/gpu"),
}


@pytest.mark.parametrize("option", SETTERS)
def test_resources_of_the_author_are_never_overwritten(option):
    setter, value, other = SETTERS[option]
    options: Any = {option: other}

    def mark(task):
        getattr(task, setter)(value)
        with pytest.raises(ConflictError, match=f"^step 'work': {option} = {other!r} contradicts"):
            place(task, type="A", **options)

    assert metadata(one_step(mark)) == {}


@pytest.mark.parametrize("option", SETTERS)
def test_the_same_resources_are_no_conflict(option):
    setter, value, _ = SETTERS[option]
    options: Any = {option: value}
    pipeline = one_step(lambda task: place(getattr(task, setter)(value), **options))
    assert work_metadata(pipeline) == {"labels": MARK}


@pytest.mark.parametrize("option", SETTERS)
def test_resources_that_the_author_sets_to_the_same_are_his(option):
    setter, value, other = SETTERS[option]
    first: Any = {option: value}
    second: Any = {option: other}

    def mark(task):
        getattr(place(task, **first), setter)(value)
        place(task, **first)
        with pytest.raises(ConflictError, match=f"^step 'work': {option} = {other!r} contradicts"):
            place(task, **second)

    one_step(mark)


def test_equal_amounts_written_differently_are_no_conflict():
    pipeline = one_step(lambda task: place(task.set_cpu_request("1500m"), cpu="1.5"))
    assert resources(pipeline) == {"resourceCpuRequest": "1500m"}


@pytest.mark.parametrize(
    ("setter", "limit", "options"),
    [("set_cpu_limit", "1", {"cpu": 2}), ("set_memory_limit", "1Gi", {"memory": "2Gi"})],
)
def test_a_request_beyond_the_limit_is_refused(setter, limit, options):
    def mark(task):
        getattr(task, setter)(limit)
        with pytest.raises(ConflictError, match="is more than the limit"):
            place(task, **options)

    one_step(mark)


def test_a_request_within_the_limit_is_set_beside_it():
    pipeline = one_step(lambda task: place(task.set_cpu_limit("2"), cpu=2))
    assert resources(pipeline) == {"resourceCpuLimit": "2", "resourceCpuRequest": "2"}


def test_what_kfp_itself_refuses_changes_nothing(monkeypatch):
    def refuse(task, value):
        raise ValueError("only 1, 2 or 4")

    monkeypatch.setattr(dsl.PipelineTask, "set_accelerator_limit", refuse)

    def mark(task):
        place(task, cpu=1)
        with pytest.raises(MarkValueError, match="step 'work': gpu = '3' is refused by KFP: only"):
            place(task, cpu=2, gpu=3, type="A")
        place(task, memory="1Gi")

    pipeline = one_step(mark)
    assert work_metadata(pipeline) == {"labels": MARK}
    assert resources(pipeline) == {"resourceCpuRequest": "1", "resourceMemoryRequest": "1Gi"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"location": "HOME EDGE"}, MarkValueError),
        ({"cpu": "2Gi"}, MarkValueError),
        ({"max_latency": "20m"}, MarkValueError),
        ({"image_size": 3}, MarkValueError),
        ({"queue": "gpu"}, UnknownOptionError),
        ({"workers": 3}, MarkValueError),
        ({"outputs": {"outptu": 1}}, MarkValueError),
        ({"inputs": {"x": 1}}, MarkValueError),
    ],
    ids=id_of,
)
def test_wrong_values_fail_at_once_and_change_nothing(options, error, golden):
    def mark(task):
        with golden.error(error):
            place(task, **{"type": "Training", "priority": 1, **options})

    assert platform_spec(one_step(mark)) == {}


def test_pipeline_parameters_are_refused_where_kfp_takes_constants():
    @dsl.pipeline(name="parameters")
    def pipeline(where: str = "X"):
        first, second = work(item=1), work(item=2)
        for value in (where, f"edge-{where}", first.output):
            with pytest.raises(NotConstantError, match=r"^step 'work-2': location is taken from"):
                place(second, location=value)
        with pytest.raises(NotConstantError, match=r"^step 'work-2': duration is taken from"):
            place(second, duration=first.output)
        with (
            dsl.ParallelFor(items=["a", "b"]) as item,
            pytest.raises(NotConstantError, match=r"^step 'work-3': type is taken from"),
        ):
            place(work(item=1), type=item)

    assert platform_spec(pipeline) == {}


@pytest.mark.parametrize("thing", [work, "work", None, 7])
def test_what_is_no_step_is_refused(thing):
    with pytest.raises(UsageError, match=r"place\(\) takes a step"):
        place(thing, type="A")


def test_a_nested_pipeline_is_refused_with_advice():
    inner = one_step(lambda task: task)

    @dsl.pipeline(name="outer")
    def outer():
        with pytest.raises(
            UsageError, match=r"step 'one-step' is a pipeline itself.*@placed_pipel"
        ):
            place(inner(), type="A")

    assert platform_spec(outer) == {}


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (dsl.importer, {"artifact_uri": "gs://a/b", "artifact_class": dsl.Dataset}),
        (
            kubernetes.CreatePVC,
            {"pvc_name_suffix": "-x", "access_modes": ["ReadWriteOnce"], "size": "1Gi"},
        ),
    ],
)
def test_what_has_no_pod_is_left_as_it_is_with_a_warning(make, options):
    @dsl.pipeline(name="no-pod")
    def pipeline():
        task = make(**options)
        with pytest.warns(PlacementWarning, match=f"step '{task.name}' runs in no pod"):
            assert place(task, type="Fetch") is task

    assert platform_spec(pipeline) == {}


def test_unreadable_hints_by_other_means_are_named():
    def mark(task):
        kubernetes.add_pod_annotation(task, HINTS, "{")
        refusal = f"step 'work': the annotation {HINTS} .* not JSON"
        with pytest.raises(MarkValueError, match=refusal):
            place(task, duration=1)

    one_step(mark)


def test_hints_beyond_what_readers_take_are_refused():
    outputs = [f"{'o' * 60}{index}" for index in range(MAX_ANNOTATION_CHARACTERS // 60)]

    talkative = copy.deepcopy(work)
    spec = talkative.component_spec
    spec.outputs = dict.fromkeys(outputs, spec.outputs["Output"])

    def mark(task):
        with pytest.raises(MarkValueError, match=r"hints have .* characters; at most 16384"):
            place(task, outputs=dict.fromkeys(outputs, "1Mi"))

    one_step(mark, talkative, item=1)


@pytest.mark.parametrize(("written", "meant"), [("Trainning", "Training"), ("Predct", "Predict")])
def test_a_type_that_is_nearly_a_known_one_warns_where_it_is_written(written, meant):
    with pytest.warns(PlacementWarning, match=f"did you mean '{meant}'") as caught:
        placed_once(type=written)
    assert caught[0].filename == __file__
    assert f"type = {written!r}" in str(caught[0].message)


def test_a_scheduler_that_is_nearly_ours_warns_where_it_is_written():
    with pytest.warns(PlacementWarning, match="did you mean 'kfp-placement'") as caught:
        placed_once(scheduler="kfp-placemnt")
    assert caught[0].filename == __file__
    with pytest.warns(PlacementWarning, match="did you mean 'default-scheduler'"):
        placed_once(scheduler="default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for own in ("kfp-placement", "default-scheduler", "volcano", "kfp-placement-2"):
            placed_once(scheduler=own)


def test_a_decorator_warns_of_such_a_type_too():
    marks = ((placed(type="Trainning"), work), (placed_pipeline(type="Predct"), len))
    for mark, marked in marks:
        with pytest.warns(PlacementWarning, match="did you mean") as caught:
            mark(marked)
        assert caught[0].filename == __file__
