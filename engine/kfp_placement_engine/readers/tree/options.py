"""Settings of a user for reading a run, beside its file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.readers.text.fields import Fields


@dataclass(frozen=True)
class ArgoObjects:
    """Objects of Argo beside a run, such as the WorkflowTemplates that it refers to.

    Attributes:
        objects: the objects, each at the place of its file.
        unread: sentences about files and objects that could not be read.
        advice: advice for a reader who lacks one of them.
    """

    objects: tuple[Fields, ...] = ()
    unread: tuple[str, ...] = ()
    advice: str = "give it with --with FILE, a folder or live (in Python templates=)"

    def __add__(self, other: "ArgoObjects") -> "ArgoObjects":
        """Return the objects of both, with the advice of this one."""
        return ArgoObjects(self.objects + other.objects, self.unread + other.unread, self.advice)


@dataclass(frozen=True)
class ReadOptions:
    """Settings for reading a run.

    Attributes:
        arguments: values of pipeline parameters; text is converted to the parameter's type.
        loop_widths: number of iterations of loops whose width is known only at run time, by the
            loop's name: `for-loop-1`, `for-loop-1[0].for-loop-2`, or `for-loop-1[*].for-loop-2`
            for all of them.
        learned_widths: widths of such loops in past runs, by the loop's path (with `[*]`);
            `loop_widths` win, and loops that the run does not have do not matter.
        branches: whether a branch whose condition is known only at run time is taken, by the name
            of the branch as for loops: `condition-1`, or the author's name. If one is taken, those
            that exclude it are not.
        package: pipeline spec of the run, for a Workflow that does not hold it; None = unknown.
        templates: WorkflowTemplates that a Workflow may refer to.
        entrypoint: name of the template that a Workflow runs; "" = the one that it names itself.
        semaphores: limits of semaphores of Argo, by the key of each: `ConfigMap/key`.
        default_loop_width: number of iterations where it is not known.
        max_steps: largest number of steps: planning more takes minutes and gigabytes.
        max_dependencies: largest number of direct dependencies, for the same reason (two wide loops
            after each other have many).
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    loop_widths: Mapping[str, int] = field(default_factory=dict)
    learned_widths: Mapping[str, LearnedWidth] = field(default_factory=dict)
    branches: Mapping[str, bool] = field(default_factory=dict)
    package: Mapping[str, Any] | None = None
    templates: ArgoObjects = ArgoObjects()
    entrypoint: str = ""
    semaphores: Mapping[str, int] = field(default_factory=dict)
    default_loop_width: int = 3
    max_steps: int = 20_000
    max_dependencies: int = 30_000_000

    def __post_init__(self) -> None:
        """Refuse widths and limits that cannot be, and branches that are neither taken nor not."""
        widths = {**self.loop_widths, "default_loop_width": self.default_loop_width}
        for name, width in widths.items():
            if isinstance(width, bool) or not isinstance(width, int) or width < 0:
                raise InputError(
                    f"loop width {name} = {width!r:.40}; it must be a whole number, 0 or more"
                )
        for name, limit in self.semaphores.items():
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise InputError(
                    f"semaphore {name} = {limit!r:.40}; it must be a whole number, 1 or more"
                )
        for name, taken in self.branches.items():
            if not isinstance(taken, bool):
                raise InputError(f"branch {name} = {taken!r:.40}; it must be True or False")
