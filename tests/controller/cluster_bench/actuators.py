"""Default scheduler, extender and gates on the same runs: `make bench-cluster`.

One control plane for each cluster; on it the three take turns, one run at a time, after a run that
does not count, in which the planner learns what drivers take there.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.tables import Table, as_markdown, as_text
from kfp_placement._files import write_whole
from tests.controller.cluster_bench.experiment_runner import Actuator, ExperimentRunner
from tests.controller.cluster_bench.measuring_command import say
from tests.controller.cluster_bench.recorder import Recorder
from tests.controller.cluster_bench.report import Results, parts_of
from tests.controller.cluster_bench.scenarios import SCENARIOS, Scenario
from tests.controller.cluster_bench.simulated import simulate
from tests.controlplane import housekeeping
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.build import KUBERNETES
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.kubelet.workload import WorkloadSettings
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.support.installation import PLANNER, Installation, InstallationOptions

BUDGET = "500ms"
DRIVER_SECONDS, START_SECONDS = 0.5, 0.1
WARM_UP_SEED = 1_000_000

Say = Callable[[str], None]


def main() -> int:
    """Measure; returns the exit code: 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="draws for each cluster [5]")
    parser.add_argument("--output", type=Path, help="also write the tables there, as Markdown")
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--argo-controller", type=Path, help="Argo's own instead of the stand-in")
    parser.add_argument("--argo-crds", type=Path, help="the folder with its definitions")
    parser.add_argument("--clusters", nargs="+", choices=names, default=names)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    argo = ArgoProgram(asked.argo_controller, asked.argo_crds) if asked.argo_controller else None
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in asked.clusters]
    results = Results()

    def parts() -> list[Table | Sequence[str]]:
        return parts_of(results, scenarios, asked.seeds, about(asked.seeds, argo))

    def keep() -> None:
        if asked.output is not None:
            write_whole(asked.output.resolve(), as_markdown("Actuators", parts()))

    try:
        for scenario in scenarios:
            measure(scenario, range(asked.seeds), argo, results, keep)
    except ControlPlaneError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; what was measured is kept.", file=sys.stderr)
        return 130
    finally:
        keep()
        for line in as_text(parts()):
            print(line)
    return 1 if any(each.failed_runs for each in results.outcomes.values()) else 0


def about(seeds: int, argo: ArgoProgram | None) -> str:
    """What was measured with what."""
    workflows = "Argo's stand-in" if argo is None else "Argo's own controller"
    return (
        f"Seeds 0 to {seeds - 1}; Kubernetes {KUBERNETES.version}, {workflows}; drivers of"
        f" {DRIVER_SECONDS:g} s, planner's budget {BUDGET}"
    )


def measure(
    scenario: Scenario,
    seeds: Sequence[int],
    argo: ArgoProgram | None,
    results: Results,
    keep: Callable[[], None],
) -> None:
    """Run all seeds of a cluster with every actuator in turn."""
    options = InstallationOptions(
        features=("gates",),
        policy={"engine": {"budget": BUDGET}},
        workload=WorkloadSettings(driver_seconds=DRIVER_SECONDS, start_seconds=START_SECONDS),
        argo=argo,
    )
    nodes = scenario.nodes()
    with ControlPlane(PlaneOptions(simulate_pods=False), say) as plane:
        housekeeping.add_nodes(plane.api, *nodes)
        with Installation(plane, options) as installation, Recorder(plane.api) as recorder:
            runner = ExperimentRunner(installation, recorder)
            say(f"{scenario.name}: a run that does not count")
            runner.run(scenario.draw(WARM_UP_SEED), Actuator.EXTENDER)
            for seed in seeds:
                drawn = scenario.draw(seed)
                for actuator in _turns(seed):
                    began = time.monotonic()
                    outcome = runner.run(drawn, actuator)
                    results.outcomes[scenario.name, seed, actuator] = outcome
                    say(
                        f"{scenario.name}, seed {seed}, {actuator}: {outcome.makespan:.1f} s"
                        f" ({time.monotonic() - began:.0f} s in all)"
                    )
                    for line in outcome.rejected:
                        say(f"  rejected: {line}")
                learned = installation.metric(PLANNER, "learned_seconds")
                results.simulated[scenario.name, seed] = simulate(
                    nodes, drawn, learned, DRIVER_SECONDS
                )
                keep()


def _turns(seed: int) -> list[Actuator]:
    """Every actuator is first, second and third in turn."""
    order = list(Actuator)
    first = seed % len(order)
    return order[first:] + order[:first]


if __name__ == "__main__":
    sys.exit(main())
