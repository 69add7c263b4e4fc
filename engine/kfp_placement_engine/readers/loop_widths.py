"""How many iterations each loop of a run gets."""

import difflib
import re
from typing import Any

from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.readers.notice_book import NoticeBook
from kfp_placement_engine.readers.options import ReadOptions

_INDEX = re.compile(r"\[(?:\d+|\*)\]")


class LoopWidths:
    """Known widths first, then what the user says, then the assumption."""

    def __init__(self, options: ReadOptions, notices: NoticeBook) -> None:
        self._options = options
        self._notices = notices
        self._asked: dict[str, None] = {}
        self._used: set[str] = set()

    def width(self, name: str, task: str, items: list[Any] | None) -> tuple[int, bool]:
        """Number of iterations of a loop, and whether that is an assumption.

        Args:
            name: the loop's name, with concrete indexes of the loops around it.
            task: the same with `[*]`.
            items: its items, where they are known before the run.

        Raises:
            LimitError: more iterations than a run may have steps.
        """
        self._asked[task] = None
        given = self._given(name, task)
        if items is not None:
            width, assumed = len(items), False
            if given is not None and given != width:
                self._notices.add(
                    "loop-width-known",
                    f"has {width} iterations by the pipeline itself; the width {given} is not used",
                    task,
                )
        elif given is not None:
            width, assumed = given, False
        else:
            width, assumed = self._options.default_loop_width, True
            self._notices.add(
                "loop-width-assumed",
                f"its number of iterations is known only at run time; {width} are assumed: "
                f"give its loop width (--loop-width {task}=N, loop_widths in Python)",
                task,
            )
        if width > self._options.max_steps:
            raise LimitError(
                f"loop {name:.200} has {width} iterations; a run may have at most "
                f"{self._options.max_steps} steps"
            )
        return width, assumed

    def check_used(self) -> None:
        """Refuse widths for loops that the run does not have.

        Raises:
            InputError: one names no loop of the run.
        """
        for name in self._options.loop_widths:
            if name not in self._used:
                close = difflib.get_close_matches(name, self._asked, 3) or list(self._asked)[:3]
                hint = f"its loops are {', '.join(close)}" if close else "it has no loops"
                raise InputError(f"loop width given for {name!r:.80}, but in this run {hint}")

    def _given(self, name: str, task: str) -> int | None:
        for key in (name, task, _INDEX.sub("", task)):
            if key in self._options.loop_widths:
                self._used.add(key)
                return self._options.loop_widths[key]
        return None
