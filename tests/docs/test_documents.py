"""Documents hold what they promise: links lead somewhere, installations are whole."""

import re
from pathlib import Path

import pytest

from tests.support.checkout import ROOT, named

FOLDERS = (
    "benchmarks",
    "controller",
    "deploy",
    "docs",
    "engine",
    "kfp_placement",
    "kube",
    "samples",
    "tests",
)
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(path for each in FOLDERS for path in (ROOT / each).rglob("*.md"))]
)
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    """The headings of a Markdown file, as links name them."""
    text = _FENCE.sub("", path.read_text("utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_an_installation_from_a_checkout_names_every_part_that_it_needs():
    """pip looks for a part that is not named in the package index, where it is not."""
    lines = [
        line
        for document in DOCUMENTS
        for line in re.findall(r"pip install [^`\n]*\./[^`\n]*", document.read_text("utf-8"))
    ]
    assert len(lines) >= 3
    assert [line for line in lines if not line.endswith(" ./engine ./kube .")] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_relative_links_lead_somewhere(document):
    text = _FENCE.sub("", document.read_text("utf-8"))
    links = [link for link in _LINK.findall(text) if not re.match(r"[a-z]+:", link)]
    dead = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        inside = target.is_relative_to(ROOT) and target.exists()
        if not inside or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead
