"""Parameters that tune the planner, besides the policy."""

from dataclasses import dataclass
from datetime import timedelta

MOST_LAG = timedelta(minutes=2)
"""Longest lag of our clock behind the API server's; a run submitted later had a wrong clock."""

PLANS_PER_EVALUATION = 8
"""Number of new runs that are planned in one tick, and of runs planned for their RunRequests: the
first of them waits for few others."""


@dataclass(frozen=True)
class PlanningParams:
    """Times and thresholds of planning; what admins decide is in the PlacementPolicy.

    Attributes:
        debounce_seconds: time without a change after which plans are improved: changes come in
            bursts, and a search that starts between them is thrown away.
        debounce_limit_seconds: time after the first change at which plans are improved at the
            latest.
        drift_seconds, drift_percent: limits of drift. A step that starts or ends later or earlier
            than planned by more than the larger of both (percent of the run's makespan) lets the
            run be planned again.
        status_seconds: pause between two writes of a status; conditions are written at once.
        status_seconds_per_byte: longer pause for large statuses: 1 s for every 100 kB.
        least_budget_seconds: shortest budget of a search.
        begin_seconds: age at which a run without pods that nobody has begun is held back by
            something.
        evaluation_seconds: pause between two evaluations of steps without a change, for drift and
            deadlines.
        retry_seconds: pause after a write that failed.
    """

    debounce_seconds: float = 1.0
    debounce_limit_seconds: float = 5.0
    drift_seconds: float = 10.0
    drift_percent: float = 5.0
    status_seconds: float = 2.0
    status_seconds_per_byte: float = 1e-5
    least_budget_seconds: float = 0.1
    begin_seconds: float = 10.0
    evaluation_seconds: float = 1.0
    retry_seconds: float = 2.0
