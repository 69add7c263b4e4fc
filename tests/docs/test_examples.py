"""What tests work with is shown to readers as it stands; nothing is read out of a document."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOWN = [
    ("tests/deploy/data/overlay-for-extender.yaml", "deploy/README.md", "yaml"),
    ("tests/deploy/data/overlay-for-registry.yaml", "deploy/README.md", "yaml"),
    ("tests/deploy/data/uninstall.sh", "deploy/README.md", ""),
    ("tests/deploy/data/without-gates.sh", "deploy/README.md", ""),
    ("tests/deploy/data/without-prometheus.sh", "deploy/README.md", ""),
    ("tests/deploy/data/without-webhook.sh", "deploy/README.md", ""),
    ("tests/docs/data/cluster.yaml", "docs/reference/cluster-file.md", "yaml"),
]


@pytest.mark.parametrize(("example", "document", "language"), SHOWN)
def test_the_document_shows_the_example(example, document, language):
    block = f"```{language}\n{(ROOT / example).read_text('utf-8')}```\n"
    assert block in (ROOT / document).read_text("utf-8"), f"{document} must show {example}"


def test_every_example_is_shown():
    folders = ("tests/deploy/data", "tests/docs/data")
    files = [path for folder in folders for path in (ROOT / folder).iterdir()]
    assert sorted(str(path.relative_to(ROOT)) for path in files) == [each for each, *_ in SHOWN]
