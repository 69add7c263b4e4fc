"""Questions for packages: once a run, in turns, and never at the cost of a plan."""

from dataclasses import replace
from datetime import timedelta

import pytest

from kfp_placement_controller.packages.actions import PackageAnswer
from kfp_placement_controller.packages.package_store import PackageStore
from kfp_placement_controller.packages.run_packages import (
    FIRST_PLAN_WAIT_SECONDS,
    FIRST_QUESTION_PAUSE_SECONDS,
    FIRST_REFUSAL_PAUSE_SECONDS,
    FORBIDDEN_PAUSE_SECONDS,
    LONGEST_ANSWER_SECONDS,
    LONGEST_OUTAGE_PAUSE_SECONDS,
    NOT_FOUND_SECONDS,
    RunPackages,
)
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.model.keys import RunKey
from tests.controller.planning.builders import START, a_workflow

READ, NOT_FOUND = ConditionReason.READ, ConditionReason.NOT_FOUND
FORBIDDEN, UNREACHABLE = ConditionReason.FORBIDDEN, ConditionReason.UNREACHABLE
MALFORMED, PENDING = ConditionReason.MALFORMED, ConditionReason.PENDING_EVALUATION


def run_id(number=1):
    return f"00000000-0000-4000-8000-{number:012d}"


def a_run(name="run", namespace="team", number=1, seconds=0.0, uid=""):
    """A run of KFP 3, created so long after the start."""
    observed = a_workflow(name, created_at=START + timedelta(seconds=seconds))
    owner = replace(observed.owner, uid=uid or f"uid-{namespace}-{name}")
    key = RunKey(namespace, name)
    return replace(observed, key=key, owner=owner, package_id=run_id(number))


class Packages:
    """Packages of runs, on one clock; the first runs may be asked for at its start."""

    def __init__(self, *runs, **options):
        self.packages = RunPackages(**{"is_installed": True, "own_namespace": "ours", **options})
        self.seconds = -FIRST_QUESTION_PAUSE_SECONDS
        self.asked = None
        for run in runs:
            self.see(run)
        self.seconds = 0.0

    def see(self, run):
        return self.packages.joined(run, self.seconds)

    def state(self, run):
        return self.see(run).package

    def reason(self, run):
        return self.state(run).reason

    def due(self, wanted=lambda _run: True):
        question = self.packages.due(wanted, self.seconds)
        self.asked = question or self.asked
        return question

    def answer(self, reason, package=b"", why="", question=None):
        """A question is answered so, by default the last or the next; returns what has changed."""
        question = question or self.asked or self.due()
        assert question is not None, f"nothing is asked after {self.seconds} s"
        self.asked = None
        answer = PackageAnswer(question, reason, package, why)
        now = START + timedelta(seconds=self.seconds)
        return self.packages.answered(answer, now, self.seconds)

    def asked_after(self, most_seconds=1000):
        """Seconds until the next question."""
        began = self.seconds
        while self.due() is None:
            self.seconds += 0.5
            assert self.seconds < began + most_seconds
        return self.seconds - began


def test_a_run_is_asked_for_once_and_then_read_with_its_package():
    run = a_run()
    packages = Packages(run)
    assert packages.reason(run) is PENDING
    question = packages.due()
    assert (question.run, question.uid, question.package_id) == (run.key, run.uid, run_id())
    assert packages.due() is None, "one question at a time"
    (changed,) = packages.answer(READ, b"{}", question=question)
    assert (changed.content.package, changed.package.is_read) == (b"{}", True)
    packages.seconds = 1000
    assert packages.due() is None
    assert packages.see(run) == changed


def test_without_the_feature_nothing_is_asked_and_nothing_waits():
    run = a_run()
    packages = Packages(run, is_installed=False)
    assert packages.due() is None
    assert not packages.packages.awaits(run.key, 0)
    assert packages.packages.pause_seconds(0) is None
    assert packages.reason(run) is ConditionReason.NOT_INSTALLED
    assert "features/kfp-api" in packages.state(run).message


def test_a_run_that_has_ended_is_not_asked_for():
    run = a_run()
    packages = Packages(replace(run, state=replace(run.state, end=RunEnd.SUCCEEDED)))
    assert packages.due() is None
    packages.see(run)
    assert packages.due() is not None, "somebody has retried it"


def test_a_first_plan_waits_for_three_seconds_at_most():
    run = a_run()
    packages = Packages()
    packages.see(run)
    assert packages.packages.awaits(run.key, 0)
    assert packages.packages.pause_seconds(0.0) == FIRST_QUESTION_PAUSE_SECONDS
    assert packages.due() is None, "KFP has not stored the run yet"
    packages.seconds = FIRST_QUESTION_PAUSE_SECONDS
    assert packages.due() is not None
    assert packages.packages.pause_seconds(1.0) == FIRST_PLAN_WAIT_SECONDS - 1
    assert packages.packages.awaits(run.key, FIRST_PLAN_WAIT_SECONDS - 0.1)
    assert not packages.packages.awaits(run.key, FIRST_PLAN_WAIT_SECONDS)
    packages.answer(READ, b"{}")
    assert not packages.packages.awaits(run.key, 0.5), "it has come"


def test_a_run_that_kfp_does_not_know_yet_is_asked_for_again_for_two_minutes():
    run = a_run()
    packages = Packages(run)
    pauses = []
    while packages.seconds < NOT_FOUND_SECONDS:
        packages.answer(NOT_FOUND)
        pauses.append(packages.asked_after())
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert packages.seconds == 121
    packages.answer(NOT_FOUND)
    packages.seconds += 1000
    assert packages.due() is None
    assert packages.state(run) == (NOT_FOUND, f"KFP's API has no run {run_id()} in namespace team")


def test_a_run_that_is_unknown_after_a_long_outage_is_given_up():
    run = a_run()
    packages = Packages(run)
    packages.answer(UNREACHABLE, why="connection refused")
    packages.seconds = 2 * NOT_FOUND_SECONDS
    packages.answer(NOT_FOUND)
    assert packages.reason(run) is NOT_FOUND
    packages.seconds *= 2
    assert packages.due() is None


@pytest.mark.parametrize("reason", [MALFORMED, ConditionReason.TOO_LARGE])
def test_an_answer_of_no_use_ends_the_questions_about_its_run_alone(reason):
    bad, good = a_run("bad"), a_run("good", number=2, seconds=-1)
    packages = Packages(bad, good)
    (changed,) = packages.answer(reason, why="it is not JSON")
    assert (changed.key, changed.package) == (bad.key, (reason, "it is not JSON"))
    assert not packages.packages.awaits(bad.key, 0.1)
    packages.answer(READ, b"{}")
    assert packages.state(good).is_read
    packages.seconds = 1000
    assert packages.due() is None


def test_a_refusal_pauses_its_namespace_and_names_the_account():
    mine, other = a_run("a"), a_run("a", namespace="other", number=2)
    packages = Packages(mine, a_run("b", number=3), other)
    first = packages.due()
    changed = packages.answer(FORBIDDEN, why="HTTP status 403", question=first)
    assert {run.key.namespace for run in changed} == {first.run.namespace} == {"team"}
    assert len(changed) == 2, "both runs of the namespace"
    assert not packages.packages.awaits(mine.key, 0.1)
    packages.answer(READ, b"{}")
    assert packages.state(other).is_read
    message = packages.state(mine).message
    for part in ("since 2026-01-05 08:00:00 UTC", "ServiceAccount plan", "namespace ours"):
        assert part in message
    assert message.endswith("namespace team: HTTP status 403")
    assert packages.asked_after() == FIRST_REFUSAL_PAUSE_SECONDS, "KFP may have had a trouble"
    assert packages.answer(FORBIDDEN) == [], "nothing new"
    assert packages.asked_after() == FORBIDDEN_PAUSE_SECONDS
    packages.answer(READ, b"{}")
    packages.answer(READ, b"{}")
    assert packages.state(mine).is_read


def test_an_outage_pauses_everything_longer_and_longer():
    runs = [a_run("a"), a_run("b", namespace="other", number=2)]
    packages = Packages(*runs)
    assert len(packages.answer(UNREACHABLE, why="connection refused")) == 2
    pauses = []
    for _ in range(6):
        pauses.append(packages.asked_after())
        assert packages.answer(UNREACHABLE, why="another cause") == []
    assert pauses == [5, 10, 20, 40, LONGEST_OUTAGE_PAUSE_SECONDS, LONGEST_OUTAGE_PAUSE_SECONDS]
    late = a_run("late", number=3)
    packages.see(late)
    assert not packages.packages.awaits(late.key, packages.seconds), "the API is known to be dead"
    reason, message = packages.state(late)
    assert reason is UNREACHABLE
    assert "since 2026-01-05 08:00:00 UTC: connection refused; compare" in message
    packages.asked_after()
    packages.answer(READ, b"{}")
    assert packages.due() is not None, "the others follow at once"


def test_namespaces_take_turns_and_new_runs_come_before_repeated_questions():
    flood = [a_run(f"f{number}", number=number) for number in range(10, 15)]
    packages = Packages(*flood, a_run("one", "other", 2), a_run("two", "other", 3, seconds=1))
    order = []
    for _ in range(4):
        order.append(packages.due().run)
        packages.answer(NOT_FOUND)
        packages.seconds += 3
    assert [key.namespace for key in order] in (
        ["team", "other", "team", "other"],
        ["other", "team", "other", "team"],
    )
    assert [key.name for key in order if key.namespace == "other"] == ["two", "one"]
    assert len({key for key in order if key.namespace == "team"}) == 2


COPY = "; if this one is a copy, remove its label pipeline/runid"


def test_a_workflow_that_names_the_run_of_an_older_one_gets_nothing():
    real, copy = a_run("real"), a_run("copy", seconds=1)
    packages = Packages(copy, real)
    assert packages.due().run == real.key
    packages.answer(READ, b"{}")
    assert packages.due() is None
    reason, message = packages.state(copy)
    assert (reason, message) == (NOT_FOUND, f"an older Workflow is the run {run_id()} of KFP{COPY}")
    assert packages.see(copy).content.package == b""
    packages.packages.gone(real.key)
    assert packages.due().run == copy.key, "as after KFP's Retry, which creates the Workflow again"


@pytest.mark.parametrize("bad", ["", "../../healthz", "x" * 5000, f"{run_id()}?view=BASIC", "1\n2"])
def test_what_is_not_a_run_id_is_never_asked_for(bad):
    run = replace(a_run(), package_id=bad)
    packages = Packages(run)
    assert packages.due() is None
    assert not packages.packages.awaits(run.key, 0)
    reason, message = packages.state(run)
    assert reason is NOT_FOUND
    assert "not a run id" in message
    assert len(message) < 200


def test_an_answer_about_a_run_that_is_gone_counts_for_no_other():
    old = a_run(uid="old")
    packages = Packages(old)
    question = packages.due()
    packages.see(a_run(uid="new"))
    packages.answer(READ, b"{}", question=question)
    assert packages.see(a_run(uid="new")).content.package == b""
    packages.packages.gone(old.key)
    assert packages.due() is None
    assert packages.packages.store.size_bytes == 0


def test_a_workflow_whose_label_is_changed_loses_the_package():
    run = a_run()
    packages = Packages(run)
    packages.answer(READ, b"{}")
    other = packages.see(replace(run, package_id=run_id(2)))
    assert (other.content.package, other.package.reason) == (b"", PENDING)


def test_runs_whose_packages_no_longer_fit_are_read_as_outlines_again():
    first, second = a_run("a"), a_run("b", number=2, seconds=-1)
    packages = Packages(first, second, store=PackageStore(most_bytes=3))
    packages.answer(READ, b"{ }")
    changed = packages.answer(READ, b"[ ]")
    assert {(run.key.name, run.package.reason) for run in changed} == {
        ("a", ConditionReason.NO_ROOM),
        ("b", READ),
    }
    assert packages.due() is None


def test_a_run_whose_questions_get_no_answer_keeps_back_no_other():
    """As one whose answer takes longer than our limit."""
    slow = a_run("slow", seconds=9)
    packages = Packages(slow, *(a_run(f"r{each}", number=10 + each) for each in range(5)))
    assert packages.due().run == slow.key, "the newest first"
    packages.answer(UNREACHABLE, why="timed out")
    asked = []
    for _ in range(5):
        packages.asked_after()
        question = packages.asked
        assert question is not None
        asked.append(question.run.name)
        packages.answer(READ, b"{}")
    assert "slow" not in asked[:1]
    assert len({*asked} - {"slow"}) >= 4


def test_nothing_waits_for_an_answer_that_does_not_come():
    packages = Packages(a_run())
    assert packages.due() is not None
    packages.seconds = LONGEST_ANSWER_SECONDS + 1
    late = a_run("late", number=2)
    packages.see(late)
    assert not packages.packages.awaits(late.key, packages.seconds)


def test_ended_runs_do_not_change_with_an_outage():
    run = a_run()
    packages = Packages(run)
    packages.see(replace(run, state=replace(run.state, end=RunEnd.SUCCEEDED)))
    other = a_run("other", number=2)
    packages.see(other)
    packages.seconds = 1.0
    assert [each.key for each in packages.answer(UNREACHABLE, why="refused")] == [other.key]


def test_a_workflow_that_is_no_outline_any_more_is_forgotten():
    run = a_run()
    packages = Packages(run)
    packages.see(replace(run, package_id=None))
    assert packages.due() is None


def test_a_run_that_could_not_be_asked_for_is_not_called_unknown():
    run, other = a_run(seconds=1), a_run("other", number=2)
    packages = Packages(run, other)
    packages.answer(UNREACHABLE, why="timed out")
    packages.asked_after()
    packages.answer(READ, b"{}")
    assert packages.state(other).is_read
    assert packages.reason(run) is PENDING
