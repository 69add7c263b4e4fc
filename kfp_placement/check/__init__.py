"""Checks of a pipeline before it is submitted: `check(pipeline)`.

The rules are listed in `rules`, which says where to add one.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import timedelta
    from os import PathLike

    from kfp_placement.check.findings import CheckReport


def check(
    pipeline: Any,
    cluster: Any = None,
    *,
    package: Any = None,
    templates: "str | PathLike[str] | Iterable[str | PathLike[str]] | None" = None,
    entrypoint: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    durations: "Mapping[str, str | float | timedelta] | None" = None,
    loop_widths: Mapping[str, int] | None = None,
    branches: Mapping[str, bool] | None = None,
    semaphores: Mapping[str, int] | None = None,
    assume_cached: Iterable[str] = (),
    history: "str | PathLike[str] | None" = None,
    namespace: str | None = None,
    **unknown: Any,
) -> "CheckReport":
    """List what would surprise about a pipeline.

    Steps that no node can take, pods that Kubernetes refuses (a request above its limit, a bad
    label), memory without its unit, locations nobody knows, steps and nested pipelines without
    marks, guessed types, retries that KFP 2.17 ignores, parameter names its backend misreads,
    images without a fixed tag, missing durations; with past runs, hints that are far from what
    these took. Contacts no cluster unless it, or the history, is `"live"`.

    Args:
        pipeline: a pipeline made with `@dsl.pipeline`, or the path of a compiled package.
        cluster: cluster, as for `preview`; without one, nodes and locations are not checked. If
            its description holds a PlacementPolicy, the policy's types and rules count.
        package: package of the run, as for `preview`.
        templates: files and folders of templates of Argo, as for `preview`.
        entrypoint: template that a Workflow of Argo begins with, in place of its own.
        arguments: values of pipeline parameters, as for a run.
        durations: run times by step, as for `preview`.
        loop_widths: number of iterations by loop, as for `preview`.
        branches: whether a branch is taken, as for `preview`.
        semaphores: limits of semaphores, as for `preview`.
        assume_cached: steps from KFP's cache, as for `preview`.
        history: past runs: the path of what `kfp-placement history --output` wrote; `"live"`, those
            of the run's namespace in the cluster; None or `"none"` = nothing is asked of them.
        namespace: namespace of the run; by default its own, if it names one, else with `"live"` the
            context's, else the only one of the history.
        **unknown: other options, each an `UnknownOptionError`.

    Returns:
        The findings, the gravest first; shows as a table in a notebook, `print` it elsewhere, and
        `.ok` says whether there is anything but notes.

    Raises:
        PlacementError: the pipeline or the cluster cannot be read.
    """
    # Here and not above, so that `import kfp_placement` stays fast.
    from kfp_placement._marks import unknown_option
    from kfp_placement._options import read_request
    from kfp_placement._reading import engine_errors
    from kfp_placement.check.rules import checked
    from kfp_placement.histories import NONE

    options = {
        "package": package,
        "templates": templates,
        "entrypoint": entrypoint,
        "arguments": arguments,
        "durations": durations,
        "loop_widths": loop_widths,
        "branches": branches,
        "semaphores": semaphores,
        "assume_cached": assume_cached,
        "history": NONE if history is None else history,
        "namespace": namespace,
    }
    for name in unknown:
        raise unknown_option("check", name, ["cluster", *sorted(options)])
    with engine_errors():
        return checked(read_request("check", pipeline, cluster, options, needs_cluster=False))
