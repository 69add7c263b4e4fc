"""Notices: warnings for people about a run, a cluster or a plan."""

from dataclasses import dataclass

from typing_extensions import override

NOT_USED = "not-used"
"""Code of notices about fields of a run's file that a plan does not use, and that may change it."""

HIDDEN_DEMAND = "hidden-demand"
"""Code of notices about what a run's file says of its pods, and a plan does not have."""

UNLIMITED_LOOP = "unlimited-loop"
"""Code of notices about loops of which any number of iterations may run at once."""

RECURSIVE_TEMPLATE = "recursive-template"
"""Code of notices about templates that call themselves."""

_REFUSED = frozenset(
    {
        "invalid-label",
        "invalid-resource",
        "limit-range",
        "lock-never-free",
        "loop-items",
        "lost-parameter",
        "parameter-name",
        "patched-container",
        "pod-resources",
        "quota",
        "refused-condition",
        "refused-limit",
        "request-above-limit",
        "start-limit",
        "unknown-tag",
    }
)
"""Codes of notices that Kubernetes, KFP or Argo refuses the step, or with "" the run."""

_BEYOND_PLANS = _REFUSED | frozenset(
    f"""
    {NOT_USED} {HIDDEN_DEMAND} {RECURSIVE_TEMPLATE}
    resource-claims pod-affinity template-elsewhere dag-target
    made-pods made-pods-without-room lifecycle-hook lock parallelism
    unknown-resources unknown-patch unknown-constraint unknown-pause waits-for-person no-pod
    folded-field unknown-claim missing-claim ambiguous-claim unknown-access-mode workspace-path
    unread-condition quota-room quota-scope quota-namespace limit-range-default
    end-limit disk-not-counted mixed-nodes
    """.split()
)
"""Codes of notices that the real run may differ in nodes or times from every plan.

What a plan assumes and counts, such as run times, widths of loops and images, is not among them.
"""


_HIDING_DEMAND = frozenset(
    {
        HIDDEN_DEMAND,
        "folded-field",
        "lifecycle-hook",
        RECURSIVE_TEMPLATE,
        "template-elsewhere",
        "unknown-patch",
        "unknown-resources",
        UNLIMITED_LOOP,
    }
)
"""Codes of notices that pods request more than the run's file says."""


@dataclass(frozen=True)
class Notice:
    """A warning for people.

    Attributes:
        code: stable word such as `unknown-location`.
        message: one sentence: what, which value, what to do.
        step: the step's name, or "" for the run as a whole.
    """

    code: str
    message: str
    step: str = ""

    @property
    def is_beyond_plans(self) -> bool:
        """True if it says that the real run may differ in nodes or times from every plan."""
        return self.code in _BEYOND_PLANS

    @property
    def hides_demand(self) -> bool:
        """True if it says that the run may request more than can be known from its file."""
        return self.code in _HIDING_DEMAND

    @property
    def is_refusal(self) -> bool:
        """True if it says why the step cannot run, whatever the nodes, or with "" the run."""
        return self.code in _REFUSED

    @override
    def __str__(self) -> str:
        """Return the message, after the name of the step that it is about."""
        return f"{self.step}: {self.message}" if self.step else self.message
