"""Schedulers of others, beside ours in the benchmarks: the same problem, the same simulation.

- `cws-ORDER-NODES`: the Common Workflow Scheduler, an order of the steps that wait (`orders`) with
  a way of choosing their nodes (`node_choices`);
- `wow`: WOW's idea, to start a step where the fewest of its bytes are missing; its copies ahead of
  time are left out;
- `peft`: PEFT (`peft`), a plan made before the run like HEFT's.

CP-SAT, which proves optima of small cases, is `benchmarks.cp_sat`; HEFT, kube-default and FIFO are
the engine's baselines.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from benchmarks.cases import Instance
from benchmarks.peers.list_scheduling import NodeChoice, has_tasks_alone, schedule_of
from benchmarks.peers.node_choices import RandomNode, RoundRobin, fair, fewest_missing_bytes
from benchmarks.peers.orders import ORDERS, order_of
from benchmarks.peers.peft import peft
from kfp_placement_engine.problem.schedule import Schedule

Peer = Callable[[Instance, int], Schedule]
"""Function that schedules an instance of tasks alone; the seed is that of what it draws."""

NODE_CHOICES: Mapping[str, Callable[[int], NodeChoice]] = {
    "roundrobin": lambda _seed: RoundRobin(),
    "fair": lambda _seed: fair,
    "random": RandomNode,
}
"""Name -> a new one, by seed."""


def _cws(order: str, nodes: str, instance: Instance, seed: int) -> Schedule:
    choose = NODE_CHOICES[nodes](seed)
    return schedule_of(instance.problem, order_of(order, instance), choose)


def _wow(instance: Instance, _seed: int) -> Schedule:
    order = order_of("rank_max", instance)
    return schedule_of(instance.problem, order, fewest_missing_bytes)


def _peft(instance: Instance, _seed: int) -> Schedule:
    return peft(instance.problem)


PEERS: Mapping[str, Peer] = {
    **{
        f"cws-{order}-{nodes}": partial(_cws, order, nodes)
        for order in ORDERS
        for nodes in NODE_CHOICES
    },
    "wow": _wow,
    "peft": _peft,
}
"""Name -> peer."""


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Add `--peers`, whose value is a list of lists of names."""
    parser.add_argument(
        "--peers",
        type=_named,
        nargs="+",
        default=(),
        metavar="GLOB",
        help="schedulers of others to simulate as well, by name, such as peft or 'cws-rank*-fair',"
        " or all [default: none]",
    )


def peer_names(asked: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Read the names in `--peers`, each once and in the order of `PEERS`."""
    wanted = {name for names in asked for name in names}
    return tuple(name for name in PEERS if name in wanted)


def _named(glob: str) -> tuple[str, ...]:
    if glob == "none":
        return ()
    chosen = tuple(name for name in PEERS if glob == "all" or fnmatchcase(name, glob))
    if not chosen:
        raise argparse.ArgumentTypeError(
            f"{glob!r:.40}: no such peer; there are wow, peft and cws-ORDER-NODES, with the orders"
            f" {', '.join(ORDERS)} and the nodes {', '.join(NODE_CHOICES)}; or write all or none"
        )
    return chosen


def peer_schedules(instance: Instance, names: Sequence[str], seed: int) -> dict[str, Schedule]:
    """Return the schedules of an instance by peers.

    Args:
        instance: instance to schedule.
        names: names of the peers.
        seed: seed of the peers' draws.

    Returns:
        A schedule for each name; none at all if the run has driver pods, volumes or limited loops,
        for which the peers are not defined.

    Raises:
        BenchmarkError: a peer's decisions and the engine's simulation do not agree.
    """
    if not names or not has_tasks_alone(instance.problem):
        return {}
    return {name: PEERS[name](instance, seed) for name in names}
