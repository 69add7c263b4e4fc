"""`make demo-queue`: three runs and one GPU, in a queue of whole runs on a real control plane.

Nothing runs images: the kubelets are stand-ins that take as long as the steps say, shortened.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kfp_placement_engine.contract.run_request import RequestPhase
from tests.controller.demo_queue_runs import (
    FIRST,
    GPU,
    HIGH,
    LOW,
    MINUTES,
    NODE,
    QUOTA,
    RUNS,
    QueueRecorder,
    RunRecord,
    gpu_node,
    summary,
    untrue,
)
from tests.controller.demo_queue_story import QueueStory, recorded
from tests.controller.demonstration import POLICY, add_options, at_work, exit_code, say, stay
from tests.controller.end_to_end.queues import set_queue, wait_status
from tests.controller.end_to_end.teams import Team
from tests.controlplane.plane import PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation, InstallationOptions

MOST_SHORTER = 120
"""Limit of the factor by which steps are shortened: the first run must outlast the submissions."""

LONGER_TO_TRY = 10
"""Factor by which steps are longer in runs that people are to try commands on."""

STORY = """
{node} has one GPU. RunQueue default of namespace {namespace}: a quota of 1 {gpu}.
Each run: prepare {prepare:g} s, train {train:g} s on the GPU, evaluate {evaluate:g} s.
{high} comes last and overtakes {low}, whose priority is lower. It does not stop {first}, whose
priority is the same. It is {now:%H:%M:%S} UTC now.

What comes after "queued" is what `kubectl placement queue` says of a run. In brackets: how long
that is from now, and when the plans in force let it begin; the first is a fifth of the second until
the queue has seen 20 runs wait. Where only its position and its start change, this is written
within 15 s.
"""

TRUE = """
No run had a pod before it began, no pod waited for room, and one run at a time used the GPU.
{high} was submitted after {low} and began before it."""

TO_TRY = """
Three more runs are in the queue; their step train takes {train:g} s. In another terminal, from the
checkout:

export KUBECONFIG={kubeconfig}
export PATH=$PWD/.venv/bin:$PATH
kfp-placement queue -n {namespace}
kfp-placement explain -n {namespace} {low}
kfp-placement watch -n {namespace} {low}
kfp-placement admit -n {namespace} {high}
kfp-placement preempt -n {namespace} {first}
kfp-placement list -n {namespace}
kubectl get runqueues,runrequests -A
"""


def main() -> int:
    """Show it; returns the exit code."""
    options = read_options(sys.argv[1:])
    return exit_code(lambda: _show(options.shorter, keep=options.keep))


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """What was asked for; ends the program where that makes no sense."""
    parser = argparse.ArgumentParser(prog="make demo-queue", description=__doc__)
    add_options(parser)
    options = parser.parse_args(arguments)
    if options.shorter > MOST_SHORTER:
        parser.error(
            f"--shorter {options.shorter} is more than {MOST_SHORTER}: the first run would end"
            " before the others are submitted"
        )
    return options


def _show(shorter: int, *, keep: bool) -> int:
    options = InstallationOptions(features=("queue",), policy=POLICY)
    processes = "two schedulers, planner, extender and queue"
    with (
        at_work(
            processes, [gpu_node()], options, PlaneOptions(simulate_pods=False)
        ) as installation,
        QueueRecorder(installation.api) as recorder,
        installation.namespace() as namespace,
    ):
        set_queue(Team(installation, namespace), quota=QUOTA)
        say(_introduction(namespace, shorter))
        records = recorded(QueueStory(installation, recorder, namespace, shorter))
        code = verdict(records)
        if keep:
            say(_more_runs(installation, namespace, shorter))
            stay()
        return code


def _introduction(namespace: str, shorter: int) -> str:
    seconds = {name: minutes * 60 / shorter for name, minutes in MINUTES.items()}
    names = {"first": FIRST.name, "low": LOW.name, "high": HIGH.name}
    now = datetime.now(UTC)
    return STORY.format(node=NODE, namespace=namespace, gpu=GPU, now=now, **seconds, **names)


def verdict(records: Sequence[RunRecord]) -> int:
    """Show the table, and what was so or not; returns the exit code."""
    say("")
    for line in summary(records):
        say(line)
    problems = untrue(records)
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    if not problems:
        say(TRUE.format(low=LOW.name, high=HIGH.name))
    return 1 if problems else 0


def _more_runs(installation: Installation, namespace: str, shorter: int) -> str:
    """Submit three more runs, and say what to try on them."""
    shorter = max(1, shorter // LONGER_TO_TRY)
    first, low, high = (replace(run, name=f"{run.name}-2") for run in RUNS)
    installation.submit(first.workflow(shorter), namespace)
    team = Team(installation, namespace)
    wait_until(
        lambda: wait_status(team, first.name).get("phase") == RequestPhase.ADMITTED,
        f"run {first.name} to be admitted",
    )
    for run in (low, high):
        installation.submit(run.workflow(shorter), namespace)
    return TO_TRY.format(
        train=MINUTES["train"] * 60 / shorter,
        kubeconfig=installation.kubeconfig,
        namespace=namespace,
        first=first.name,
        low=low.name,
        high=high.name,
    )


if __name__ == "__main__":
    sys.exit(main())
