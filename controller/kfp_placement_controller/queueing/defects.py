"""One try for each run: a defect in deciding about one must not keep all others waiting."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kfp_placement_engine.model.keys import RunKey

ResultT = TypeVar("ResultT")

_LOG = logging.getLogger(__name__)

_DETAIL_CHARACTERS = 200
"""Of what an error says."""


@dataclass
class Defects:
    """What went wrong at this decision and the one before: each defect is logged once."""

    _before: set[tuple[RunKey, str]] = field(default_factory=set)
    _now: set[tuple[RunKey, str]] = field(default_factory=set)

    def begin(self) -> None:
        """A new decision is made."""
        self._before, self._now = self._now, set()

    def attempt(
        self, run: RunKey, decide: Callable[[], ResultT], otherwise: Callable[[str], ResultT]
    ) -> ResultT:
        """Decide about one run.

        Anybody may have written what the decision depends on.

        Args:
            run: which.
            decide: does it.
            otherwise: what follows if that fails; takes what to say of it.
        """
        try:
            return decide()
        except Exception as error:
            detail = f"{type(error).__name__}: {error!s:.{_DETAIL_CHARACTERS}}".rstrip(": ")
            if (run, detail) not in self._before | self._now:
                _LOG.exception("run %s/%s: defect in deciding about it", *run)
            self._now.add((run, detail))
            return otherwise(f"a defect of the queue: {detail}")
