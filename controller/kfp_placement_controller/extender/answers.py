"""Answers to kube-scheduler's and the API server's questions, as bytes, each counted.

A question that cannot be read leaves all nodes, pods and runs as they are. So does a defect in our
code, by the answer that the HTTP handler then asks `defect_answer` for.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Literal, NamedTuple

from kfp_placement_controller.extender.contention import (
    MAX_PAUSE_SECONDS,
    SETTLE_SECONDS,
    PauseBudget,
    settling_seconds,
    without_taken,
)
from kfp_placement_controller.extender.decisions import (
    Decision,
    DecisionReason,
    filter_nodes,
    prioritize_nodes,
    taken_nodes,
)
from kfp_placement_controller.extender.knowledge import Knowledge, KnownPlan
from kfp_placement_controller.extender.webhook import (
    pod_patch,
    read_review,
    review_answer,
    run_patch,
)
from kfp_placement_controller.extender.wire import (
    filter_json,
    priorities_json,
    read_args,
    unchanged,
)
from kfp_placement_controller.metrics import ANSWER_CPU_SECONDS, ANSWERS
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.queue_source import JsonPatch, QueueSource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey

_LOG = logging.getLogger(__name__)

MALFORMED = "malformed"
DEFECT = "defect"
YIELDED = "yielded"
"""Outcome where pods of another scheduler go first: the question is answered a moment later."""

AWAITS_PLAN = "awaits-plan"
"""Outcome where the run has no plan yet: the question is answered a moment later."""

PLAN_LOOK_SECONDS = 0.02
"""Pause between two looks for a plan."""

MAX_SECONDS_WITHOUT_PLANS = 1.0
"""Time from the first wait for a plan in which pods wait; each plan that comes begins it again.

Where none comes, the planner may be dead.
"""

MALFORMED_LOG_SECONDS = 60.0
"""Time between two logs of questions of one kind that cannot be read; all of them are counted."""

Verb = Literal["filter", "prioritize", "mutate", "hold"]
"""Kind of a question: the two of kube-scheduler, then those about pods and about runs."""

_MALFORMED_LOGGED_AT: dict[Verb, float] = {}

Decided = Callable[[Knowledge, ObservedPod, Decision], None]
"""Callback for a decision about a pod, with what is known of the cluster."""


class Answer(NamedTuple):
    """An answer and how to count it.

    Attributes:
        body: body of the response.
        outcome: label of the answer in the metric.
        status: HTTP status.
        pause_seconds: pause after which to ask again, with nothing sent yet; 0 = send the answer.
    """

    body: bytes
    outcome: str
    status: HTTPStatus = HTTPStatus.OK
    pause_seconds: float = 0.0


@dataclass
class Answers:
    """Answers every question from what is known of the cluster, without a call of the API server.

    Attributes:
        knowledge: function that returns what is known of the cluster at this moment.
        decided: callback for every decision, which returns at once.
        own_namespace: namespace of kfp-placement, whose pods and runs are never changed.
        queue_sources: sources whose runs can wait in a queue.
        clock: clock of the `KnowledgeStore`.
    """

    knowledge: Callable[[], Knowledge]
    decided: Decided
    own_namespace: str = "kfp-placement"
    queue_sources: Sequence[QueueSource] = ()
    clock: Callable[[], float] = time.monotonic
    _pauses: PauseBudget = field(default_factory=PauseBudget)
    _plans_before: Mapping[RunKey, KnownPlan] | None = None
    _awaited_since: float = 0.0

    def filter(self, body: bytes, paused_seconds: float = 0.0) -> Answer:
        """Answer which nodes a pod may go to, or pause.

        Args:
            body: the question.
            paused_seconds: pauses so far for the same question.
        """
        return _counted("filter", body, partial(self._filter, paused_seconds))

    def prioritize(self, body: bytes) -> Answer:
        """Answer how many points each node has for a pod."""
        return _counted("prioritize", body, self._prioritize)

    def mutate(self, body: bytes, *, all_pipelines: bool = False) -> Answer:
        """Answer what to change in a new pod.

        Args:
            body: the question.
            all_pipelines: the pod's namespace lets all steps of pipelines count as marked.
        """
        return _counted("mutate", body, partial(self._mutate, all_pipelines))

    def hold(self, body: bytes) -> Answer:
        """Answer whether a new or retried run waits for its queue."""
        return _counted("hold", body, self._hold)

    def _filter(self, paused_seconds: float, body: bytes) -> Answer:
        args, knowledge, monotonic_seconds = read_args(body), self.knowledge(), self.clock()
        pod = knowledge.sources.observe_pod(args.pod)
        if self._awaits_plan(knowledge, pod, paused_seconds, monotonic_seconds):
            pause = self._pauses.take(PLAN_LOOK_SECONDS, monotonic_seconds)
            # Many pauses of no length would cost CPU time and bring nothing.
            if pause == PLAN_LOOK_SECONDS:
                return Answer(b"", AWAITS_PLAN, pause_seconds=pause)
        since = monotonic_seconds - paused_seconds - SETTLE_SECONDS
        offered = without_taken(knowledge, pod, args.node_names, since)
        if args.node_names and not offered:
            return self._sent(knowledge, pod, taken_nodes(knowledge, pod, args.node_names))
        decision = filter_nodes(knowledge, pod, offered)
        unsettled = settling_seconds(knowledge, pod, decision.nodes, monotonic_seconds)
        settled = tuple(name for name in decision.nodes if name not in unsettled)
        # The first is the best: seconds of waiting are less than what the others may cost.
        if settled and (
            decision.nodes[0] in settled or decision.reason is DecisionReason.NOTHING_KNOWN
        ):
            return self._sent(knowledge, pod, replace(decision, nodes=settled))
        left = MAX_PAUSE_SECONDS - paused_seconds
        if unsettled and left > 0:
            pause = self._pauses.take(min(max(unsettled.values()), left), monotonic_seconds)
            if pause > 0:
                return Answer(b"", YIELDED, pause_seconds=pause)
        return self._sent(knowledge, pod, decision)

    def _awaits_plan(
        self,
        knowledge: Knowledge,
        pod: ObservedPod,
        paused_seconds: float,
        monotonic_seconds: float,
    ) -> bool:
        """Return whether the plan of a pod's run may be about to come."""
        if paused_seconds > MAX_PAUSE_SECONDS - PLAN_LOOK_SECONDS:
            return False
        if knowledge.plan_of(pod) is not None:
            return False
        if knowledge.plans is not self._plans_before:
            self._plans_before, self._awaited_since = knowledge.plans, monotonic_seconds
        return monotonic_seconds - self._awaited_since < MAX_SECONDS_WITHOUT_PLANS

    def _sent(self, knowledge: Knowledge, pod: ObservedPod, decision: Decision) -> Answer:
        self.decided(knowledge, pod, decision)
        return Answer(filter_json(decision.nodes, decision.reasons), decision.reason)

    def _prioritize(self, body: bytes) -> Answer:
        args, knowledge = read_args(body), self.knowledge()
        pod = knowledge.sources.observe_pod(args.pod)
        points = prioritize_nodes(knowledge, pod, args.node_names)
        return Answer(priorities_json(points), "points")

    def _mutate(self, all_pipelines: bool, body: bytes) -> Answer:
        review, knowledge = read_review(body), self.knowledge()
        counts_as_marked = knowledge.sources.is_unmarked_step if all_pipelines else None
        patch = pod_patch(
            review.new, review.namespace, knowledge.policy, self.own_namespace, counts_as_marked
        )
        return _patched(review.uid, patch)

    def _hold(self, body: bytes) -> Answer:
        review = read_review(body)
        holding = self.knowledge().holding
        patch = run_patch(review, holding, self.queue_sources, self.own_namespace)
        return _patched(review.uid, patch)


def defect_answer(verb: Verb, body: bytes) -> Answer:
    """Count a defect in our code, and return the answer that leaves everything as it is."""
    ANSWERS.labels(verb, DEFECT).inc()
    return _UNCHANGED[verb](body, DEFECT)


def _counted(verb: Verb, body: bytes, answer: Callable[[bytes], Answer]) -> Answer:
    began = time.thread_time()
    try:
        answered = answer(body)
    except InputError as error:
        _log_malformed(verb, error)
        answered = _UNCHANGED[verb](body, MALFORMED)
    finally:
        ANSWER_CPU_SECONDS.labels(verb).observe(time.thread_time() - began)
    ANSWERS.labels(verb, answered.outcome).inc()
    return answered


def _log_malformed(verb: Verb, error: InputError) -> None:
    """Log why a question cannot be read, now and then: anybody may send the next one."""
    now = time.monotonic()
    if now - _MALFORMED_LOGGED_AT.get(verb, -math.inf) >= MALFORMED_LOG_SECONDS:
        _MALFORMED_LOGGED_AT[verb] = now
        _LOG.warning("%s: %.300s", verb, error)


def _patched(uid: str, patch: JsonPatch) -> Answer:
    return Answer(review_answer(uid, patch), "changed" if patch else "unchanged")


def _all_nodes(body: bytes, outcome: str) -> Answer:
    answer = unchanged(body)
    if answer is None:
        return Answer(b"", outcome, HTTPStatus.BAD_REQUEST)
    return Answer(answer, outcome)


def _no_points(_: bytes, outcome: str) -> Answer:
    return Answer(priorities_json({}), outcome)


def _as_it_is(body: bytes, outcome: str) -> Answer:
    try:
        review = read_review(body)
    except InputError:
        return Answer(b"", outcome, HTTPStatus.BAD_REQUEST)
    return Answer(review_answer(review.uid, []), outcome)


_UNCHANGED: Mapping[Verb, Callable[[bytes, str], Answer]] = {
    "filter": _all_nodes,
    "prioritize": _no_points,
    "mutate": _as_it_is,
    "hold": _as_it_is,
}
"""Function per kind; from a question and its outcome it makes the answer that changes nothing."""
