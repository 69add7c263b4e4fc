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
NEW_SDK = """from kfp import dsl

@dsl.component
def step(): ...
"""


def refused(read, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text.encode(), name="given")
    return str(caught.value)


@pytest.mark.parametrize("read", [read_run, read_cluster])
@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        (HELM, "given: is a Helm template; give what `helm template RELEASE CHART` prints"),
        (HELM_VALUE, "given: is a Helm template"),
        (DESCRIBED_RUN, "`kubectl get KIND NAME -o yaml`"),
        (DESCRIBED_NODE, "`kubectl get KIND NAME -o yaml`"),
        (OLD_SDK, "pip install 'kfp<2'; dsl-compile --py FILE --output run.yaml"),
        (OLD_COMPONENTS, "is Python of KFP SDK 1.8 or older"),
        (NEW_SDK, "is Python; name the pipeline in it"),
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
