"""Widths of loops: the number of iterations that each loop of a run gets."""

from typing import Any, NamedTuple

from kfp_placement_engine.exceptions import LimitError, UnknownLoopError
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.readers.tree.given_names import GivenNames
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.options import ReadOptions


class Width(NamedTuple):
    """Width of a loop, and its origin.

    Attributes:
        iterations: number of iterations.
        assumed: whether the number is known only at run time.
        learned: widths of past runs on which the number rests; None = it rests on none.
    """

    iterations: int
    assumed: bool
    learned: LearnedWidth | None = None


class LoopWidths:
    """Widths of a run's loops: from the items, else from the user, past runs or the assumption."""

    def __init__(self, options: ReadOptions, notices: NoticeCollector) -> None:
        self._options = options
        self._notices = notices
        self._given = GivenNames(options.loop_widths, "loop", UnknownLoopError)

    def width(
        self,
        name: str,
        task: str,
        items: list[Any] | None,
        display_name: str = "",
        parameter: str = "",
        is_unread: bool = False,
    ) -> Width:
        """Return the number of iterations of a loop.

        Args:
            name: name of the loop, with concrete indexes of the loops around it.
            task: name of the loop with `[*]` for the indexes.
            items: items of the loop; None = they are not known before the run.
            display_name: the author's name for the loop; "" = none.
            parameter: pipeline parameter without a value that has the items; "" = none.
            is_unread: whether the items are made of known values, but not computed here.

        Raises:
            LimitError: the loop has more iterations than a run may have steps.
        """
        given = self._given.value(name, task, display_name)
        if items is not None:
            width = Width(len(items), assumed=False)
            if given is not None and given != width.iterations:
                self._notices.add(
                    "loop-width-known",
                    f"has {width.iterations} iterations, one for each of its items, so the width"
                    f" {given} is not used; if a parameter has the items, give the parameter"
                    " another value",
                    task,
                )
        elif given is not None:
            width = Width(given, assumed=False)
        elif (learned := self._options.learned_widths.get(task)) is not None:
            width = Width(learned.planned, assumed=True, learned=learned)
        else:
            width = Width(self._options.default_loop_width, assumed=True)
            message = _assumed(width.iterations, task, parameter, is_unread)
            self._notices.add("loop-width-assumed", message, task)
        if width.iterations > self._options.max_steps:
            raise LimitError(
                f"loop {name:.200} has {width.iterations} iterations; a run may have at most "
                f"{self._options.max_steps} steps"
            )
        return width

    def check_used(self) -> None:
        """Refuse widths for loops that the run does not have.

        Raises:
            UnknownLoopError: a name is that of no loop of the run, or of several loops.
        """
        self._given.check_used()


def _assumed(width: int, task: str, parameter: str, is_unread: bool) -> str:
    remedy = f"give its loop width (--loop-width {task}=N, loop_widths in Python)"
    if not parameter:
        why = "not computed here" if is_unread else "known only at run time"
        return f"its number of iterations is {why}; {width} are assumed: {remedy}"
    return (
        f"it loops over parameter {parameter:.80}, which has no value; {width} iterations"
        f" are assumed: give the parameter a value, or {remedy}"
    )
