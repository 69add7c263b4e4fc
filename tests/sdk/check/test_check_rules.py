"""Each rule of `check` on graphs made by hand: what it finds, and what it leaves alone."""

from dataclasses import replace

import pytest

from kfp_placement.check.findings import Severity
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import (
    DataInput,
    DurationSource,
    Group,
    GroupKind,
    RunClaim,
    RunGraph,
    StartLimit,
    Step,
    StepKind,
)
from kfp_placement_engine.readers import read_run
from tests.support.builders import a_policy
from tests.support.prepared_runs import check_run, codes

MARKED = {
    "scheduler": "kfp-placement",
    "duration_source": DurationSource.HINT,
    "requests": {"cpu": 1000},
}


def a_graph(*steps, groups=(), source="argo-workflow", notices=(), claims=()):
    return RunGraph("run", source, tuple(steps), tuple(groups), claims, notices=tuple(notices))


def a_step(name="work", **changes):
    return Step(name, changes.pop("task", name), **{"image": "a/b:1", **MARKED, **changes})


def findings_of(*steps, **graph):
    return codes(check_run(a_graph(*steps, **graph)))


def message(*steps, **graph):
    (finding,) = check_run(a_graph(*steps, **graph))
    return finding.message


def test_nothing_is_said_about_a_run_that_holds_no_surprise():
    report = check_run(a_graph(a_step(type="Predict", location="X", max_latency_ms=20.0)))
    assert report.findings == ()
    assert report.ok
    assert str(report) == "run: nothing to report"


def test_a_run_without_any_mark_is_one_finding():
    steps = (a_step("one", scheduler=""), a_step("two", scheduler=""))
    assert findings_of(*steps) == [("warning", "unmarked", "")]


def test_steps_that_are_left_to_the_default_scheduler_on_purpose_are_no_finding():
    left = a_step("left", scheduler="", unplanned=True)
    assert findings_of(a_step("one"), left) == []
    assert findings_of(left) == []
    assert findings_of(a_step("one", scheduler=""), left) == [("warning", "unmarked", "")]


def test_single_steps_without_a_mark_are_named_once_for_all_iterations():
    loop = [
        a_step(f"for-loop-1[{i}].work", task="for-loop-1[*].work", scheduler="") for i in range(3)
    ]
    assert findings_of(a_step("one"), *loop) == [("warning", "unmarked", "for-loop-1[*].work")]


def test_importers_and_claims_need_no_mark():
    steps = (a_step(), a_step("claim", kind=StepKind.CREATE_PVC, scheduler=""))
    assert findings_of(*steps) == []


def test_a_nested_pipeline_without_marks_is_one_finding():
    groups = (
        Group("", GroupKind.ROOT),
        Group("inner", GroupKind.DAG),
        Group("inner.condition-1", GroupKind.DAG, parent="inner"),
        Group("condition-1", GroupKind.DAG),
    )
    steps = (
        a_step("outer"),
        a_step("inner.one", group="inner", scheduler=""),
        a_step("inner.condition-1.two", group="inner.condition-1", scheduler=""),
        a_step("condition-1.three", group="condition-1", scheduler=""),
    )
    assert findings_of(*steps, groups=groups) == [
        ("warning", "unmarked-pipeline", "inner"),
        ("warning", "unmarked", "condition-1.three"),
    ]


def test_a_nested_pipeline_with_some_marks_is_told_step_by_step():
    groups = (Group("", GroupKind.ROOT), Group("inner", GroupKind.DAG))
    steps = (a_step("inner.one", group="inner"), a_step("inner.two", group="inner", scheduler=""))
    assert findings_of(*steps, groups=groups) == [("warning", "unmarked", "inner.two")]


def test_a_nested_pipeline_in_a_loop_is_named_without_indexes():
    groups = (
        Group("", GroupKind.ROOT),
        Group("for-loop-1", GroupKind.LOOP, width=2),
        Group("for-loop-1[0]", GroupKind.ITERATION, parent="for-loop-1"),
        Group("for-loop-1[0].inner", GroupKind.DAG, parent="for-loop-1[0]"),
    )
    inside = a_step(
        "for-loop-1[0].inner.a",
        task="for-loop-1[*].inner.a",
        group="for-loop-1[0].inner",
        scheduler="",
    )
    assert findings_of(a_step("b"), inside, groups=groups) == [
        ("warning", "unmarked-pipeline", "for-loop-1[*].inner")
    ]


def test_guessed_types_are_notes_and_warnings_where_they_move_a_step():
    steps = (
        a_step("load", type="Fetch", type_guessed=True),
        a_step("guess", type="Predict", type_guessed=True),
        a_step("near", type="Predict", type_guessed=True, location="X"),
    )
    assert findings_of(*steps) == [
        ("warning", "guessed-type", "near"),
        ("note", "guessed-type", "load"),
        ("note", "guessed-type", "guess"),
    ]


def test_guesses_of_one_type_are_told_once():
    names = ("train-a", "train-b", "train-c", "train-d")
    steps = [a_step(name, type="Training", type_guessed=True) for name in names]
    (note,) = [each for each in check_run(a_graph(*steps)) if each.code == "guessed-type"]
    assert (note.level, note.step) == (Severity.NOTE, "")
    assert note.message == (
        "type 'Training' was guessed from the names of train-a, train-b, train-c, ...;"
        " say type=... to be sure"
    )


def test_a_location_no_type_follows_is_told():
    step = a_step(type="Training", location="X")
    assert findings_of(step) == [("warning", "location-unused", "work")]
    assert "location 'X' changes nothing" in message(step)
    other = a_step("p", type="Predict", location="Y")
    assert findings_of(step, other) == [("warning", "location-unused", "work")]


def test_a_location_of_the_whole_pipeline_is_told_once_and_only_if_nothing_follows_it():
    """As `@placed_pipeline(location="X")` writes it on every step."""
    training = [a_step(f"train-{i}", type="Training", location="X") for i in range(3)]
    assert findings_of(*training) == [("warning", "location-unused", "")]
    assert findings_of(*training, a_step("p", type="Predict", location="X")) == []


def test_a_location_in_a_loop_is_told_once():
    items = [
        a_step(f"for-loop-1[{i}].work", task="for-loop-1[*].work", location="X") for i in range(9)
    ]
    assert findings_of(a_step("one"), *items) == [
        ("warning", "location-unused", "for-loop-1[*].work")
    ]


@pytest.mark.parametrize("kind", ["Trainning", "Predct", "transfrom", "Serbing"])
def test_a_type_that_is_nearly_a_known_one_is_told(kind, golden):
    (finding,) = check_run(a_graph(a_step(type=kind)))
    assert (finding.level, finding.code, finding.step) == (Severity.WARNING, "near-type", "work")
    golden(finding.message)


def test_a_scheduler_that_is_nearly_ours_is_told(golden):
    run = a_graph(a_step(scheduler="kfp-placemnt"), a_step("two", scheduler="volcano"))
    (finding,) = check_run(run).of("near-scheduler")
    assert (finding.level, finding.step) == (Severity.WARNING, "work")
    golden(finding.message)


def test_a_type_that_follows_the_latency_rule_by_the_policy_is_known():
    cluster = Cluster((Node("n", {"cpu": 9000, "memory": 2**34, "pods": 9}),))
    ruled = replace(cluster, policy=a_policy(latencyRules={"stepTypes": ["predicts"]}))
    run = a_graph(a_step(type="Predicts"))
    assert check_run(run, cluster=cluster).of("near-type")
    assert not check_run(run, cluster=ruled).of("near-type")


@pytest.mark.parametrize("modes", [("ReadWriteOnce",), (), ("ReadWriteMany",)])
def test_steps_that_share_a_workspace_are_told_to_share_a_node(modes, golden):
    claims = (RunClaim("kfp-workspace", modes, is_workspace=True),)
    use = ("kfp-workspace",)
    steps = [a_step("one", claims=use), a_step("two", claims=use), a_step("three")]
    root = (Group("", GroupKind.ROOT),)
    findings = check_run(a_graph(*steps, claims=claims, groups=root)).of("shared-volume")
    golden([finding.message for finding in findings] or ["nothing"])
    assert bool(findings) is (modes != ("ReadWriteMany",))
    assert not check_run(a_graph(*steps[1:], claims=claims)).of("shared-volume")


def test_a_volume_that_the_run_makes_is_noted_once_for_all_iterations(golden):
    claims = [RunClaim(f"c-{n}", ("ReadWriteOnce",), f"for-loop-1[{n}].make") for n in range(3)]
    steps = [
        replace(a_step(f"for-loop-1[{n}].{name}", claims=(f"c-{n}",)), task=task)
        for n in range(3)
        for name, task in (("fill", "for-loop-1[*].fill"), ("read", "for-loop-1[*].read"))
    ]
    findings = check_run(a_graph(*steps, claims=tuple(claims))).of("shared-volume")
    golden([finding.message for finding in findings])
    assert len(findings) == 1
    existing = tuple(RunClaim(claim.name) for claim in claims)
    assert not check_run(a_graph(*steps, claims=existing)).of("shared-volume")


def test_limits_of_argo_are_noted_once_for_all_steps_that_have_them(golden):
    short, long = StartLimit(300.0, "pendingTimeout"), StartLimit(7200.0, "timeout")
    steps = [a_step(name, start_limit=short) for name in ("one", "two")]
    steps += [a_step("three", start_limit=long), a_step("four")]
    findings = check_run(a_graph(*steps)).of("start-limit")
    golden([finding.message for finding in findings])
    assert [finding.steps for finding in findings] == [("one", "two"), ("three",)]


def test_a_limit_that_no_pod_can_keep_is_an_error_and_not_noted_again():
    steps = [a_step(start_limit=StartLimit(0.0, "timeout"))]
    notices = [Notice("start-limit", "its timeout '0s' is over before any pod runs", "work")]
    assert findings_of(*steps, notices=notices) == [("error", "start-limit", "work")]


def test_a_latency_limit_without_its_rule_is_told():
    report = check_run(a_graph(a_step(max_latency_ms=20.0, type="Predict")))
    (finding,) = report.of("max-latency-unused")
    assert "location" in finding.message


def test_missing_durations_are_told_once():
    hinted, unknown = a_step("a"), a_step("b", duration_source=DurationSource.ASSUMED)
    assert findings_of(unknown) == [("warning", "no-durations", "")]
    assert findings_of(hinted, unknown) == [("note", "some-durations", "")]
    assert findings_of(hinted) == []


def test_a_workflow_without_its_package_is_told():
    report = check_run(replace(a_graph(a_step()), is_outline=True))
    assert "--package" in report.of("outline")[0].message
    assert not check_run(a_graph(a_step())).of("outline")


def test_retries_that_do_nothing_are_told():
    assert findings_of(a_step(attempt_limit=3)) == [("warning", "retry-ineffective", "work")]
    assert "set_retry(2)" in message(a_step(attempt_limit=3))


@pytest.mark.parametrize(
    "image", ["python", "python:latest", "host:5000/a/python", "host:5000/a/python:latest"]
)
def test_images_without_a_fixed_tag_are_told(image):
    assert findings_of(a_step(image=image)) == [("note", "floating-image", "work")]


@pytest.mark.parametrize(
    "image", ["python:3.12", "host:5000/a/b:1", "a/b@sha256:0", "{{$.inputs.x}}", ""]
)
def test_images_with_a_fixed_tag_or_unknown_are_left_alone(image):
    assert findings_of(a_step(image=image)) == []


def test_the_same_image_is_told_once():
    assert len(findings_of(a_step("a", image="python"), a_step("b", image="python"))) == 1


@pytest.mark.parametrize("code", ["invalid-label", "request-above-limit"])
def test_a_pod_that_kubernetes_refuses_is_an_error(code):
    assert findings_of(a_step(), notices=[Notice(code, "bad", "work")]) == [("error", code, "work")]


def test_what_runs_in_no_pod_is_told():
    steps = (
        a_step("claim", kind=StepKind.CREATE_PVC, labels={"OurLocation": "X"}),
        a_step("plain", kind=StepKind.DELETE_PVC),
        a_step("import", kind=StepKind.IMPORTER),
    )
    assert findings_of(*steps) == [
        ("warning", "mark-without-pod", "claim"),
        ("note", "importer", "import"),
    ]


def test_packages_with_marks_name_the_backend_they_need():
    marked = a_step(labels={SCHEDULER_LABEL: "kfp-placement"})
    assert findings_of(marked, source="kfp-package") == [("note", "backend-version", "")]
    # Counts as marked, as its namespace asks, and has no label that could be lost.
    assert findings_of(a_step(), source="kfp-package") == []


def test_what_the_reader_noticed_is_passed_on():
    notices = (Notice("missing-argument", "rows has no value"),)
    assert findings_of(a_step(), notices=notices) == [("warning", "missing-argument", "")]


def test_the_gravest_come_first():
    refused = Notice("invalid-label", "bad", "work")
    report = check_run(a_graph(a_step(image="a", attempt_limit=2), notices=[refused]))
    assert [item.level for item in report] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


PACKAGE = """
pipelineInfo: {name: run}
components: {comp-work: {executorLabel: exec-work}}
deploymentSpec: {executors: {exec-work: {container: {image: "python:3.12"}}}}
root:
  dag: {tasks: {work: {componentRef: {name: comp-work}}}}
  inputDefinitions:
    parameters:
%s
"""


@pytest.mark.parametrize("name", ["y", "n", "Y", "N", "yes", "no", "on", "off", "ON"])
def test_parameters_that_go_reads_as_booleans_are_errors(name):
    package = PACKAGE % f"      {name}:\n        parameterType: STRING"
    graph = read_run(package.encode(), name="package")
    (finding,) = check_run(graph).of("parameter-name")
    assert finding.level is Severity.ERROR
    assert f"parameter {name!r}" in finding.message


@pytest.mark.parametrize(
    "line",
    [
        "'n': {}",
        '"yes": {}',
        "number: {}",
        "rows: {n: 1}",
        "x:\n        description: |\n          n: 1",
    ],
)
def test_other_parameters_are_left_alone(line):
    package = PACKAGE % f"      {line}"
    report = check_run(read_run(package.encode(), name="package"))
    assert report.of("parameter-name") == ()


def test_outputs_without_a_size_that_somebody_reads_are_named(golden):
    """What has a size, comes from outside or is read by nobody is not."""
    steps = (
        a_step("fetch", output_bytes={"sized": 5}),
        a_step("train", inputs=(DataInput("fetch", "table"), DataInput("fetch", "sized", 5))),
        a_step("show", inputs=(DataInput("fetch", "table"), DataInput("", "outside"))),
    )
    (finding,) = check_run(a_graph(*steps))
    assert (str(finding.level), finding.code, finding.steps) == ("note", "no-sizes", ("fetch",))
    golden(finding.message)
    assert "(fetch.table)" in finding.message


def test_findings_on_several_steps_name_some_and_hold_all(golden):
    steps = [a_step(f"s{n}", requests={}) for n in range(7)]
    (finding,) = check_run(a_graph(*steps))
    assert (finding.code, len(finding.steps)) == ("no-requests", 7)
    golden(finding.message)
    assert "7 steps" in finding.message
    assert "s4, ...)" in finding.message


@pytest.mark.parametrize(("limit", "level"), [(20.0, "error"), (None, "warning")])
def test_a_hard_limit_to_a_place_nobody_knows_is_an_error(limit, level, golden):
    """The step would run anywhere; without a limit only its rule is off."""
    step = a_step(type="Predict", location="HOM-EDGE", max_latency_ms=limit, duration_seconds=1)
    node = Node("n1", {"cpu": 4000, "memory": 2**34, "pods": 110})
    cluster = Cluster((node,), latencies={"HOME-EDGE": {"n1": 1.0}})
    (finding,) = check_run(a_graph(step), cluster=cluster).of("unknown-location")
    assert (str(finding.level), finding.step) == (level, "work")
    golden(finding.message)
    assert "'HOME-EDGE'" in finding.message


def on_cluster(*steps, **spec):
    """What is found on a cluster with a policy of that spec; without a spec it has no policy."""
    policy = a_policy(**spec) if spec else None
    node = Node("n1", {"cpu": 4000, "memory": 2**33, "pods": 10}, images={"a/b:1": 1})
    cluster = Cluster((node,), latencies={"HOME": {"n1": 2.0}}, policy=policy)
    return check_run(a_graph(*steps), cluster=cluster)


def test_the_policy_s_types_follow_their_location():
    scoring = a_step(type="Scoring", location="HOME", duration_seconds=1)
    rules = {"latencyRules": {"stepTypes": ["Scoring"]}}
    assert codes(on_cluster(scoring)) == [("warning", "location-unused", "work")]
    assert codes(on_cluster(scoring, **rules)) == []


def test_an_empty_list_of_types_switches_the_rule_off(golden):
    predict = a_step(type="Predict", location="HOME", duration_seconds=1, type_guessed=True)
    guess, unused = sorted(on_cluster(predict, latencyRules={"stepTypes": []}).findings, key=str)
    assert (guess.level, guess.code) == (Severity.NOTE, "guessed-type")
    assert (unused.level, unused.code) == (Severity.WARNING, "location-unused")
    golden(unused.message)
    assert "latencyRules.stepTypes" in unused.message
    limited = a_step(type="Predict", location="HOME", duration_seconds=1, max_latency_ms=20.0)
    assert codes(on_cluster(limited, latencyRules={"stepTypes": []})) == []


def test_a_guess_that_the_policy_rules_is_a_warning():
    guessed = a_step(type="Scoring", type_guessed=True, location="HOME", duration_seconds=1)
    rules = {"latencyRules": {"stepTypes": ["scoring"]}}
    assert ("warning", "guessed-type", "work") in codes(on_cluster(guessed, **rules))


def test_a_limit_of_the_policy_s_is_as_hard_as_one_of_the_author_s():
    scoring = a_step(type="Scoring", location="HOME", duration_seconds=1)
    limits = {"defaults": {"byType": [{"type": "scoring", "maxLatency": "1ms"}]}}
    (finding,) = on_cluster(scoring, **limits)
    assert (finding.level, finding.code) == (Severity.ERROR, "unschedulable")
    nowhere = a_step(type="Scoring", location="MARS", duration_seconds=1)
    (finding,) = on_cluster(nowhere, **limits)
    assert (finding.level, finding.code) == (Severity.ERROR, "unknown-location")


def test_a_resource_needs_a_domain():
    workers = (PodGroup(2, {"cpu": 1000, "tpu": 1}),)
    asking = a_step("asking", requests={"cpu": 1000, "memory": 1, "A100": 1})
    making = a_step("making", workers=workers)
    fine = a_step("fine", requests={"nvidia.com/gpu": 1, "hugepages-2Mi": 1})
    assert findings_of(asking, making, fine) == [
        ("error", "resource-domain", "asking"),
        ("error", "resource-domain", "making"),
    ]
    assert "nvidia.com/gpu" in message(asking)


def test_a_step_that_makes_an_object_has_no_container_that_could_request_something():
    steps = (a_step("makes", image="", requests={}), a_step("runs", requests={}))
    (finding,) = check_run(a_graph(*steps)).of("no-requests")
    assert finding.steps == ("runs",)


def test_each_volume_that_a_plain_workflow_makes_is_named():
    claims = [RunClaim(name, ("ReadWriteOnce",), is_workspace=True) for name in ("in", "out")]
    steps = [a_step(name, claims=("in", "out")) for name in ("one", "two")]
    findings = check_run(a_graph(*steps, claims=tuple(claims))).of("shared-volume")
    assert ["mount the volume in," in findings[0].message, len(findings)] == [True, 2]
