"""Anybody may have written a PipelinePlacement: whatever it holds, something harmless is shown."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement.live.documents import explanation_document, runs_document, serialized
from kfp_placement_engine.readers.argo.step_pods import pods_by_step
from kfp_placement_engine.render.text import TextStyle, document_text, table_lines
from kfp_placement_engine.views.explanation import explanation, progress, snapshot
from kfp_placement_engine.views.run_list import runs_table
from kfp_placement_engine.views.run_news import news
from kfp_placement_engine.views.run_texts import summary
from kfp_placement_engine.views.runs import run_view
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
STYLES = st.builds(TextStyle, columns=st.none() | st.integers(20, 200))


def shown(text):
    assert text.isascii() or all(line.isprintable() for line in text.splitlines()), repr(text)
    assert "\x1b" not in text


@given(FIELDS, FIELDS, VALUES, STYLES, st.booleans())
@example(spec={}, status={"phase": None}, metadata=None, style=TextStyle(), wide=False)
def test_any_fields(spec, status, metadata, style, wide):
    raw = placement(spec=spec, status=status)
    if isinstance(metadata, dict):
        raw["metadata"] |= {"labels": metadata, "annotations": metadata}
    look_at(raw, style, wide)


@given(st.dictionaries(TEXT, VALUES, max_size=3), STYLES, st.booleans())
def test_any_object(raw, style, wide):
    look_at(raw, style, wide)


def look_at(raw, style, wide):
    run = run_view(raw, NOW)
    for line in (
        *table_lines(runs_table([run], wide=wide, namespaces=True), style),
        *news(run_view(placement(), NOW), run),
        summary(run),
    ):
        shown(line)
    for view in (
        explanation(run, run.steps, in_full=wide),
        progress(run, 100),
        snapshot(run, [], 60),
    ):
        shown(document_text(view, style))
    for document in (runs_document([run]), explanation_document(run, run.steps)):
        shown(serialized(document, "yaml"))
        json.loads(serialized(document, "json"))


@given(st.lists(VALUES, max_size=3), st.dictionaries(TEXT, VALUES, max_size=3), VALUES)
def test_any_pods_and_events(gates, fields, status):
    pod = executor_pod("train")
    pod["spec"] |= {"schedulingGates": gates}
    pod["status"] = status
    events = [{"reason": "PlacedElsewhere", "involvedObject": fields, "message": status}, fields]
    step_pods = pods_by_step([pod, fields], events, "taxi-x7k2p", ["train"])
    look = run_view(placement(), NOW, step_pods)
    shown(document_text(explanation(look, look.steps, in_full=True)))
