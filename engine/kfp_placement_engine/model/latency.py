"""Which nodes count as nearest to a place."""

from dataclasses import dataclass

from kfp_placement_engine.model.durations import given_round_trip_text


@dataclass(frozen=True)
class LatencyTolerance:
    """Nodes within the larger of both of the best round trip count as best.

    Attributes:
        milliseconds: so much above it.
        share: so much above it, as a share of it.
    """

    milliseconds: float = 0.5
    share: float = 0.05

    def limit_ms(self, best_ms: float) -> float:
        """The largest round trip that counts as best."""
        return best_ms + max(self.milliseconds, self.share * best_ms)

    @property
    def text(self) -> str:
        """For people: `max(0.5 ms, 5%)`."""
        milliseconds = given_round_trip_text(self.milliseconds)
        return f"max({milliseconds}, {100 * self.share:g}%)"
