"""What the expected end of a run says: how much of it came true in past runs of its pipeline."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExpectedEnds:
    """How much of what was expected of past runs came true.

    What is expected changes from run to run as the estimates of steps do. Where it lies as it did
    before, only the share of that counts which came true of past runs. Between there and what the
    steps of these runs really took, the estimates follow, and nothing counts. What lies beyond both
    is a change of the run, such as a wider loop, and counts in full.

    Attributes:
        usual_seconds: in the middle of what was expected of past runs.
        least_seconds, most_seconds: the least and the greatest of that.
        true_seconds: what would have been expected by what the steps really took, in the middle.
        share: 0 = that runs were expected earlier or later said nothing; 1 = it came true in full.
    """

    usual_seconds: float
    least_seconds: float
    most_seconds: float
    true_seconds: float
    share: float

    def counted(self, expected_seconds: float) -> float:
        """What is left of an expected end if it counts by its share: seconds.

        Args:
            expected_seconds: of a run, before it began; more than 0.
        """
        inside = min(max(expected_seconds, self.least_seconds), self.most_seconds)
        damped: float = self.usual_seconds * (inside / self.usual_seconds) ** self.share
        least = min(self.least_seconds, self.true_seconds)
        most = max(self.most_seconds, self.true_seconds)
        return damped * expected_seconds / min(max(expected_seconds, least), most)
