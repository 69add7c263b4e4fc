"""Runs that were seen as ended first, and are begun again: read with the templates of others."""

import pytest

from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.model.keys import RunKey
from tests.controller.planning.builders import observed
from tests.controller.planning.test_run_requests import HELD, QueuedCluster
from tests.controlplane.argo.small_workflows import dag, workflow
from tests.engine.readers.argo.test_templates_elsewhere import pod, ref
from tests.support.kubernetes import workflow_object

BY_TEMPLATE = workflow(dag("main", {"name": "a", **ref("work")}))["spec"]
BY_SPEC = {"workflowTemplateRef": {"name": "library"}}
REFERENCES = {"a template": BY_TEMPLATE, "the spec": BY_SPEC}
MARK = {"podMetadata": {"labels": {SCHEDULER_LABEL: "kfp-placement"}}}
KEY = RunKey("team", "wf")


def see(cluster: QueuedCluster, spec: dict, phase: str) -> None:
    """The watch reports the run; whoever begins it again takes the mark of its end off."""
    metadata = {"labels": HELD} if phase == "Pending" else {}
    raw = workflow_object("wf", spec=spec, status={"phase": phase}, metadata=metadata)
    cluster.feed(WORKFLOWS, KEY, observed(raw, unplanned=True))
    cluster.settle()


def give_template(cluster: QueuedCluster, cpu: str) -> None:
    """The watch reports the WorkflowTemplate."""
    spec = {"entrypoint": "work", "templates": [pod("work", cpu)]}
    raw = {"metadata": {"namespace": "team", "name": "library"}, "spec": spec}
    kind = next(each for each in ArgoSource.template_kinds if each.namespaced)
    cluster.feed(kind, ("team", "library"), ArgoSource.template_kinds[kind](raw))
    cluster.settle()


@pytest.mark.parametrize("what", REFERENCES)
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_a_run_that_is_begun_again_has_its_templates(what, marked, before):
    cluster, spec = QueuedCluster(), REFERENCES[what] | (MARK if marked else {})
    if before:
        give_template(cluster, "2")
    see(cluster, spec, "Succeeded")
    see(cluster, spec, "Pending")
    if not before:
        give_template(cluster, "2")
    assert cluster.peak()["cpu"] == 2000
    run = cluster.coordinator.registry.runs.get(KEY)
    assert (run is not None) == marked
    if run is not None:
        assert [each.requests["cpu"] for each in run.reading.graph.steps] == [2000]
        assert run.is_open


@pytest.mark.parametrize("by_retry", [True, False])
def test_a_refusal_ends_when_the_run_can_be_read(by_retry):
    cluster = QueuedCluster()
    give_template(cluster, "much")
    see(cluster, BY_TEMPLATE | MARK, "Pending")
    run = cluster.coordinator.registry.runs[KEY]
    assert "much" in run.refusal
    if by_retry:
        see(cluster, BY_TEMPLATE | MARK, "Failed")
        assert run.refusal
    give_template(cluster, "2")
    if by_retry:
        see(cluster, BY_TEMPLATE | MARK, "Pending")
    assert not run.refusal
    assert run.is_open
    assert run.plan is not None
