"""Templates of other objects that runs refer to: joined, replaced and bounded."""

from dataclasses import replace

from kfp_placement_controller.packages.actions import PackageAnswer
from kfp_placement_controller.packages.joined_runs import JoinedRuns
from kfp_placement_controller.packages.run_packages import (
    FIRST_QUESTION_PAUSE_SECONDS,
    RunPackages,
)
from kfp_placement_controller.packages.run_templates import MOST_OBJECTS, RunTemplates
from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.source import TemplateKey
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.readers.tree.options import ReadOptions
from tests.controller.planning.builders import START, observed
from tests.engine.readers.argo.test_templates_elsewhere import (
    MAIN,
    an_object,
    cpus,
    dag,
    library,
    pod,
    ref,
)
from tests.support.kubernetes import workflow_object

READERS = {kind.kind: read for kind, read in ArgoSource.template_kinds.items()}
FLOW = {"entrypoint": "main", "templates": [MAIN]}


def a_run(spec=None, **status):
    return observed(workflow_object(spec=spec or FLOW, status=status), unplanned=True)


def put(templates, raw, namespace="team"):
    """The watch reports an object of the API, whose items do not say their kind."""
    kind, name = raw["kind"], raw["metadata"]["name"]
    namespace = namespace if kind == "WorkflowTemplate" else ""
    listed = {"metadata": {"name": name, "namespace": namespace}, "spec": raw["spec"]}
    key = TemplateKey(kind, namespace, name)
    return templates.changed(key, READERS[kind](listed))


def requests(run):
    return cpus(run.content.graph(ReadOptions()))


def test_a_run_is_read_with_the_templates_that_it_reaches():
    templates = RunTemplates()
    assert requests(templates.joined(a_run())) == {"check": 0}
    deep = dag("check", a=ref("work", "other", clusterScope=True))
    (run,) = put(templates, library(deep))
    assert requests(run) == {"check.a": 0}
    (run,) = put(templates, an_object("ClusterWorkflowTemplate", pod("work", "2"), name="other"))
    assert requests(run) == requests(templates.joined(a_run())) == {"check.a": 2000}
    assert templates.changed(TemplateKey("WorkflowTemplate", "team", "library"), None)
    assert requests(templates.joined(a_run())) == {"check": 0}


def test_only_runs_of_the_namespace_are_concerned():
    templates = RunTemplates()
    templates.joined(a_run())
    assert put(templates, library(pod("check")), "other") == []
    assert put(templates, library(pod("check"), name="another")) == []
    assert requests(templates.joined(a_run())) == {"check": 0}


def test_a_workflow_of_a_template_is_read_with_its_spec():
    templates = RunTemplates()
    put(templates, library(pod("main", "3"), entrypoint="main"))
    run = templates.joined(a_run({"workflowTemplateRef": {"name": "library"}}))
    assert requests(run) == {"main": 3000}


def test_what_argo_has_stored_is_enough():
    templates = RunTemplates()
    templates.joined(a_run())
    stored = {"namespaced/library/check": pod("check", "2")}
    run = a_run(storedTemplates=stored, phase="Running")
    assert templates.joined(run) is run
    assert requests(run) == {"check": 2000}
    assert put(templates, library(pod("check"))) == []


def test_equal_templates_concern_nobody():
    templates = RunTemplates()
    put(templates, library(pod("check")))
    templates.joined(a_run())
    assert put(templates, library(pod("check"))) == []
    templates.gone(a_run().key)
    assert put(templates, library(pod("check", "2"))) == []


def test_bytes_and_objects_are_bounded():
    templates = RunTemplates(most_bytes=1000)
    templates.joined(a_run())
    assert put(templates, library(pod("check"))) != []
    assert put(templates, library(pod("check" * 1000), name="large")) == []
    put(templates, library(pod("check")))
    large = RunTemplates()
    others = {f"t{n}": ref("check", f"other-{n}") for n in range(2 * MOST_OBJECTS)}
    put(large, library(dag("check", **others)))
    for n in range(2 * MOST_OBJECTS):
        put(large, library(pod("check", "2"), name=f"other-{n}"))
    counted = requests(large.joined(a_run())).values()
    assert 0 < sum(cpu > 0 for cpu in counted) < MOST_OBJECTS


def test_an_answer_leaves_a_run_its_templates():
    templates = RunTemplates()
    put(templates, library(pod("check", "2")))
    joined = JoinedRuns(RunPackages(is_installed=True), templates)
    run = replace(a_run(), package_id="00000000-0000-4000-8000-000000000001")
    assert requests(joined.join(run, 0)) == {"check": 2000}
    question = joined.question(lambda _run: True, FIRST_QUESTION_PAUSE_SECONDS)
    assert question is not None
    answer = PackageAnswer(question, ConditionReason.UNREACHABLE, why="connection refused")
    (answered,) = joined.package_answered(answer, START, FIRST_QUESTION_PAUSE_SECONDS)
    assert answered.package is not None
    assert answered.package.reason is ConditionReason.UNREACHABLE
    assert requests(answered) == {"check": 2000}
    (changed,) = put(templates, library(pod("check", "3")))
    assert changed.package == answered.package
