"""The nodes in a Workflow's status, by which the controller learns how steps go and end.

Nothing in a status is trusted: a node that cannot be read is left out, and of each only the fields
that we use are kept; messages and outputs are cut. Whoever fetches the object decompresses the
compressed form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
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


def read_nodes(nodes: object) -> tuple[ArgoNode, ...]:
    """Read `status.nodes`; entries that are not nodes are left out.

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
        for raw in nodes.values()
        if isinstance(raw, dict) and isinstance(raw.get("name"), str)
    )


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
