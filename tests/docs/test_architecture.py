"""The page on the architecture and import-linter's rules say the same."""

import re
import tomllib

import pytest

from tests.support.checkout import ROOT

PAGE = (ROOT / "docs/design/architecture.md").read_text("utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
    "contracts"
]
LAYERED = {
    each["containers"][0]: each
    for each in CONTRACTS
    if "containers" in each and "." not in each["containers"][0]
}
"""The rules of the distributions; some rooms have their own below them."""


def floors_of_the_rules(distribution):
    """From top to bottom, the rooms of each floor."""
    return [
        {room.strip() for room in layer.split("|")} for layer in LAYERED[distribution]["layers"]
    ]


def floors_of_the_page(distribution):
    """The same, as the table under the distribution's heading has it."""
    _, _, rest = PAGE.partition(f"### `{distribution}`\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, flags=re.MULTILINE)
    return [set(re.findall(r"`(\w+)`", cell)) for cell in cells]


@pytest.mark.parametrize("distribution", sorted(LAYERED))
def test_the_page_has_the_floors_of_the_rules(distribution):
    assert floors_of_the_page(distribution) == floors_of_the_rules(distribution)


def test_every_distribution_is_layered_and_drawn():
    """All four, and each in the picture."""
    projects = [ROOT, *(path.parent for path in ROOT.glob("*/pyproject.toml"))]
    names = {
        tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]["name"]
        for project in projects
    }
    assert {name.replace("-", "_") for name in names} == set(LAYERED)
    picture = PAGE.split("```")[1]
    assert [name for name in sorted(LAYERED) if name not in picture] == []


def test_no_break_of_a_layer_is_excused():
    """A layer that some imports may pass by is none."""
    excused = [each["name"] for each in CONTRACTS if "layers" in each and "ignore_imports" in each]
    assert excused == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/README.md"])
def test_the_page_is_found(document):
    assert "design/architecture.md" in (ROOT / document).read_text("utf-8")
