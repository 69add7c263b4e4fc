"""Errors of the in-cluster processes, beside those of the way to the API server (`KubeError`).

::

    ControllerError
    ├── SettingsError            an option or variable that cannot be used
    └── PackageError             KFP's API has no package of a run for us, or none of use

    KubernetesError
    └── SupersededError          another planner leads

Every message says what was wrong, which value, and what to do.
"""

from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_kube.exceptions import KubernetesError


class ControllerError(Exception):
    """Base of the errors that only the in-cluster processes raise."""


class SettingsError(ControllerError):
    """An option or variable that cannot be used; the message names it."""


class PackageError(ControllerError):
    """KFP's API has no package of a run for us, or none that can be read.

    Attributes:
        reason: cause, as the condition `SpecRead` states it.
    """

    def __init__(self, reason: ConditionReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SupersededError(KubernetesError):
    """A planner of a higher epoch has written, or leads: this one no longer does."""
