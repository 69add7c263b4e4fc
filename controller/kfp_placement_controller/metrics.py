"""Metrics of the in-cluster processes, all of them."""

import math

from prometheus_client import Counter, Gauge, Histogram

PREFIX = "kfp_placement"

API_WRITES = Counter(
    f"{PREFIX}_api_writes", "Writes that the API server has accepted.", ["kind", "verb"]
)
API_ERRORS = Counter(
    f"{PREFIX}_api_errors",
    "Requests that the API server refused or did not answer; reason as it gives it.",
    ["kind", "verb", "reason"],
)
API_ANSWERS_CUT = Counter(
    f"{PREFIX}_api_answers_cut",
    "Answers of the API server in which something was nested so deeply that it was read as null.",
)
WATCH_CHANGES = Counter(
    f"{PREFIX}_watch_changes",
    "Objects that a watch or a list has shown to be new, changed or gone.",
    ["kind"],
)
WATCH_LISTS = Counter(
    f"{PREFIX}_watch_lists",
    "Complete lists, the first at the start; more of them mean that watches could not be resumed.",
    ["kind"],
)
WATCH_BAD_OBJECTS = Counter(
    f"{PREFIX}_watch_bad_objects", "Objects that could not be read and were skipped.", ["kind"]
)
WATCH_AGE_SECONDS = Gauge(
    f"{PREFIX}_watch_age_seconds",
    "Time since a watch last brought anything; up to about 60 s is usual.",
    ["kind"],
)
SCHEDULER_ALIVE = Gauge(
    f"{PREFIX}_scheduler_ready",
    "1 while the policy's status says that our scheduler is alive, so that pods are given to it.",
)
PAUSED = Gauge(
    f"{PREFIX}_paused", "1 while the policy is paused, so that new pods are not placed by us."
)
LEADING = Gauge(
    f"{PREFIX}_leading",
    "1 while this replica holds the Lease of its process: plan or queue.",
    ["process"],
)
EVENTS_DROPPED = Counter(
    f"{PREFIX}_events_dropped",
    "Events that were not written because too many waited or the API server refused.",
)
HTTP_REFUSED = Counter(
    f"{PREFIX}_http_refused",
    "Connections and requests that were refused at a port (scheduler, webhook, probes), by the"
    " limit that they were over.",
    ["port", "limit"],
)
ANSWERS = Counter(
    f"{PREFIX}_answers",
    "Answers to kube-scheduler (filter, prioritize) and to the API server (mutate, hold), by"
    " outcome: what decided, or `malformed`, or `defect`; `yielded` comes before an answer that"
    " was held back, since pods of another scheduler go first, `awaits-plan` before one that"
    " waits for the run's first plan.",
    ["verb", "outcome"],
)
ANSWER_CPU_SECONDS = Histogram(
    f"{PREFIX}_answer_cpu_seconds",
    "CPU time of one answer.",
    ["verb"],
    buckets=(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5),
)
DEVIATIONS = Counter(
    f"{PREFIX}_placed_elsewhere",
    "Pods that were bound to a node other than the planned one, by what decided.",
    ["ground"],
)
PODS_REJECTED = Counter(
    f"{PREFIX}_pods_rejected",
    "Pods that a kubelet refused for lack of room, by who had placed them: `ours` or `another`."
    " Two schedulers booked the same room; letting others go first makes it rare, gates"
    " impossible.",
    ["scheduler"],
)
GATES_OVERDUE = Counter(
    f"{PREFIX}_gates_overdue",
    "Gates that were still there past their deadline and that this process took off.",
)
RUNS_BY_PHASE = Gauge(f"{PREFIX}_runs", "Marked runs that the planner knows, by phase.", ["phase"])
RUNS_OVER_BUDGET = Gauge(
    f"{PREFIX}_runs_over_budget",
    "Runs that go on without a plan, since older ones of their namespace have all steps that are"
    " planned of one.",
    ["namespace"],
)
PLANS_AT_ONCE = Counter(
    f"{PREFIX}_plans_at_once",
    "Plans made by list scheduling, for new runs and loops of another width.",
)
PLANNING_ROUNDS = Counter(
    f"{PREFIX}_planning_rounds",
    "Improvements of plans, by outcome: improved, failed (refused by the engine) or died.",
    ["outcome"],
)
PLANNING_ROUND_SECONDS = Histogram(
    f"{PREFIX}_planning_round_seconds", "Time from the start of a round to its outcome."
)
PACKAGE_ANSWERS = Counter(
    f"{PREFIX}_package_answers",
    "Answers to questions for packages at KFP's API, by outcome: the reasons of SpecRead.",
    ["outcome"],
)
PLANNER_TICK_SECONDS = Histogram(
    f"{PREFIX}_planner_tick_seconds",
    "Time that the planner takes to decide, plans made at once included.",
)
QUEUE_TICK_SECONDS = Histogram(
    f"{PREFIX}_queue_tick_seconds",
    "Time that the queue takes to decide who may run, without writing that.",
)
GATES_OPENED = Counter(
    f"{PREFIX}_gates_opened",
    "Gates taken off pods, by reason: turn, overdue, paused, not-planned or node-gone.",
    ["reason"],
)
STRANDED_PODS_DELETED = Counter(
    f"{PREFIX}_stranded_pods_deleted",
    "Pods of a dead scheduler that were deleted, so that Argo makes them again.",
)
LEARNED_SECONDS = Gauge(
    f"{PREFIX}_learned_seconds",
    "Overheads learned from pods, median of namespaces: driver (with Argo's delays), start.",
    ["what"],
)
RUN_PROMISES = Counter(
    f"{PREFIX}_run_promises",
    "Runs that have ended well, by whether they ended before, within or after the range that was"
    " first promised: early, kept or late. At a confidence of 90% nine of ten should be kept.",
    ["outcome"],
)
PROMISE_COVERAGE = Gauge(
    f"{PREFIX}_promise_coverage",
    "Share of kept promises among the last 100 runs since this replica leads; NaN = fewer than 20"
    " have ended.",
)
PROMISE_COVERAGE.set(math.nan)
PROMISE_SHORTFALL = Gauge(
    f"{PREFIX}_promise_shortfall",
    "By how much that share is below the mean confidence of the same promises, such as 0.1; NaN ="
    " fewer than 20 runs have ended.",
)
PROMISE_SHORTFALL.set(math.nan)
PROMISE_ERROR = Histogram(
    f"{PREFIX}_promise_error",
    "By which share of what a run took the typical end that was first promised was off.",
    buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5),
)
STEPS_FORECAST = Counter(
    f"{PREFIX}_steps_forecast",
    "Steps of runs that were planned for the first time, by which past their run time rests on:"
    " iteration, step, component, image, namespace or none.",
    ["level"],
)
HISTORIES = Gauge(f"{PREFIX}_histories", "PipelineHistories that are known.")
HISTORIES_BYTES = Gauge(f"{PREFIX}_histories_bytes", "Size of all PipelineHistories, as JSON.")
RUNS_RELEASED = Counter(
    f"{PREFIX}_runs_released",
    "Runs that waited and may go on, by cause: admitted, requested, terminated, has-begun,"
    " no-queue, planner-down or no-demand.",
    ["cause"],
)
RUNS_PREEMPTED = Counter(
    f"{PREFIX}_runs_preempted",
    "Runs that were suspended and wait again, by namespace: for another run, or by request.",
    ["namespace"],
)
RUNS_WAITING = Gauge(
    f"{PREFIX}_runs_waiting",
    "Runs that wait until their queue admits them, by RunQueue.",
    ["namespace", "queue"],
)
RUNS_ADMITTED = Gauge(
    f"{PREFIX}_runs_admitted",
    "Runs that their queue counts as admitted, by RunQueue.",
    ["namespace", "queue"],
)
RUN_WAIT_SECONDS = Histogram(
    f"{PREFIX}_run_wait_seconds",
    "Time that runs waited until their queue admitted them.",
    buckets=(1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400),
)
RUN_STARTS = Counter(
    f"{PREFIX}_run_starts",
    "Runs that their queue has started, by whether they started before, within or after the range"
    " that was first said: early, kept or late. Four of five should be kept.",
    ["outcome"],
)
LONGEST_WAIT_SECONDS = Gauge(
    f"{PREFIX}_longest_wait_seconds",
    "Time that the run has waited which waits longest, by namespace.",
    ["namespace"],
)
QUEUE_DEMAND = Gauge(
    f"{PREFIX}_queue_demand",
    "What the admitted runs of a RunQueue demand of the resources with a quota: cores, bytes, or"
    " a number.",
    ["namespace", "queue", "resource"],
)
QUEUE_QUOTA = Gauge(
    f"{PREFIX}_queue_quota",
    "Quota of a RunQueue, in the same units; of the resource `runs` the number of runs.",
    ["namespace", "queue", "resource"],
)
QUEUE_LEASE_AGE_SECONDS = Gauge(
    f"{PREFIX}_queue_lease_age_seconds",
    "Time since the leading planner has seen the queue renew its Lease.",
)
