"""`--with live`: templates of Argo that are fetched from the cluster of the kubeconfig."""

import json
from pathlib import Path

import pytest

from kfp_placement import PlacementError, preview
from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.kinds import TEMPLATE_KINDS
from kfp_placement.live.run_templates import MOST_FETCHED
from tests.engine.readers.argo.test_templates_elsewhere import (
    MAIN,
    an_object,
    dag,
    library,
    pod,
    ref,
)
from tests.engine.readers.argo.test_templates_elsewhere import (
    run as a_run,
)

TEMPLATES = TEMPLATE_KINDS["WorkflowTemplate"]
EXACT = ("--generations", "1", "--compare", "none")


def of(namespace, *templates, **fields):
    return library(*templates, metadata={"namespace": namespace}, **fields)


@pytest.fixture
def flow(tmp_path):
    """The file of a run that refers to a template of the cluster."""
    path = tmp_path / "flow.yaml"
    path.write_text(json.dumps(a_run(MAIN)))
    return str(path)


def planned(live, flow, *options):
    """Requests for cpu by step, and the codes of warnings."""
    document = live.document("plan", flow, "--with", "live", *EXACT, *options)
    codes = {each["code"] for each in document["warnings"]}
    return [step["requests"].get("cpu") for step in document["steps"]], codes


def test_templates_are_fetched_with_those_that_they_refer_to(live, cluster, flow):
    cluster.put(of("team-a", dag("check", a=ref("deep", "other", clusterScope=True))))
    cluster.put(an_object("ClusterWorkflowTemplate", pod("deep", cpu="2"), name="other"))
    cpus, codes = planned(live, flow)
    assert (len(cpus), "template-elsewhere" in codes) == (1, False)
    assert preview(flow, templates="live", generations=1).steps["check.a"].requests == {"cpu": 2000}


def test_the_namespace_is_that_of_the_run(live, cluster, flow):
    cluster.put(of("team-b", pod("check")))
    assert "template-elsewhere" in planned(live, flow)[1]
    assert "template-elsewhere" not in planned(live, flow, "-n", "team-b")[1]


def test_files_win_over_the_cluster(live, cluster, flow, tmp_path):
    cluster.put(of("team-a", pod("check", cpu="2")))
    (tmp_path / "own.yaml").write_text(json.dumps(library(pod("check", cpu="3"))))
    shown = preview(flow, templates=["live", tmp_path / "own.yaml"], generations=1)
    assert shown.steps["check"].requests == {"cpu": 3000}


@pytest.mark.parametrize("case", ["absent", "forbidden", "forbidden spec", "circle", "many"])
def test_what_cannot_be_fetched_is_a_warning(live, cluster, flow, case, golden):
    cluster.serve(*TEMPLATE_KINDS.values())
    if case == "forbidden spec":
        document = an_object("Workflow", workflowTemplateRef={"name": "library"})
        Path(flow).write_text(json.dumps(document))
    if case.startswith("forbidden"):
        why = "workflowtemplates.argoproj.io is forbidden"
        cluster.refused[TEMPLATES.path("team-a", "")] = ClusterForbiddenError(why)
    if case == "circle":
        cluster.put(of("team-a", dag("check", a=ref("check"))))
    if case == "many":
        others = {f"t{n}": ref("check", f"other-{n}") for n in range(MOST_FETCHED)}
        cluster.put(of("team-a", dag("check", **others)))
    try:
        shown = preview(flow, templates="live", generations=1)
    except PlacementError as error:
        golden(str(error).replace(flow, "flow.yaml"))
    else:
        codes = ("template-elsewhere", "ignored-objects", "recursive-template")
        messages = [each.message for each in shown.warnings if each.code in codes]
        golden("\n".join(messages[:3]).replace(flow, "flow.yaml"))


def test_names_that_no_object_can_have_are_not_asked_for(live, cluster, tmp_path):
    cluster.refused["/"] = ClusterForbiddenError("nothing may be asked for")
    path = tmp_path / "flow.yaml"
    path.write_text(json.dumps(a_run(dag("main", check=ref("check", "../nodes")))))
    shown = preview(path, templates="live", generations=1)
    assert "template-elsewhere" in {each.code for each in shown.warnings}
