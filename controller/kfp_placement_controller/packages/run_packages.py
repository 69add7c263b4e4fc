"""Packages of runs of which the objects are only outlines, as KFP 3 makes them.

KFP's API is asked once for each run, one run at a time, and the namespaces take turns. Only a first
plan waits for the answer, for a few seconds. Whoever creates Workflows can write the id of any run
into them: an answer counts only for the oldest Workflow of its namespace that has this id, and the
actuator passes on only packages of runs that KFP runs in this namespace.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from kfp_placement_controller.packages.actions import AskPackage, PackageAnswer
from kfp_placement_controller.packages.package_store import PackageStore
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.sources.source import ObservedRun, PackageState
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.model.keys import RunKey

FIRST_PLAN_WAIT_SECONDS = 3.0
"""Longest wait of a first plan for the package: the first step with images is two pods away."""

FIRST_QUESTION_PAUSE_SECONDS = 0.25
"""Pause before the first question about a run: KFP creates the Workflow before it stores the run,
by a tenth of a second (measured with the API server of the KFP 3 branch)."""

NOT_FOUND_SECONDS = 120.0
"""Time for which a run that KFP does not know is asked for again."""

LONGEST_NOT_FOUND_PAUSE_SECONDS = 30.0

FIRST_REFUSAL_PAUSE_SECONDS, FORBIDDEN_PAUSE_SECONDS = 5.0, 300.0
"""Time without questions about a namespace after the first refusal, and after each further one.

KFP refuses every token while the API server cannot review tokens, so one refusal says little.
"""

FIRST_OUTAGE_PAUSE_SECONDS, LONGEST_OUTAGE_PAUSE_SECONDS = 5.0, 60.0
"""Shortest and longest time without questions after one that got no answer."""

LONGEST_PAUSE_SECONDS = 300.0
"""Longest time without questions about a run after questions about it that got no answer."""

LONGEST_ANSWER_SECONDS = 10.0
"""Time after which nothing waits for the answer to the open question."""

_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_NOT_INSTALLED = PackageState(
    ConditionReason.NOT_INSTALLED,
    "KFP 3 leaves images and requests out of the Workflow, so they are estimates: install"
    " features/kfp-api, which reads them from KFP's API",
)
_PENDING = PackageState(ConditionReason.PENDING_EVALUATION, "KFP's API has not answered yet")
_NO_ROOM = PackageState(
    ConditionReason.NO_ROOM,
    "the packages of other runs fill the memory of the planner's store: until it"
    " restarts, this run is planned with estimates",
)

_COPY = "; if this one is a copy, remove its label pipeline/runid"
_REACH = "; compare KFP_PLACEMENT_KFP_API_ADDRESS, and the NetworkPolicies in KFP's namespace"


@dataclass(frozen=True)
class _Trouble:
    """Series of questions that failed for one cause.

    Attributes:
        since: time of the first failure.
        failed_at: time of the last one, in monotonic seconds.
        failures: number of failures.
        why: cause of the first failure, which people see.
    """

    since: datetime
    failed_at: float
    failures: int = 1
    why: str = ""


@dataclass(eq=False)
class _OutlinedRun:
    """A run that needs a package.

    Attributes:
        observed: run as it was passed on last, with its package if there is one.
        seen_at: time at which the run was first seen, in monotonic seconds.
        next_at: earliest time of the next question, in monotonic seconds.
        first_asked_at: time of the first question, in monotonic seconds; infinite before it.
        tries: number of questions that brought no package.
        is_unknown: whether KFP has answered that it does not know the run.
        verdict: reason why the run is not asked for any more; None = it is.
    """

    observed: ObservedRun
    seen_at: float
    next_at: float
    first_asked_at: float = math.inf
    tries: int = 0
    is_unknown: bool = False
    verdict: PackageState | None = None

    @property
    def claim(self) -> tuple[str, str]:
        """Namespace, and the id that the run claims to have at KFP's API."""
        return self.observed.key.namespace, self.observed.package_id or ""

    @property
    def age(self) -> tuple[datetime, str]:
        """Sorting key by which older runs come first."""
        return self.observed.submitted_at, self.observed.uid

    def postpone(
        self, first_seconds: float, longest_seconds: float, monotonic_seconds: float
    ) -> None:
        """Put off the next question, twice as long as after the last one, within limits."""
        pause_seconds = min(first_seconds * 2.0**self.tries, longest_seconds)
        self.tries, self.next_at = self.tries + 1, monotonic_seconds + pause_seconds


@dataclass
class RunPackages:
    """Packages of all runs that need one, and the questions about them.

    Attributes:
        is_installed: whether KFP's API may be asked; otherwise nothing waits for it.
        own_namespace: namespace of our account, for messages.
        store: packages that have come.
    """

    is_installed: bool = False
    own_namespace: str = ""
    store: PackageStore = field(default_factory=PackageStore)
    _runs: dict[RunKey, _OutlinedRun] = field(default_factory=dict)
    _claims: defaultdict[tuple[str, str], set[_OutlinedRun]] = field(
        default_factory=lambda: defaultdict(set)
    )
    _oldest: dict[tuple[str, str], _OutlinedRun] = field(default_factory=dict)
    """Oldest run of each claim, as far as it has been looked for."""
    _asked: AskPackage | None = None
    _asked_since: float = math.inf
    """Time of the open question, in monotonic seconds."""
    _asked_at: dict[str, float] = field(default_factory=dict)
    """Time of the last question about each namespace."""
    _outage: _Trouble | None = None
    _refusals: dict[str, _Trouble] = field(default_factory=dict)
    """Refusals by namespace."""

    def joined(self, observed: ObservedRun, monotonic_seconds: float) -> ObservedRun:
        """Take in a run, and return it with its package or the reason why there is none."""
        key = observed.key
        if observed.package_id is None:
            self.gone(key)
            return observed
        run = self._runs.get(key)
        if run is None or _identity(run.observed) != _identity(observed):
            self.gone(key)
            next_at = monotonic_seconds + FIRST_QUESTION_PAUSE_SECONDS
            run = self._runs[key] = _OutlinedRun(observed, monotonic_seconds, next_at)
            self._claims[run.claim].add(run)
            self._oldest.pop(run.claim, None)
        run.observed = observed
        self.store.used(key)
        return self._join(run)

    def gone(self, key: RunKey) -> None:
        """Forget a run that is gone, or whose name another run has now."""
        self.store.discard(key)
        run = self._runs.pop(key, None)
        if run is not None:
            self._oldest.pop(run.claim, None)
            claimants = self._claims[run.claim]
            claimants.discard(run)
            if not claimants:
                del self._claims[run.claim]

    def due(
        self, is_wanted: Callable[[ObservedRun], bool], monotonic_seconds: float
    ) -> AskPackage | None:
        """Return the next question; None = there is none now.

        Args:
            is_wanted: function that returns whether the package of a run is of use.
            monotonic_seconds: the present moment.
        """
        if not self.is_installed or self._asked is not None or self._pauses(monotonic_seconds):
            return None
        ready = (
            run
            for run in self._runs.values()
            if run.next_at <= monotonic_seconds
            and self._may_ask(run, monotonic_seconds)
            and is_wanted(run.observed)
        )
        run = min(ready, key=self._turn, default=None)
        if run is None:
            return None
        run.first_asked_at = min(run.first_asked_at, monotonic_seconds)
        observed = run.observed
        self._asked_at[observed.key.namespace] = monotonic_seconds
        self._asked_since = monotonic_seconds
        self._asked = AskPackage(observed.key, observed.uid, observed.package_id or "")
        return self._asked

    def answered(
        self, answer: PackageAnswer, now: datetime, monotonic_seconds: float
    ) -> list[ObservedRun]:
        """Take in an answer; return the runs that have a package now, or another state."""
        self._asked, self._asked_since = None, math.inf
        question, reason = answer.question, answer.reason
        run = self._runs.get(question.run)
        if run is not None and _identity(run.observed) != (question.uid, question.package_id):
            run = None  # Another run has the name by now.
        if run is not None and reason in (ConditionReason.UNREACHABLE, ConditionReason.FORBIDDEN):
            # Others are asked for first: it may be due to this run.
            run.postpone(FIRST_OUTAGE_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, monotonic_seconds)
        if reason is ConditionReason.UNREACHABLE:
            self._outage = _again(self._outage, answer.why, now, monotonic_seconds)
        else:
            self._outage = None
            before = self._refusals.pop(question.run.namespace, None)
            if reason is ConditionReason.FORBIDDEN:
                refusal = _again(before, answer.why, now, monotonic_seconds)
                self._refusals[question.run.namespace] = refusal
            elif run is not None:
                self._settle(run, answer, monotonic_seconds)
        changed: list[ObservedRun] = []
        for each in self._runs.values():
            before_answer = each.observed
            if not before_answer.ended and self._join(each) != before_answer:
                changed.append(each.observed)
        return changed

    def awaits(self, key: RunKey, monotonic_seconds: float) -> bool:
        """Return whether the first plan of a run waits for its package."""
        run = self._runs.get(key)
        return (
            run is not None
            and self.is_installed
            and lasts(FIRST_PLAN_WAIT_SECONDS, run.seen_at, monotonic_seconds)
            and not self._pauses(monotonic_seconds)
            and self._may_ask(run, monotonic_seconds)
        )

    def pause_seconds(self, monotonic_seconds: float) -> float | None:
        """Return the time until a waiting run is asked for, or its wait ends; None = none waits."""
        waiting = [run for key, run in self._runs.items() if self.awaits(key, monotonic_seconds)]
        moments = [run.seen_at + FIRST_PLAN_WAIT_SECONDS for run in waiting]
        moments += (run.next_at for run in waiting if run.next_at > monotonic_seconds)
        return min(moments) - monotonic_seconds if moments else None

    def _join(self, run: _OutlinedRun) -> ObservedRun:
        """Return a run with its package, and the state of that."""
        observed, package = run.observed, self.store.get(run.observed.key)
        content = observed.content.with_package(package)
        state = PackageState(ConditionReason.READ) if package else self._why_not(run)
        run.observed = replace(observed, content=content, package=state)
        return run.observed

    def _why_not(self, run: _OutlinedRun) -> PackageState:
        """Return the reason why a run has no package."""
        namespace, package_id = run.claim
        unknown = PackageState(
            ConditionReason.NOT_FOUND, f"KFP's API has no run {package_id} in namespace {namespace}"
        )
        refusal, outage = self._refusals.get(namespace), self._outage
        if not self.is_installed:
            return _NOT_INSTALLED
        if _RUN_ID.fullmatch(package_id) is None:
            why = f"the label pipeline/runid of its Workflow is {package_id!r:.80}, not a run id"
            return PackageState(ConditionReason.NOT_FOUND, why)
        if not self._is_first(run):
            return unknown._replace(
                message=f"an older Workflow is the run {package_id} of KFP{_COPY}"
            )
        if run.verdict is not None:
            return run.verdict
        if outage is not None:
            why = f"KFP's API has given no answer since {_text(outage.since)}: {outage.why}{_REACH}"
            return PackageState(ConditionReason.UNREACHABLE, why)
        if refusal is not None:
            why = (
                f"since {_text(refusal.since)} KFP's API does not let ServiceAccount plan of"
                f" namespace {self.own_namespace} read runs of namespace {namespace}: {refusal.why}"
            )
            return PackageState(ConditionReason.FORBIDDEN, why)
        return unknown if run.is_unknown else _PENDING

    def _settle(self, run: _OutlinedRun, answer: PackageAnswer, monotonic_seconds: float) -> None:
        """Take in what KFP's API says of a run."""
        if answer.reason is ConditionReason.READ:
            for dropped in self.store.put(run.observed.key, answer.package):
                self._runs[dropped].verdict = _NO_ROOM
        elif answer.reason is ConditionReason.NOT_FOUND:
            run.is_unknown = True
            run.postpone(1.0, LONGEST_NOT_FOUND_PAUSE_SECONDS, monotonic_seconds)
            if not lasts(NOT_FOUND_SECONDS, run.first_asked_at, monotonic_seconds):
                run.verdict = self._why_not(run)
        else:
            run.verdict = PackageState(answer.reason, answer.why)

    def _may_ask(self, run: _OutlinedRun, monotonic_seconds: float) -> bool:
        """Return whether an answer about a run may be of use, and is not there yet."""
        key = run.observed.key
        return (
            not run.observed.ended
            and run.verdict is None
            and not self.store.get(key)
            and not self._is_refused(key.namespace, monotonic_seconds)
            and _RUN_ID.fullmatch(run.claim[1]) is not None
            and self._is_first(run)
        )

    def _is_refused(self, namespace: str, monotonic_seconds: float) -> bool:
        """Return whether nothing is asked about a namespace because of a refusal."""
        refusal = self._refusals.get(namespace)
        if refusal is None:
            return False
        is_first = refusal.failures == 1
        pause_seconds = FIRST_REFUSAL_PAUSE_SECONDS if is_first else FORBIDDEN_PAUSE_SECONDS
        return lasts(pause_seconds, refusal.failed_at, monotonic_seconds)

    def _is_first(self, run: _OutlinedRun) -> bool:
        """Return whether no older Workflow of the namespace claims to be the same run."""
        oldest = self._oldest.get(run.claim)
        if oldest is None:
            claimants = self._claims[run.claim]
            oldest = self._oldest[run.claim] = min(claimants, key=lambda each: each.age)
        return run is oldest

    def _turn(self, run: _OutlinedRun) -> tuple[float, int, float]:
        """Return the sorting key by which the next run is chosen: namespaces take turns."""
        last_asked_at = self._asked_at.get(run.observed.key.namespace, -math.inf)
        # Of older runs a plan may exist already.
        return last_asked_at, run.tries, -run.observed.submitted_at.timestamp()

    def _pauses(self, monotonic_seconds: float) -> bool:
        """Return whether nothing is asked because the last question got no answer, or gets none."""
        # No answer is the more likely, the longer none has come.
        if monotonic_seconds - self._asked_since > LONGEST_ANSWER_SECONDS:
            return True
        if self._outage is None:
            return False
        doublings = min(self._outage.failures - 1, 10)
        pause_seconds = min(FIRST_OUTAGE_PAUSE_SECONDS * 2**doublings, LONGEST_OUTAGE_PAUSE_SECONDS)
        return lasts(pause_seconds, self._outage.failed_at, monotonic_seconds)


def _identity(observed: ObservedRun) -> tuple[str, str | None]:
    return observed.uid, observed.package_id


def _again(before: _Trouble | None, why: str, now: datetime, monotonic_seconds: float) -> _Trouble:
    """Return the series of failures with one more."""
    if before is None:
        return _Trouble(now, monotonic_seconds, why=why)
    return replace(before, failed_at=monotonic_seconds, failures=before.failures + 1)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
