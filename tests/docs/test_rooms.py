"""Rules that keep the rooms of the product small, and what a newcomer reads first in each."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache

import pytest

from tests.support.checkout import ROOT
from tests.support.docstrings import findings
from tests.support.rooms import DISTRIBUTIONS, Module, cycles, imported, product, token_count

PAGE = (ROOT / "docs/design/architecture.md").read_text("utf-8")
BUDGETS = {
    room: round(float(thousands) * 1000)
    for room, thousands in re.findall(r"^\| `([\w.]+)` \| ([\d.]+) \|$", PAGE, re.MULTILINE)
}

MODULES = product()
IMPORTS = {name: imported(module, MODULES) for name, module in MODULES.items()}

MOST_MODULES = 18
MOST_TOKENS = 443_500
MOST_TEST_TOKENS = 748_500
SHORT_LINES = 60
ALONE = "A module of its own "
"""Beginning of the sentence in a docstring that says why a short module stays alone."""

CATCH_ALL = {
    # Outermost loop of a process or of one of its threads.
    "kfp_placement_controller.actuators.worker": 1,
    "kfp_placement_controller.loops.guard_loop": 1,
    "kfp_placement.cli.group": 1,
    "kfp_placement.live.watching": 1,
    # Work on one object or one part within such a loop: its defect holds up no other.
    "kfp_placement_controller.warning_log": 1,
    "kfp_placement_kube.watch": 1,
    # An author's code, which is imported and compiled.
    "kfp_placement.cli.pipeline_module": 2,
    # HTTP handler: kube-scheduler and the API server get an answer in any case.
    "kfp_placement_controller.extender.app": 1,
}
"""Handlers of every `Exception`, by module: how many, below the kind of place."""


def modules_of_rooms():
    """The modules of each room but its `__init__`."""
    rooms: dict[str, list[Module]] = defaultdict(list)
    for module in MODULES.values():
        rooms[module.room] += [] if module.is_package else [module]
    return {room: modules for room, modules in rooms.items() if modules or room in BUDGETS}


@cache
def tokens_of_rooms():
    counts: Counter[str] = Counter()
    for module in MODULES.values():
        counts[module.room] += token_count(module.path.read_text("utf-8"))
    return counts


def test_no_modules_import_each_other_in_a_circle():
    """Counted are imports for types, and those inside functions, too."""
    assert cycles(IMPORTS) == []


@pytest.mark.parametrize(("room", "modules"), sorted(modules_of_rooms().items()))
def test_a_room_has_few_modules(room, modules):
    assert len(modules) <= MOST_MODULES


def test_every_room_has_its_budget():
    assert sorted(BUDGETS) == sorted(room for room, tokens in tokens_of_rooms().items() if tokens)


def test_the_map_of_the_repository_names_every_room():
    plan = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Repository map")[2]
    at_depth = {-2: ["."]}
    rooms = ""
    for line in plan.split("```")[1].splitlines():
        depth = len(line) - len(line.lstrip())
        names = re.findall(r"([\w/]+)/ ", line)
        at_depth[depth] = [f"{at_depth[depth - 2][0]}{name.replace('/', '.')}." for name in names]
        rooms += " ".join([*at_depth[depth], ""])
    assert [room for room in BUDGETS if f".{room}. " not in rooms] == []


def test_no_room_exceeds_its_budget():
    """A feature that needs more says so in the table, where everybody sees it."""
    above = {
        room: tokens
        for room, tokens in tokens_of_rooms().items()
        if tokens > BUDGETS.get(room, MOST_TOKENS)
    }
    assert above == {}


def test_the_product_as_a_whole_has_a_budget():
    assert sum(tokens_of_rooms().values()) <= MOST_TOKENS


def test_the_tests_as_a_whole_have_a_budget():
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert sum(map(token_count, texts)) <= MOST_TEST_TOKENS


def test_a_short_module_that_one_other_imports_says_why_it_is_alone():
    importers = Counter(name for names in IMPORTS.values() for name in names)
    alone = {
        name
        for name, module in MODULES.items()
        if importers[name] == 1
        and not module.is_package
        and module.lines < SHORT_LINES
        and ALONE not in module.docstring
    }
    assert alone == set()


def test_everything_is_caught_in_a_few_places_only():
    caught = Counter(
        name
        for name, module in MODULES.items()
        for node in ast.walk(ast.parse(module.path.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler) and _catches_all(node)
    )
    assert caught == CATCH_ALL


def _catches_all(handler):
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        caught is None
        or (isinstance(caught, ast.Name) and caught.id in {"Exception", "BaseException"})
        for caught in types
    )


@pytest.mark.parametrize("room", sorted({*modules_of_rooms(), "benchmarks"}))
def test_docstrings_stand_alone(room):
    """A reader sees one in a list, or above the code: without the name and the lines around it."""
    paths = (
        (ROOT / "benchmarks").rglob("*.py")
        if room == "benchmarks"
        else [module.path for module in MODULES.values() if module.room == room]
    )
    assert [str(each) for path in sorted(paths) for each in findings(path)] == []


@pytest.mark.parametrize(
    ("entry", "is_found"),
    [
        ("told how far the search is.", True),
        ("the same for memory.", True),
        ("callback for the progress of the search.", False),
        ("returns the time.", True),
        ("function that returns the time.", False),
        ("see `WaitingRun`.", True),
        ("draws the series.", True),
        ("draws of each mix.", False),
        ("[A] of the activities.", True),
        ("[A, R] least time of the activities.", False),
    ],
)
def test_an_entry_is_a_noun_phrase(entry, is_found, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(f'"""A module.\n\nArgs:\n    name: {entry}\n"""\n')
    assert len(list(findings(path))) == is_found


def test_the_rules_see_all_four_distributions():
    assert {name.partition(".")[0] for name in MODULES} == set(DISTRIBUTIONS)


def test_a_circle_is_found():
    assert cycles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == [{"b", "c"}]


def test_only_code_is_counted():
    source = (
        '"""Text."""\n# why\nx = 1\n"""More of x."""\n\n\ndef f():\n    """Do."""\n    return x\n'
    )
    assert token_count(source) == len(["x", "=", "1", "def", "f", "(", ")", ":", "return", "x"])
