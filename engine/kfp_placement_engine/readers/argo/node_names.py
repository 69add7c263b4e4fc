"""The grammar of Argo node names, as pods carry them in an annotation.

`<workflow>(0).root(0).for-loop-1(0).iteration-iterations(1:1)(0).iteration-item.work.executor(0)`:
names joined by dots; `(1:...)` after a name is a loop index and its item, a last `(0)` the attempt,
`[2]` a group of parallel steps.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ROOT = "root"
EXECUTOR = "executor"
_EXIT = "onExit"
_ITERATIONS = "iteration-iterations"
_ITERATION_ITEM = "iteration-item"

_NAME = re.compile(r"[^.()\[\]]+")
_GROUP = re.compile(r"\[[0-9]{1,9}\]")
_RETRY = re.compile(r"\(([0-9]{1,9})\)")
_ITEM = re.compile(r"\(([0-9]{1,9}):")
_ITEM_END = re.compile(r"\)(?=$|[.(\[])")


@dataclass(frozen=True)
class Segment:
    """One name of a node name.

    Attributes:
        name: the task's or template level's name.
        index: loop index, or None.
        retry: number of the attempt, or None where Argo did not write one.
    """

    name: str
    index: int | None = None
    retry: int | None = None


def split_node_name(node_name: str, workflow: str) -> tuple[int | None, list[Segment]] | None:
    """The Workflow's own attempt number and the segments after its name; None = not of this form.

    Args:
        node_name: the annotation's value.
        workflow: the Workflow's name, which may hold dots.
    """
    if not workflow or not node_name.startswith(workflow):
        return None
    position = _skip_groups(node_name, len(workflow))
    retry = None
    if match := _RETRY.match(node_name, position):
        retry = int(match.group(1))
        position = match.end()
    position = _skip_groups(node_name, position)
    segments: list[Segment] = []
    while position < len(node_name):
        if node_name[position] != ".":
            return None
        parsed = _segment(node_name, position + 1)
        if parsed is None:
            return None
        segment, position = parsed
        segments.append(segment)
    return retry, segments


def _segment(text: str, position: int) -> tuple[Segment, int] | None:
    match = _NAME.match(text, position)
    if match is None:
        return None
    name, index, retry = match.group(0), None, None
    position = match.end()
    if item := _ITEM.match(text, position):
        # The item is free text; it ends at the first bracket that one of our segments can follow.
        end = _ITEM_END.search(text, item.end())
        if end is None:
            return None
        index = int(item.group(1))
        position = end.end()
    # A steps template writes its groups after its name, and after its attempt if it has one.
    position = _skip_groups(text, position)
    if attempt := _RETRY.match(text, position):
        retry = int(attempt.group(1))
        position = attempt.end()
    return Segment(name, index, retry), _skip_groups(text, position)


def _skip_groups(text: str, position: int) -> int:
    while match := _GROUP.match(text, position):
        position = match.end()
    return position


def plain_path(segments: Iterable[Segment]) -> str:
    """The dotted path of a plain Workflow's steps."""
    return ".".join(_indexed(segment.name, segment.index) for segment in segments)


def kfp_path(segments: Sequence[Segment]) -> str:
    """The dotted path of KFP's tasks: without the levels that its loops and exit tasks add.

    These are known by where they stand, so that tasks may be called `iteration-item`.
    """
    names: list[str] = []
    position = 0
    while position < len(segments):
        segment = segments[position]
        following = segments[position + 1 : position + 2]
        if names and segment.name == _EXIT:
            # An exit task is beside the task that it follows.
            names.pop()
        elif names and segment.name == _ITERATIONS and segment.index is not None:
            names[-1] = _indexed(names[-1], segment.index)
            if following and following[0].name == _ITERATION_ITEM:
                position += 1
        else:
            names.append(_indexed(segment.name, segment.index))
        position += 1
    return ".".join(names)


def _indexed(name: str, index: int | None) -> str:
    return name if index is None else f"{name}[{index}]"
