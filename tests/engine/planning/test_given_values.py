"""Run times and cache hits that somebody knows better than the file."""

from dataclasses import replace

import pytest

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind
from kfp_placement_engine.planning.given_values import with_all_marked, with_cached, with_durations
from kfp_placement_engine.readers.durations_file import read_durations, read_durations_file

GRAPH = RunGraph(
    name="run",
    source="kfp-package",
    steps=(
        Step("train", "train", caching_enabled=True, has_driver=True),
        Step("loop[0].work", "loop[*].work", iteration=(0,), has_driver=True),
        Step("loop[1].work", "loop[*].work", iteration=(1,), has_driver=True),
        Step("bring", "bring", kind=StepKind.IMPORTER),
    ),
)


def seconds(given, graph=GRAPH):
    """Run times of all steps of a graph once some are given."""
    return [step.duration_seconds for step in with_durations(graph, given).steps]


def cached(names, graph=GRAPH):
    """Whether each step of a graph is assumed to be cached once these are."""
    return [step.assumed_cached for step in with_cached(graph, names).steps]


def test_a_step_a_task_or_a_path_may_be_named():
    """The more precise name wins."""
    assert seconds({"train": "20m"}) == [1200, None, None, None]
    assert seconds({"loop[1].work": 5}) == [None, None, 5, None]
    assert seconds({"loop[*].work": "1s"}) == [None, 1, 1, None]
    assert seconds({"loop.work": 0.5}) == [None, 0.5, 0.5, None]
    given = {"loop.work": 1, "loop[*].work": 2, "loop[0].work": 3}
    assert seconds(given) == [None, 3, 2, None]


def test_the_author_s_name_means_all_iterations_where_no_other_step_has_it():
    """A step outside of all loops keeps its name; of two inside, one must be named."""
    assert seconds({"work": 7}) == [None, 7, 7, None]
    assert seconds({"work": 7, "loop.work": 8}) == [None, 8, 8, None]
    assert cached(["work"]) == [False, True, True, False]
    outside = replace(GRAPH, steps=(*GRAPH.steps, Step("work", "work")))
    assert seconds({"work": 7}, outside) == [None, None, None, None, 7]
    twice = replace(GRAPH, steps=(*GRAPH.steps, Step("if.work", "if.work")))
    with pytest.raises(InputError, match=r"2 steps are called 'work'; name one of loop\[\*\].work"):
        with_durations(twice, {"work": 7})


def test_a_display_name_will_do_where_one_task_has_it():
    train, *others = GRAPH.steps
    named = replace(GRAPH, steps=(replace(train, display_name="xgboost"), *others))
    assert seconds({"xgboost": "20m"}, named) == [1200, None, None, None]
    assert seconds({"xgboost": 1, "train": 2}, named) == [2, None, None, None]
    assert cached(["xgboost"], named)[0]


def test_given_durations_say_where_they_come_from():
    step = with_durations(GRAPH, {"train": "20m"}).steps[0]
    assert step.duration_source is DurationSource.GIVEN


def test_unknown_names_are_refused_with_close_ones():
    with pytest.raises(InputError, match=r"no step 'trian'; did you mean 'train'\?"):
        with_durations(GRAPH, {"trian": 5})
    with pytest.raises(InputError, match=r"did you mean 'loop\[\*\].work'"):
        with_durations(GRAPH, {"loop[9].work": 5})
    with pytest.raises(InputError, match="steps: train, "):
        with_cached(GRAPH, ["zzz"])


@pytest.mark.parametrize("duration", ["soon", -1, "4000d", None, []])
def test_bad_durations_name_their_step(duration):
    with pytest.raises(QuantityError, match="step 'train'"):
        with_durations(GRAPH, {"train": duration})


def test_cache_hits_are_assumed_by_step_or_task():
    graph = with_cached(GRAPH, ["train", "loop[1].work"])
    assert [step.assumed_cached for step in graph.steps] == [True, False, True, False]
    assert [notice.step for notice in graph.notices] == ["loop[*].work"]
    assert cached(["loop.work"]) == [False, True, True, False]


def test_what_kfp_never_caches_cannot_be_assumed_cached():
    with pytest.raises(InputError, match="importer"):
        with_cached(GRAPH, ["bring"])


def test_durations_files_are_mappings(tmp_path):
    path = tmp_path / "durations.yaml"
    path.write_text("train: 20m\nloop[*].work: 1.5\n")
    assert read_durations_file(path) == {"train": 1200, "loop[*].work": 1.5}
    assert read_durations(b'{"train": "1h"}', name="d") == {"train": 3600}
    for data, problem in (
        (b"- train", "holds a list"),
        (b"train: soon", "d: step 'train'"),
        (b"a: 1\n---\nb: 2", "2 documents"),
    ):
        with pytest.raises(InputError, match=problem):
            read_durations(data, name="d")


def test_where_all_pipelines_are_planned_every_executor_of_kfp_counts_as_marked():
    """Not what KFP's driver does, nor a step of a plain Workflow, nor one that is left out."""
    train, *others = GRAPH.steps
    asks, left = replace(train, scheduler="volcano"), replace(train, unplanned=True)
    plain = Step("plain", "plain")
    marked = with_all_marked(replace(GRAPH, steps=(train, asks, left, plain, *others)))
    ours = "kfp-placement"
    assert [step.scheduler for step in marked.steps] == [ours, "volcano", "", "", ours, ours, ""]


def test_what_is_said_of_a_step_that_the_run_leaves_out_is_named_and_not_used():
    """One file of run times may serve runs with different arguments."""
    graph = replace(GRAPH, left_out={"if-1.for-2[*].deploy": "branch full"})
    for name in ("deploy", "if-1.for-2.deploy", "if-1.for-2[*].deploy"):
        changed = with_cached(with_durations(graph, {name: "5m"}), [name])
        assert changed.steps == GRAPH.steps
        assert [each.code for each in changed.notices] == ["left-out", "left-out"]
        assert f"{name!r} is in branch full, which this run does not take" in str(changed.notices)
    with pytest.raises(InputError, match=r"is no step 'deplyo'"):
        with_durations(graph, {"deplyo": 5})
