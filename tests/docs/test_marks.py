"""The reference of marks names every key and every limit of the contract."""

from pathlib import Path

from kfp_placement_engine.contract import keys
from kfp_placement_engine.contract.hints import HINT_KEYS, MAX_ANNOTATION_CHARACTERS
from kfp_placement_engine.model.node_rules.constraints import MAX_LABEL_VALUE_LENGTH
from kfp_placement_engine.model.node_rules.images import UNKNOWN_IMAGE_BYTES
from kfp_placement_engine.model.node_rules.round_trips import NOT_A_LOCATION
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.readers import read_cluster
from kfp_placement_engine.readers.cluster_form import ASSUMPTION_FIELDS
from kfp_placement_engine.readers.kubernetes.nodes import MAX_SPEED
from tests.support.checkout import ROOT

DOCS = ROOT / "docs"
MARKS = (DOCS / "reference/marks.md").read_text("utf-8")


def test_every_key_is_described():
    names = [value for name, value in vars(keys).items() if name.endswith(("_LABEL", "_GATE"))]
    assert len(names) >= 8
    for name in (*names, keys.HINTS_ANNOTATION, keys.API_GROUP):
        assert f"`{name}`" in MARKS
    for word in (*keys.LATENCY_RULED_TYPES, keys.DEFAULT_SCHEDULER):
        assert f"`{word}`" in MARKS


def test_every_hint_is_described_and_no_other():
    rows = [MARKS.index(f"\n| `{name}` | ") for name in HINT_KEYS]
    assert rows == sorted(rows)
    assert MARKS.count("\n", rows[0], rows[-1]) == len(HINT_KEYS) - 1


def test_limits_are_those_of_the_code():
    assert f"at most {MAX_LABEL_VALUE_LENGTH} letters" in MARKS
    assert f"At most {MAX_ANNOTATION_CHARACTERS:,} characters" in MARKS
    assert f"at most {MAX_SPEED:,.0f} |" in MARKS


def test_words_that_are_no_locations_are_those_of_the_code():
    words = ", ".join(f"`{word}`" for word in sorted(NOT_A_LOCATION))
    assert f"These keys are not locations, whatever their value: {words}. Keys" in " ".join(
        MARKS.split()
    )


def test_the_example_of_a_cluster_file_shows_the_real_defaults():
    example = (Path(__file__).parent / "data/cluster.yaml").read_bytes()
    cluster = read_cluster(example, name="example")
    assert {**cluster.defaults} == {
        **{field: getattr(Assumptions(), field) for field in ASSUMPTION_FIELDS.values()},
        "image_bytes": UNKNOWN_IMAGE_BYTES,
    }
