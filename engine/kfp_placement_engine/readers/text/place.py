"""Where a value is that others wrote, spelled only by an error; and what a value there must be.

A `Place` is a chain of parts, and becomes text when a message needs it:
`file.yaml: node n1: spec.taints: must be a list, is text`.
"""

from typing import Any

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.units.quantities import parse_resources

MAX_COUNT = 2**31
"""The largest whole number that is read, where nothing else is said."""

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
    """What a value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)


def scalar_text(value: Any) -> str:
    """How Kubernetes tools write a scalar: `true`, `3`, `0.5`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


class Place:
    """Where a value is, spelled only when a message needs it; and what a value there must be.

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
            form: its text; with values, a format that they fill.
            values: what fills the format; without any, the text stands as it is.
            above: the place that it is in, which is spelled before it; None = it is outermost.
            joint: what is between it and the name of a field in it.
        """
        self._form = form
        self._values = values
        self._above = above
        self._joint = joint

    @property
    def spelled(self) -> str:
        """The place as text, the outermost first."""
        own = self._form.format(*self._values) if self._values else self._form
        return own if self._above is None else f"{self._above.spelled}{own}"

    def field(self, name: str) -> "Place":
        """The place of a field."""
        return Place(self._joint + name, (), self, ".")

    def entry(self, name: str) -> "Place":
        """The place of an entry of a mapping, whose name others chose."""
        return Place(".{:.80}", (name,), self, ".")

    def item(self, index: int) -> "Place":
        """The place of an entry of a list."""
        return Place("[{}]", (index,), self, ".")

    def then(self, form: str, *values: Any) -> "Place":
        """A place within this one that has a name of its own.

        Args:
            form: what is spelled after this place, such as `": task {:.80}"`.
            values: what fills it.
        """
        return Place(form, values, self)

    def error(self, message: str, kind: type[InputError] = InputError) -> InputError:
        """The error to raise: the place, and what is wrong there."""
        return kind(f"{self.spelled}: {message}")

    def mapping(self, value: Any) -> dict[str, Any]:
        """A mapping.

        Raises:
            InputError: it is something else.
        """
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(f"must be a mapping, is {kind_of(value)}")
        return value

    def entries(self, value: Any) -> list[Any]:
        """A list.

        Raises:
            InputError: it is something else.
        """
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"must be a list, is {kind_of(value)}")
        return value

    def text(self, value: Any) -> str:
        """Text; numbers and truth values count as what they look like in YAML.

        Raises:
            InputError: it is a mapping or a list.
        """
        if value is None:
            return ""
        if isinstance(value, dict | list):
            raise self.error(f"must be text, is {kind_of(value)}")
        return scalar_text(value)

    def name(self, value: Any) -> str:
        """Text that is not empty.

        Raises:
            InputError: it is empty, or a mapping or a list.
        """
        text = self.text(value)
        if not text:
            raise self.error("is empty; a name is needed")
        return text

    def texts(self, value: Any) -> tuple[str, ...]:
        """A list of texts.

        Raises:
            InputError: it is not a list, or an entry is a mapping or a list.
        """
        return tuple(
            entry if type(entry) is str else self.item(index).text(entry)
            for index, entry in enumerate(self.entries(value))
        )

    def text_mapping(self, value: Any) -> dict[str, str]:
        """A mapping of texts, such as labels.

        Raises:
            InputError: it is not a mapping, or a value is a mapping or a list.
        """
        return {
            str(key): entry if type(entry) is str else self.entry(str(key)).text(entry)
            for key, entry in self.mapping(value).items()
        }

    def resources(self, value: Any) -> dict[str, int]:
        """A Kubernetes resource list, in canonical units.

        Raises:
            InputError: it is not a mapping.
            QuantityError: an amount is malformed, negative or beyond int64.
        """
        try:
            return parse_resources(self.mapping(value))
        except QuantityError as error:
            raise self.error(str(error), QuantityError) from error

    def flag(self, value: Any) -> bool:
        """True or false.

        Raises:
            InputError: it is something else.
        """
        if not isinstance(value, bool):
            raise self.error(f"must be true or false, is {kind_of(value)}")
        return value

    def count(self, value: Any, *, maximum: int = MAX_COUNT) -> int:
        """A whole number from 0 to `maximum`; text with digits is accepted.

        Raises:
            InputError: it is something else.
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
        """A finite number of 0 or more.

        Raises:
            InputError: it is something else.
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e300:
            raise self.error(f"{value!r:.40} must be a number of 0 or more")
        return float(value)


UNNAMED = Place("", joint="")
"""The place of something that a message need not name: a field of it is spelled by its key."""
