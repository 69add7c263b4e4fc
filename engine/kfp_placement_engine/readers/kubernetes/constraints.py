"""A reader of Kubernetes' node selectors, affinities and tolerations."""

from typing import Any

from kfp_placement_engine.contract.gates import PREFERRED, REQUIRED
from kfp_placement_engine.model.run_graph import (
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
    Toleration,
)
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
"""Operators of a requirement in a node selector term; tolerations have others."""


def read_tolerations(value: Any, place: Place) -> tuple[Toleration, ...]:
    """Read one toleration or a list of them.

    Raises:
        InputError: the value is malformed.
    """
    tolerations = []
    for fields in Fields.each_of([value] if isinstance(value, dict) else value, place):
        if not fields:
            continue
        operator = fields.text("operator") or "Equal"
        if operator not in ("Equal", "Exists", "Gt", "Lt"):
            raise fields.where("operator").error(f"{operator!r:.40}; write Equal or Exists")
        tolerations.append(
            Toleration(fields.text("key"), operator, fields.text("value"), fields.text("effect"))
        )
    return tuple(tolerations)


def read_node_affinity(fields: Fields) -> NodeAffinity:
    """Read a node affinity.

    Raises:
        InputError: the value is malformed.
    """
    terms = None
    if fields.get(REQUIRED) is not None:
        required = fields.fields(REQUIRED)
        terms = read_terms(required.get("nodeSelectorTerms"), required.where("nodeSelectorTerms"))
    preferred = []
    for item in fields.each(PREFERRED):
        weight = item.count("weight", maximum=100)
        preferred.append(PreferredTerm(weight, read_term(item.fields("preference"))))
    return NodeAffinity(terms, tuple(preferred))


def read_terms(value: Any, place: Place) -> tuple[NodeSelectorTerm, ...]:
    """Read a list of node selector terms.

    Raises:
        InputError: the value is malformed.
    """
    return tuple(read_term(term) for term in Fields.each_of(value, place))


def read_term(fields: Fields) -> NodeSelectorTerm:
    """Read one node selector term.

    Raises:
        InputError: the value is malformed.
    """
    requirements = [
        *_requirements(fields, "matchExpressions", on_field=False),
        *_requirements(fields, "matchFields", on_field=True),
    ]
    return NodeSelectorTerm(tuple(requirements))


def _requirements(term: Fields, kind: str, *, on_field: bool) -> list[Requirement]:
    requirements = []
    for fields in term.each(kind):
        operator = fields.text("operator")
        if operator not in OPERATORS:
            raise fields.where("operator").error(
                f"{operator!r:.40}; write one of {', '.join(OPERATORS)}"
            )
        key, values = fields.text("key"), fields.texts("values")
        requirements.append(Requirement(key, operator, values, on_field))
    return requirements


def merge_affinities(affinities: list[NodeAffinity]) -> NodeAffinity:
    """Merge affinities into one, as KFP's driver does: any required term may match."""
    required = [term for affinity in affinities for term in affinity.required or ()]
    preferred = tuple(term for affinity in affinities for term in affinity.preferred)
    if not any(affinity.required is not None for affinity in affinities):
        return NodeAffinity(None, preferred)
    return NodeAffinity(tuple(required), preferred)
