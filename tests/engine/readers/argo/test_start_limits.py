"""Argo's limits of the time until a pod runs, in Workflows and in pods."""

import json

import pytest

from kfp_placement_engine import ReadOptions, read_run
from kfp_placement_engine.model.run_graph import StartLimit
from kfp_placement_engine.readers.argo.workflow_templates import pod_start_limit
from kfp_placement_engine.readers.kubernetes.start_limits import limit_seconds
from kfp_placement_engine.readers.text.fields import Fields as TypedFields
from kfp_placement_engine.readers.text.place import Place
from tests.support.kfp_workflow_emitter import emit_workflow
from tests.support.packages import Fields, a_package


def graph_of(template: Fields, given=None, **spec):
    templates = [{"name": "main", "container": {"image": "work:1"}, **template}]
    document = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "spec": {"entrypoint": "main", "templates": templates, **spec},
    }
    options = ReadOptions(arguments=given or {})
    return read_run(json.dumps(document).encode(), name="flow.yaml", options=options)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("+90", 90),
        ("0", 0),
        ("-5m", 0),
        ("-5", 0),
        ("1h1m1.5s", 3661.5),
        (".5m", 30),
        ("5.m", 300),
        ("0.s", 0),
        ("1.h5.5s", 3605.5),
        ("1500ms", 1.5),
        ("1ns", 1e-9),
        ("999999h", 10 * 366 * 86400),
        ("9" * 18, 10 * 366 * 86400),
    ],
)
def test_durations_are_read_as_argo_reads_them(text, seconds):
    assert limit_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["soon", "1d", "20 minutes", "1.5", "m", "1h 30m", "-", "9" * 5000, "٣m", "1e3s"]
)
def test_what_argo_cannot_read_is_not_a_duration(text):
    assert limit_seconds(text) is None


@pytest.mark.parametrize(
    ("template", "limit"),
    [
        ({"pendingTimeout": "5m"}, StartLimit(300, "pendingTimeout")),
        ({"timeout": "1h"}, StartLimit(3600, "timeout")),
        ({"timeout": "1h", "pendingTimeout": "5m"}, StartLimit(300, "pendingTimeout")),
        ({"timeout": "4m", "pendingTimeout": "5m"}, StartLimit(240, "timeout")),
        ({"pendingTimeout": "120"}, StartLimit(120, "pendingTimeout")),
        ({"pendingTimeout": ""}, None),
        ({}, None),
    ],
)
def test_the_shorter_limit_of_a_template_counts(template, limit):
    graph = graph_of(template)
    assert graph.steps[0].start_limit == limit
    assert graph.notices == ()


def test_template_defaults_count_where_a_template_has_no_limit_of_its_own():
    defaults = {"pendingTimeout": "5m"}
    assert graph_of({}, templateDefaults=defaults).steps[0].start_limit.seconds == 300
    own = graph_of({"pendingTimeout": "7m"}, templateDefaults=defaults)
    assert own.steps[0].start_limit.seconds == 420


def test_a_limit_from_an_argument_is_known():
    parameters = {"arguments": {"parameters": [{"name": "patience", "value": "5m"}]}}
    template = {"pendingTimeout": "{{workflow.parameters.patience}}"}
    assert graph_of(template, **parameters).steps[0].start_limit.seconds == 300
    given = graph_of(template, {"patience": "9m"}, **parameters)
    assert given.steps[0].start_limit.seconds == 540


def test_a_limit_that_the_run_decides_is_not_known_and_said():
    graph = graph_of({"pendingTimeout": "{{inputs.parameters.patience}}"})
    assert graph.steps[0].start_limit is None
    assert [notice.code for notice in graph.notices] == ["unknown-constraint"]


@pytest.mark.parametrize(
    "template",
    [
        {"pendingTimeout": "soon"},
        {"pendingTimeout": "0"},
        {"pendingTimeout": "1ns"},
        {"pendingTimeout": "-5m"},
        {"pendingTimeout": ["5m"]},
        {"timeout": "0s"},
        {"timeout": "90"},
        {"timeout": "soon"},
    ],
    ids=json.dumps,
)
def test_a_limit_with_which_no_pod_can_run_is_said(template, golden):
    (notice,) = graph_of(template).notices
    assert (notice.code, notice.step) == ("start-limit", "main")
    golden(notice.message)


@pytest.mark.parametrize("where", ["templateDefaults", "template"])
def test_kfp_s_steps_have_the_limits_of_their_workflow(where):
    made = emit_workflow(a_package()[0])
    if where == "templateDefaults":
        made["spec"]["templateDefaults"] = {"timeout": "1h", "pendingTimeout": "5m"}
    else:
        task = {"name": "executor", "template": "system-container-impl"}
        executor = {"name": "system-container-executor", "dag": {"tasks": [task]}}
        pod = {"name": "system-container-impl", "pendingTimeout": "5m"}
        made["spec"]["templates"] += [executor, pod]
    graph = read_run(json.dumps(made).encode(), name="flow.yaml")
    assert graph.step("work").start_limit == StartLimit(300, "pendingTimeout")


def limit_of(template: object, container="init", kind="initContainers", **spec):
    text = template if isinstance(template, str) else json.dumps(template)
    variables = [{"name": "X"}, {"name": "ARGO_TEMPLATE", "value": text}]
    pod = {"spec": {kind: [{"name": container, "env": variables}], **spec}}
    return pod_start_limit(TypedFields(pod, Place("pod")))


@pytest.mark.parametrize("container", ["init", "supervisor", "main"])
def test_a_pod_says_its_limit_with_and_without_an_init_container(container):
    kind = "initContainers" if container == "init" else "containers"
    template = {"name": "work", "pendingTimeout": "5m", "timeout": "1h"}
    assert limit_of(template, container, kind) == StartLimit(300, "pendingTimeout")


@pytest.mark.parametrize(
    "template",
    [
        {"name": "work"},
        {"pendingTimeout": "soon"},
        {"pendingTimeout": 5},
        ["timeout"],
        '{"timeout": "5m"',
        '{"timeout": ' + "[" * 60_000,
        '{"timeout": "5m", "x": "' + "x" * 131_072 + '"}',
        "",
    ],
)
def test_a_template_that_cannot_be_read_sets_no_limit(template):
    assert limit_of(template) is None


def test_a_pod_of_others_has_no_limit():
    assert pod_start_limit(TypedFields({"spec": {"containers": [{}]}}, Place("pod"))) is None
