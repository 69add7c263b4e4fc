"""The PlacementPolicy that counts, as last seen."""

from dataclasses import dataclass, field

from kfp_placement_engine.contract.policy import PlacementPolicySpec, PlacementPolicyStatus
from kfp_placement_engine.contract.resources import PlacementPolicy


@dataclass
class PolicyInForce:
    """What it says; the defaults while there is none.

    Attributes:
        spec: the rules.
        status: what was last written of it.
    """

    spec: PlacementPolicySpec = field(default_factory=PlacementPolicySpec)
    status: PlacementPolicyStatus = field(default_factory=PlacementPolicyStatus)

    def observe(self, policy: PlacementPolicy | None) -> None:
        """It is new, has changed or is gone."""
        status = policy.status if policy is not None else None
        self.status = status or PlacementPolicyStatus()
        self.spec = policy.spec if policy is not None else PlacementPolicySpec()
