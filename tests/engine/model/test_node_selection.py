"""Node selector and node affinity (component-helpers nodeaffinity, apimachinery labels)."""

import pytest

from kfp_placement_engine.model.node_rules.constraints import (
    matches_affinity,
    matches_any_term,
    matches_node_selector,
    matches_term,
    preferred_weight,
)
from kfp_placement_engine.model.pod_constraints import (
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
)
from tests.support.kubernetes import a_node, why_not


def term(*requirements: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(requirements)


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("disk", "In", ("ssd", "hdd"), True),
        ("disk", "In", ("hdd",), False),
        ("disk", "In", (), False),
        ("missing", "In", ("",), False),
        ("disk", "NotIn", ("hdd",), True),
        ("disk", "NotIn", ("ssd",), False),
        ("missing", "NotIn", ("ssd",), True),
        ("missing", "NotIn", (), False),
        ("disk", "Exists", (), True),
        ("missing", "Exists", (), False),
        ("disk", "Exists", ("ssd",), False),
        ("missing", "DoesNotExist", (), True),
        ("disk", "DoesNotExist", (), False),
        ("cores", "Gt", ("15",), True),
        ("cores", "Gt", ("16",), False),
        ("cores", "Lt", ("17",), True),
        ("cores", "Lt", ("16",), False),
        ("missing", "Gt", ("0",), False),
        ("missing", "Lt", ("9",), False),
        ("disk", "Gt", ("0",), False),
        ("cores", "Gt", ("many",), False),
        ("cores", "Gt", ("1", "2"), False),
        ("cores", "Gt", (), False),
        ("signed", "Lt", ("1",), True),
        ("signed", "Gt", ("-8",), False),
        ("disk", "NotIn", ("no label value",), False),
        ("disk", "In", ("ssd", "x" * 64), False),
        ("plus", "Lt", ("4",), True),
        ("underscored", "Gt", ("0",), False),
        ("spaced", "Gt", ("0",), False),
        ("huge", "Gt", ("0",), False),
        ("arabic", "Gt", ("0",), False),
        ("disk", "Like", ("ssd",), False),
        ("disk", "in", ("ssd",), False),
    ],
)
def test_operators(key, operator, values, holds):
    """Values must be label values (`-8` is none); Gt and Lt need one int64 on both sides."""
    node = a_node(
        labels={
            "disk": "ssd",
            "cores": "16",
            "signed": "-7",
            "plus": "+3",
            "underscored": "1_0",
            "spaced": " 5",
            "huge": "9223372036854775808",
            "arabic": "\u0665",
        }
    )
    assert matches_term(term(Requirement(key, operator, values)), node) is holds


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("metadata.name", "In", ("n1",), True),
        ("metadata.name", "In", ("n2",), False),
        ("metadata.name", "In", ("n1", "n2"), False),
        ("metadata.name", "NotIn", ("n2",), True),
        ("metadata.name", "NotIn", ("n1",), False),
        ("metadata.name", "Exists", (), False),
        ("metadata.namespace", "In", ("n1",), False),
    ],
)
def test_fields(key, operator, values, holds):
    """matchFields takes one value, In or NotIn, of the node's name."""
    requirement = Requirement(key, operator, values, is_field=True)
    assert matches_term(term(requirement), a_node("n1")) is holds


def test_an_empty_term_matches_nothing():
    """Neither a term without requirements nor an empty list of terms matches."""
    assert not matches_term(term(), a_node())
    assert not matches_any_term([], a_node())
    assert not matches_affinity(NodeAffinity(required=()), a_node())
    assert matches_affinity(NodeAffinity(required=None), a_node())


def test_requirements_are_anded_terms_are_ored():
    """All requirements of one term must hold, of several terms any."""
    node = a_node("n1", labels={"disk": "ssd", "zone": "a"})
    ssd, other = Requirement("disk", "In", ("ssd",)), Requirement("zone", "In", ("b",))
    by_name = Requirement("metadata.name", "In", ("n1",), is_field=True)
    assert not matches_term(term(ssd, other), node)
    assert matches_term(term(ssd, by_name), node)
    assert matches_any_term([term(other), term(ssd)], node)
    assert matches_any_term([term(), term(Requirement("disk", "Bad", ())), term(ssd)], node)


def test_node_selector_and_affinity_must_both_match():
    """The reason is kube-scheduler's, whichever of the two fails."""
    node = a_node(labels={"disk": "ssd"})
    required = NodeAffinity(required=(term(Requirement("disk", "In", ("hdd",))),))
    reason = "node(s) didn't match node affinity/selector"
    assert matches_node_selector({"disk": "ssd"}, node)
    assert why_not({"disk": "ssd"}, required, [], node) == reason
    assert why_not({"disk": "hdd"}, NodeAffinity(), [], node) == reason
    assert why_not({"zone": ""}, NodeAffinity(), [], node) == reason
    assert why_not({"disk": "ssd"}, NodeAffinity(), [], node) is None


def test_preferred_weights_add_up():
    """All matching preferred terms count; empty and unparsable ones do not."""
    node = a_node(labels={"disk": "ssd"})
    ssd, hdd = Requirement("disk", "In", ("ssd",)), Requirement("disk", "In", ("hdd",))
    affinity = NodeAffinity(
        preferred=(
            PreferredTerm(10, term(ssd)),
            PreferredTerm(5, term(Requirement("disk", "Exists", ()))),
            PreferredTerm(50, term(hdd)),
            PreferredTerm(100, term()),
        )
    )
    assert preferred_weight(affinity, node) == 15
