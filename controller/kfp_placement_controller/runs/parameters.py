"""What tunes the planner besides the policy."""

from dataclasses import dataclass
from datetime import timedelta

MOST_LAG = timedelta(minutes=2)
"""How far our clock may be behind the API server's; a run submitted later had a wrong clock."""

PLANS_PER_EVALUATION = 4
"""New runs planned before what was decided is carried out, and runs for their RunRequests: the
first run waits for few others."""


@dataclass(frozen=True)
class PlanningParams:
    """Times and thresholds of planning; what admins decide is in the PlacementPolicy.

    Attributes:
        debounce_seconds: plans are improved when nothing has changed for this long: changes come in
            bursts, and a search that starts between them is thrown away.
        debounce_limit_seconds: but after this long at the latest.
        drift_seconds, drift_percent: a step that starts or ends later or earlier than planned by
            more than the larger of both (percent of the run's makespan) lets the run be replanned.
        status_seconds: between two writes of a status, at least; conditions are written at once.
        status_seconds_per_byte: the same for large ones: 1 s for every 100 kB.
        least_budget_seconds: a search that could only be shorter is left out.
        begin_seconds: a run that nobody has begun, and that has no pods for this long, is held
            back by something.
        evaluation_seconds: how often steps are looked at without a change: for drift and deadlines.
        retry_seconds: after a write that failed.
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
