"""`python -m tests.controlplane`: build the programs, or start a control plane by hand."""

import argparse
import contextlib
import signal
import sys
import time

from tests.controlplane import housekeeping, objects
from tests.controlplane.build import ALL, binaries, cache_folder
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.plane import ControlPlane, PlaneOptions

_CHECK_SECONDS = 1.0


def main() -> int:
    """Run what the command line asks for."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.command == "build":
            return _build()
        return _start(arguments.nodes, arguments.simulate_pods)
    except ControlPlaneError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.controlplane", description="A control plane for tests."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs unless they are there")
    start = commands.add_parser("start", help="start one and keep it until Ctrl-C")
    start.add_argument("--nodes", type=int, default=3, help="nodes to create (default: 3)")
    start.add_argument(
        "--no-pods",
        dest="simulate_pods",
        action="store_false",
        help="kwok leaves pods alone: something else is the kubelet",
    )
    return parser.parse_args()


def _build() -> int:
    binaries(_say)
    for module in ALL:
        print(cache_folder() / module.key)
    return 0


def _start(nodes: int, simulate_pods: bool) -> int:
    started = time.monotonic()
    with ControlPlane(PlaneOptions(simulate_pods=simulate_pods), _say) as plane:
        seconds = time.monotonic() - started
        items = [objects.node(f"node-{number}") for number in range(1, nodes + 1)]
        housekeeping.add_nodes(plane.api, *items)
        with contextlib.suppress(KeyboardInterrupt):
            print(f"A control plane with {nodes} nodes runs, started in {seconds:.1f} s.")
            print(f"Its logs are in {plane.folder}. To use it:")
            print(f"  export KUBECONFIG={plane.kubeconfig}")
            print("Ctrl-C stops it and removes everything.", flush=True)
            _watch(plane)
    print("stopped")
    return 0


def _watch(plane: ControlPlane) -> None:
    """Return never; complain when a component ends."""
    while True:
        for process in plane.processes.values():
            process.check()
        time.sleep(_CHECK_SECONDS)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
