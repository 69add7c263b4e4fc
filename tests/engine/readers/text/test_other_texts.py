"""Texts that are not YAML, or no run and no cluster, are named with what to give in their place."""

import pytest
import yaml

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers import read_cluster
from kfp_placement_engine.readers.run_files import read_run

HELM = """apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
  {{- if .Values.spot }}
  tolerations: [{key: spot}]
  {{- end }}
"""
HELM_VALUE = """kind: Workflow
metadata:
  name: {{ .Release.Name }}
  labels: {{ include "labels" . }}
"""
DESCRIBED_RUN = """Name:         hello-8x2kq
Namespace:    argo
Labels:       workflows.argoproj.io/phase=Succeeded
Annotations:  a: b
Kind:         Workflow
Spec:
  Entrypoint:  main
"""
DESCRIBED_NODE = """Name:               worker-1
Roles:              <none>
Labels:             kubernetes.io/os=linux
CreationTimestamp:  Mon, 30 Nov 2026 09:00:00 +0000
Capacity:
  cpu:                4
"""
OLD_SDK = """import kfp
import kfp.dsl as dsl

def pipe():
    a = dsl.ContainerOp(name="a", image="alpine:3.20")
"""
OLD_COMPONENTS = """from kfp import components
step = components.create_component_from_func(len, base_image="python:3.7")
"""
NAMED_IN_A_COMMENT = """from kfp.v2 import dsl
# dsl.ContainerOp was replaced in SDK 2.
def step(ResourceOp): return ResourceOp.get_pipeline_conf
"""
ARGO_GET = """Name:                hello-abc
Namespace:           argo
ServiceAccount:      unset
Status:              Succeeded
"""
NEW_SDK = """from kfp import dsl

@dsl.component
def step(): ...
"""


def refused(read, text: str, encoding: str = "utf-8") -> str:
    with pytest.raises(InputError) as caught:
        read(text.encode(encoding), name="given")
    return str(caught.value)


@pytest.mark.parametrize("read", [read_run, read_cluster])
@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        (HELM, "given: is a Helm template; give what `helm template RELEASE CHART` prints"),
        (HELM_VALUE, "given: is a Helm template"),
        ('args: ["{{ "{{" }}inputs.parameters.x{{ "}}" }}"]', "given: is a Helm template"),
        (DESCRIBED_RUN, "`kubectl get KIND NAME -o yaml`"),
        (DESCRIBED_NODE, "a cluster is what `kubectl get nodes,pods,pvc,pv,"),
        (OLD_SDK, "pip install 'kfp<2'; dsl-compile --py FILE --output run.yaml"),
        (OLD_COMPONENTS, "is Python of KFP SDK 1.8 or older"),
        (NEW_SDK, "is Python; name the pipeline in it"),
        (NAMED_IN_A_COMMENT, "is Python; name the pipeline in it"),
        ("from kfp.dsl import ContainerOp as Op\ndef p(): Op()\n", "is Python of KFP SDK 1.8"),
        ("import kfp\ndef p(): kfp.dsl.ResourceOp()\n", "is Python of KFP SDK 1.8"),
        ("from kfp import onprem\nonprem.mount_pvc()\n", "is Python of KFP SDK 1.8"),
        (ARGO_GET, "given: is what `argo get` prints"),
    ],
)
def test_a_text_that_is_no_yaml_is_named_with_the_way_out(text, way_out, read):
    assert way_out in refused(read, text)


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c",
        "kind: Workflow\nspec: [\n",
        "args: ['kubectl get -o go-template={{range .items}}', ]]",
        "run: |\n  import os\n  def f(): pass\n  dsl.ContainerOp()\n : :",
        "Name: x\n: :",
    ],
)
def test_yaml_with_an_error_is_refused_for_the_error(text):
    message = refused(read_run, text)
    assert not any(word in message for word in ("Helm", "describe", "Python"))


def test_a_workflow_with_such_text_in_a_script_is_read():
    script = {"image": "python:3.12", "command": ["{{ if .Values.x }}"], "source": OLD_SDK + HELM}
    main = {"name": "main", "script": script}
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "spec": {"entrypoint": "main", "templates": [main]},
    }
    text = yaml.safe_dump(workflow, default_style="|")
    assert len(read_run(text.encode(), name="given").steps) == 1


def a_workflow(**container):
    main = {"name": "main", "container": {"image": "alpine:3.20", **container}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "spec": {"entrypoint": "main", "templates": [main]},
    }


@pytest.mark.parametrize(
    "container",
    [
        {"image": "{{ .Values.image }}"},
        {"image": 'repo/{{ .Chart.Name }}:{{ .Values.tag | default "x" }}'},
        {"resources": {"requests": {"cpu": "{{.Values.cpu}}"}}},
        {"resources": {"requests": {"cpu": "{{ default 1 $.Values.cpu }}"}}},
        {"env": [{"name": "{{ .Release.Name }}", "value": "1"}]},
        {"image": "{{ if .Values.image }}{{ .Values.image }}{{ end }}"},
        {"image": '{{ include "app.image" . }}'},
    ],
)
def test_values_of_helm_are_named_also_where_they_are_yaml(container):
    text = yaml.safe_dump(a_workflow(**container))
    assert "given: is a Helm template" in refused(read_run, text)
    assert "given: is a Helm template" in refused(read_run, text, "utf-16")


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["echo '{{ .Values.x }}' > chart/templates/a.yaml"]},
        {"args": ["docker inspect -f {{.Config.Image}}"]},
        {"image": "{{=map(['a'], .Values.x)[0]}}"},
        {"args": ["{{inputs.parameters.x}}"]},
    ],
)
def test_tags_of_argo_and_of_scripts_are_not_helm(container):
    assert len(read_run(yaml.safe_dump(a_workflow(**container)).encode(), name="w").steps) == 1
