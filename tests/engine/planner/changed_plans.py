"""What a change of the search did to the pinned plans.

`python -m tests.engine.planner.changed_plans OLD`, where OLD is the file of hashes from before, as
`git show` has it. For each case that changed it prints the terms before and after, and the lower
bound; worse ones come first.
"""

import re
import sys
from pathlib import Path

import numpy as np
import yaml

from kfp_placement_engine.bounds.lower_bound import lower_bound
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.search.fitness import better
from tests.engine.planner.test_same_plans import problem_of

NEW = Path(__file__).with_name("golden") / "test_same_plans.yaml"
_CASE = re.compile(r"test_what_is_computed_stays_the_same\[(.*)\]")
_TERMS = re.compile(r"^search: .* terms (.*)$", re.MULTILINE)


def terms_of(file: Path) -> dict[str, Floats]:
    """The terms that a search has reached, by case."""
    found = {}
    for test, recorded in yaml.safe_load(file.read_text()).items():
        case, terms = _CASE.fullmatch(test), _TERMS.search(recorded["text"])
        if case and terms:
            found[case[1]] = np.array([float(term) for term in terms[1].split(", ")])
    return found


def main() -> None:
    """Print the comparison."""
    before, after = terms_of(Path(sys.argv[1])), terms_of(NEW)
    rows = []
    for name, old in before.items():
        new = after[name]
        if (old != new).any():
            word = "worse" if better(old, new) else "better" if better(new, old) else "equal"
            rows.append((word != "worse", word, name, old, new))
    for _, word, name, old, new in sorted(rows, key=lambda row: row[:3]):
        bound = lower_bound(problem_of(name)).seconds
        print(f"{word}: {name}", old.tolist(), new.tolist(), sep="\n  ")
        print(f"  no plan ends before {bound:.10g} s")
    print(f"{len(rows)} of {len(before)} have other terms")


if __name__ == "__main__":
    main()
