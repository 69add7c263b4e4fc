"""Fifty pipelines compiled by the real SDK: the graph says what the pipeline's author asked for."""

from dataclasses import replace
from functools import cache

import pytest
import yaml

from kfp_placement_engine import RunGraph, Step, read_run
from kfp_placement_engine.contract.keys import LOCATION_LABEL, SCHEDULER_LABEL, TYPE_LABEL
from kfp_placement_engine.model.run_graph import DurationSource, GroupKind
from tests.engine.readers.argo.test_kfp3_workflows import outlined
from tests.support.generated_pipelines import GeneratedPipeline, TrueTask, generate
from tests.support.packages import read_as_outline, read_as_workflow, read_joined
from tests.support.true_graphs import must_precede, true_steps

SEEDS = range(50)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")

    @cache
    def make(seed: int) -> tuple[GeneratedPipeline, RunGraph]:
        pipeline = generate(seed, folder)
        return pipeline, read_run(pipeline.package, name=f"generated-{seed}.yaml")

    return make


@pytest.fixture(params=SEEDS)
def made(request, generated):
    """Each of the pipelines, and what is read of it."""
    return generated(request.param)


def test_steps_are_those_of_the_pipeline(made):
    """Every task is there, once per iteration, under its path."""
    pipeline, graph = made
    steps = true_steps(pipeline.truth)
    assert sorted(step.name for step in graph.steps) == sorted(step.name for step in steps)
    assumed = {step.name for step in steps if step.assumed}
    assert {step.name for step in graph.steps if step.assumed} == assumed
    for step in steps:
        graph_step = graph.step(step.name)
        assert graph_step.iteration == tuple(index for _, index in step.levels if index is not None)


def test_its_workflow_gives_the_same_graph(made):
    """Of the stand-in for KFP's compiler; `test_workflow_emitter.py` holds that to the real one."""
    pipeline, graph = made
    from_workflow = read_as_workflow(documents_of(pipeline))
    assert replace(from_workflow, source=graph.source) == graph


def test_its_workflow_of_kfp_3_gives_with_the_package_the_same_graph(made):
    """No iteration has a driver there; all else is the same."""
    pipeline, graph = made
    joined = read_joined(documents_of(pipeline))
    drivers = {group.name: group.has_driver for group in joined.groups}
    assert drivers == {group.name: group.kind is not GroupKind.ITERATION for group in graph.groups}
    groups = tuple(replace(group, has_driver=True) for group in joined.groups)
    assert replace(joined, source=graph.source, groups=groups) == graph


def test_its_outline_lacks_only_what_is_in_the_package(made):
    """With the widths of its loops, since the Workflow of KFP 3 has none."""
    pipeline, graph = made
    loops = [group for group in graph.groups if group.kind is GroupKind.LOOP]
    widths = {group.name: group.width for group in loops}
    outline = read_as_outline(documents_of(pipeline), loop_widths=widths)
    assert outline.is_outline
    assert all((step.image, dict(step.requests)) == ("", {}) for step in outline.steps)
    assert [outlined(step) for step in outline.steps] == [
        without_parameters(outlined(step)) for step in graph.steps
    ]
    assert [group.name for group in outline.groups] == [group.name for group in graph.groups]


def documents_of(pipeline: GeneratedPipeline) -> list:
    return list(yaml.load_all(pipeline.package, Loader=yaml.CSafeLoader))


def without_parameters(step: Step) -> Step:
    """The step without constraints that parameters of the pipeline give.

    At the top of the pipeline they stay: there the Workflow has the values of these parameters.
    """
    if not step.group:
        return step
    return replace(
        step,
        tolerations=tuple(each for each in step.tolerations if each.key != "given"),
        node_selector={} if "disk" in step.node_selector else step.node_selector,
    )


def test_settings_are_those_of_the_author(made):
    """Images, resources, labels, hints, constraints, claims, retries, caching, conditions."""
    pipeline, graph = made
    for step in true_steps(pipeline.truth):
        _check(graph.step(step.name), step.task)


def _check(step: Step, truth: TrueTask) -> None:
    assert step.image == truth.image
    assert dict(step.requests) == truth.requests
    assert step.unknown_resources == ()
    assert dict(step.labels) == truth.labels
    assert step.type == truth.labels.get(TYPE_LABEL, "")
    assert step.location == truth.labels.get(LOCATION_LABEL, "")
    assert step.scheduler == truth.labels.get(SCHEDULER_LABEL, "")
    assert step.duration_seconds == truth.duration
    hinted = truth.duration is not None
    assert step.duration_source is (DurationSource.HINT if hinted else DurationSource.ASSUMED)
    assert dict(step.output_bytes) == truth.outputs
    tolerations = [(t.key, t.operator, t.value, t.effect) for t in step.tolerations]
    assert sorted(tolerations) == sorted(truth.tolerations)
    assert dict(step.node_selector) == truth.node_selector
    assert len(step.affinity.required or ()) == truth.required_terms
    assert [term.weight for term in step.affinity.preferred] == truth.preferred_weights
    assert set(step.claims) == truth.claims
    assert step.attempt_limit == truth.attempts
    assert step.caching_enabled is truth.caching
    assert len(step.conditions) == truth.conditions
    assert step.exit_task is truth.exit_task
    assert step.has_driver


def test_a_step_starts_after_all_it_waits_for(made):
    """The dependencies, followed to the end, are exactly the pairs that the truth demands."""
    pipeline, graph = made
    ancestors: dict[str, set[str]] = {}
    for step in graph.steps:
        awaited = set(step.depends_on)
        for name in step.depends_on:
            awaited |= ancestors[name]
        ancestors[step.name] = awaited
    pairs = {(first, second) for second, names in ancestors.items() for first in names}
    assert pairs == must_precede(pipeline.truth, true_steps(pipeline.truth))


def test_loops_have_their_width(made):
    """Widths and limits are on the loop's group; assumed ones say so."""
    pipeline, graph = made
    for group in graph.groups:
        if group.kind is GroupKind.LOOP:
            path = tuple(part.split("[")[0] for part in group.name.split("."))
            width, parallelism = pipeline.truth.loops[path]
            assert group.width == (3 if width is None else width)
            assert group.width_assumed is (width is None)
            assert group.parallelism == parallelism


def test_they_cover_what_matters(generated):
    """The generator has not quietly stopped to make loops, exit tasks or unknown widths."""
    truths = [generated(seed)[0].truth for seed in SEEDS]
    tasks = [task for truth in truths for task in truth.tasks]
    widths = [loop[0] for truth in truths for loop in truth.loops.values()]
    assert len(tasks) > 300
    assert sum(task.exit_task for task in tasks) > 10
    assert sum(task.conditions > 0 for task in tasks) > 30
    assert sum(task.attempts > 1 for task in tasks) > 50
    assert sum(bool(task.tolerations) for task in tasks) > 50
    assert sum(bool(task.claims) for task in tasks) > 30
    assert widths.count(None) > 3
    assert len(widths) > 40
    assert any(len(task.path) > 3 for task in tasks)
