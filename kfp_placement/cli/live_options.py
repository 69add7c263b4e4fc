"""Options of commands that talk to a cluster: which cluster, which namespace, which format."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kfp_placement.cli.option_types import NAMESPACE, PLAIN_FILE, FormatType
from kfp_placement.cli.terminal import warn

if TYPE_CHECKING:
    from kfp_placement.live.connection import ClusterApi

_Command = Callable[..., Any]

LIVE_FORMATS = ("table", "wide", "json", "yaml")
"""Formats of the commands that list what is in a cluster."""


def connection_options(command: _Command) -> _Command:
    """Add `--kubeconfig` and `--context`, as kubectl has them."""
    command = click.option(
        "--context", metavar="NAME", help="Context of the kubeconfig.  [default: the current one]"
    )(command)
    return click.option(
        "--kubeconfig",
        metavar="FILE",
        type=PLAIN_FILE,
        help="The kubeconfig.  [default: as for kubectl]",
    )(command)


run_argument = click.argument("run", metavar="RUN")
"""Argument that names a run of the cluster."""


def namespace_options(command: _Command) -> _Command:
    """Add `-n` and `-A`, as kubectl has them."""
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
    """Add `-o` and `--output`, as kubectl has them."""
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
    """Values of the options of a cluster and a namespace, as click parsed them.

    Attributes:
        kubeconfig: the kubeconfig; None = as for kubectl.
        context: context of the kubeconfig; None = the current one.
        namespace: namespace to look in; None = that of the context.
        all_namespaces: whether all namespaces are looked in.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False


class Connection(NamedTuple):
    """Connection to a cluster, and the namespace to look in.

    Attributes:
        api: the connection.
        namespace: namespace to look in; "" = all namespaces.
    """

    api: "ClusterApi"
    namespace: str


def connect(target: Target) -> Connection:
    """Return a connection to the cluster that the options name; nothing is sent yet.

    Raises:
        click.UsageError: both one namespace and all of them are asked for.
        ClusterError: there is no usable kubeconfig.
    """
    if target.namespace is not None and target.all_namespaces:
        raise click.UsageError("-n and -A: one namespace, or all of them?")
    from kfp_placement.live.connection import ClusterApi

    api = ClusterApi.connect(target.kubeconfig, target.context, "--kubeconfig")
    return Connection(api, "" if target.all_namespaces else target.namespace or api.namespace)


def warn_of_namespace(api: "ClusterApi", namespace: str) -> None:
    """Warn of a namespace that does not exist, unless we have no right to look it up.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    from kfp_placement.live.kinds import lacks_namespace

    if namespace and lacks_namespace(api, namespace):
        warn(f"there is no namespace {namespace} in the cluster")


def searched(namespace: str) -> str:
    """Describe the namespaces that were searched, and how to search all."""
    return f"namespace {namespace}; -A looks in all namespaces" if namespace else "any namespace"
