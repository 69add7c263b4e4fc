"""The place of a value that others wrote, and typed reads of values with errors that spell it.

A `Place` is a chain of parts, and becomes text only when a message needs it:
`file.yaml: node n1: spec.taints: must be a list, is text`.
"""

from typing import Any

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.units.quantities import parse_resource

MAX_COUNT = 2**31
"""Largest whole number that is read by default."""

_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "empty",
}


def kind_of(value: object) -> str:
    """Return the name of a value's type for people."""
    return _KINDS.get(type(value), type(value).__name__)


def scalar_text(value: Any) -> str:
    """Return a scalar as Kubernetes' tools write it: `true`, `3`, `0.5`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def mapping_or_empty(value: object) -> dict[str, Any]:
    """Return a mapping unchanged, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def text_or_empty(value: object) -> str:
    """Return text unchanged, and "" for anything else."""
    return value if isinstance(value, str) else ""


class Place:
    """Place of a value, spelled only when a message needs it, with reads of a value there.

    Nothing (`null`) counts as the empty text, list or mapping: people leave fields out.
    """

    __slots__ = ("_above", "_form", "_joint", "_values")

    def __init__(
        self,
        form: str,
        values: tuple[Any, ...] = (),
        above: "Place | None" = None,
        joint: str = ": ",
    ) -> None:
        """Name a place.

        Args:
            form: text of the place, or with values a format that they fill.
            values: values that fill the format; without any, the text is used unchanged.
            above: place around this one, which is spelled before it; None = it is the outermost.
            joint: text between this place and the name of a field in it.
        """
        self._form = form
        self._values = values
        self._above = above
        self._joint = joint

    @property
    def spelled(self) -> str:
        """Text of the place, the outermost part first."""
        own = self._form.format(*self._values) if self._values else self._form
        return own if self._above is None else f"{self._above.spelled}{own}"

    def field(self, name: str) -> "Place":
        """Return the place of a field."""
        return Place(self._joint + name, (), self, ".")

    def entry(self, name: str) -> "Place":
        """Return the place of an entry of a mapping, whose name others chose."""
        return Place(".{:.80}", (name,), self, ".")

    def item(self, index: int) -> "Place":
        """Return the place of an entry of a list."""
        return Place("[{}]", (index,), self, ".")

    def then(self, form: str, *values: Any) -> "Place":
        """Return a named place within this one.

        Args:
            form: format of the text after this place, such as `": task {:.80}"`.
            values: values that fill the format.
        """
        return Place(form, values, self)

    def error(self, message: str, kind: type[InputError] = InputError) -> InputError:
        """Return the error to raise: the place, and what is wrong there."""
        return kind(f"{self.spelled}: {message}")

    def mapping(self, value: Any) -> dict[str, Any]:
        """Read a mapping.

        Raises:
            InputError: the value is something else.
        """
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(f"must be a mapping, is {kind_of(value)}")
        return value

    def entries(self, value: Any) -> list[Any]:
        """Read a list.

        Raises:
            InputError: the value is something else.
        """
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"must be a list, is {kind_of(value)}")
        return value

    def text(self, value: Any) -> str:
        """Read text; numbers and truth values count as their text in YAML.

        Raises:
            InputError: the value is a mapping or a list.
        """
        if value is None:
            return ""
        if isinstance(value, dict | list):
            raise self.error(f"must be text, is {kind_of(value)}")
        return scalar_text(value)

    def name(self, value: Any) -> str:
        """Read text that is not empty.

        Raises:
            InputError: the value is empty, or a mapping or a list.
        """
        text = self.text(value)
        if not text:
            raise self.error("is empty; a name is needed")
        return text

    def texts(self, value: Any) -> tuple[str, ...]:
        """Read a list of texts.

        Raises:
            InputError: the value is not a list, or an entry is a mapping or a list.
        """
        return tuple(
            entry if type(entry) is str else self.item(index).text(entry)
            for index, entry in enumerate(self.entries(value))
        )

    def text_mapping(self, value: Any) -> dict[str, str]:
        """Read a mapping of texts, such as labels.

        Raises:
            InputError: the value is not a mapping, or an entry is a mapping or a list.
        """
        return {
            str(key): entry if type(entry) is str else self.entry(str(key)).text(entry)
            for key, entry in self.mapping(value).items()
        }

    def resources(self, value: Any, *, is_stored: bool = False) -> dict[str, int]:
        """Read a Kubernetes resource list, in canonical units.

        Args:
            value: the list.
            is_stored: whether an API server has stored it, as for `parse_resource`.

        Raises:
            InputError: the value is not a mapping.
            QuantityError: an amount is malformed, negative or beyond int64.
        """
        try:
            return {
                name: parse_resource(name, text, is_stored=is_stored)
                for name, text in self.mapping(value).items()
            }
        except QuantityError as error:
            raise self.error(str(error), QuantityError) from error

    def flag(self, value: Any) -> bool:
        """Read true or false.

        Raises:
            InputError: the value is something else.
        """
        if not isinstance(value, bool):
            raise self.error(f"must be true or false, is {kind_of(value)}")
        return value

    def count(self, value: Any, *, maximum: int = MAX_COUNT) -> int:
        """Read a whole number from 0 to `maximum`; text with digits is accepted.

        Raises:
            InputError: the value is something else.
        """
        number = value
        if isinstance(number, str) and number.strip().lstrip("+").isdecimal() and len(number) < 20:
            number = int(number)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= maximum:
            raise self.error(f"{value!r:.40} must be a whole number from 0 to {maximum}")
        return number

    def number(self, value: Any) -> float:
        """Read a finite number of 0 or more.

        Raises:
            InputError: the value is something else.
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e300:
            raise self.error(f"{value!r:.40} must be a number of 0 or more")
        return float(value)


UNNAMED = Place("", joint="")
"""Place without a name: a field in it is spelled by its key alone."""
