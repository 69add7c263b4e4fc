"""Records the names of all fields that runs can have, from the files that define them.

Run it with the files of newer versions; `test_field_lists` then names the fields that no list has:

    python -m tests.engine.readers.unused.record_names argo-workflows kubeflow-pipelines api

The arguments are checkouts of argoproj/argo-workflows, kubeflow/pipelines and kubernetes/api. Only
names are kept. Types with the same fields are kept once, each on a line; a field with fields of its
own has the number of their line.
"""

import json
import re
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

RECORD = Path(__file__).parent / "data" / "names.json"

CRD = "manifests/base/crds/full/argoproj.io_workflows.yaml"
PROTOS = (
    "api/v2alpha1/pipeline_spec.proto",
    "kubernetes_platform/proto/kubernetes_executor_config.proto",
)
GO_TYPES = "core/v1/types.go"

SOURCES = (
    "argoproj/argo-workflows 4.1.2: manifests/base/crds/full/argoproj.io_workflows.yaml",
    "kubeflow/pipelines of 2026-08-21 (7b70c7b9): pipeline_spec.proto,"
    " kubernetes_executor_config.proto; a superset of 2.17.0",
    "kubernetes/api 0.36.3: PodSpec in core/v1/types.go",
)
"""Versions that are recorded now."""

FIELD = re.compile(r"\s*(?:(?:optional|repeated) )?([\w.<>, ]+?)\s+(\w+) *= *\d")

Messages = dict[str, dict[str, str]]
"""Types of the fields of messages, by full names of messages and names of fields in JSON."""

STRUCTS = {
    ("PipelineSpec", "deploymentSpec"): "PipelineDeploymentConfig",
    ("PlatformDeploymentConfig", "executors"): "KubernetesExecutorConfig",
}
"""Types of fields that the definitions leave open: `google.protobuf.Struct`."""


class Names:
    """Types by the names of their fields."""

    def __init__(self) -> None:
        self.types: list[dict[str, int | None]] = []
        self._numbers: dict[str, int] = {}

    def number(self, fields: dict[str, int | None]) -> int:
        """Return the number of the type that has these fields."""
        fields = dict(sorted(fields.items()))
        key = json.dumps(fields)
        if key not in self._numbers:
            self._numbers[key] = len(self.types)
            self.types.append(fields)
        return self._numbers[key]

    def of_schema(self, schema: dict[str, Any]) -> int | None:
        """Return the number of a structural schema's type; None = it has no fields."""
        while schema.get("type") == "array":
            schema = schema["items"]
        if properties := schema.get("properties"):
            return self.number({key: self.of_schema(each) for key, each in properties.items()})
        values = schema.get("additionalProperties")
        return self.of_schema(values) if isinstance(values, dict) else None

    def of_message(self, messages: Messages, name: str) -> int:
        """Return the number of a message's type."""
        fields = {}
        for key, kind in messages[name].items():
            kind = STRUCTS.get((name, key), kind)
            scopes = [*accumulate(name.split("."), "{}.{}".format), ""]
            full = (f"{scope}.{kind}".strip(".") for scope in reversed(scopes))
            of = next((each for each in full if each in messages), None)
            fields[key] = None if of is None else self.of_message(messages, of)
        return self.number(fields)


def messages_in(text: str) -> Messages:
    """Return the messages of a proto file by their full names, without the package."""
    messages: Messages = {}
    blocks: list[str] = []
    for line in re.sub(r"//.*", "", text).splitlines():
        if match := re.match(r"\s*(message|oneof|enum)\s+(\w+)\s*{", line):
            is_message, outer = match[1] == "message", blocks[-1] if blocks else ""
            # The fields of a oneof are those of its message.
            name = f"{outer}.{match[2]}".strip(".") if match[1] != "oneof" else outer
            blocks.append(name)
            if is_message:
                messages[name] = {}
        elif blocks and blocks[-1] in messages and (match := FIELD.match(line)):
            kind = re.sub(r"map<\w+,\s*([\w.]+)>", r"\1", match[1])
            messages[blocks[-1]][json_name(match[2])] = kind.removeprefix("ml_pipelines.")
        if line.strip() == "}":
            blocks.pop()
    return messages


def json_name(name: str) -> str:
    """Return the name of a field of a message in JSON."""
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def pod_spec_fields(text: str) -> dict[str, None]:
    """Return the fields of `PodSpec` in Go."""
    body = re.search(r"^type PodSpec struct {$(.*?)^}$", text, re.M | re.S)
    assert body is not None
    return dict.fromkeys(re.findall(r'json:"(\w+)', body[1]))


def main(argo: Path, pipelines: Path, api: Path) -> None:
    """Write the record."""
    names = Names()
    crd = yaml.load((argo / CRD).read_text("utf-8"), yaml.CSafeLoader)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    messages: Messages = {}
    for proto in PROTOS:
        messages.update(messages_in((pipelines / proto).read_text("utf-8")))
    pod = pod_spec_fields((api / GO_TYPES).read_text("utf-8"))
    roots = {
        "workflow": names.of_schema(schema["properties"]["spec"]),
        "package": names.of_message(messages, "PipelineSpec"),
        "platform": names.of_message(messages, "PlatformSpec"),
        "pod": names.number({**pod}),
    }
    lines = ",\n    ".join(json.dumps(each) for each in names.types)
    head = f'"sources": {json.dumps(SOURCES, indent=4)},\n  "roots": {json.dumps(roots)}'
    text = f'{{\n  {head},\n  "types": [\n    {lines}\n  ]\n}}\n'
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(text, "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
