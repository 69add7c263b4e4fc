"""The quotas and limit ranges of the run's namespace: pods that they refuse or change, and room.

The API server fills in what a LimitRange gives to containers that state nothing, then refuses pods
beyond its bounds, and at last those for which a ResourceQuota has no room (`plugin/pkg/admission/
limitranger`, `pkg/quota/v1/evaluator/core/pods.go`). Argo tries again where a quota is exceeded,
and fails the step otherwise. Containers that KFP and Argo add are not judged: what they
request is set by an admin.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kfp_placement_engine.model.cluster import Cluster, LimitRange, Quota
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import ContainerAmounts, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed, task_of
from kfp_placement_engine.units.quantities import format_resource
from kfp_placement_engine.units.resources import Amounts, Resources, add_to, minus, plus

_NAMED = 5
"""Largest number of names in a notice."""

_MUST_BE_STATED = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""Amounts that each container must state where a quota counts them."""


class _Namespace(NamedTuple):
    """Rules of a namespace about pods, and quotas that count all of them."""

    name: str
    ranges: tuple[LimitRange, ...]
    quotas: tuple[Quota, ...]


def with_namespace_rules(run: RunGraph, cluster: Cluster) -> RunGraph:
    """Return the run with the requests that its namespace gives its steps, and with notices.

    Args:
        run: run whose namespace is settled; with "" no rules of a namespace count.
        cluster: cluster with ResourceQuotas and LimitRanges.
    """
    names = {quota.namespace for quota in cluster.quotas}
    names |= {each.namespace for each in cluster.limit_ranges}
    if not names or run.is_outline:
        return run
    name = run.namespace
    if name not in names:
        unused = f"quotas and limit ranges of {listed(sorted(names), _NAMED)} are not used"
        why = Notice(
            "quota-namespace",
            f"{unused}: give the run's namespace (--namespace, namespace= in Python)",
        )
        return run if name else replace(run, notices=(*run.notices, why))
    quotas = [each for each in cluster.quotas if each.namespace == name]
    namespace = _Namespace(
        name,
        tuple(each for each in cluster.limit_ranges if each.namespace == name),
        tuple(each for each in quotas if not each.scopes),
    )
    return _ruled(replace(run, notices=(*run.notices, *_scoped(quotas))), namespace)


def _ruled(run: RunGraph, namespace: _Namespace) -> RunGraph:
    notices: dict[Notice, None] = {}
    steps: list[Step] = []
    usages: list[tuple[Step, Amounts]] = []
    for step in run.steps:
        if step.kind is not StepKind.CONTAINER:
            steps.append(step)
            continue
        containers = tuple(_filled_in(each, namespace.ranges) for each in step.containers)
        given = minus(_sums(containers).requests, _sums(step.containers).requests)
        requests = plus(step.requests, given)
        steps.append(replace(step, requests=requests, containers=containers) if given else step)
        if step.workers:
            unused = f"quotas and limit ranges of {namespace.name} are not used for its workers"
            notices[Notice("quota-scope", unused, step.task)] = None
        usage = _usage(requests, containers)
        problems = list(_of_step(step, given, containers, usage, namespace))
        notices |= dict.fromkeys(problems)
        if not any(notice.is_refusal for notice in problems):
            usages.append((step, usage))
    notices |= dict.fromkeys(_of_claims(run, namespace))
    notices |= dict.fromkeys(_room(namespace, usages, run))
    return replace(run, steps=tuple(steps), notices=(*run.notices, *notices))


def _filled_in(container: ContainerAmounts, ranges: Iterable[LimitRange]) -> ContainerAmounts:
    requests, limits = dict(container.requests), dict(container.limits)
    for each in ranges:
        if not each.of_pod:
            limits = {**each.default_limits, **limits}
            requests = {**each.default_requests, **requests}
    return ContainerAmounts(requests, limits)


def _sums(containers: Sequence[ContainerAmounts]) -> ContainerAmounts:
    """Return the sums of requests, and of the limits that all containers have."""
    requests: Amounts = {}
    limits: Amounts = {}
    for each in containers:
        add_to(requests, each.requests)
        add_to(limits, each.limits)
    unlimited = {name for name in limits if any(name not in each.limits for each in containers)}
    return ContainerAmounts(
        requests, {name: amount for name, amount in limits.items() if name not in unlimited}
    )


def _usage(requests: Resources, containers: Sequence[ContainerAmounts]) -> Amounts:
    """Return what a quota counts for a pod, by the quota's names."""
    limits: Amounts = {}
    for each in containers:
        add_to(limits, each.limits)
    counted = {"pods": 1} | {f"requests.{name}": amount for name, amount in requests.items()}
    return counted | {f"limits.{name}": amount for name, amount in limits.items()}


def _of_step(
    step: Step,
    given: Resources,
    containers: Sequence[ContainerAmounts],
    usage: Resources,
    namespace: _Namespace,
) -> Iterator[Notice]:
    if any(given.values()):
        amounts = _texts({name: amount for name, amount in given.items() if amount})
        yield Notice(
            "limit-range-default",
            f"states no {amounts[0]}: the LimitRange of namespace {namespace.name} lets it request"
            f" {amounts[1]}, which is planned; Argo's container wait in its pod gets requests, too,"
            " unless an admin states them, and those are not planned",
            step.task,
        )
    problems = [
        *_out_of_range(containers, namespace.ranges),
        *_below_request(step.containers, containers),
    ]
    for problem in problems:
        refused = f"Kubernetes will refuse its pod in namespace {namespace.name}"
        yield Notice("limit-range", f"{problem}: {refused}", step.task)
    for quota in namespace.quotas:
        if quota.hard.get("pods") == 0:
            continue
        problem = _unstated(containers, quota) or _beyond(usage, quota)
        if problem:
            yield Notice("quota", f"quota {quota.name} of {quota.namespace}: {problem}", step.task)


def _texts(amounts: Resources) -> tuple[str, str]:
    names = sorted(amounts)
    return " and ".join(names), " and ".join(_text(name, amounts[name]) for name in names)


def _text(name: str, amount: int) -> str:
    """Return an amount with its resource: `requests.cpu 500m`."""
    return f"{name} {_amount_text(name, amount)}"


def _amount_text(name: str, amount: int) -> str:
    return format_resource(name.removeprefix("requests.").removeprefix("limits."), amount)


def _out_of_range(
    containers: Sequence[ContainerAmounts], ranges: Iterable[LimitRange]
) -> Iterator[str]:
    """Yield how containers, or the pod, break the bounds of limit ranges."""
    for each in ranges:
        # A pod of Argo's own containers has no amounts that are known.
        of_pod = (_sums(containers),) if containers else ()
        for amounts in of_pod if each.of_pod else containers:
            yield from _out_of_bounds(amounts, each)


def _below_request(
    stated: Sequence[ContainerAmounts], containers: Sequence[ContainerAmounts]
) -> Iterator[str]:
    """Yield the limits below the request that LimitRanges give; the readers name the stated."""
    for (_, own), (requests, limits) in zip(stated, containers, strict=True):
        for name in requests:
            if name not in own and name in limits and requests[name] > limits[name]:
                amount = _amount_text(name, requests[name])
                python = f'task.set_{name}_limit("{amount}") in Python, '
                yield (
                    f"its request of {name} {amount} is above the limit of"
                    f" {_text(name, limits[name])} that a LimitRange gives it; state a limit:"
                    f" {python if name in ('cpu', 'memory') else ''}resources: {{limits: {{{name}:"
                    f" {amount}}}}} in YAML"
                )


def _out_of_bounds(amounts: ContainerAmounts, bounds: LimitRange) -> Iterator[str]:
    requests, limits = amounts
    what = f"per {'Pod' if bounds.of_pod else 'Container'} in LimitRange {bounds.name}"
    for name, least in bounds.least.items():
        amount = min(requests.get(name, 0), limits.get(name, requests.get(name, 0)))
        if amount < least:
            yield f"minimum {name} usage {what} is {format_resource(name, least)}"
    for name, most in bounds.most.items():
        if name not in limits:
            yield f"maximum {name} usage {what} is set, and it has no limit"
        elif (asked := max(limits[name], requests.get(name, 0))) > most:
            stated = "limit" if asked == limits[name] else "request"
            yield (
                f"maximum {name} usage {what} is {format_resource(name, most)}, but its {stated} is"
                f" {format_resource(name, asked)}"
            )
    for name, ratio in bounds.most_ratio.items():
        request, limit = requests.get(name, 0), limits.get(name, 0)
        if not request or not limit:
            yield f"{name} max limit to request ratio {what} is {ratio:g}, and one is missing"
        elif limit > ratio * request:
            own = f"{limit / request:.3g}"
            yield f"{name} max limit to request ratio {what} is {ratio:g}, its own is {own}"


def _unstated(containers: Sequence[ContainerAmounts], quota: Quota) -> str:
    """Return what a quota makes containers state and one does not state, or ""."""
    missing = [
        name
        for name in _MUST_BE_STATED
        if name in quota.hard and any(not _states(each, *name.split(".", 1)) for each in containers)
    ]
    if not missing:
        return ""
    return (
        f"its containers must specify {', '.join(missing)}: Kubernetes will refuse its pod; state"
        " them, or have your admin add a LimitRange with defaults"
    )


def _states(container: ContainerAmounts, kind: str, resource: str) -> bool:
    return resource in (container.requests if kind == "requests" else container.limits)


_NEVER_MADE = "its pod is never made, and Argo tries again until the run is stopped"


def _beyond(usage: Resources, quota: Quota, effect: str = _NEVER_MADE) -> str:
    """Return what a single pod, or claims, take beyond the whole quota, and its effect; or ""."""
    beyond = [name for name, hard in quota.hard.items() if usage.get(name, 0) > hard]
    if not beyond:
        return ""
    asked = ", ".join(_text(name, usage[name]) for name in beyond)
    limited = ", ".join(_text(name, quota.hard[name]) for name in beyond)
    exceeded = f"exceeded quota, requested {asked}, limited {limited}"
    return f"{exceeded}: {effect}; ask for less, or for more quota"


def _of_claims(run: RunGraph, namespace: _Namespace) -> Iterator[Notice]:
    """Yield the quotas that refuse the volume claims which a run makes.

    Argo makes those of the run as a whole before its first step, and tries again until it can.
    """
    of_run: Amounts = {}
    for claim in run.claims:
        add_to(of_run, claim.usage if claim.is_workspace else {})
    made = {"": (of_run, "Argo starts the run only when it can make its claims")}
    for claim in run.claims:
        if claim.created_by:
            usage = plus(of_run, claim.usage)
            made[task_of(claim.created_by)] = usage, "KFP's driver cannot make the claim, and fails"
    for quota in namespace.quotas:
        named = f"quota {quota.name} of {quota.namespace}"
        left = {name: max(0, hard - quota.used.get(name, 0)) for name, hard in quota.hard.items()}
        for task, (usage, effect) in made.items():
            if problem := _beyond(usage, quota, effect):
                yield Notice("quota", f"{named}: {problem}", task)
            elif problem := _beyond(usage, replace(quota, hard=left), effect):
                yield Notice("quota-room", f"what is left of {named}: {problem}", task)


def _scoped(quotas: Iterable[Quota]) -> Iterator[Notice]:
    """Yield the quotas that count only some pods, which are not used."""
    for quota in quotas:
        if quota.scopes:
            yield Notice(
                "quota-scope",
                f"quota {quota.name} of {quota.namespace} counts only pods of scope"
                f" {', '.join(quota.scopes):.120} and is not used",
            )


def _room(
    namespace: _Namespace, usages: Sequence[tuple[Step, Amounts]], run: RunGraph
) -> Iterator[Notice]:
    """Yield the quotas that let fewer of the steps which are not refused run at once than could."""
    depths = _depths(run.steps)
    for quota in namespace.quotas:
        named = f"quota {quota.name} of {quota.namespace}"
        if usages and quota.hard.get("pods") == 0:
            yield Notice("quota", f"{named} allows no pods, so no step of the run can start")
            continue
        tightest: tuple[int, str, Sequence[Step]] | None = None
        for name, hard in quota.hard.items():
            users = [(step, usage[name]) for step, usage in usages if usage.get(name)]
            most = _most_at_once(hard - quota.used.get(name, 0), [amount for _, amount in users])
            width = max(Counter(depths[step.name] for step, _ in users).values(), default=0)
            if most < width and (tightest is None or most < tightest[0]):
                tightest = most, name, [step for step, _ in users]
        if tightest is not None:
            most, name, steps = tightest
            left = max(0, quota.hard[name] - quota.used.get(name, 0))
            tasks = listed(list(dict.fromkeys(step.task for step in steps)), _NAMED)
            effect = f"at most {most:,} of {len(steps):,} steps ({tasks}) run at once"
            if not most:
                effect = f"{tasks} cannot start until other pods of the namespace end"
            yield Notice(
                "quota-room",
                f"{named} has {_amount_text(name, left)} of"
                f" {_text(name, quota.hard[name])} left, so {effect}; plans do not count this."
                " Steps without room wait until Argo tries again; drivers of KFP take from it, too",
            )


def _most_at_once(room: int, amounts: Sequence[int]) -> int:
    """Return how many steps fit into the room together, the smallest first."""
    count = 0
    for amount in sorted(amounts):
        room -= amount
        if room < 0:
            break
        count += 1
    return count


def _depths(steps: Iterable[Step]) -> dict[str, int]:
    """Return how many steps are one after another before each; those of one depth may overlap."""
    depths: dict[str, int] = {}
    for step in steps:
        depths[step.name] = 1 + max((depths.get(name, 0) for name in step.depends_on), default=0)
    return depths
