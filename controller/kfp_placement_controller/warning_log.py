"""Warnings that are logged once, and turns: work whose defect ends nothing but itself.

The outermost loop of a process gives a turn to each run and to each part that plans can do without.
This module is the edge of that loop around each of them, and so the one place where `plan` and
`queue` catch `Exception`: if a defect in one run ended the whole loop, no other run would be
planned or admitted, no gate would come off, and after a restart the same run would end it again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

MOST_TEXTS = 10_000
"""Number of warnings that are remembered; one that is forgotten may be logged again.

A defect may concern every run of a large cluster, and must not fill the log at every decision.
"""


@dataclass
class WarningLog:
    """Log of one part that shows each warning once, however often there is a reason.

    Attributes:
        module: name of the part's module, whose logger takes the warnings.
        process: name of the process, in texts for people.
    """

    module: str
    process: str = "planner"
    _texts: dict[str, None] = field(default_factory=dict)

    def warn(self, text: str, error: Exception | None = None) -> None:
        """Log a warning unless it has been logged before.

        Args:
            text: a whole sentence.
            error: defect of our code, whose traceback is logged too.
        """
        if text in self._texts:
            return
        self._texts[text] = None
        if len(self._texts) > MOST_TEXTS:
            del self._texts[next(iter(self._texts))]
        logging.getLogger(self.module).warning("%s", text, exc_info=error)

    def warn_of_defect(self, consequence: str, error: Exception) -> None:
        """Log that our code has failed, once for each kind of error.

        Args:
            consequence: effect of the defect for users.
            error: the error as raised.
        """
        self.warn(f"{consequence}: defect: {_text(error)}", error)

    def take_turn(
        self,
        consequence: str,
        turn: Callable[[], T],
        failed: Callable[[str], T | None] | None = None,
    ) -> T | None:
        """Return what `turn` returns; after a defect in it, log that and return what `failed` does.

        Args:
            consequence: effect of a defect for users.
            turn: work that others do not depend on.
            failed: callback after a defect, with a sentence about it for people; without it, None
                is returned.
        """
        try:
            return turn()
        except Exception as error:
            self.warn_of_defect(consequence, error)
            return failed(f"a defect of the {self.process}: {_text(error)}") if failed else None


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error!s:.200}".rstrip(": ")
