"""A reader of Argo's template tags: `{{inputs.parameters.x}}`, `{{item}}`, `{{tasks.a...}}`."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from typing_extensions import override

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.formulas.computed import read_computed
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, scalar_text
from kfp_placement_engine.readers.text.tags import tags_in, with_replaced_tags
from kfp_placement_engine.readers.tree.expressions import (
    Composed,
    Constant,
    Expression,
    Input,
    Kept,
    Listed,
    LoopItem,
    Mapped,
    Runtime,
    Scope,
    Selected,
    TaskOutput,
    phase_subject,
    text_with_gaps,
    within,
)
from kfp_placement_engine.readers.tree.values import MAX_CHARACTERS, UNKNOWN, Value, known_text

_MARK = "tag-of-argo-"
_MARKED = re.compile(rf"{_MARK}([0-9]{{1,9}})\.")
_INPUT = re.compile(r"^inputs\.(?:parameters|artifacts)\.([^.\s]+)$")
_STATUS = re.compile(r"^(?:workflow|(?:tasks|steps)\.([^.\s]+))\.status$")
_OF_RUN = re.compile(r"^(?:(?:tasks|steps)\.[^.\s]+\.exitCode|workflow\..+)$")
_OF_TEMPLATE = re.compile(
    r"^(inputs\.(?:parameters|artifacts)\.[^.\s]+|(?:tasks|steps)\.[^.\s]+(?=\.\S))"
)
_INPUTS = ("parameters", "artifacts")
_GLOBAL = re.compile(r"^workflow\.parameters\.([^.\s]+)$")
_OUTPUT = re.compile(
    r"^(?:tasks|steps)\.([^.\s]+)\.outputs\.(?:(?:parameters|artifacts)\.([^.\s]+)|(result))$"
)


@dataclass(frozen=True, eq=False)
class TagReader:
    """Translator of one Workflow's text with tags to expressions.

    Attributes:
        parameters: values of the Workflow's parameters; None = it is given none.
        variables: values of other tags before the run, such as `workflow.name`.
        of_template: beginnings of the tags of one template, such as `tasks.a`; None = any.
        place: place of the tags, for messages; None = not known.
        has_items: whether there may be items of a loop.
        refused: tags so far of what the Workflow does not have, so that Argo refuses the Workflow,
            as text for people with their place and what may be meant.
    """

    parameters: Mapping[str, str | None]
    variables: Mapping[str, str]
    of_template: Collection[str] | None = None
    place: Place | None = None
    has_items: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    _objects: dict[str, Expression] = field(default_factory=dict, init=False)

    def with_values(self, variables: Mapping[str, str]) -> "TagReader":
        """Return a reader for which more tags have values; what it refuses is not judged."""
        return replace(self, variables={**self.variables, **variables}, refused={})

    def within(self, template: Fields, tasks: Iterable[str]) -> "TagReader":
        """Return a reader of the tasks of a template, which have these names."""
        inputs = template.fields("inputs")
        named = {
            f"inputs.{kind}.{each.text('name')}" for kind in _INPUTS for each in inputs.each(kind)
        }
        return replace(self, of_template=named.union(tasks))

    def at(self, place: Place, *, has_items: bool = True) -> "TagReader":
        """Return a reader of the tags at a place, where a loop may have items."""
        return replace(self, place=place, has_items=has_items)

    def text(self, value: Any) -> Expression:
        """Translate a scalar that may have tags."""
        if not isinstance(value, str):
            return Constant(value)
        return text_with_gaps(value, tags_in(value), lambda match: self._tag(match[1].strip()))

    def structure(self, value: Any) -> Expression:
        """Translate a mapping or list in which any text may have tags."""
        if isinstance(value, dict):
            pairs = tuple((key, self.structure(entry)) for key, entry in value.items())
            constants = {key: entry.value for key, entry in pairs if isinstance(entry, Constant)}
            return Constant(constants) if len(constants) == len(pairs) else Mapped(pairs)
        if isinstance(value, list):
            entries = tuple(self.structure(entry) for entry in value)
            plain = [entry.value for entry in entries if isinstance(entry, Constant)]
            return Constant(plain) if len(plain) == len(entries) else Listed(entries)
        return self.text(value)

    def kept_text(self, text: str) -> Expression:
        """Translate text in which the tags stay whose values are not known."""
        return text_with_gaps(
            text, tags_in(text), lambda match: Kept((self._tag(match[1].strip()),), match[0])
        )

    def document(self, text: str, place: Place) -> Expression:
        """Translate YAML in which a tag may stand for any part; never raises, as evaluating.

        Of YAML that can be read only when its tags are replaced, nothing is known if it then cannot
        be read either: Argo fails the step.
        """
        if has_open_tags(text):
            return _Document((self.kept_text(text),), self, place)
        return self.object_in(text, place)

    def object_in(self, text: str, place: Place) -> Expression:
        """Translate YAML as `document` does, each text once."""
        if text not in self._objects:
            # Texts of one manifest are about as long.
            if len(self._objects) * len(text) > MAX_CHARACTERS:
                self._objects.clear()
            try:
                read = self.structure(_one_object(self.raw_documents(text, place)))
            except InputError:
                read = Runtime()
            self._objects[text] = read
        return self._objects[text]

    def raw_documents(self, text: str, place: Place) -> list[Any]:
        """Read YAML whose tags stand for texts, in which they stay.

        Raises:
            InputError: the text is not YAML whatever the tags stand for.
        """
        tags: list[str] = []

        def mark(match: re.Match[str]) -> str:
            tags.append(match[0])
            return f"{_MARK}{len(tags) - 1}."

        data = with_replaced_tags(text, mark).encode("utf-8", "replace")
        documents = load_documents(data, name=place.spelled, max_bytes=RUN_MAX_BYTES)
        return [_with_tags(each, dict(enumerate(tags))) for each in documents]

    def plain(self, value: Any) -> str:
        """Replace the tags whose values are known before the run; the others stay."""
        if not isinstance(value, str):
            return "" if value is None else scalar_text(value)
        return with_replaced_tags(value, self._replacement) if "{{" in value else value

    def _replacement(self, match: re.Match[str]) -> str:
        expression = self._tag(match.group(1).strip())
        return str(expression.value) if isinstance(expression, Constant) else match.group(0)

    def _tag(self, tag: str) -> Expression:
        # Argo looks only for tags without expressions, before it starts a run.
        if tag.startswith("="):
            return read_computed(tag[1:], self._value)
        name, part = _GLOBAL.match(tag), _OF_TEMPLATE.match(tag)
        is_refused = name is not None and name[1] not in self.parameters
        if part is not None and self.of_template is not None:
            is_refused = part[1] not in self.of_template
        if is_refused or (not self.has_items and tag.partition(".")[0] == "item"):
            self.refused[tag] = f"{{{{{tag:.80}}}}}{self._remark(tag)}"
        return self._value(tag)

    def _remark(self, tag: str) -> str:
        """Return in brackets where a refused tag is, and which one may be meant."""
        names = [f"workflow.parameters.{name}" for name in self.parameters]
        near = get_close_matches(tag, [*names, *(self.of_template or ())], 1)
        where = [] if self.place is None else [self.place.spelled]
        words = "; ".join(where + [f"did you mean {{{{{name:.80}}}}}?" for name in near])
        return f" ({words})" if words else ""

    def _value(self, tag: str) -> Expression:
        if tag in self.variables:
            return Constant(self.variables[tag])
        if match := _GLOBAL.match(tag):
            value = self.parameters.get(match[1])
            return Runtime(tag) if value is None else Constant(value)
        if match := _INPUT.match(tag):
            return Input(match.group(1))
        if tag == "item":
            return LoopItem()
        if tag.startswith("item."):
            return Selected(LoopItem(), tag.removeprefix("item."))
        if match := _OUTPUT.match(tag):
            return TaskOutput(match.group(1), match.group(2) or match.group(3))
        if match := _STATUS.match(tag):
            return Runtime(phase_subject(match.group(1) or ""))
        if tag == "retries":
            # A plan is of first attempts.
            return Constant("0")
        return Runtime(tag if _OF_RUN.match(tag) else "")


@dataclass(frozen=True)
class _Document(Composed):
    """An object of Kubernetes in YAML that is read when the tags of its text are replaced.

    Attributes:
        tags: reader of the tags that are left, which stand for values.
        place: place of the text.
    """

    tags: TagReader
    place: Place

    @override
    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        text = known_text(self.parts[0].evaluate(scope))
        return UNKNOWN if text is None else self.tags.object_in(text, self.place).evaluate(scope)


def _one_object(documents: list[Any]) -> Any:
    """Return the objects of a manifest as one, which is a List if there are several."""
    if len(documents) == 1:
        return documents[0]
    return {"apiVersion": "v1", "kind": "List", "items": documents}


def has_open_tags(text: str) -> bool:
    """Return whether a tag of YAML may stand for more than text: it is a key or is not quoted."""
    count = sum(1 for _ in tags_in(text))
    if not count:
        return False
    # Where text may begin, this is a list.
    listed = f"[{_MARK}]"
    marked = with_replaced_tags(text, lambda _: listed)
    try:
        documents = load_documents(
            marked.encode("utf-8", "replace"), name="", max_bytes=RUN_MAX_BYTES
        )
    except InputError:
        return True
    return _occurrences(documents, listed) != count


def _occurrences(value: Any, text: str) -> int:
    """Return how often some text is in the texts of a plain value, keys apart."""
    if isinstance(value, dict):
        return sum(_occurrences(entry, text) for entry in value.values())
    if isinstance(value, list):
        return sum(_occurrences(entry, text) for entry in value)
    return value.count(text) if isinstance(value, str) else 0


def _with_tags(value: Any, tags: Mapping[int, str]) -> Any:
    """Return a document with the tags in place of their marks."""
    if isinstance(value, dict):
        return {_with_tags(key, tags): _with_tags(entry, tags) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_tags(entry, tags) for entry in value]
    if not isinstance(value, str) or _MARK not in value:
        return value
    return _MARKED.sub(lambda mark: tags.get(int(mark[1]), mark[0]), value)


def output_tasks(expression: Expression) -> list[str]:
    """Return the names of the tasks whose outputs an expression reads."""
    return [part.task for part in within(expression) if isinstance(part, TaskOutput)]
