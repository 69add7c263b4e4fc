"""How the live commands name a cluster, a namespace and a run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kfp_placement.cli.parameters import NAMESPACE, FormatType
from kfp_placement.cli.terminal import warn

if TYPE_CHECKING:
    from kfp_placement.live.connection import LiveCluster
    from kfp_placement.live.kinds import Api

_Command = Callable[..., Any]

LIVE_FORMATS = ("table", "wide", "json", "yaml")


def connection_options(command: _Command) -> _Command:
    """`--kubeconfig` and `--context`, as kubectl has them."""
    command = click.option(
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig.  [default: the current one]",
    )(command)
    return click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False, readable=False),
        help="The kubeconfig.  [default: as for kubectl]",
    )(command)


def namespace_options(command: _Command) -> _Command:
    """`-n` and `-A`, as kubectl has them."""
    command = click.option("-A", "--all-namespaces", is_flag=True, help="Look in all namespaces.")(
        command
    )
    return click.option(
        "-n",
        "--namespace",
        type=NAMESPACE,
        metavar="NAME",
        help="Where to look.  [default: the context's namespace]",
    )(command)


def format_option(command: _Command) -> _Command:
    """`-o` and `--output`, as kubectl has them."""
    return click.option(
        "-o",
        "--output",
        "output_format",
        type=FormatType(LIVE_FORMATS),
        default="table",
        show_default=True,
        help="Format.",
    )(command)


@dataclass(frozen=True)
class Target:
    """Where to look, as click parsed it; the fields are the options above."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False


class Connection(NamedTuple):
    """A cluster, and the namespace to look in; "" = all."""

    cluster: "LiveCluster"
    namespace: str


def connect(target: Target) -> Connection:
    """The cluster that is meant; nothing is sent yet.

    Raises:
        click.UsageError: one namespace and all of them.
        ClusterError: no usable kubeconfig.
    """
    if target.namespace is not None and target.all_namespaces:
        raise click.UsageError("-n and -A: one namespace, or all of them?")
    from kfp_placement.live.connection import LiveCluster

    cluster = LiveCluster.connect(target.kubeconfig, target.context, "--kubeconfig")
    if target.all_namespaces:
        return Connection(cluster, "")
    return Connection(cluster, target.namespace or cluster.namespace)


def warn_of_namespace(api: "Api", namespace: str) -> None:
    """Report a namespace that does not exist, as far as we may know.

    Raises:
        ClusterError: no answer.
    """
    from kfp_placement.live.kinds import lacks_namespace

    if namespace and lacks_namespace(api, namespace):
        warn(f"there is no namespace {namespace} in the cluster")


def searched(namespace: str) -> str:
    """Where was looked, and how to look further."""
    return f"namespace {namespace}; -A looks in all namespaces" if namespace else "any namespace"
