"""A reader of templates that become leaves of the task tree: those of pods, pauses and plugins.

A patch of pods that can be read only when its tags are replaced makes a leaf for each of its texts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.readers.argo.plain.inputs_outputs import input_defaults
from kfp_placement_engine.readers.argo.plain.limits import locks
from kfp_placement_engine.readers.argo.plain.pod_leaves import PodLeafReader
from kfp_placement_engine.readers.argo.pod_settings import POD_KINDS, has_open_patch
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.values import gapless, known_text
from kfp_placement_engine.readers.unused.walk import unused_in_patch

_MAX_VARIANTS = 1000
"""Number of patches of one template that are kept after they are read."""

_UNKNOWN_PATCH = (
    "unknown-patch",
    "its podSpecPatch is known only at run time and is not used",
)


def template_leaf(template: Fields, spec: Fields, tags: TagReader) -> Leaf:
    """Return the leaf of a template that runs no other templates.

    Args:
        template: the template with its defaults merged in.
        spec: the Workflow's spec, for what it sets for all pods.
        tags: reader of tags.

    Raises:
        InputError: the template or the spec is malformed.
    """
    if any(template.get(kind) is not None for kind in POD_KINDS):
        spec = Fields(spec.raw, template.place)
        if any(has_open_patch(each, tags) for each in (spec, template)):
            return _OpenTemplate(template, spec, tags).unpatched()
        return PodLeafReader(template, spec, tags).leaf()
    for kind in StepKind:
        if not kind.has_pod and template.get(kind) is not None:
            return Leaf(
                kind,
                duration=tags.text(template.fields(kind).get("duration", "")),
                locks=locks(template, tags),
                defaults=input_defaults(template, tags),
                place=template.place,
            )
    raise template.error("has no container, script, dag, steps or other kind known here")


class _OpenTemplate:
    """A template whose patch is read for each step, when its tags are replaced."""

    def __init__(self, template: Fields, spec: Fields, tags: TagReader) -> None:
        self._template = template
        self._spec = spec
        self._tags = tags
        self._written = [each.text("podSpecPatch") for each in (spec, template)]
        self._texts = [tags.kept_text(patch) for patch in self._written]
        self._known_unused = set(self._notices(self._written))
        self._leaves: dict[tuple[str | None, ...], Leaf] = {}

    def unpatched(self) -> Leaf:
        """Return the leaf without any patch, which becomes another one in each scope."""
        return replace(self._with_patches("", ""), in_scope=self._in_scope)

    def _in_scope(self, scope: Scope) -> Leaf:
        texts = tuple(known_text(text.evaluate(scope)) for text in self._texts)
        if texts not in self._leaves:
            if len(self._leaves) >= _MAX_VARIANTS:
                self._leaves.clear()
            leaf = self._patched(texts)
            # What is in the patch as it is in the file is named for the file as a whole.
            unused = (each for each in self._notices(texts) if each not in self._known_unused)
            problems = (*leaf.problems, *((each.code, each.message) for each in unused))
            self._leaves[texts] = replace(leaf, problems=problems)
        return self._leaves[texts]

    def _patched(self, texts: tuple[str | None, ...]) -> Leaf:
        """Return the leaf with patches in which only tags are left that no value is known for."""
        whole = [gapless(text) or "" for text in texts]
        if None not in texts:
            try:
                return self._with_patches(*(text or "" for text in texts))
            except InputError:
                if whole == [*texts]:
                    raise
        return replace(self._with_patches(*whole), problems=(_UNKNOWN_PATCH,))

    def _notices(self, texts: Iterable[str | None]) -> Iterator[Notice]:
        """Yield notices about the fields of both patches, if these are their texts."""
        for text, holder in zip(texts, (self._spec, self._template), strict=True):
            yield from unused_in_patch(text or "", holder.where("podSpecPatch"))

    def _with_patches(self, of_spec: str, of_template: str) -> Leaf:
        spec = Fields({**self._spec.raw, "podSpecPatch": of_spec}, self._spec.place)
        template = {**self._template.raw, "podSpecPatch": of_template}
        return PodLeafReader(Fields(template, self._template.place), spec, self._tags).leaf()
