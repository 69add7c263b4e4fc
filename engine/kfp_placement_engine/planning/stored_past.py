"""What the past runs that histories hold tell of the next ones in a namespace."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import MemoryHistory, NodeFactors, Past
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.policy import HistoryPolicy

_SHOWN = 5


def past_of(
    histories: Iterable[PipelineHistory],
    namespace: str = "",
    policy: HistoryPolicy | None = None,
    speeds: Mapping[str, float] | None = None,
    *,
    naming: str = "{}",
) -> Past:
    """What these runs tell of the next ones in a namespace.

    Args:
        histories: of one namespace; if one is named, those of others count only for what they
            share with it.
        namespace: where the next runs go; "" = where these were.
        policy: how long runs count, and which namespaces share what; None = all runs count, and
            nothing is shared.
        speeds: of nodes, relative to the reference node; those not named have 1.
        naming: how whoever reads messages names a namespace, with {} for its name.

    Raises:
        InputError: they are of several namespaces, or all of others.
    """
    known, rules = list(histories), policy or HistoryPolicy()
    found = sorted({each.metadata.namespace or "" for each in known} - {""})
    if namespace and found and {namespace, *rules.sharing_with(namespace)}.isdisjoint(found):
        raise InputError(
            f"the history is of namespace {_listed(found)} and the run goes to {namespace!r:.80};"
            f" export the history of {namespace!r:.80}, or give"
            f" {naming.format(_shortened(found[0]))} if the run goes there"
        )
    if not namespace and len(found) > 1:
        raise InputError(
            f"the history is of {len(found)} namespaces ({_listed(found)}); name the one of the"
            f" run, such as {naming.format(_shortened(found[0]))}"
        )
    where = namespace or "".join(found)
    runs = _runs_of(known, ("", where), rules)
    past = Past(runs, where, NodeFactors(speeds), memory=MemoryHistory())
    others = [other for other in rules.sharing_with(where) if other in found]
    past.share(
        Past(_runs_of(known, (other,), rules), other, NodeFactors(speeds)) for other in others
    )
    return past


def _runs_of(
    histories: Iterable[PipelineHistory], namespaces: Collection[str], policy: HistoryPolicy
) -> list[PastRun]:
    own = [each for each in histories if (each.metadata.namespace or "") in namespaces]
    return [run for each in own for run in each.past_runs(policy.keep_days)]


def _shortened(name: str) -> str:
    return f"{name:.80}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(_shortened, names[:_SHOWN]))
    return f"{shown}, ..." if len(names) > _SHOWN else shown
