"""`check(pipeline)` from the pipeline to the report."""

from pathlib import Path

import pytest
from kfp import dsl, kubernetes

from kfp_placement import (
    PlacementError,
    UnknownOptionError,
    UsageError,
    check,
    place,
    placed_pipeline,
)
from kfp_placement_engine.readers import read_run_file
from tests.cli.conftest import RUN
from tests.support.histories import history_file, history_object, runs_of
from tests.support.pipelines import fetch, predict, train, work
from tests.support.prepared_runs import codes
from tests.support.samples import SAMPLES, load_sample

CLUSTER = SAMPLES / "06_taxi" / "cluster.yaml"


@dsl.pipeline(name="inner")
def inner(item: int) -> int:
    """A nested pipeline without marks."""
    return work(item=item).output


@dsl.pipeline(name="surprising")
@placed_pipeline(location="HOME-EDGE")
def surprising(n: int = 2, where: str = "a"):
    """Nearly everything that `check` looks for."""
    table = fetch(rows=n).outputs["table"]
    model = train(table=table).outputs["model"]
    place(predict(model=model), max_latency="20ms", cpu=64)
    with dsl.ParallelFor(items=[1, 2, 3]) as item:
        work(item=item).set_retry(2)
    place(work(item=1), scheduler="default-scheduler", location="MARS", type="Predict")
    dsl.importer(artifact_uri="gs://a/b", artifact_class=dsl.Dataset)
    inner(item=n)


def test_everything_is_found_without_a_cluster():
    assert codes(check(surprising)) == [
        ("error", "parameter-name", ""),
        ("warning", "unmarked-pipeline", "inner"),
        ("warning", "guessed-type", "predict"),
        ("warning", "no-durations", ""),
        ("warning", "retry-ineffective", "for-loop-2[*].work"),
        ("note", "guessed-type", "fetch"),
        ("note", "guessed-type", "train"),
        ("note", "no-sizes", ""),
        ("note", "no-requests", ""),
        ("note", "importer", "importer"),
        ("note", "backend-version", ""),
    ]


def test_a_cluster_adds_what_depends_on_it():
    more = set(codes(check(surprising, CLUSTER))) - set(codes(check(surprising)))
    assert ("error", "unschedulable", "predict") in more
    assert ("warning", "unknown-location", "work-2") in more


def test_pods_that_kubernetes_refuses_are_said_once():
    @dsl.pipeline(name="refused")
    @placed_pipeline(type="X")
    def refused():
        place(work(item=1), duration=1).set_cpu_request("2").set_cpu_limit("1")
        kubernetes.add_pod_label(place(work(item=2), duration=1), "team", "a b")

    assert [item for item in codes(check(refused, CLUSTER)) if item[0] == "error"] == [
        ("error", "request-above-limit", "work"),
        ("error", "invalid-label", "work-2"),
    ]


def test_the_taxi_sample_is_fine():
    report = check(load_sample("06_taxi").taxi, cluster=CLUSTER)
    assert report.ok, str(report)


def test_the_report_reads_well(golden):
    lines = str(check(surprising)).splitlines()
    golden(lines)
    assert lines[0].startswith("surprising: 1 error, 4 warnings")
    assert lines[1].startswith("  error: KFP's backend refuses a run with a pipeline parameter 'n'")
    assert all(len(line) < 300 for line in lines)


def test_a_function_without_dsl_pipeline_is_refused_with_advice():
    def taxi():
        work(item=1)

    with pytest.raises(UsageError, match=r"taxi is not a pipeline .*; put @dsl.pipeline above it"):
        check(taxi)
    with pytest.raises(
        UsageError, match=r"type int is not a pipeline .*; give a pipeline or a path"
    ):
        check(7)


@pytest.fixture
def hours_history(tmp_path):
    """Nine runs of the taxi sample, whose training took twice its hint."""
    graph = read_run_file(RUN)
    return history_file(tmp_path / "history.json", history_object(runs_of(graph, train=9000.0)))


def test_hints_are_compared_with_past_runs(hours_history):
    assert not check(RUN).of("hint-off")
    (finding,) = check(RUN, history=hours_history).of("hint-off")
    assert finding.step == "train"
    assert not check(RUN, history="none").of("hint-off")
    assert check(RUN, CLUSTER, history=Path(hours_history)).of("hint-off")


def test_what_is_no_history_is_told():
    with pytest.raises(PlacementError, match="check: history = 3"):
        check(RUN, history=3)  # type: ignore[arg-type]


def test_an_option_that_does_not_exist_is_refused_with_the_one_that_may_be_meant():
    with pytest.raises(UnknownOptionError, match="did you mean 'templates'"):
        check("run.yaml", template="shared.yaml")
