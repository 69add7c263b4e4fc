"""Names by which people may call the steps of a run, and messages about other names."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from kfp_placement_engine.exceptions import EngineError

CONTROL_FLOW = re.compile(
    r"(?:condition|condition-branches|exit-handler|for-loop)-\d+(?:\[(?:\d+|\*)\])?"
)
"""Name that KFP gives to a group of its control flow; its author wrote no pipeline for it."""

_INDEX = re.compile(r"\[(?:[0-9]+|\*)\]")
_NUMBER = re.compile(r"\[[0-9]+\]")
_SHOWN = 10
_LONGEST = 120
_COMPARED = 2000
"""Tasks among which a close name is looked for."""


def task_of(name: str) -> str:
    """Return the task of a step's name, which all iterations share: `for-loop-1[*].work`."""
    return _NUMBER.sub("[*]", name)


def enclosing(name: str) -> list[str]:
    """Return all groups around a step, outermost first: `a`, `a[0]`, `a[0].b` of `a[0].b.c`."""
    return [name[:place] for place, letter in enumerate(name) if letter in ".[" and place]


_Tasks = dict[str, dict[str, None]]
"""Name -> tasks that it may mean, in order."""


def plural(noun: str) -> str:
    """Return the plural of a noun, or of two with "or" between them."""
    return " or ".join(
        f"{each}{'es' if each.endswith('ch') else 's'}" for each in noun.split(" or ")
    )


class StepNames:
    """The names of a run's steps.

    A step is called by its name (`for-loop-1[0].work`); all iterations together by their task's
    (`for-loop-1[*].work`), that without indexes (`for-loop-1.work`), or the author's own (`work`)
    or its display name (`Work hard`) where no other task has it. Where a name could mean several of
    these, the first in this order counts.
    """

    def __init__(
        self,
        steps: Iterable[tuple[str, str, str]],
        noun: str = "step",
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        """Index the names of the steps.

        Args:
            steps: name, task and display name ("" = none) of each step, in the order in which they
                are shown.
            noun: word for the steps in messages.
            left_out: branch of each task that the run leaves out, as in `RunGraph`.
        """
        self._noun = noun
        self._left_out = left_out or {}
        self._nouns = plural(noun)
        self._names: set[str] = set()
        self._of_task: dict[str, list[str]] = {}
        self._display: dict[str, str] = {}
        for name, task, display_name in steps:
            self._names.add(name)
            self._of_task.setdefault(task, []).append(name)
            self._display[task] = display_name
        self._tasks: _Tasks = {}
        self._own: _Tasks = {}
        self._displayed: _Tasks = {}
        for task, display_name in self._display.items():
            for called in (task, _INDEX.sub("", task)):
                self._tasks.setdefault(called, {})[task] = None
            self._own.setdefault(_own_name(task), {})[task] = None
            if display_name:
                self._displayed.setdefault(display_name, {})[task] = None

    def all_names(self, name: str, task: str) -> tuple[str, ...]:
        """Return all names of a step, the most precise first."""
        short = dict.fromkeys((_own_name(task), self._display[task]))
        clear = [each for each in short if self._is_clear(each) and task in self._short(each)]
        return (name, task, _INDEX.sub("", task), *clear)

    def resolve(self, wanted: str) -> tuple[str, ...]:
        """Return the names of the steps that are meant; none if there is none, or it is unclear."""
        if wanted in self._names:
            return (wanted,)
        tasks = self._tasks.get(wanted)
        if tasks is None:
            tasks = self._short(wanted)
            if len(tasks) > 1:
                return ()
        return tuple(name for task in tasks for name in self._of_task[task])

    def check(self, wanted: str, error: type[EngineError], where: str = "") -> tuple[str, ...]:
        """Return the names of the steps that are meant.

        Args:
            wanted: name that somebody uses.
            error: class of the error if there are none; the message names those that come close.
            where: beginning of the message.
        """
        meant = self.resolve(wanted)
        if not meant:
            raise error(where + self.why_unresolved(wanted))
        return meant

    def why_unresolved(self, wanted: object) -> str:
        """Return why a name means no step, and which ones may be meant, steps as a whole first."""
        text = wanted if isinstance(wanted, str) else repr(wanted)
        several = list(self._short(text))
        if len(several) > 1:
            count = f"{len(several)} {self._nouns} are"
            return f"{count} called {text!r:.120}; name one of {listed(several)}"
        if left_out := self.why_left_out(text):
            return left_out
        close = self._close(text)
        if close:
            return f"there is no {self._noun} {text!r:.120}; did you mean {_either(close)}?"
        names = [f"{task} ({own})" if own else task for task, own in self._display.items()]
        existing = f"{self._nouns}: {listed(names)}" if names else "the run has none"
        return f"there is no {self._noun} {text!r:.120}; {existing}"

    def why_left_out(self, wanted: str) -> str:
        """Return why the run leaves out what a name means, or "" if it does not."""
        for task, where in self._left_out.items():
            if wanted in (task, _INDEX.sub("", task), _own_name(task)):
                return f"{self._noun} {wanted!r:.120} is in {where}, which this run does not take"
        return ""

    def _short(self, wanted: str) -> dict[str, None]:
        """Return the tasks whose last part is that, else those with that display name."""
        return self._own.get(wanted) or self._displayed.get(wanted, {})

    def _is_clear(self, wanted: str) -> bool:
        """Return whether a short name means one task, and is not a more precise name of another."""
        return (
            wanted not in self._names
            and wanted not in self._tasks
            and len(self._short(wanted)) == 1
        )

    def _close(self, text: str) -> list[str]:
        tasks = list(self._of_task)[:_COMPARED]
        spelled = {task.lower(): task for task in reversed(tasks)}
        similar = [
            spelled[task] for task in difflib.get_close_matches(text.lower(), spelled, 3, 0.7)
        ]
        if not similar:
            own = {_own_name(task): task for task in reversed(tasks)}
            displayed = {self._display[task] for task in tasks}
            short = {name: name for name in displayed if self._is_clear(name)} | own
            similar = [short[each] for each in difflib.get_close_matches(_own_name(text), short, 1)]
        return similar


def listed(names: Sequence[str], most: int = _SHOWN, joint: str = ", ") -> str:
    """Return some names, and whether there are more."""
    shown = joint.join(name[:_LONGEST] for name in names[:most])
    return shown + (f"{joint}..." if len(names) > most else "")


def _either(names: Iterable[str]) -> str:
    *first, last = (f"{name!r:.{_LONGEST}}" for name in names)
    return f"{', '.join(first)} or {last}" if first else last


def _own_name(task: str) -> str:
    """Return the author's name for it: the last part of its path."""
    return _INDEX.sub("", task.rpartition(".")[2])
