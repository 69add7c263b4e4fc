"""`make demo-cluster`: a sample placed by all of our processes on a real control plane.

The lead case is run twice: by the default scheduler, then with gates. Nothing runs images: the
kubelets are stand-ins that take as long as the steps say, shortened.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kfp import compiler

from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.model.reasons import reason_text
from kfp_placement_engine.readers.argo.executors import step_of_executor
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.recorder import Recorder
from tests.controller.demo_lead_case import SAMPLE, LeadCase, lead_nodes, verdict
from tests.controller.demonstration import POLICY, Clock, add_options, at_work, exit_code, say, stay
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.plane import PlaneOptions
from tests.support.installation import Installation, InstallationOptions
from tests.support.placements import planned_nodes
from tests.support.runnable_workflow import read_package
from tests.support.samples import load_sample
from tests.support.taxi_cluster import NEAREST, taxi_nodes, with_durations

LOOK_SECONDS = 0.2
TIMEOUT_SECONDS = 300.0
PROCESSES = "two schedulers, planner and extender"
SHORT_BACKOFF = {"podMaxBackoffSeconds": 1}
"""The usual 10 s after which a pod is tried again would be 10 minutes of a run 60 times longer."""

LEAD, TAXI = "unequal-steps", "taxi"

TO_TRY = """
It stays until Ctrl-C, also after the run. In another terminal, from the checkout:

export KUBECONFIG={kubeconfig}
export PATH=$PWD/.venv/bin:$PATH
kfp-placement watch -n {namespace} {run}
kfp-placement list -A
kfp-placement explain -n {namespace} {run}
kfp-placement explain -n {namespace} {run} predict
kfp-placement plan samples/{sample}/pipeline.yaml --cluster live -n {namespace}
kfp-placement release; kfp-placement list -A; kfp-placement release --resume
kubectl get placementpolicy,locations,pipelineplacements -A
"""


def main() -> int:
    """Show it; returns the exit code."""
    options = read_options(sys.argv[1:])

    def show() -> int:
        if options.sample == TAXI:
            return _show_taxi(options.location, options.shorter, keep=options.keep)
        return _show_lead_case(options.shorter, keep=options.keep)

    return exit_code(show)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """What was asked for; ends the program where that makes no sense."""
    parser = argparse.ArgumentParser(prog="make demo-cluster", description=__doc__)
    parser.add_argument(
        "sample", nargs="?", choices=(LEAD, TAXI), default=LEAD, help="[default: %(default)s]"
    )
    parser.add_argument(
        "--location",
        choices=sorted(NEAREST),
        default="HOME-EDGE",
        help="where the users of the taxi sample are",
    )
    add_options(parser)
    return parser.parse_args(arguments)


def _show_lead_case(shorter: int, *, keep: bool) -> int:
    """The run by the default scheduler, then with gates."""
    options = InstallationOptions(features=("gates",), policy={"actuator": "gates", **POLICY})
    plane_options = PlaneOptions(scheduler=SHORT_BACKOFF, simulate_pods=False)
    with (
        at_work(PROCESSES, lead_nodes(shorter), options, plane_options) as installation,
        Recorder(installation.api) as recorder,
    ):
        case = LeadCase(installation, recorder, shorter, say)
        with installation.namespace() as first, installation.namespace() as second:
            say(f"\nWithout marks, steps {shorter} times shorter: the default scheduler")
            default = case.by_default(first)
            say("\nThe same with marks: the plan, and gates that hold pods back")

            def submitted(run: str) -> None:
                if keep:
                    say(_to_try(installation, second, run, SAMPLE))

            for line in verdict(default, case.with_gates(second, submitted)):
                say(line)
            if keep:
                stay()
            return 0


def _to_try(installation: Installation, namespace: str, run: str, sample: str) -> str:
    kubeconfig = installation.kubeconfig
    return TO_TRY.format(kubeconfig=kubeconfig, namespace=namespace, run=run, sample=sample)


def _show_taxi(location: str, shorter: int, *, keep: bool) -> int:
    options, nodes = InstallationOptions(policy=POLICY), taxi_nodes()
    with (
        at_work(PROCESSES, nodes, options, PlaneOptions(simulate_pods=False)) as installation,
        installation.namespace() as namespace,
    ):
        say("")
        _show_nodes(nodes, location)
        run = installation.submit(_workflow(location, shorter), namespace)
        say(f"\nSubmitted {run}; its steps take a {shorter}th of their time.")
        if keep:
            # Before it has ended: there is more to see of a run that goes on.
            say(_to_try(installation, namespace, run, "06_taxi"))
        code = _follow(installation, run, namespace)
        if keep:
            stay()
        return code


def _show_nodes(nodes: list[JsonObject], location: str) -> None:
    say(f"{'node':18}{'CPU':>4}{'speed':>7}   round trip to {location}")
    for node in nodes:
        labels, room = node["metadata"]["labels"], node["status"]["allocatable"]
        speed = labels["kfp-placement.dev/speed"]
        name = node["metadata"]["name"]
        say(f"{name:18}{room['cpu']:>4}{speed:>7}   {labels[location]} ms")


def _workflow(location: str, shorter: int) -> JsonObject:
    """The sample as KFP would submit it, shortened."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "taxi.yaml")
        compiler.Compiler().compile(load_sample("06_taxi").taxi_for(location), str(package))
        return with_durations(read_package(package), 1 / shorter)


def _follow(installation: Installation, run: str, namespace: str) -> int:
    """Tell what happens with a run until it ends."""
    story = Story(installation, run, namespace)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not story.ended:
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"{run} does not end: {installation.logs()}")
        story.go_on()
        time.sleep(LOOK_SECONDS)
    return 0 if story.phase == "Succeeded" else 1


class Story:
    """Tells every change of a run once.

    Attributes:
        phase: of the Workflow.
        ended: whether all has been told.
    """

    def __init__(self, installation: Installation, run: str, namespace: str) -> None:
        self.phase = ""
        self.ended = False
        self._installation = installation
        self._run, self._namespace = run, namespace
        self._plan: Mapping[str, str] = {}
        self._shown_phases: dict[str, str] = {}
        self._clock = Clock(say)

    def go_on(self) -> None:
        """Look, and tell what is new."""
        # First the end: what has happened before it is then seen below.
        workflow = self._installation.workflow(self._run, self._namespace)
        placement = self._installation.placement(self._run, self._namespace)
        if placement is not None:
            self._tell_plan(placement)
        for pod in self._installation.pods(self._namespace):
            if SCHEDULER_LABEL in pod["metadata"]["labels"]:
                self._tell_pod(pod)
        self.phase = workflow.get("status", {}).get("phase", "")
        if self.phase not in ("", "Pending", "Running"):
            self._tell_end(placement)

    def _tell_plan(self, placement: PipelinePlacement) -> None:
        plan = planned_nodes(placement)
        moved = [step for step in plan if self._plan.get(step) != plan[step]]
        if not moved:
            return
        seconds = placement.spec.makespan_seconds
        until = "" if seconds is None else f": the run ends after {seconds:.1f} s"
        self._clock.line(f"plan {placement.spec.revision}{until}")
        for row in placement.planned_rows().rows:
            if row is not None and row.name in moved:
                why = reason_text(row.reason, placement.spec.nodes) if row.reason else ""
                say(f"            {row.name:14}{plan[row.name]:18}{why}")
        self._plan = plan

    def _tell_pod(self, pod: JsonObject) -> None:
        name = pod["metadata"]["annotations"][ANNOTATION_NODE_NAME]
        step = step_of_executor(name, self._run, set(self._plan)) or name
        node, phase = pod["spec"].get("nodeName"), pod["status"].get("phase", "")
        if not node or self._shown_phases.get(step) == phase:
            return
        if step not in self._shown_phases:
            planned = self._plan.get(step)
            as_planned = "as planned" if node == planned else f"planned was {planned}"
            scheduler = pod["spec"]["schedulerName"]
            self._clock.line(f"{step:14}to {node}, {as_planned}, by {scheduler}")
        if phase in ("Succeeded", "Failed"):
            self._clock.line(f"{step:14}{phase.lower()}")
        self._shown_phases[step] = phase

    def _tell_end(self, placement: PipelinePlacement | None) -> None:
        self.ended = True
        first = placement.spec.first_makespan_seconds if placement else None
        planned = "" if first is None else f"; planned were {first:.1f} s"
        self._clock.line(f"the run has {self.phase.lower()}{planned}")


if __name__ == "__main__":
    sys.exit(main())
