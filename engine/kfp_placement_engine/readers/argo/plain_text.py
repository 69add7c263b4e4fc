"""A reader of Argo's template tags: `{{inputs.parameters.x}}`, `{{item}}`, `{{tasks.a...}}`."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kfp_placement_engine.readers.formulas.computed import read_computed
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents
from kfp_placement_engine.readers.text.place import Place, scalar_text
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expression,
    Input,
    Listed,
    LoopItem,
    Mapped,
    Runtime,
    Selected,
    TaskOutput,
    TaskPhase,
    text_with_gaps,
    within,
)

_TAG = re.compile(r"\{\{(=.*?|[^{}]*)\}\}", re.DOTALL)
_MARK = "tag-of-argo-"
_MARKED = re.compile(rf"{_MARK}([0-9]{{1,9}})\.")
_INPUT = re.compile(r"^inputs\.(?:parameters|artifacts)\.([^.\s]+)$")
_STATUS = re.compile(r"^(?:workflow|(?:tasks|steps)\.([^.\s]+))\.status$")
_GLOBAL = re.compile(r"^workflow\.parameters\.([^.\s]+)$")
_OUTPUT = re.compile(
    r"^(?:tasks|steps)\.([^.\s]+)\.outputs\.(?:(?:parameters|artifacts)\.([^.\s]+)|(result))$"
)


class TagReader:
    """Translator of one Workflow's text with tags to expressions.

    Args:
        parameters: values of the Workflow's parameters, without those that have none.
        variables: values of other tags that are known before the run, such as `workflow.name`.
    """

    def __init__(self, parameters: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self._parameters = parameters
        self._variables = variables

    def with_values(self, variables: Mapping[str, str]) -> "TagReader":
        """Return a reader for which more tags have values."""
        return TagReader(self._parameters, {**self._variables, **variables})

    def text(self, value: Any) -> Expression:
        """Translate a scalar that may have tags."""
        if not isinstance(value, str):
            return Constant(value)
        return text_with_gaps(value, _tags(value), lambda match: self._tag(match[1].strip()))

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

    def document(self, text: str, place: Place) -> Expression:
        """Translate a YAML document, in which a tag may be wherever a value is.

        Raises:
            InputError: the text is not YAML whatever the tags stand for.
        """
        return self.structure(self.raw_document(text, place))

    def raw_document(self, text: str, place: Place) -> Any:
        """Read a YAML document like `document`, in whose texts the tags stay.

        Raises:
            InputError: the text is not YAML whatever the tags stand for.
        """
        tags: list[str] = []

        def mark(match: re.Match[str]) -> str:
            tags.append(match[0])
            return f"{_MARK}{len(tags) - 1}."

        data = _with_replaced(text, mark).encode("utf-8", "replace")
        document = load_documents(data, name=place.spelled, max_bytes=RUN_MAX_BYTES)[0]
        return _with_tags(document, dict(enumerate(tags)))

    def plain(self, value: Any) -> str:
        """Replace the tags whose values are known before the run; the others stay."""
        if not isinstance(value, str):
            return "" if value is None else scalar_text(value)
        return _with_replaced(value, self._replacement) if "{{" in value else value

    def _replacement(self, match: re.Match[str]) -> str:
        expression = self._tag(match.group(1).strip())
        return str(expression.value) if isinstance(expression, Constant) else match.group(0)

    def _tag(self, tag: str) -> Expression:
        if tag.startswith("="):
            return read_computed(tag[1:], self._tag)
        if tag in self._variables:
            return Constant(self._variables[tag])
        if match := _GLOBAL.match(tag):
            name = match.group(1)
            return Constant(self._parameters[name]) if name in self._parameters else Runtime()
        if match := _INPUT.match(tag):
            return Input(match.group(1))
        if tag == "item":
            return LoopItem()
        if tag.startswith("item."):
            return Selected(LoopItem(), tag.removeprefix("item."))
        if match := _OUTPUT.match(tag):
            return TaskOutput(match.group(1), match.group(2) or match.group(3))
        if match := _STATUS.match(tag):
            return TaskPhase(match.group(1) or "")
        if tag == "retries":
            # A plan is of first attempts.
            return Constant("0")
        return Runtime()


def _end_of_tags(text: str) -> int:
    """Return where the last tag ends; a search for the end of a later one would find none."""
    return text.rfind("}}") + len("}}")


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Return the matches of tags, in time that grows with the length of the text."""
    return _TAG.finditer(text, 0, _end_of_tags(text))


def _with_replaced(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    end = _end_of_tags(text)
    return _TAG.sub(replacement, text[:end]) + text[end:]


def _with_tags(value: Any, tags: Mapping[int, str]) -> Any:
    """Return a document with the tags in place of their marks."""
    if isinstance(value, dict):
        return {key: _with_tags(entry, tags) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_tags(entry, tags) for entry in value]
    if not isinstance(value, str) or _MARK not in value:
        return value
    return _MARKED.sub(lambda mark: tags.get(int(mark[1]), mark[0]), value)


def output_tasks(expression: Expression) -> list[str]:
    """Return the names of the tasks whose outputs an expression reads."""
    return [part.task for part in within(expression) if isinstance(part, TaskOutput)]
