"""A reader of Kubernetes' node selectors, affinities and tolerations."""

from typing import Any

from kfp_placement_engine.contract.gates import PREFERRED, REQUIRED
from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.model.pod_constraints import (
    NodeAffinity,
    NodeSelectorTerm,
    PodSelector,
    PreferredTerm,
    Requirement,
    Toleration,
)
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

_OTHER_PODS = ("namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys")
"""Settings by which a term is not only about the pods of its selector in the own namespace."""

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


def read_anti_affinity(fields: Fields, of_run: Requirement | None) -> tuple[PodSelector, ...]:
    """Read beside which pods of its namespace a pod may not be on a node.

    Args:
        fields: the pod's `podAntiAffinity`.
        of_run: requirement that all pods of the same run fulfil, and no others.

    Raises:
        InputError: a value is malformed.
    """
    selectors = [
        _pod_selector(term.fields("labelSelector"), of_run)
        for term in fields.each(REQUIRED)
        # A selector that is not there matches no pod.
        if term.get("labelSelector") is not None
        if term.get("topologyKey") == HOST_LABEL
        if not any(term.get(each) is not None for each in _OTHER_PODS)
    ]
    return tuple(dict.fromkeys(selectors))


def _pod_selector(fields: Fields, of_run: Requirement | None) -> PodSelector:
    labels = fields.text_mapping("matchLabels").items()
    stated = [
        *(Requirement(key, "In", (value,)) for key, value in labels),
        *_requirements(fields, "matchExpressions", on_field=False),
    ]
    return PodSelector(tuple(each for each in stated if each != of_run), of_run in stated)


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
