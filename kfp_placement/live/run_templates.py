"""Templates of Argo that a run refers to: in files and folders, and in a live cluster."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kfp_placement._input_file import LIVE, InputFile
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, mapping_or_empty, text_or_empty
from kfp_placement_engine.readers.tree.options import ArgoObjects

# Most runs are planned without, so what reads them is imported when it is needed.
if TYPE_CHECKING:
    from kfp_placement.live.connection import ClusterApi

MOST_FETCHED = 200
"""Limit of the objects that are fetched for one run: each takes a request."""

_SHOWN = 5
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")


@dataclass(frozen=True)
class TemplateSources:
    """Sources of the templates that a run refers to; without arguments there are none.

    Attributes:
        given: objects that were read from files and folders.
        api: live cluster to fetch the others from; None = they are not fetched.
    """

    given: ArgoObjects = field(default_factory=ArgoObjects)
    api: "ClusterApi | None" = None

    def beside(self, run: Sequence[Fields], namespace: str) -> ArgoObjects:
        """Return the objects that a run may refer to.

        Args:
            run: objects that the run is read from.
            namespace: namespace of the run; "" = its own, else the usual one of the cluster.

        Raises:
            ClusterError: the live cluster gives no answer.
        """
        if self.api is None:
            return self.given
        objects = [*run, *self.given.objects]
        own = (
            text_or_empty(mapping_or_empty(each.get("metadata")).get("namespace")) for each in run
        )
        namespace = namespace or next(filter(None, own), "") or self.api.namespace
        return self.given + _fetched(self.api, objects, namespace)


def read_templates(sources: Iterable[str | InputFile], api: "ClusterApi | None") -> TemplateSources:
    """Read the files and folders among sources of templates.

    Args:
        sources: paths of files and folders, files as read, and `live`.
        api: the live cluster; None if no source is `live`.

    Raises:
        EngineError: a file or folder cannot be read.
    """
    from kfp_placement_engine.readers.argo_files import argo_objects, read_argo_objects

    given, is_live = ArgoObjects(), False
    for source in sources:
        if source == LIVE:
            is_live = True
        elif isinstance(source, InputFile):
            given += ArgoObjects(tuple(argo_objects(source.data, source.name)))
        else:
            given += read_argo_objects(source)
    return TemplateSources(given, api if is_live else None)


def _fetched(api: "ClusterApi", objects: Sequence[Fields], namespace: str) -> ArgoObjects:
    """Fetch the templates that objects refer to, and those that these refer to in turn."""
    from kfp_placement.live.kinds import TEMPLATE_KINDS
    from kfp_placement_engine.readers.argo.references.template_library import (
        TemplateLibrary,
        referred,
    )

    library = TemplateLibrary(objects, Fields({}, Place("")), namespace)
    waiting = [source for each in objects for source in referred(each.raw)]
    asked, fetched, unread = set[object](), list[Fields](), list[str]()
    while waiting:
        source = waiting.pop()
        if source in asked or library.holds(source) or not _NAME.fullmatch(source.name):
            continue
        if len(asked) == MOST_FETCHED:
            unread.append(
                f"only {MOST_FETCHED} objects were fetched; give the others with --with"
                " (templates= in Python)"
            )
            break
        asked.add(source)
        kind = TEMPLATE_KINDS[source.kind]
        try:
            raw = api.get(kind, source.name, namespace if kind.namespaced else "")
        except (ClusterForbiddenError, ClusterMissingError) as error:
            unread.append(f"not used: {source}: {error}")
            continue
        if raw is None:
            where = f"namespace {namespace}" if kind.namespaced else "the cluster"
            unread.append(f"{where} has no {source}")
            continue
        # A name in the answer is that which was asked for, in the namespace of the run.
        named = {**raw, "kind": source.kind, "metadata": {"name": source.name}}
        fetched.append(Fields(named, Place(LIVE)))
        waiting.extend(referred(raw))
    if len(unread) > _SHOWN:
        unread[_SHOWN:] = [f"{len(unread) - _SHOWN} further objects could not be fetched"]
    return ArgoObjects(tuple(fetched), tuple(unread))
