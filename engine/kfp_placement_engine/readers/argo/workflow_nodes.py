"""The nodes in a Workflow's status, by which the controller learns how steps go and end.

Nothing in a status is trusted: a node that cannot be read is left out, as is one that Argo would
not find, and of each only the fields that we use are kept; messages and outputs are cut. Whoever
fetches the object decompresses the compressed form.
"""

import re
from collections.abc import Container, Mapping
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

_ATTEMPT = re.compile(r"(.*)\([0-9]+\)", re.DOTALL)
"""Name of the node of one attempt, after the name of the node of all attempts."""

_LEFT_OUT = ("Skipped", "Omitted")

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
    entries = {
        name: raw
        for key, raw in nodes.items()
        if isinstance(raw, dict)
        and isinstance(name := raw.get("name"), str)
        and (not workflow or key == raw.get("id") == node_id(workflow, name))
    }
    return tuple(
        _node(raw) for raw in entries.values() if not workflow or _is_believed(raw, entries)
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


def _is_believed(raw: dict[str, Any], names: Container[str]) -> bool:
    """Return whether Argo lets a node decide if a pod is made.

    It makes the pod of an attempt whatever the node of that attempt says, unless that of all
    attempts says more, and never leaves one attempt out.
    """
    name = raw["name"]
    attempt = _ATTEMPT.fullmatch(name) if name.endswith(")") else None
    return attempt is None or (attempt[1] in names and raw.get("phase") not in _LEFT_OUT)


def _phase(raw: dict[str, Any]) -> str:
    """Return the phase of a node; a step goes on for Argo until it has the results of its pod."""
    phase = text_or_empty(raw.get("phase"))
    is_whole = raw.get("taskResultSynced") is not False or phase in _LEFT_OUT
    return phase if is_whole else "Running"


def _node(raw: dict[str, Any]) -> ArgoNode:
    return ArgoNode(
        name=raw["name"],
        type=text_or_empty(raw.get("type")),
        phase=_phase(raw),
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
