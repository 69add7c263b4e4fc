"""The page of threats names every attack that is tested, and no other."""

import ast
import re

from tests.support.checkout import ROOT

PAGE = (ROOT / "docs/design/security.md").read_text("utf-8")
ATTACKS = ROOT / "tests/hostile"


def attacks_made() -> set[str]:
    """Return the tests of `tests/hostile`, as `test_module.py::test_name`."""
    return {
        f"{path.name}::{node.name}"
        for path in ATTACKS.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def rows_of_tables_with_tests() -> list[str]:
    """Return the rows of all tables that have a column for tests."""
    tables = re.findall(r"(?m)^\|.*\| test \|.*\n\|[-|]+\n((?:\|.*\n)+)", f"{PAGE}\n")
    return [row for table in tables for row in table.splitlines()]


def test_every_row_names_a_test():
    rows = rows_of_tables_with_tests()
    assert len(rows) >= 40
    assert [row for row in rows if not re.search(r"\| `test_\w+\.py::test_\w+` \|", row)] == []


def test_every_attack_has_its_row():
    named = set(re.findall(r"`(test_\w+\.py::test_\w+)`", PAGE))
    assert named == attacks_made()
