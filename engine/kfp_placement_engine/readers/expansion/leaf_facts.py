"""A reader of a leaf of the task tree in one iteration, to the fields of its `Step`."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kfp_placement_engine.contract.hints import StepHints, decode_hints
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    LOCATION_LABEL,
    SCHEDULER_LABEL,
    TYPE_LABEL,
    UNPLANNED_LABEL,
)
from kfp_placement_engine.exceptions import HintsError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.model.history import MOST_ARGUMENTS, is_usable_argument
from kfp_placement_engine.model.node_rules.constraints import MAX_LABEL_VALUE_LENGTH, is_label_value
from kfp_placement_engine.model.pod_constraints import NodeAffinity
from kfp_placement_engine.model.run_graph import DurationSource, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.expansion.leaf_constraints import read_constraints
from kfp_placement_engine.readers.expansion.leaf_resources import read_made_pods, read_resources
from kfp_placement_engine.readers.kubernetes.start_limits import (
    limit_seconds,
    limit_warnings,
    shortest_end,
    shortest_limit,
)
from kfp_placement_engine.readers.tree.expressions import Constant, Expression, Scope, input_names
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.values import KnownValue, Value, gapless, known_text

_MAX_NAMES = 5
"""Largest number of names in one warning."""


@dataclass(frozen=True)
class LeafFacts:
    """Facts of a leaf that its steps share.

    Attributes:
        step_fields: values of fields of `Step`, by name.
        hints: hints of the author.
        warnings: codes and messages of problems.
    """

    step_fields: Mapping[str, Any]
    hints: StepHints
    warnings: tuple[tuple[str, str], ...]

    @cached_property
    def parts(self) -> int:
        """Number of parts of these fields that the work on each step grows with."""
        fields = self.step_fields
        affinity = fields.get("affinity", NodeAffinity())
        terms = (*(affinity.required or ()), *(each.term for each in affinity.preferred))
        listed = ("requests", "containers", "labels", "annotations", "node_selector", "tolerations")
        return (
            len(self.warnings)
            + sum(len(fields.get(each, ())) for each in listed)
            + sum(map(len, fields["containers"]))
            + sum(1 + len(term.requirements) for term in terms)
        )


class LeafFactsReader:
    """Reader of leaves, which reads a leaf once for iterations with the same inputs."""

    def __init__(self) -> None:
        self._open_inputs: dict[int, tuple[str, ...]] = {}
        self._facts: dict[tuple[Any, ...], LeafFacts] = {}
        # What is recognised by its identity is kept, so that nothing else ever gets this one.
        self._kept: dict[int, Any] = {}

    def read(self, leaf: Leaf, scope: Scope) -> LeafFacts:
        """Return the facts of a leaf with these inputs.

        Raises:
            InputError: a quantity, toleration or affinity is malformed.
        """
        names = self._open_inputs.get(id(leaf))
        if names is None:
            names = self._open_inputs[id(leaf)] = tuple(sorted(_open_inputs(leaf)))
            self._kept[id(leaf)] = leaf
        key = (id(leaf), *(self._key(scope.inputs.get(name)) for name in names))
        facts = self._facts.get(key)
        if facts is None:
            facts = self._facts[key] = _LeafRead(leaf, scope).facts()
        return facts

    def _key(self, value: Value | None) -> Any:
        if not isinstance(value, KnownValue):
            return None
        plain = value.value
        if isinstance(plain, dict | list):
            self._kept[id(plain)] = plain
            return id(plain)
        return type(plain), plain


def _open_inputs(leaf: Leaf) -> set[str]:
    specs = leaf.all_resources()
    amounts = [part for spec in specs for part in (spec.name, spec.request, spec.limit)]
    expressions = [
        leaf.image,
        *leaf.labels.values(),
        *leaf.annotations.values(),
        *leaf.node_selectors,
        *leaf.affinities,
        *leaf.anti_affinities,
        *leaf.tolerations,
        *leaf.start_limits.values(),
        *([leaf.made_object.manifest] if leaf.made_object else []),
        *leaf.end_limits.values(),
        leaf.duration,
        *filter(None, amounts),
    ]
    open_ones = (each for each in expressions if not isinstance(each, Constant))
    return {name for expression in open_ones for name in input_names(expression)}


class _LeafRead:
    """Reading of one leaf with some inputs; collects warnings."""

    def __init__(self, leaf: Leaf, scope: Scope) -> None:
        self._leaf = leaf
        self._scope = scope
        self._warnings: list[tuple[str, str]] = list(leaf.problems)

    def facts(self) -> LeafFacts:
        """Return the facts of the leaf.

        Raises:
            InputError: a quantity, toleration or affinity is malformed.
        """
        leaf, scope = self._leaf, self._scope
        resources = read_resources(leaf, scope)
        self._warnings.extend(resources.warnings)
        self._warnings.extend(_claim_warnings(leaf.resource_claims))
        labels, annotations = self._texts(leaf.labels), self._texts(leaf.annotations)
        self._warnings.extend(_label_warnings(labels))
        for kind, values in (("label", leaf.labels), ("annotation", leaf.annotations)):
            self._warnings.extend(_no_text_warnings(kind, values))
        hints = self._hints(annotations)
        limits = self._known_limits(leaf.start_limits)
        end_limits = self._known_limits(leaf.end_limits)
        if "timeout" in limits:
            end_limits["timeout"] = limits["timeout"]
        self._warnings.extend(limit_warnings(limits))
        seconds = hints.duration_seconds
        if leaf.kind is StepKind.SUSPEND:
            seconds = self._pause_seconds()
        constraints, warnings = read_constraints(leaf, scope)
        self._warnings.extend(warnings)
        step_fields = {
            "image": gapless(known_text(leaf.image.evaluate(scope))) or "",
            "requests": resources.requests,
            "containers": resources.containers,
            "unknown_resources": resources.unknown,
            "labels": labels,
            "annotations": annotations,
            **constraints,
            "start_limit": shortest_limit(limits),
            "end_limit": shortest_end(end_limits),
            "type": labels.get(TYPE_LABEL, ""),
            "location": labels.get(LOCATION_LABEL, ""),
            "scheduler": labels.get(SCHEDULER_LABEL, ""),
            "unplanned": labels.get(UNPLANNED_LABEL) == "true",
            "type_guessed": hints.type_guessed and bool(labels.get(TYPE_LABEL)),
            "duration_seconds": seconds,
            "duration_source": DurationSource.ASSUMED if seconds is None else DurationSource.HINT,
            "image_bytes": hints.image_bytes,
            "output_bytes": dict(hints.output_bytes),
            "max_latency_ms": hints.max_latency_ms,
            "priority": hints.priority or 0,
            "queue": hints.queue or "",
            "workers": self._workers(hints),
        }
        return LeafFacts(step_fields, hints, tuple(self._warnings))

    def _texts(self, expressions: Mapping[str, Expression]) -> dict[str, str]:
        texts = {key: known_text(each.evaluate(self._scope)) for key, each in expressions.items()}
        return {key: text for key, text in sorted(texts.items()) if text is not None}

    def _hints(self, annotations: Mapping[str, str]) -> StepHints:
        text = annotations.get(HINTS_ANNOTATION)
        if text is None:
            return StepHints()
        try:
            hints, remarks = decode_hints(text)
        except HintsError as error:
            self._warnings.append(("bad-hints", f"its hints are not used: {error}"))
            return StepHints()
        self._warnings.extend(("hints", f"its hints: {remark}") for remark in remarks)
        return hints

    def _known_limits(self, expressions: Mapping[str, Expression]) -> dict[str, str]:
        """Return the limits of the pod's time that are known before the run."""
        limits = {}
        for setting, expression in expressions.items():
            text = gapless(known_text(expression.evaluate(self._scope)))
            if text:
                limits[setting] = text
            elif text is None:
                message = f"its {setting} is known only at run time and is not used"
                self._warnings.append(("unknown-constraint", message))
        return limits

    def _workers(self, hints: StepHints) -> tuple[PodGroup, ...]:
        """Return the pods that the step makes: what the author says on them comes first."""
        if hints.workers is not None:
            return (hints.workers,)
        if self._leaf.made_object is None:
            return ()
        groups, warnings = read_made_pods(self._leaf.made_object, self._scope, self._leaf.place)
        self._warnings.extend(warnings)
        return groups

    def _pause_seconds(self) -> float | None:
        """Return how long a pause takes; None = until somebody ends it, or nobody knows."""
        text = known_text(self._leaf.duration.evaluate(self._scope))
        if text == "":
            return None
        seconds = limit_seconds(text) if text else None
        if seconds is None:
            value = f"{text!r:.40}, which is not a duration: write for example 10m"
            problem = "known only at run time" if text is None else value
            self._warnings.append(("unknown-pause", f"the time of its pause is {problem}"))
        return seconds


def numeric_arguments(
    parameters: Mapping[str, Value], numeric_inputs: Collection[str]
) -> dict[str, float]:
    """Return the numbers that a step is given, as far as they are known before the run.

    Texts that look like numbers do not count: they may be secrets, and numbers are stored.

    Args:
        parameters: values of its input parameters.
        numeric_inputs: names of parameters that the component declares as numbers or booleans.
    """
    arguments: dict[str, float] = {}
    for name in sorted(numeric_inputs):
        value = parameters.get(name)
        if isinstance(value, KnownValue) and is_usable_argument(value.value):
            arguments[name] = float(value.value)
            if len(arguments) == MOST_ARGUMENTS:
                break
    return arguments


def _claim_warnings(resource_claims: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if resource_claims:
        what = "claims" if len(resource_claims) > 1 else "claim"
        yield (
            "resource-claims",
            f"its resource {what} {listed(resource_claims, _MAX_NAMES)} for devices"
            f" {'are' if len(resource_claims) > 1 else 'is'} not counted, so its pod may not"
            " go to its planned node; keep the step to nodes with such devices, for example by a"
            " node selector",
        )


def _label_warnings(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, text in labels.items():
        if not is_label_value(text):
            yield (
                "invalid-label",
                f"its label {key:.80} = {text!r:.80} must be at most {MAX_LABEL_VALUE_LENGTH}"
                " letters, digits, '-', '_', '.', a letter or digit at both ends: Kubernetes will"
                " refuse its pod",
            )


def _no_text_warnings(
    kind: str, expressions: Mapping[str, Expression]
) -> Iterator[tuple[str, str]]:
    for key, expression in expressions.items():
        if isinstance(expression, Constant) and not isinstance(expression.value, str):
            entry = f"its {kind} {key:.80} = {expression.value!r:.80} is not text"
            yield "invalid-label", f"{entry}: KFP will refuse the package; put the value in quotes"
