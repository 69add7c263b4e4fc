"""The nodes of a running Workflow as Argo writes them: what the controller knows of pods' ends.

Nothing in a status is trusted: a node that cannot be read is left out, and of each only a few short
fields are kept. The compressed form is read by whoever fetched the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.units.times import read_moment

MAX_NODES = 300_000
"""Nodes read of one Workflow: a step has up to ten, a run up to 20,000 steps."""

MAX_MESSAGE_CHARACTERS = 512

KNOWN_OUTPUTS = frozenset({"cached-decision", "condition", "iteration-count"})
"""Outputs of KFP's drivers that say what happens to a step, a branch or a loop."""

_MAX_OUTPUT_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class ArgoNode:
    """One node of a Workflow's status.

    Attributes:
        name: as pods carry it in the annotation `workflows.argoproj.io/node-name`.
        type: `Pod`, `Retry`, `DAG`, `Steps`, `StepGroup`, `TaskGroup`, `Skipped`, ...
        phase: `Pending`, `Running`, `Succeeded`, `Failed`, `Error`, `Skipped` or `Omitted`.
        started_at, finished_at: whole seconds; None = not said.
        message: Argo's or Kubernetes' words, cut.
        host: name of the node that ran its pod, or "".
        outputs: the driver outputs named in `KNOWN_OUTPUTS`, by name.
    """

    name: str
    type: str = ""
    phase: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    message: str = ""
    host: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)


def read_nodes(nodes: object) -> tuple[ArgoNode, ...]:
    """Read `status.nodes`; what is not a node is left out.

    Raises:
        InputError: it is not a mapping, or holds more nodes than any run we plan.
    """
    if nodes is None:
        return ()
    if not isinstance(nodes, dict):
        raise InputError(f"status.nodes must be a mapping, is {type(nodes).__name__}")
    if len(nodes) > MAX_NODES:
        raise InputError(f"status.nodes has {len(nodes)} entries; at most {MAX_NODES} are read")
    read = (_node(node) for node in nodes.values())
    return tuple(node for node in read if node is not None)


def _node(raw: object) -> ArgoNode | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        return None
    return ArgoNode(
        name=raw["name"],
        type=_text(raw.get("type")),
        phase=_text(raw.get("phase")),
        started_at=read_moment(raw.get("startedAt")),
        finished_at=read_moment(raw.get("finishedAt")),
        message=_text(raw.get("message"))[:MAX_MESSAGE_CHARACTERS],
        host=_text(raw.get("hostNodeName")),
        outputs=_outputs(raw.get("outputs")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _outputs(outputs: Any) -> Mapping[str, str]:
    parameters = outputs.get("parameters") if isinstance(outputs, dict) else None
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
