"""The nodes in a Workflow's status, by which the controller learns how steps go and end.

Nothing in a status is trusted: a node that cannot be read is left out, as is one that Argo would
not find, and of each only the fields that we use are kept; messages and outputs are cut. Whoever
fetches the object decompresses the compressed form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty
from kfp_placement_engine.units.times import read_moment

MAX_NODES = 300_000
"""Largest number of nodes of a Workflow: a step has up to ten, a run up to 20,000 steps."""

MAX_NODE_MESSAGE_CHARACTERS = 512

KNOWN_OUTPUTS = frozenset({"cached-decision", "condition", "iteration-count"})
"""Outputs of KFP's drivers that decide what happens to a step, a branch or a loop."""

_MAX_OUTPUT_CHARACTERS = 32

_KEPT_HASHES = 32_768
"""Number of names whose hashes are kept: Argo writes all nodes of a run at each of its steps."""


@dataclass(frozen=True, slots=True)
class ArgoNode:
    """One node of a Workflow's status.

    Attributes:
        name: name of the node, as in the annotation `workflows.argoproj.io/node-name` of pods.
        type: `Pod`, `Retry`, `DAG`, `Steps`, `StepGroup`, `TaskGroup`, `Skipped`, ...
        phase: `Pending`, `Running`, `Succeeded`, `Failed`, `Error`, `Skipped` or `Omitted`.
        started_at, finished_at: None = not in the status, or not a time.
        message: text of Argo or Kubernetes, cut to its first characters.
        host: name of the cluster's node that ran its pod; "" = none yet.
        outputs: the driver outputs named in `KNOWN_OUTPUTS`, by name.
    """

    name: str
    type: str
    phase: str
    started_at: datetime | None
    finished_at: datetime | None
    message: str
    host: str
    outputs: Mapping[str, str]


def read_nodes(nodes: object, workflow: str = "") -> tuple[ArgoNode, ...]:
    """Read `status.nodes`; entries that are not nodes are left out.

    Args:
        nodes: the value of the field.
        workflow: name of the Workflow, by which nodes are left out that Argo would not find, since
            it looks for a step by an id that it makes of the step's name; "" = all are read.

    Raises:
        InputError: the value is not a mapping, or has more nodes than any run we plan.
    """
    if nodes is None:
        return ()
    if not isinstance(nodes, dict):
        raise InputError(f"status.nodes must be a mapping, is {type(nodes).__name__}")
    if len(nodes) > MAX_NODES:
        raise InputError(f"status.nodes has {len(nodes)} entries; at most {MAX_NODES} are read")
    return tuple(
        _node(raw)
        for key, raw in nodes.items()
        if isinstance(raw, dict)
        and isinstance(name := raw.get("name"), str)
        and (not workflow or key == raw.get("id") == node_id(workflow, name))
    )


def node_id(workflow: str, name: str) -> str:
    """Return the id that Argo gives the node of a name (`Workflow.NodeID`)."""
    return workflow if name == workflow else f"{workflow}-{_fnv32a(name)}"


@lru_cache(_KEPT_HASHES)
def _fnv32a(text: str) -> int:
    """Return the hash of text by FNV-1a with 32 bits."""
    value = 0x811C9DC5
    for byte in text.encode(errors="replace"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _node(raw: dict[str, Any]) -> ArgoNode:
    return ArgoNode(
        name=raw["name"],
        type=text_or_empty(raw.get("type")),
        phase=text_or_empty(raw.get("phase")),
        started_at=read_moment(raw.get("startedAt")),
        finished_at=read_moment(raw.get("finishedAt")),
        message=text_or_empty(raw.get("message"))[:MAX_NODE_MESSAGE_CHARACTERS],
        host=text_or_empty(raw.get("hostNodeName")),
        outputs=_outputs(raw.get("outputs")),
    )


def _outputs(outputs: Any) -> Mapping[str, str]:
    parameters = mapping_or_empty(outputs).get("parameters")
    if not isinstance(parameters, list):
        return {}
    known_outputs: dict[str, str] = {}
    for parameter in parameters:
        if not isinstance(parameter, dict):
            continue
        name, value = parameter.get("name"), parameter.get("value")
        if not isinstance(name, str) or name not in KNOWN_OUTPUTS or not isinstance(value, str):
            continue
        known_outputs[name] = value[:_MAX_OUTPUT_CHARACTERS]
    return known_outputs
