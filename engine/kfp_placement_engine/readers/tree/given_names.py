"""Settings that a user gives by name: of parts of a run that only its expansion shows."""

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

from kfp_placement_engine.exceptions import EngineError
from kfp_placement_engine.model.step_names import StepNames, listed, plural

_SHOWN = 5
_INDEX = re.compile(r"\[(?:\d+|\*)\]")

_Setting = TypeVar("_Setting")


class GivenNames(Generic[_Setting]):
    """Settings by the name of a loop or branch, with a record of which names are used.

    A name has concrete indexes of the loops around (`for-loop-1[0].for-loop-2`), `[*]`, or none, or
    is the author's own.
    """

    def __init__(self, given: Mapping[str, _Setting], noun: str, error: type[EngineError]) -> None:
        """Keep the settings of a user.

        Args:
            given: settings by name.
            noun: word for what has the names.
            error: class of the error about a name that nothing has, or several parts have.
        """
        self._given = given
        self._noun = noun
        self._error = error
        self._display_names: dict[str, str] = {}
        self._used: dict[str, set[str]] = {}

    def value(self, name: str, task: str, display_name: str) -> _Setting | None:
        """Return the setting of a part of the run, or None if there is none.

        Args:
            name: name of the part, with concrete indexes of the loops around it.
            task: name of the part with `[*]` for the indexes.
            display_name: the author's name for the part; "" = none.
        """
        self._display_names[task] = display_name
        path = _INDEX.sub("", task)
        keys = [key for key in (name, task, path, display_name) if key and key in self._given]
        for key in keys:
            # A path is one part, whatever its indexes; an author's name may stand for several.
            self._used.setdefault(key, set()).add(task if key == display_name else key)
        return self._given[keys[0]] if keys else None

    def check_used(self) -> None:
        """Refuse names that no part of the run has, or several.

        Raises:
            EngineError: such a name, as an error of the class that was given.
        """
        for name in self._given:
            named = sorted(self._used.get(name, ()))
            if len(named) > 1:
                raise self._error(
                    f"{len(named)} {plural(self._noun)} of this run are called {name!r:.80}; name"
                    f" one of {listed(named, _SHOWN)}"
                )
            if not named:
                parts = ((task, task, display) for task, display in self._display_names.items())
                raise self._error(StepNames(parts, noun=self._noun).why_unresolved(name))
