"""Assumptions where the run and the cluster say nothing; every plan shows which were used."""

from dataclasses import dataclass

from kfp_placement_engine.exceptions import PlanningError

_AT_LEAST_0 = ("duration_seconds", "output_bytes", "image_bytes", "driver_seconds", "overrun_share")


@dataclass(frozen=True)
class Assumptions:
    """Stand-ins for what nobody said.

    Attributes:
        duration_seconds: run time of a step without a hint.
        output_bytes: size of an output without a hint.
        image_bytes: size of an image of which neither a node, its steps nor the cluster's source
            say it; None = its usual size if it is a common one, else 400Mi (`model.images`).
        store_bytes_per_second: a node's bandwidth to the object store.
        pull_bytes_per_second: a node's image pull rate.
        driver_seconds: time one KFP driver pod takes, from bind to end, on any node.
        loop_width: iterations of a loop whose width is known only at run time.
        link_bytes_per_second: bandwidth between two nodes for direct transfers.
        overrun_share: share of its time so far that a pod is taken to need still which has run for
            longer than expected.
    """

    duration_seconds: float = 60.0
    output_bytes: int = 0
    image_bytes: int | None = None
    store_bytes_per_second: float = 125e6
    pull_bytes_per_second: float = 50e6
    driver_seconds: float = 5.0
    loop_width: int = 3
    link_bytes_per_second: float = 125e6
    overrun_share: float = 0.5

    def __post_init__(self) -> None:
        """Refuse values that cannot be planned with."""
        for name in ("store_bytes_per_second", "pull_bytes_per_second", "link_bytes_per_second"):
            if not getattr(self, name) > 0:
                raise PlanningError(f"{name} = {getattr(self, name)!r}; it must be greater than 0")
        for name in _AT_LEAST_0:
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise PlanningError(f"{name} = {value!r}; it must be 0 or more")
        if self.loop_width < 1:
            raise PlanningError(f"loop_width = {self.loop_width!r}; it must be 1 or more")

    def remaining_seconds(self, expected_seconds: float, since_start_seconds: float) -> float:
        """Return the remaining time of a pod.

        It is the rest of its expected time. A pod that has taken longer, whatever its author says,
        needs a share of its time so far.
        """
        left = expected_seconds - since_start_seconds
        return left if left > 0 else self.overrun_share * since_start_seconds
