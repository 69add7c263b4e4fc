"""Node selectors, affinity and tolerations as Kubernetes writes them -> our nouns."""

from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import (
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
    Toleration,
)
from kfp_placement_engine.readers.fields import (
    as_count,
    as_list,
    as_mapping,
    as_text,
    as_texts,
)

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def read_tolerations(value: Any, place: str) -> tuple[Toleration, ...]:
    """One toleration or a list of them.

    Raises:
        InputError: malformed.
    """
    entries = [value] if isinstance(value, dict) else as_list(value, place)
    tolerations = []
    for index, entry in enumerate(entries):
        where = f"{place}[{index}]"
        fields = as_mapping(entry, where)
        if not fields:
            continue
        operator = as_text(fields.get("operator"), f"{where}.operator") or "Equal"
        if operator not in ("Equal", "Exists", "Gt", "Lt"):
            raise InputError(f"{where}.operator: {operator!r:.40}; write Equal or Exists")
        key = as_text(fields.get("key"), f"{where}.key")
        value_text = as_text(fields.get("value"), f"{where}.value")
        effect = as_text(fields.get("effect"), f"{where}.effect")
        tolerations.append(Toleration(key, operator, value_text, effect))
    return tuple(tolerations)


def read_node_affinity(value: Any, place: str) -> NodeAffinity:
    """A Kubernetes node affinity.

    Raises:
        InputError: malformed.
    """
    fields = as_mapping(value, place)
    required_place = f"{place}.requiredDuringSchedulingIgnoredDuringExecution"
    required = fields.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None
    if required is not None:
        selector = as_mapping(required, required_place)
        terms = read_terms(selector.get("nodeSelectorTerms"), f"{required_place}.nodeSelectorTerms")
    preferred_place = f"{place}.preferredDuringSchedulingIgnoredDuringExecution"
    preferred = []
    for index, entry in enumerate(
        as_list(fields.get("preferredDuringSchedulingIgnoredDuringExecution"), preferred_place)
    ):
        where = f"{preferred_place}[{index}]"
        item = as_mapping(entry, where)
        weight = as_count(item.get("weight"), f"{where}.weight", maximum=100)
        preferred.append(PreferredTerm(weight, read_term(item.get("preference"), where)))
    return NodeAffinity(terms, tuple(preferred))


def read_terms(value: Any, place: str) -> tuple[NodeSelectorTerm, ...]:
    """A list of node selector terms.

    Raises:
        InputError: malformed.
    """
    return tuple(
        read_term(entry, f"{place}[{index}]") for index, entry in enumerate(as_list(value, place))
    )


def read_term(value: Any, place: str) -> NodeSelectorTerm:
    """One node selector term.

    Raises:
        InputError: malformed.
    """
    fields = as_mapping(value, place)
    requirements = [
        *_requirements(fields.get("matchExpressions"), f"{place}.matchExpressions", on_field=False),
        *_requirements(fields.get("matchFields"), f"{place}.matchFields", on_field=True),
    ]
    return NodeSelectorTerm(tuple(requirements))


def _requirements(value: Any, place: str, *, on_field: bool) -> list[Requirement]:
    requirements = []
    for index, entry in enumerate(as_list(value, place)):
        where = f"{place}[{index}]"
        fields = as_mapping(entry, where)
        operator = as_text(fields.get("operator"), f"{where}.operator")
        if operator not in OPERATORS:
            raise InputError(
                f"{where}.operator: {operator!r:.40}; write one of {', '.join(OPERATORS)}"
            )
        key = as_text(fields.get("key"), f"{where}.key")
        values = as_texts(fields.get("values"), f"{where}.values")
        requirements.append(Requirement(key, operator, values, on_field))
    return requirements


def merge_affinities(affinities: list[NodeAffinity]) -> NodeAffinity:
    """One affinity of several, as KFP's driver joins them: any required term may match."""
    required = [term for affinity in affinities for term in affinity.required or ()]
    preferred = tuple(term for affinity in affinities for term in affinity.preferred)
    if not any(affinity.required is not None for affinity in affinities):
        return NodeAffinity(None, preferred)
    return NodeAffinity(tuple(required), preferred)
