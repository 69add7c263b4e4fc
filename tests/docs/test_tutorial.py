"""The tutorial runs as printed, and its notebook is made from its page."""

import pytest

from tests.support.checkout import ROOT
from tests.support.golden import recording
from tests.support.pages import NEEDS_A_CLUSTER, as_run, blocks, notebook

pytestmark = pytest.mark.golden

PAGE = ROOT / "docs/tutorial.md"
NOTEBOOK = ROOT / "samples/notebooks/tutorial.ipynb"
LINKS = "../../docs/"


def test_every_block_runs_and_prints_what_is_shown(tmp_path):
    page = PAGE.read_text("utf-8")
    run = as_run(page, tmp_path)
    if recording():
        PAGE.write_text(run, "utf-8")
    else:
        assert run == page, "`make regenerate` writes what the tutorial's blocks print"


def test_the_notebook_is_made_from_the_page():
    made = notebook(PAGE.read_text("utf-8"), LINKS)
    if recording():
        NOTEBOOK.write_text(made, "utf-8")
    assert NOTEBOOK.read_text("utf-8") == made, "`make regenerate` writes the notebook"


def test_links_of_the_notebook_lead_somewhere():
    text = NOTEBOOK.read_text("utf-8")
    links = [part.split(")")[0].split("#")[0] for part in text.split("](")[1:]]
    relative = [link for link in links if link and "://" not in link]
    assert relative
    assert [link for link in relative if not (NOTEBOOK.parent / link).exists()] == []


def test_only_marked_blocks_need_a_cluster():
    page = PAGE.read_text("utf-8")
    assert page.count(NEEDS_A_CLUSTER) == sum(block.needs_cluster for block in blocks(page))
