"""`check(pipeline)`: what would surprise, before anything is submitted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfp_placement.check.findings import CheckReport


def check(
    pipeline: Any, cluster: Any = None, *, arguments: Mapping[str, Any] | None = None
) -> "CheckReport":
    """List what would surprise about a pipeline.

    Steps that no node can take, pods that Kubernetes refuses (a request above its limit, a bad
    label), memory without its unit, locations nobody knows, steps and nested pipelines without
    marks, guessed types, retries that KFP 2.17 ignores, parameter names its backend misreads,
    images without a fixed tag, missing durations. Contacts no cluster unless it is `"live"`.

    Args:
        pipeline: a pipeline made with `@dsl.pipeline`, or the path of a compiled package.
        cluster: as for `preview`; without it nothing is said about nodes and locations. Where its
            description holds its PlacementPolicy, the policy's types and rules count.
        arguments: values of pipeline parameters, as for a run.

    Returns:
        The findings, the gravest first; shows as a table in a notebook, `print` it elsewhere, and
        `.ok` says whether there is anything but notes.

    Raises:
        PlacementError: the pipeline or the cluster cannot be read.
    """
    # Here and not above, so that `import kfp_placement` stays fast.
    from kfp_placement._package import package_of
    from kfp_placement._reading import engine_errors
    from kfp_placement.check.rules import check_run
    from kfp_placement.clusters.reading import known_cluster
    from kfp_placement.planning import RunSource, read_graph

    package = package_of(pipeline)
    known = None if cluster is None else known_cluster(cluster)
    where = None if known is None else known.cluster
    namespace = "" if known is None else known.namespace
    with engine_errors():
        graph = read_graph(RunSource(package, arguments or {}), where)
        return check_run(graph, cluster=where, default_namespace=namespace)
