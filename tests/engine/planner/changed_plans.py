"""What a change of the search did to the pinned plans: `python -m tests.engine.planner.changed_plans OLD`.

OLD is the file of hashes from before (`git show COMMIT:tests/engine/planner/golden/...`). Prints for
each case that changed the terms before and after, and the lower bound; worse ones come first.
"""

import re
import sys
from pathlib import Path

import yaml

from kfp_placement_engine.bounds.lower_bound import lower_bound
from kfp_placement_engine.search.fitness import better
from tests.engine.planner.test_same_plans import problem_of

NEW = Path(__file__).with_name("golden") / "test_same_plans.yaml"
_CASE = re.compile(r"test_what_is_computed_stays_the_same\[(.*)\]")
_TERMS = re.compile(r"^search: .* terms (.*)$", re.MULTILINE)


def terms_of(file: Path) -> dict[str, list[float]]:
    """The terms that a search has reached, by case."""
    found = {}
    for test, recorded in yaml.safe_load(file.read_text()).items():
        case, terms = _CASE.fullmatch(test), _TERMS.search(recorded["text"])
        if case and terms:
            found[case[1]] = [float(term) for term in terms[1].split(", ")]
    return found


def main() -> None:
    """Print the comparison."""
    before, after = terms_of(Path(sys.argv[1])), terms_of(NEW)
    rows = []
    for name, old in before.items():
        new = after[name]
        if old != new:
            word = "worse" if better(old, new) else "better" if better(new, old) else "equal"
            rows.append((word != "worse", word, name, old, new))
    for _, word, name, old, new in sorted(rows):
        bound = lower_bound(problem_of(name)).seconds
        print(f"{word}: {name}\n  {old}\n  {new}\n  no plan ends before {bound:.10g} s")
    print(f"{len(rows)} of {len(before)} have other terms")


if __name__ == "__main__":
    main()
