"""The grammar of Argo's node names, which are in an annotation of pods.

`<workflow>(0).root(0).for-loop-1(0).iteration-iterations(1:1)(0).iteration-item.work.executor(0)`:
names joined by dots; `(1:...)` after a name is a loop index and its item, a last `(0)` the attempt,
`[2]` a group of parallel steps.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ROOT = "root"
EXECUTOR = "executor"
EXIT = "onExit"
_ITERATIONS = "iteration-iterations"
_ITERATION_ITEM = "iteration-item"

# A steps template writes its groups after its name, and after its attempt if it has one.
_GROUPS = r"(?:\[[0-9]{1,9}\])*"
_ATTEMPT = rf"{_GROUPS}(?:\(([0-9]{{1,9}})\))?{_GROUPS}"
_AFTER_WORKFLOW = re.compile(_ATTEMPT)
# The item of a loop is free text; it ends at the first bracket that a segment can follow.
_SEGMENT = re.compile(
    rf"\.([^.()\[\]]+)(?:\(([0-9]{{1,9}}):.*?\)(?=$|[.(\[]))?{_ATTEMPT}", re.DOTALL
)


@dataclass(frozen=True)
class Segment:
    """One of the names that make a node name.

    Attributes:
        name: name of a task, or of a level that Argo or KFP adds.
        index: loop index; None outside of a loop.
        retry: number of the attempt; None where Argo does not write one.
    """

    name: str
    index: int | None
    retry: int | None


def split_node_name(node_name: str, workflow: str) -> tuple[int | None, list[Segment]] | None:
    """Split a node name into the Workflow's own attempt and the segments after its name.

    The result is None for a malformed name, and for a node of another Workflow.

    Args:
        node_name: value of the annotation.
        workflow: name of the Workflow, which may have dots.
    """
    if not workflow or not node_name.startswith(workflow):
        return None
    segments: list[Segment] = []
    match = own = _AFTER_WORKFLOW.match(node_name, len(workflow))
    while match is not None and match.end() < len(node_name):
        match = _SEGMENT.match(node_name, match.end())
        if match is not None:
            segments.append(Segment(match[1], _number(match[2]), _number(match[3])))
    return None if match is None or own is None else (_number(own[1]), segments)


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def plain_path(segments: Iterable[Segment]) -> str:
    """Return the dotted path of a plain Workflow's steps."""
    return ".".join(_indexed(segment.name, segment.index) for segment in segments)


def kfp_path(segments: Sequence[Segment], *, per_iteration: bool = True) -> str:
    """Return the dotted path of KFP's tasks, without the levels that loops and exit tasks add.

    Those levels are recognised by their position, so that tasks may be called `iteration-item`.

    Args:
        segments: segments of a node name, after the root.
        per_iteration: whether each iteration is a task of its own, as in KFP 2; in KFP 3 the tasks
            of the loop's body follow at once.
    """
    names: list[str] = []
    position = 0
    while position < len(segments):
        segment = segments[position]
        following = segments[position + 1 : position + 2]
        if names and segment.name == EXIT:
            # An exit task is beside the task that it follows.
            names.pop()
        elif names and segment.name == _ITERATIONS and segment.index is not None:
            names[-1] = _indexed(names[-1], segment.index)
            if per_iteration and following and following[0].name == _ITERATION_ITEM:
                position += 1
        else:
            names.append(_indexed(segment.name, segment.index))
        position += 1
    return ".".join(names)


def _indexed(name: str, index: int | None) -> str:
    return name if index is None else f"{name}[{index}]"
