"""The languages in which authors write runs: Python with kfp, and the YAML of Argo Workflows.

Advice says what to write, so it is in the language of the run. A Workflow that KFP made comes from
Python; one of Argo, of KFP 1 or of Hera is what its author can change.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from kfp_placement_engine.contract.hints import StepHints, encode_hints
from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    HINTS_ANNOTATION,
    KUBERNETES_SCHEDULER,
    SCHEDULER_LABEL,
    UNPLANNED_LABEL,
)
from kfp_placement_engine.model.cluster import Taint
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.units.quantities import parse_quantity

_LONGEST_VALUE = 253
"""Characters of what is put into a line; Kubernetes' own names are no longer."""

_SIZE = "50Mi"
"""Size in examples."""

_MARK = f"labels: {{{SCHEDULER_LABEL}: {DEFAULT_SCHEDULER}}}"

_SPEC = "under spec (workflowSpec of a CronWorkflow)"
"""Words for the place of settings of a Workflow."""

_PLAIN_SCALAR = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9._/-]*", re.I)
"""Text that needs no quotes in YAML."""


class AuthorLanguage(Protocol):
    """Language of an author: what to write so that a run asks for something.

    Methods return lines, attributes and `duration` the rest of a sentence, such as "say ...".

    Attributes:
        requests: words on how a step requests cpu and memory.
        marks: words on how all steps of a run are marked, or some.
        mark: words on how a single step is marked.
        opting_out: words for what leaves a step to the default scheduler.
        image_size: words on how a step states the size of its image.
    """

    requests: str
    marks: str
    mark: str
    opting_out: str
    image_size: str

    def tolerations(self, taints: Iterable[Taint], *, has_others: bool) -> tuple[str, ...]:
        """Return the lines with which a step tolerates taints.

        Args:
            taints: taints that keep it off a node.
            has_others: whether it has other tolerations.
        """
        ...

    def node_selectors(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the lines with which a step asks for other values of the labels that it names."""
        ...

    def accelerator(self, resource: str, amount: int = 1) -> str:
        """Return the line with which a step asks for accelerators."""
        ...

    def duration(self, seconds: float) -> str:
        """Return how a step states its run time."""
        ...

    def output_size(self, name: str) -> str:
        """Return how a step states the size of an output."""
        ...


class _Python:
    """Lines of Python in which `task` stands for a step."""

    requests = "cpu= and memory= in place(), or set_cpu_request and set_memory_request"
    marks = "put @placed_pipeline() below @dsl.pipeline, use place() on steps"
    mark = "use place() or @placed"
    opting_out = f'scheduler="{KUBERNETES_SCHEDULER}"'
    image_size = "image_size= in place()"

    def tolerations(self, taints: Iterable[Taint], *, has_others: bool) -> tuple[str, ...]:
        del has_others  # Each call adds one.
        return tuple(map(self._toleration, taints))

    def _toleration(self, taint: Taint) -> str:
        key, value, effect = map(_in_python, (taint.key, taint.value, taint.effect))
        matched = f'operator="Equal", value={value}' if taint.value else 'operator="Exists"'
        return f"kubernetes.add_toleration(task, key={key}, {matched}, effect={effect})"

    def node_selectors(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(
            f"kubernetes.add_node_selector(task, label_key={_in_python(key)},"
            f" label_value={_in_python(value)})"
            for key, value in labels.items()
        )

    def accelerator(self, resource: str, amount: int = 1) -> str:
        name = _in_python(resource)
        return f"task.set_accelerator_type({name}).set_accelerator_limit({amount})"

    def duration(self, seconds: float) -> str:
        return f"duration='{format_duration(seconds)}' in place() or @placed"

    def output_size(self, name: str) -> str:
        return f"outputs={{{name!r:.60}: '{_SIZE}'}} in place() or @placed"


class _Yaml:
    """Lines of YAML in the flow style, each with the part of the Workflow that it belongs to."""

    requests = "resources: {requests: {cpu: 500m, memory: 1Gi}} in its container"
    marks = f"put podMetadata: {{{_MARK}}} {_SPEC}, or {_MARK} under metadata of templates"
    mark = f"put {_MARK} under metadata of its template"
    opting_out = f"the label {UNPLANNED_LABEL}"
    image_size = f"imageSize in the annotation {HINTS_ANNOTATION}"

    def tolerations(self, taints: Iterable[Taint], *, has_others: bool) -> tuple[str, ...]:
        listed = ", ".join(map(self._toleration, taints))
        if not listed:
            return ()
        # Argo takes the list of the template or that of the spec, never both.
        where = "beside its other tolerations" if has_others else f"{_SPEC} or its template"
        return (f"tolerations: [{listed}] {where}",)

    def _toleration(self, taint: Taint) -> str:
        equal = {"operator": "Equal", "value": taint.value}
        matched = equal if taint.value else {"operator": "Exists"}
        return f"{{{_in_yaml({'key': taint.key, **matched, 'effect': taint.effect})}}}"

    def node_selectors(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        return (f"{_in_yaml(labels)} in its nodeSelector",) if labels else ()

    def accelerator(self, resource: str, amount: int = 1) -> str:
        return f"resources: {{limits: {{{_yaml_text(resource)}: {amount}}}}} in its container"

    def duration(self, seconds: float) -> str:
        hints = StepHints(duration_seconds=seconds)
        option = f"--duration STEP={format_duration(seconds)} (durations= in Python)"
        return f"{_annotation(hints)}, or {option}"

    def output_size(self, name: str) -> str:
        return _annotation(StepHints(output_bytes={name[:60]: parse_quantity(_SIZE)}))


PYTHON: AuthorLanguage = _Python()
YAML: AuthorLanguage = _Yaml()


def language_of(run: RunGraph) -> AuthorLanguage:
    """Return the language in which a run is written."""
    return YAML if run.source == "argo-workflow" and not run.is_kfp else PYTHON


def _in_python(text: str) -> str:
    """Return text as Python writes it, in double quotes where it can be read."""
    text = text[:_LONGEST_VALUE]
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)


def _in_yaml(entries: Mapping[str, str]) -> str:
    """Return the entries of a mapping in the flow style."""
    return ", ".join(f"{_yaml_text(key)}: {_yaml_text(value)}" for key, value in entries.items())


def _yaml_text(text: str) -> str:
    """Return text as YAML writes it, in double quotes where it could mean something else."""
    text = text[:_LONGEST_VALUE]
    if _PLAIN_SCALAR.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _annotation(hints: StepHints) -> str:
    text = encode_hints(hints).replace("'", "''")
    return f"annotations: {{{HINTS_ANNOTATION}: '{text}'}} under metadata of its template"
