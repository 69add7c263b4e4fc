"""Runs joined with what their objects leave out: packages, and templates of other objects.

A defect in this ends nothing else: a run is then planned by what its object says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from kfp_placement_controller.packages.actions import AskPackage, PackageAnswer
from kfp_placement_controller.packages.run_packages import RunPackages
from kfp_placement_controller.packages.run_templates import RunTemplates
from kfp_placement_controller.sources.source import ObservedRun, ObservedTemplates, TemplateKey
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change

T = TypeVar("T")


@dataclass
class JoinedRuns:
    """Runs as they are read: with their packages, and with the templates that they refer to.

    Attributes:
        packages: packages of runs.
        templates: templates of other objects.
    """

    packages: RunPackages
    templates: RunTemplates = field(default_factory=RunTemplates)
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def join(self, observed: ObservedRun, monotonic_seconds: float) -> ObservedRun:
        """Take in a run, and return it with its package and templates, or why it has none."""
        join = partial(self.packages.joined, observed, monotonic_seconds)
        return self._with_templates(self._on_packages(join) or observed)

    def gone(self, key: RunKey) -> None:
        """Forget a run that is gone."""
        self._on_packages(partial(self.packages.gone, key))
        self.templates.gone(key)

    def package_answered(
        self, answer: PackageAnswer, now: datetime, monotonic_seconds: float
    ) -> Sequence[ObservedRun]:
        """Take in a package, or why there is none; return the runs that are others by it."""
        answered = partial(self.packages.answered, answer, now, monotonic_seconds)
        return [self._with_templates(run) for run in self._on_packages(answered) or ()]

    def templates_changed(
        self, kind: str, change: Change[ObservedTemplates]
    ) -> Sequence[ObservedRun]:
        """Take in an object, or that it is gone; return the runs that are others by it."""
        key = TemplateKey(kind, *change.key)
        return self._on_templates(partial(self.templates.changed, key, change.new)) or ()

    def question(
        self, is_wanted: Callable[[ObservedRun], bool], monotonic_seconds: float
    ) -> AskPackage | None:
        """Return the next question about a package; None = there is none now.

        Args:
            is_wanted: function that returns whether the package of a run is of use.
            monotonic_seconds: the present moment.
        """
        return self._on_packages(partial(self.packages.due, is_wanted, monotonic_seconds))

    def awaits_package(self, key: RunKey, monotonic_seconds: float) -> bool:
        """Return whether the first plan of a run waits for its package."""
        return bool(self._on_packages(partial(self.packages.awaits, key, monotonic_seconds)))

    def pause_seconds(self, monotonic_seconds: float) -> float | None:
        """Return the time until a waiting run is asked for, or its wait ends; None = none waits."""
        return self._on_packages(partial(self.packages.pause_seconds, monotonic_seconds))

    def _with_templates(self, observed: ObservedRun) -> ObservedRun:
        return self._on_templates(partial(self.templates.joined, observed)) or observed

    def _on_packages(self, turn: Callable[[], T]) -> T | None:
        """Return the result of work on packages, or None after a defect in it."""
        return self._warnings.take_turn("runs of KFP 3 are planned by their outlines", turn)

    def _on_templates(self, turn: Callable[[], T]) -> T | None:
        """Return the result of work on templates of other objects, or None after a defect in it."""
        return self._warnings.take_turn("runs are read without templates of other objects", turn)
