"""Preview of a plan, before the run is submitted: `preview(pipeline, cluster)`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

from kfp_placement_engine.model.notices import Notice

if TYPE_CHECKING:
    from datetime import timedelta
    from os import PathLike

    from kfp_placement.preview.planned import Preview
    from kfp_placement_engine.plans.assumptions import Assumptions

_CONFIDENCE_UNUSED = Notice(
    "confidence-unused",
    "confidence has no effect: it is for ranges that are made of past runs, and this plan rests on"
    " none; name some with history='history.yaml' or history='live'",
)


def preview(
    pipeline: Any,
    cluster: Any = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    package: Any = None,
    templates: "str | PathLike[str] | Iterable[str | PathLike[str]] | None" = None,
    entrypoint: str | None = None,
    durations: "Mapping[str, str | float | timedelta] | None" = None,
    loop_widths: Mapping[str, int] | None = None,
    branches: Mapping[str, bool] | None = None,
    semaphores: Mapping[str, int] | None = None,
    assume_cached: Iterable[str] = (),
    namespace: str | None = None,
    budget: "str | float | timedelta | None" = None,
    generations: int | None = None,
    seed: int | None = None,
    dispatch: str | None = None,
    objective: str | None = None,
    compare: Iterable[str] = ("kube-default", "heft"),
    kube_version: str | tuple[int, int] = (1, 36),
    marked_only: bool = False,
    assumptions: "Assumptions | None" = None,
    history: "str | PathLike[str] | None" = None,
    confidence: str | float | None = None,
    **unknown: Never,
) -> "Preview":
    """Plan a run without submitting it; contacts no cluster unless the cluster is `"live"`.

    Where the cluster's description holds its PlacementPolicy, the plan follows it.

    Args:
        pipeline: a pipeline made with `@dsl.pipeline`, or the path of a compiled package,
            a Workflow of Argo, or a folder with one.
        cluster: a `Cluster`; the path or URL of a Cluster file or of what `kubectl get
            nodes,pods,pvc,pv -A -o yaml` prints; the same as text or as a mapping; `"live"`, the
            cluster of the kubeconfig; None = the example cluster `equal`, and the plan says so.
        arguments: values of pipeline parameters, as for a run.
        package: pipeline of the run, or the path of its package, where `pipeline` is the path of a
            Workflow of KFP 3, which has no images and requests of its steps.
        templates: files and folders of the WorkflowTemplates that a Workflow of Argo refers to: a
            path or a list of paths; `"live"` fetches them from the cluster of the kubeconfig.
        entrypoint: template that a Workflow of Argo begins with, in place of its own.
        durations: run times by step that are better known than the marks say: `{"train": "1h"}`.
        loop_widths: number of iterations by loop, where it is known only at run time.
        branches: whether a branch is taken whose condition is known only at run time: `{"good":
            True}`. If it is, the branches that it excludes are not.
        semaphores: limits of semaphores of an Argo Workflow, which are in a ConfigMap:
            `{"limits/gpu": 2}`.
        assume_cached: steps whose result is taken to be in KFP's cache.
        namespace: namespace of the run, whose volume claims it uses; by default the run's own, if
            it names one, else with `"live"` the context's, else the only one of the history.
        budget: time for the search: `500ms`, or seconds; by default the policy's, else 2 s.
        generations: number of generations, in place of a budget; it reproduces a plan exactly.
        seed: seed of the random generator; by default the policy's, else 0.
        dispatch: `ready`, `ordered` or `auto`: whether a step may wait for its node; by default
            what the policy's actuator does, else `auto`.
        objective: `completion`, `makespan`, `packing` or `paper`; by default the policy's, else
            `completion`.
        compare: schedulers to simulate beside the plan: `kube-default`, `heft`, `fifo`, `random`,
            `brute-force`.
        kube_version: version of the default scheduler that is simulated: `1.36`.
        marked_only: plan only the marked steps, as the cluster does.
        assumptions: stand-ins for what nobody said; the cluster file's, else the defaults.
        history: past runs that run times are taken from, and when the run and its steps will end:
            the path of what `kfp-placement history --output` wrote; `"live"`, those of the run's
            namespace; `"none"`. By default `"live"` where the cluster is and has any.
        confidence: share of cases in which ranges made of past runs should hold: 0.9, or `90%`; by
            default what the policy says, else 90%.
        **unknown: other options, each an `UnknownOptionError`.

    Returns:
        The plan; `.makespan`, `.ends`, `.steps["train"].node`, `.explain("train")`,
        `.what_if("+2 of worker")`, `.save("plan.html")`.

    Raises:
        PlacementError: the pipeline or the cluster cannot be read or planned.
    """
    # Here and not above, so that `import kfp_placement` stays fast.
    from kfp_placement._marks import unknown_option
    from kfp_placement._options import read_request
    from kfp_placement._reading import engine_errors
    from kfp_placement.exceptions import UnknownOptionError
    from kfp_placement.planning import planned
    from kfp_placement.preview.planned import Preview

    options = {
        "arguments": arguments,
        "package": package,
        "templates": templates,
        "entrypoint": entrypoint,
        "durations": durations,
        "loop_widths": loop_widths,
        "branches": branches,
        "semaphores": semaphores,
        "assume_cached": assume_cached,
        "namespace": namespace,
        "budget": budget,
        "generations": generations,
        "seed": seed,
        "dispatch": dispatch,
        "objective": objective,
        "compare": compare,
        "kube_version": kube_version,
        "marked_only": marked_only,
        "assumptions": assumptions,
        "history": history,
        "confidence": confidence,
    }
    for name in unknown:
        if name == "at":
            raise UnknownOptionError(
                "preview: 'at' is for the command line only, `plan --at`; times in Python are"
                " seconds since the submission"
            )
        raise unknown_option("preview", name, ["cluster", *sorted(options)])
    with engine_errors():
        made = planned(read_request("preview", pipeline, cluster, options))
    plan = made.plan
    if confidence is not None and plan.promise is None:
        plan = replace(plan, notices=(*plan.notices, _CONFIDENCE_UNUSED))
    return Preview(plan, made.prepared)
