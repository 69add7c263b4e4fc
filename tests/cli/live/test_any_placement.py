"""Anybody may have written a PipelinePlacement: whatever it holds, something harmless is shown."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement.live.changes import changes
from kfp_placement.live.documents import document_text, explanation_document, runs_document
from kfp_placement.live.explanation import active_lines, explanation
from kfp_placement.live.listing import runs_table
from kfp_placement.live.pods import pods_by_step
from kfp_placement.live.runs import run_view
from kfp_placement.report.table import TableStyle
from tests.cli.live.conftest import NOW, placement
from tests.support.fake_cluster import executor_pod

TEXT = st.text(st.characters(exclude_categories=()), max_size=8) | st.just("\x1b[2J\u202e")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)
ROWS = st.lists(st.lists(VALUES, max_size=6) | VALUES, max_size=4)
FIELDS = st.dictionaries(
    st.sampled_from(["steps", "nodes", "phase", "progress", "conditions", "revision", "makespan"]),
    VALUES | ROWS,
    max_size=3,
)
STYLES = st.builds(TableStyle, wide=st.booleans(), columns=st.none() | st.integers(20, 200))


def shown(text):
    assert text.isascii() or all(line.isprintable() for line in text.splitlines()), repr(text)
    assert "\x1b" not in text


@given(FIELDS, FIELDS, VALUES, STYLES)
@example(spec={}, status={"phase": None}, metadata=None, style=TableStyle())
def test_any_fields(spec, status, metadata, style):
    raw = placement(spec=spec, status=status)
    if isinstance(metadata, dict):
        raw["metadata"] |= {"labels": metadata, "annotations": metadata}
    look_at(raw, style)


@given(st.dictionaries(TEXT, VALUES, max_size=3), STYLES)
def test_any_object(raw, style):
    look_at(raw, style)


def look_at(raw, style):
    run = run_view(raw)
    shown(runs_table([run], NOW, style, namespaces=True))
    shown(explanation(run, run.steps, NOW, style, in_full=style.wide))
    for line in (*active_lines(run, NOW, style), *changes(run_view(placement()), run, NOW)):
        shown(line)
    for document in (runs_document([run], NOW), explanation_document(run, run.steps, NOW, ())):
        shown(document_text(document, "yaml"))
        json.loads(document_text(document, "json"))


@given(st.lists(VALUES, max_size=3), st.dictionaries(TEXT, VALUES, max_size=3), VALUES)
def test_any_pods_and_events(gates, fields, status):
    pod = executor_pod("train")
    pod["spec"] |= {"schedulingGates": gates}
    pod["status"] = status
    events = [{"reason": "PlacedElsewhere", "involvedObject": fields, "message": status}, fields]
    found = pods_by_step([pod, fields], events, "taxi-x7k2p", ["train"])
    look = run_view(placement(), found)
    shown(explanation(look, look.steps, NOW, TableStyle(), in_full=True))
