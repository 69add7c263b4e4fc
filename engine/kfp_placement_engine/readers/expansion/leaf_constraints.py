"""A reader of where the pod of a leaf may go: selectors, affinity, anti-affinity, tolerations."""

from collections.abc import Iterable, Iterator
from typing import Any

from kfp_placement_engine.readers.kubernetes.constraints import (
    merge_affinities,
    read_anti_affinity,
    read_node_affinity,
    read_tolerations,
)
from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import Expression, Scope
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.values import GAP, KnownValue, has_unknown


def read_constraints(leaf: Leaf, scope: Scope) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the fields of a step that say it, by name, and codes and messages of warnings.

    Args:
        leaf: leaf of the step.
        scope: values of the step's inputs.

    Raises:
        InputError: a selector, toleration or affinity is malformed.
    """
    place, warnings = leaf.place, list[tuple[str, str]]()
    if not (leaf.node_selectors or leaf.affinities or leaf.anti_affinities or leaf.tolerations):
        return {}, warnings

    def given(expressions: Iterable[Expression], setting: str) -> Iterator[Any]:
        """Yield the values known before the run; a null optional parameter counts as not given."""
        for expression in expressions:
            value = expression.evaluate(scope)
            if isinstance(value, KnownValue) and not has_unknown(value.value, GAP):
                plain = value.value
                if isinstance(plain, str) and plain:
                    plain = parse_json(plain, place=place.field(setting))
                if plain is not None:
                    yield plain
            else:
                message = f"its {setting} is known only at run time and is not used"
                warnings.append(("unknown-constraint", message))

    selector: dict[str, str] = {}
    for value in given(leaf.node_selectors, "node selector"):
        selector |= place.field("node selector").text_mapping(value)
    of_nodes, of_pods = place.field("node affinity"), place.field("podAntiAffinity")
    affinities = [
        read_node_affinity(Fields.of(each, of_nodes))
        for each in given(leaf.affinities, "node affinity")
    ]
    apart_from = [
        other
        for each in given(leaf.anti_affinities, "anti-affinity")
        for other in read_anti_affinity(Fields.of(each, of_pods), leaf.of_run)
    ]
    tolerations = [
        toleration
        for each in given(leaf.tolerations, "toleration")
        for toleration in read_tolerations(each, place.field("tolerations"))
    ]
    fields = {
        "node_selector": selector,
        "affinity": merge_affinities(affinities),
        "apart_from": tuple(apart_from),
        "tolerations": tuple(tolerations),
    }
    return fields, warnings
