"""Which runs `plan` keeps: marked ones, and where namespaces ask for it pipelines without marks."""

from typing import Any

import pytest

from kfp_placement_controller.kinds import PLACEMENT_METADATA
from kfp_placement_controller.observed.namespaces import observe_namespace
from kfp_placement_controller.observed.placed_runs import observe_placed_run
from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_engine.contract.keys import PIPELINES_LABEL, SCHEDULER_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, NODES
from tests.support.kubernetes import workflow_object

Json = dict[str, Any]

KFP = {"arguments": {"parameters": [{"name": "components-root", "value": "{}"}]}}
MARK = {"podMetadata": {"labels": {SCHEDULER_LABEL: "kfp-placement"}}}


def a_workflow(spec: Json, uid: str = "u1") -> Json:
    return workflow_object("run", metadata={"uid": uid}, spec=spec)


class Watched:
    """What `plan` has seen."""

    def __init__(self) -> None:
        self.pipelines = PlannedPipelines()

    def namespace(self, value: str | None) -> None:
        """The namespace of the run has this label; None = it is gone."""
        raw = {"metadata": {"name": "team", "labels": {PIPELINES_LABEL: value}}}
        new = None if value is None else observe_namespace(raw)
        self.pipelines.changed(NAMESPACES, Change(("", "team"), None, new))

    def placement(self, *, all_marked: bool = True, uid: str = "u1", is_gone: bool = False) -> None:
        """The run has been planned, with all its steps or those marked."""
        labels = {PIPELINES_LABEL: "all"} if all_marked else {}
        raw = {"metadata": {"labels": labels, "ownerReferences": [{"uid": uid}]}}
        new = None if is_gone else observe_placed_run(raw)
        self.pipelines.changed(PLACEMENT_METADATA, Change(("team", "run"), None, new))

    def kept(self, spec: Json, uid: str = "u1") -> bool | None:
        """Whether all steps of a run count as marked; None = it is dropped."""
        pipeline = self.pipelines.read(ArgoSource(), a_workflow(spec, uid))
        return None if pipeline is None else pipeline.all_marked


@pytest.fixture
def watched():
    return Watched()


@pytest.mark.parametrize("value", [None, "", "marked", "ALL"])
def test_without_the_label_only_marked_runs_are_kept(watched, value):
    watched.namespace(value)
    assert watched.kept(KFP) is None
    assert watched.kept({}) is None
    assert watched.kept({**KFP, **MARK}) is False


def test_with_it_all_of_kfp_are_and_all_their_steps_count(watched):
    watched.namespace("all")
    assert watched.kept(KFP) is True
    assert watched.kept({**KFP, **MARK}) is True


def test_a_plain_workflow_is_left_alone_and_a_marked_one_is_as_before(watched):
    watched.namespace("all")
    assert watched.kept({}) is None
    assert watched.kept(MARK) is False


def test_other_kinds_do_not_matter(watched):
    watched.pipelines.changed(NODES, Change(("", "team"), None, object()))
    assert watched.kept(KFP) is None


def test_a_label_that_goes_or_comes_counts_for_new_runs(watched):
    """Planned ones go on as they were planned; after a restart, too, as their objects say it."""
    watched.namespace("all")
    watched.placement()
    watched.namespace("marked")
    assert watched.kept(KFP) is True
    assert watched.kept(KFP, uid="another") is None
    watched.placement(all_marked=False)
    watched.namespace("all")
    assert watched.kept({**KFP, **MARK}) is False


def test_a_namespace_or_a_placement_that_is_gone_says_nothing(watched):
    watched.placement()
    watched.placement(is_gone=True)
    assert watched.kept(KFP) is None
    watched.namespace("all")
    watched.namespace(None)
    assert watched.kept(KFP) is None


@pytest.mark.parametrize("metadata", [{}, {"labels": {}, "ownerReferences": []}])
def test_a_placement_without_owner_is_of_no_run(metadata):
    assert observe_placed_run({"metadata": metadata}) == ((), False)


@pytest.mark.parametrize("metadata", [{"labels": 7}, {"ownerReferences": 7}])
def test_a_malformed_placement_is_refused(metadata):
    with pytest.raises(InputError):
        observe_placed_run({"metadata": metadata})
