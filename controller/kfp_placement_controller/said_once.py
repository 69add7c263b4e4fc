"""Warnings that are said once, however often there is a reason: logs are for people."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

MOST = 1_000
"""Texts that are remembered; those said first are forgotten first, and may be said again."""


@dataclass
class SaidOnce:
    """What has been said.

    Attributes:
        log: where it goes.
    """

    log: logging.Logger
    _said: dict[str, None] = field(default_factory=dict)

    def warning(self, text: str, error: Exception | None = None) -> None:
        """Say it, unless it has been said.

        Args:
            text: a whole sentence.
            error: a defect of our code, whose place is shown too.
        """
        if text in self._said:
            return
        self._said[text] = None
        if len(self._said) > MOST:
            del self._said[next(iter(self._said))]
        self.log.warning("%s", text, exc_info=error)

    def defect(self, what: str, error: Exception) -> None:
        """Say that our code has failed, once for each kind of error.

        Args:
            what: what is missing because of it.
            error: as it was raised.
        """
        self.warning(f"{what}: defect: {type(error).__name__}: {error!s:.200}", error)

    def guarded(self, what: str, do: Callable[[], T]) -> T | None:
        """Do what others can do without; a defect in it holds up none of them.

        Args:
            what: what is missing then.
            do: that.
        """
        try:
            return do()
        except Exception as error:
            self.defect(what, error)
            return None
