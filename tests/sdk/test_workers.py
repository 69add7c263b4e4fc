"""Pods that steps make themselves: what authors say, and what readers find in the package."""

import inspect
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from kfp import compiler, dsl

from kfp_placement import (
    MarkValueError,
    NotConstantError,
    UnknownOptionError,
    Workers,
    place,
    placed,
    placed_pipeline,
)
from kfp_placement._marks import Marks
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.readers import read_run_file
from tests.support.pipelines import HINTS, Channel, one_step, work, work_metadata


@pytest.mark.parametrize(
    ("workers", "pods"),
    [
        (Workers(3), PodGroup(3, {})),
        (Workers(3, gpu=1), PodGroup(3, {"nvidia.com/gpu": 1})),
        (Workers(3, gpu="2", accelerator_type="x.y/z"), PodGroup(3, {"x.y/z": 2})),
        (Workers(1, accelerator_type="x.y/z"), PodGroup(1, {"x.y/z": 1})),
        (Workers(1000, cpu=0.5, memory="16Gi"), PodGroup(1000, {"cpu": 500, "memory": 16 * 2**30})),
        (Workers(count=2, cpu="4"), PodGroup(2, {"cpu": 4000})),
    ],
)
def test_workers_are_pods_that_request_the_same(workers, pods):
    assert workers.pods == pods


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"count": 0}, "count = 0 is not a whole number of pods; use one from 1 to 1,000"),
        ({"count": 1001}, "1,000"),
        ({"count": True}, "count = True"),
        ({"count": "3"}, "count = '3'"),
        ({"count": 2.0}, "count = 2.0"),
        ({"count": None}, "count = None"),
        ({"cpu": "much"}, "cpu: 'much' is not a quantity"),
        ({"cpu": 0}, "leave cpu out"),
        ({"memory": 4}, "give it a unit"),
        ({"gpu": 0}, "whole number of accelerators"),
        ({"gpu": "one"}, "whole number of accelerators"),
        ({"accelerator_type": ""}, "is not a resource name"),
        ({"accelerator_type": "memory"}, "is not an accelerator"),
    ],
)
def test_bad_workers_are_refused_where_they_are_written(options, part):
    values: dict[str, Any] = {"count": 3, **options}
    with pytest.raises(MarkValueError) as failure:
        Workers(**values)
    assert str(failure.value).startswith("Workers: ")
    assert part in str(failure.value)


@pytest.mark.parametrize("option", ["count", "cpu", "memory", "gpu", "accelerator_type"])
def test_pipeline_parameters_are_refused(option):
    """Hints are written when the pipeline is compiled."""
    values: dict[str, Any] = {"count": 3, option: Channel()}
    with pytest.raises(NotConstantError, match=f"Workers: {option} is taken from"):
        Workers(**values)


def test_workers_cannot_be_changed_past_the_checks():
    with pytest.raises(FrozenInstanceError):
        Workers(3).count = -1  # type: ignore[misc]


def test_place_writes_the_hint():
    pipeline = one_step(lambda task: place(task, workers=Workers(3, cpu="4000m", gpu=1)))
    assert work_metadata(pipeline)["annotations"] == {
        HINTS: '{"v":1,"workers":{"count":3,"requests":{"cpu":"4","nvidia.com/gpu":"1"}}}'
    }


def test_place_refines_the_workers_that_placed_says():
    marked = placed(workers=Workers(8, memory="1Gi"))(work)
    pipeline = one_step(lambda task: place(task, workers=Workers(2)), marked)
    assert work_metadata(pipeline)["annotations"] == {
        HINTS: '{"v":1,"workers":{"count":2,"requests":{}}}'
    }


def test_a_queue_is_refused_on_single_steps_with_the_reason():
    """A run waits as a whole."""
    options: dict[str, Any] = {"queue": "gpu"}
    advice = r"as a whole; use @placed_pipeline\(queue=\.\.\.\)"
    with pytest.raises(UnknownOptionError, match=advice):
        placed(**options)(work)
    with pytest.raises(UnknownOptionError, match=advice):
        one_step(lambda task: place(task, **options))


def test_readers_find_both_in_the_package(tmp_path):
    @dsl.pipeline(name="distributed")
    @placed_pipeline(queue="gpu", priority=10)
    def pipeline():
        place(work(item=1), workers=Workers(3, cpu=4, memory="16Gi", gpu=1))
        work(item=2)

    compiler.Compiler().compile(pipeline, str(tmp_path / "package.yaml"))
    first, second = read_run_file(tmp_path / "package.yaml").steps
    assert (first.queue, first.priority, second.queue) == ("gpu", 10, "gpu")
    requests = {"cpu": 4000, "memory": 16 * 2**30, "nvidia.com/gpu": 1}
    assert first.workers == (PodGroup(3, requests),)
    assert second.workers == ()


@pytest.mark.parametrize(
    ("option", "advice"),
    [("gpus", "did you mean 'gpu'?"), ("queue", "options: count, cpu, memory, gpu")],
)
def test_an_option_that_does_not_exist_names_the_closest_one(option, advice):
    options: dict[str, Any] = {option: 1}
    with pytest.raises(UnknownOptionError, match=f"Workers: there is no option '{option}'") as info:
        Workers(3, **options)
    assert advice in str(info.value)
    assert list(inspect.signature(Workers).parameters)[:2] == ["count", "cpu"]


def test_a_long_value_is_quoted_to_its_end():
    with pytest.raises(MarkValueError, match=r"queue = 'a{75}\.\.\.' "):
        Marks.checked("pipeline", {"queue": "a" * 300}, allowed=("queue",))
