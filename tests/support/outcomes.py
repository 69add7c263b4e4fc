"""The outcomes of a run with conditions, as runs of their own.

It shares nothing with the product, which plans all outcomes together: what an outcome does not take
is left out, and what waited for it waits for what came before it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from random import Random

from kfp_placement_engine import RunGraph
from kfp_placement_engine.model.concurrency import Branch

Taken = Mapping[str, str]
"""Choice -> name of the branch that is taken; a choice that is missing takes none."""


def with_branches(run: RunGraph, random: Random, *, failures: bool = True) -> RunGraph:
    """Put some steps and groups of a run into branches, which may nest; some run after failures."""
    around: dict[str, tuple[Branch, ...]] = {"": ()}

    def inside(path: tuple[Branch, ...], place: str) -> tuple[Branch, ...]:
        for depth in range(random.choice([0, 0, 1, 1, 2])):
            where = "/".join([place, *(branch.name for branch in path)])
            path = (*path, Branch(f"{where}?{depth}", random.choice(["if", "else", "other"])))
        return path

    for group in run.groups:
        if group.name:
            around[group.name] = inside(around[group.parent], group.parent)
    steps = [
        replace(
            step,
            branches=inside(around[step.group], step.group),
            after_failure=failures and random.randrange(8) == 0,
        )
        for step in run.steps
    ]
    return replace(run, steps=tuple(steps))


def outcomes(run: RunGraph) -> Iterator[Taken]:
    """Yield all outcomes: of each choice any branch, or none."""
    names: dict[str, set[str]] = {}
    for step in run.steps:
        for choice, name in step.branches:
            names.setdefault(choice, set()).add(name)
    for taken in product(*([*sorted(each), ""] for each in names.values())):
        yield dict(zip(names, taken, strict=True))


def is_taken(path: tuple[Branch, ...], taken: Taken) -> bool:
    """Return whether all these branches are taken."""
    return all(taken[choice] == name for choice, name in path)


def outcome_of(run: RunGraph, taken: Taken) -> RunGraph:
    """The run as it goes well with these branches."""
    steps = {step.name: step for step in run.steps}
    runs = {
        name
        for name, step in steps.items()
        if is_taken(step.branches, taken) and not step.after_failure
    }

    def awaited(names: tuple[str, ...]) -> tuple[str, ...]:
        steps_before, ahead = set(), [*names]
        while ahead:
            name = ahead.pop()
            if name in runs:
                steps_before.add(name)
            else:
                ahead += steps[name].depends_on
        return tuple(sorted(steps_before))

    live = live_groups(run, runs)
    return replace(
        run,
        steps=tuple(
            replace(step, depends_on=awaited(step.depends_on), branches=())
            for step in run.steps
            if step.name in runs
        ),
        groups=tuple(
            replace(
                group,
                depends_on=awaited(group.depends_on),
                has_driver=group.has_driver and group.name in live,
            )
            for group in run.groups
        ),
    )


def live_groups(run: RunGraph, runs: set[str]) -> set[str]:
    """The groups whose drivers run: a driver runs if something runs in the group around its own."""
    parents = {group.name: group.parent for group in run.groups}
    begun = {""}
    for step in run.steps:
        name = step.group
        while step.name in runs and name:
            begun.add(name)
            name = parents[name]
    return {name for name, parent in parents.items() if parent in begun}
