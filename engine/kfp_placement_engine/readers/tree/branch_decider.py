"""Branches of the DAGs of a run, also by the choices of a user."""

from collections.abc import Mapping, Sequence

from kfp_placement_engine.exceptions import UnknownBranchError
from kfp_placement_engine.model.step_names import listed, task_of
from kfp_placement_engine.readers.tree.choices import (
    NOTHING,
    Needs,
    all_of,
    branches_by_needs,
)
from kfp_placement_engine.readers.tree.decisions import Decisions, JudgedDag
from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.given_names import GivenNames
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import Condition, Task

_SHOWN = 5

MOST_CHARACTERS = 500_000
"""Length of all conditions of a run that are read; what the next ones need is not known."""


class BranchDecider:
    """Decides about the tasks of one run's DAGs, also by the branches that a user has chosen."""

    def __init__(
        self, options: ReadOptions, notices: NoticeCollector, usual_ends: frozenset[str]
    ) -> None:
        """Prepare for a run.

        Args:
            options: settings of the user.
            notices: collector of notices.
            usual_ends: phases of a task after which those that wait for it run by default.
        """
        self._chosen = GivenNames(options.branches, "branch", UnknownBranchError)
        self._any_chosen = bool(options.branches)
        self._notices = notices
        self._usual_ends = usual_ends
        self._characters = 0

    def decide(self, tasks: Sequence[Task], scope: Scope, prefix: str) -> Decisions:
        """Return the decisions about the tasks of a DAG; empty if no condition is known.

        Args:
            tasks: tasks, each after those that it waits for.
            scope: values in the DAG.
            prefix: beginning of the names of its steps.

        Raises:
            UnknownBranchError: the user has chosen branches that exclude each other.
        """
        conditions = [each for task in tasks for each in (task.condition, task.trigger) if each]
        self._characters += sum(len(each.text) for each in conditions)
        if not conditions or self._characters > MOST_CHARACTERS:
            return {}
        judged = JudgedDag(tasks, scope, self._usual_ends, {}, {})
        for task in tasks:
            if task.condition and judged.decisions[task.name].conditions:
                self._name_problem(prefix + task.name, task.condition, scope)
        needs = judged.needs()
        given = {name: False for name, each in needs.items() if each is NOTHING}
        chosen: Needs = {}
        if self._any_chosen:
            taken = self._given(tasks, judged.decisions, prefix)
            chosen = self._chosen_values(taken, judged, needs, prefix)
            given |= taken
        if given:
            judged = JudgedDag(tasks, scope, self._usual_ends, given, chosen)
            needs = judged.needs()
        branches = branches_by_needs(needs, prefix)
        return {
            name: each._replace(branches=branches[name]) if name in branches else each
            for name, each in judged.decisions.items()
        }

    def check_used(self) -> None:
        """Refuse choices of branches that the run does not have.

        Raises:
            UnknownBranchError: a name is that of no branch of the run, or of several.
        """
        self._chosen.check_used()

    def _name_problem(self, name: str, condition: Condition, scope: Scope) -> None:
        if problem := condition.problem(scope):
            code, end = "unread-condition", "it is planned as if it ran"
            if condition.is_refused:
                code, end = "refused-condition", "the run fails there"
            message = f"its condition {condition.text!r:.80} {problem}; {end}"
            self._notices.add(code, message, task_of(name))

    def _given(
        self,
        tasks: Sequence[Task],
        decisions: Decisions,
        prefix: str,
    ) -> dict[str, bool]:
        """Return whether tasks are taken, as the user says."""
        given: dict[str, bool] = {}
        for task in tasks:
            decision = decisions[task.name]
            if not (task.condition or decision.conditions or decision.after_failure):
                continue
            name = prefix + task.name
            taken = self._chosen.value(name, task_of(name), task.display_name)
            if taken is None:
                continue
            if decision.conditions or decision.after_failure:
                given[task.name] = taken
            elif taken is not decision.runs:
                message = (
                    f"its conditions are known to {'hold' if decision.runs else 'be false'}, so the"
                    " choice of this branch is not used; if a parameter decides, give the parameter"
                    " another value"
                )
                self._notices.add("branch-known", message, task_of(name))
        return given

    def _chosen_values(
        self,
        given: Mapping[str, bool],
        judged: JudgedDag,
        needs: Mapping[str, Needs],
        prefix: str,
    ) -> Needs:
        """Return what the choices of branches say of the values that the run makes."""
        chosen: Needs = {}
        for name, taken in given.items():
            more = needs.get(name, {})
            if not taken:
                may_be_omitted = "Omitted" in judged.decisions[name].usual
                more = {} if may_be_omitted else judged.needs_if_skipped(name, chosen)
            joined = all_of((chosen, more))
            if joined is NOTHING:
                raise UnknownBranchError(_contradiction(name, given, needs, prefix))
            chosen = joined
        return chosen


def _contradiction(
    name: str, given: Mapping[str, bool], needs: Mapping[str, Needs], prefix: str
) -> str:
    """Return why no run can follow the choices of branches, of which this is the first too many."""
    for other, taken in given.items():
        if taken and given[name] and all_of((needs[other], needs[name])) is NOTHING:
            return (
                f"branches {prefix + other:.120} and {prefix + name:.120} exclude each other, so"
                " that a run takes one of them at most; choose one"
            )
    about = needs.get(name, {}).keys()
    others = [other for other in given if about & needs.get(other, {}).keys()]
    named = listed([prefix + other for other in others], _SHOWN)
    if any(given[other] for other in others):
        return f"the choices of branches {named} contradict each other; change one"
    return f"a run takes one of branches {named}, so that not all are left out; take one"
