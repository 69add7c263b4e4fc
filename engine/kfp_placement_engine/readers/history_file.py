"""Files of past runs: what `kfp-placement history --output` and `kubectl get plh -o yaml` write."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kfp_placement_engine.contract.fields import unknown_fields
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import MemoryHistory, NodeFactors, Past
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.policy import HistoryPolicy
from kfp_placement_engine.readers.place import kind_of
from kfp_placement_engine.readers.text.documents import load_documents, read_file

MAX_FILE_BYTES = 64 * 2**20
"""200 pipelines of a namespace with 256 KiB each, and some more for YAML."""

_KIND = "PipelineHistory"
_EXPECTED = "a history is what `kfp-placement history --output history.yaml` writes"
_AGAIN = "the file may be incomplete or changed: export it again"
_SHOWN = 5

_NEAR = 0.75
"""From this likeness on a name is a mistyped one: `rnus` for `runs`."""


def read_histories(data: bytes, *, name: str) -> tuple[PipelineHistory, ...]:
    """Read the past runs of pipelines.

    Args:
        data: the file's bytes: objects of the kind PipelineHistory, alone or in a List.
        name: what to call the file in messages.

    Raises:
        InputError: it holds something else or nothing, or an object is malformed.
    """
    if not data.strip():
        raise InputError(f"{name}: is empty; {_EXPECTED}")
    documents = load_documents(data, name=name, max_bytes=MAX_FILE_BYTES)
    try:
        return tuple(_read(each) for each in _objects(documents))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def read_histories_file(path: str | Path) -> tuple[PipelineHistory, ...]:
    """Read the past runs of pipelines from a file.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: it cannot be read or is malformed.
    """
    return read_histories(read_file(path, max_bytes=MAX_FILE_BYTES), name=str(path))


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


def _objects(documents: Sequence[Any]) -> Iterator[Any]:
    for document in documents:
        if not isinstance(document, dict):
            raise InputError(f"holds {kind_of(document)}; {_EXPECTED}")
        kind = document.get("kind")
        if kind in ("List", f"{_KIND}List") and isinstance(document.get("items"), list):
            yield from _objects(document["items"])
        elif kind == _KIND:
            version = document.get("apiVersion")
            if version != API_VERSION:
                raise InputError(
                    f"holds a {_KIND} of apiVersion {version!r:.80}; {API_VERSION} can be read"
                )
            yield document
        elif "pipelineInfo" in document:
            raise InputError(f"looks like a KFP pipeline package; {_EXPECTED}")
        elif kind is None:
            raise InputError(f"has no kind; {_EXPECTED}")
        else:
            raise InputError(f"holds kind {kind!r:.80}; {_EXPECTED}")


def _read(parsed: Any) -> PipelineHistory:
    try:
        found = read_resource(PipelineHistory, parsed)
    except InputError as error:
        raise InputError(f"{error}; {_AGAIN}") from error
    for place, known in unknown_fields(found, parsed):
        # Kubernetes writes more into the metadata than is read, and a planner of a newer revision
        # into the status. What is nearly a known name is a mistyped one.
        near = difflib.get_close_matches(place.rpartition(".")[2][:80], known, 1, _NEAR)
        if near and not place.startswith("metadata."):
            of = f"{_KIND} {found.metadata.name or found.spec.pipeline!r:.80}"
            raise InputError(f"{of}: {place:.120}: is not known here; did you mean {near[0]}?")
    return found


def _shortened(name: str) -> str:
    return f"{name:.80}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(_shortened, names[:_SHOWN]))
    return f"{shown}, ..." if len(names) > _SHOWN else shown
