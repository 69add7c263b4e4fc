"""Advice on a Workflow that people write is YAML, which does what it says."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement import Cluster, Node, check, preview
from kfp_placement_engine.model.cluster import Taint
from kfp_placement_engine.model.node_rules.constraints import tolerates
from kfp_placement_engine.model.pod_constraints import Toleration
from kfp_placement_engine.planning.author_languages import YAML
from tests.support.data import data_path

QUICK: dict[str, Any] = {"budget": "50ms", "compare": ()}
PYTHON_ONLY = re.compile(r"place\(|@placed|set_\w+|add_\w+\(|task\.|\bkubernetes\.[a-z]+\(|=\{")
SPOT = Node("spot", cpu=4, memory="8Gi", taints=["spot=true:NoSchedule"])
GPU = Node("gpu-1", cpu=8, memory="32Gi", gpu=1, labels={"gpu-model": "a100-80g"})


@pytest.fixture
def written(tmp_path):
    """`written(template, **spec)`: the path of a Workflow of one template."""

    def write(template: dict[str, Any], **spec: Any) -> str:
        main = {"name": "main", "container": {"image": "alpine:3.20"}, **template}
        workflow = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": "w"},
            "spec": {"entrypoint": "main", "templates": [main], **spec},
        }
        path = tmp_path / "w.yaml"
        path.write_text(yaml.safe_dump(workflow), "utf-8")
        return str(path)

    return write


def container(**resources: Any) -> dict[str, Any]:
    return {"image": "alpine:3.20", "resources": resources}


def test_a_toleration_is_yaml(golden):
    folder = data_path("user-cases", "21-advice-in-python-for-yaml")
    report = check(str(folder / "spot.yaml"), str(folder / "cluster.yaml"))
    golden(str(report))
    assert not PYTHON_ONLY.search(str(report))


UNTOLD = {
    "two tolerations": (
        {},
        Node("spot", cpu=1, memory="1Gi", taints=["spot=true:NoSchedule", "old:NoExecute"]),
    ),
    "another toleration": ({"tolerations": [{"key": "a", "operator": "Exists"}]}, SPOT),
    "selector": ({"nodeSelector": {"gpu-model": "a100-80gb"}}, GPU),
    "accelerator": ({"container": container(limits={"nvidia.com/mig-1g.5gb": 1})}, GPU),
}


@pytest.mark.parametrize("case", UNTOLD)
def test_each_setting_is_yaml(case, written, golden):
    template, node = UNTOLD[case]
    (finding,) = check(written(template), Cluster([node])).of("unschedulable")
    golden(finding.message)
    assert not PYTHON_ONLY.search(finding.message)


def test_what_is_advised_lets_the_step_onto_the_node(written):
    (finding,) = check(written({}), Cluster([SPOT])).of("unschedulable")
    (line,) = re.findall(r"onto spot: (.*) under spec .* or its template", finding.message)
    for written_there in (written(yaml.safe_load(line)), written({}, **yaml.safe_load(line))):
        assert preview(written_there, Cluster([SPOT]), **QUICK).steps["main"].node == "spot"


def test_what_is_advised_marks_the_run_and_states_its_run_time_and_requests(written):
    report = check(written({}))
    assert {"unmarked", "no-durations", "no-requests"} <= {each.code for each in report}
    (marks,) = re.findall(r"put (podMetadata: .*) under spec ", report.of("unmarked")[0].message)
    (hints,) = re.findall(r"(annotations: .*) under metadata", report.of("no-durations")[0].message)
    (requests,) = re.findall(r"(resources: .*) in its", report.of("no-requests")[0].message)
    image = {"container": {"image": "alpine:3.20", **yaml.safe_load(requests)}}
    changed = written({"metadata": yaml.safe_load(hints), **image}, **yaml.safe_load(marks))
    assert not {"unmarked", "no-durations", "no-requests"} & {each.code for each in check(changed)}


def test_a_gpu_that_was_not_asked_for_is_yaml(written, golden):
    template = {"nodeSelector": {"cloud.google.com/gke-accelerator": "l4"}}
    (finding,) = check(written(template)).of("no-accelerator")
    golden(finding.message)
    (limits,) = re.findall(r"(resources: .*) in its container", finding.message)
    asking = written({**template, "container": {"image": "a:1", **yaml.safe_load(limits)}})
    assert not check(asking).of("no-accelerator")


def test_an_image_of_unknown_size_and_a_step_that_opts_out_are_told_in_yaml(written, golden):
    labels = {"labels": {"kfp-placement.dev/unplanned": "true"}}
    image = {"container": {"image": "example.com/own:1"}}
    plan = preview(written({"metadata": labels, **image}), Cluster([GPU]), **QUICK).plan
    messages = [each.message for each in plan.notices if each.code != "floating-image"]
    golden("\n".join(messages))
    assert not any(map(PYTHON_ONLY.search, messages))


@pytest.mark.parametrize("folder", ["workflows", "pipelines"])
def test_what_kfp_runs_is_told_in_python(folder):
    run = sorted(data_path("kfp-2.17.0", folder).glob("*.yaml"))[0]
    assert "@placed_pipeline()" in check(str(run)).of("unmarked")[0].message


keys = st.text(
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Co", "Cn"]),
    min_size=1,
    max_size=60,
)


@given(keys, keys | st.sampled_from(["", "true", "1e3", "null", "~", "-", "a: b", "0x1"]))
def test_the_yaml_of_any_taint_tolerates_it(key, value):
    taint = Taint(key, value, "NoSchedule")
    (line,) = YAML.tolerations([taint], has_others=False)
    (entry,) = yaml.safe_load(line.partition(" under spec (")[0])["tolerations"]
    assert tolerates([Toleration(**entry)], taint)
