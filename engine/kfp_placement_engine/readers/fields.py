"""A cursor over mappings that others wrote: typed reads, and a place that only an error spells.

A `Place` says where a value is. It is a chain of parts, and becomes text when a message needs it.
`Fields` is a mapping at a place. What is read of it has the type that is asked for, or is refused
with the place of the field: `file.yaml: node n1: spec.taints: must be a list, is text`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Self

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.model.quantities import parse_resources
from kfp_placement_engine.model.times import parse_time

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
_NOTHING: dict[str, Any] = {}


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

    Nothing (`null`) counts as the empty value of each type: people and programs leave fields out.
    """

    __slots__ = ("_above", "_form", "_joint", "_values")

    def __init__(
        self,
        form: str,
        values: tuple[Any, ...] = (),
        above: "Place | None" = None,
        joint: str | None = ": ",
    ) -> None:
        """Name a place.

        Args:
            form: its text; with values, a format that they fill.
            values: what fills the format; without any, the text stands as it is.
            above: the place that it is in, which is spelled before it; None = it is outermost.
            joint: what stands between it and the name of a field in it; None = a field in it is
                spelled as the place itself.
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
        """The place of a field; "" is the place itself."""
        if not name or self._joint is None:
            return self
        return Place(self._joint + name, (), self, ".")

    def closed(self) -> "Place":
        """The same place, where fields are spelled as the place itself."""
        return Place("", (), self, None)

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
            str(key): entry if type(entry) is str else Place(".{}", (key,), above=self).text(entry)
            for key, entry in self.mapping(value).items()
        }

    def count(self, value: Any, *, maximum: int = MAX_COUNT) -> int:
        """A whole number from 0 to `maximum`; text with digits is accepted.

        Raises:
            InputError: it is something else.
        """
        if value is None:
            return 0
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
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e300:
            raise self.error(f"{value!r:.40} must be a number of 0 or more")
        return float(value)


UNNAMED = Place("", joint="")
"""The place of something that a message need not name: a field of it is spelled by its key."""


class Fields:
    """A mapping and its place.

    A method reads the field `key`. Its place in a message is the mapping's, then `at`: the key
    unless something else is given, and nothing for "".

    Attributes:
        raw: the mapping as it came.
        place: where it is.
    """

    __slots__ = ("place", "raw")

    def __init__(self, raw: Mapping[str, Any], place: Place) -> None:
        """Read a mapping."""
        self.raw = raw
        self.place = place

    @classmethod
    def of(cls, value: Any, place: Place) -> Self:
        """Read a value that must be a mapping; nothing counts as an empty one.

        Raises:
            InputError: it is something else.
        """
        return cls(place.mapping(value), place)

    @classmethod
    def each_of(cls, value: Any, place: Place) -> Iterator[Self]:
        """Read a value that must be a list of mappings; each entry's place has its index.

        Raises:
            InputError: it is not a list, or an entry is not a mapping.
        """
        for index, entry in enumerate(place.entries(value)):
            yield cls.of(entry, place.item(index))

    def __contains__(self, key: object) -> bool:
        """Whether the field is there, be it empty."""
        return key in self.raw

    def __bool__(self) -> bool:
        """Whether there is any field."""
        return bool(self.raw)

    def get(self, key: str, default: object = None) -> object:
        """A field as it came."""
        return self.raw.get(key, default)

    def at(self, form: str, *values: Any) -> "Fields":
        """The same mapping at a place of its own within its place, as in `Place.then`."""
        return Fields(self.raw, self.place.then(form, *values))

    def closed(self) -> "Fields":
        """The same mapping, whose fields are spelled as the mapping itself."""
        return Fields(self.raw, self.place.closed())

    def error(self, message: str) -> InputError:
        """The error to raise: the mapping's place, and what is wrong there."""
        return self.place.error(message)

    def where(self, key: str, at: str | None = None) -> Place:
        """The place of a field."""
        return self.place.field(key if at is None else at)

    def text(self, key: str, at: str | None = None) -> str:
        """Text; numbers and truth values count as what they look like in YAML.

        Raises:
            InputError: it is a mapping or a list.
        """
        value = self.raw.get(key)
        if type(value) is str:
            return value
        return "" if value is None else self.where(key, at).text(value)

    def name(self, key: str, at: str | None = None) -> str:
        """Text that is not empty.

        Raises:
            InputError: it is empty, or a mapping or a list.
        """
        value = self.raw.get(key)
        return value if value and type(value) is str else self.where(key, at).name(value)

    def texts(self, key: str, at: str | None = None) -> tuple[str, ...]:
        """A list of texts.

        Raises:
            InputError: it is not a list, or an entry is a mapping or a list.
        """
        value = self.raw.get(key)
        return () if value is None else self.where(key, at).texts(value)

    def text_mapping(self, key: str, at: str | None = None) -> dict[str, str]:
        """A mapping of texts, such as labels.

        Raises:
            InputError: it is not a mapping, or a value is a mapping or a list.
        """
        value = self.raw.get(key)
        return {} if value is None else self.where(key, at).text_mapping(value)

    def resources(self, key: str, at: str | None = None) -> dict[str, int]:
        """A Kubernetes resource list, in canonical units.

        Raises:
            InputError: it is not a mapping.
            QuantityError: an amount is malformed, negative or beyond int64.
        """
        value = self.raw.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.where(key, at).error(f"must be a mapping, is {kind_of(value)}")
        try:
            return parse_resources(value)
        except QuantityError as error:
            raise self.where(key, at).error(str(error), QuantityError) from error

    def count(self, key: str, at: str | None = None, *, maximum: int = MAX_COUNT) -> int:
        """A whole number from 0 to `maximum`; text with digits is accepted.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        return 0 if value is None else self.where(key, at).count(value, maximum=maximum)

    def number(self, key: str, at: str | None = None) -> float:
        """A finite number of 0 or more.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        return 0.0 if value is None else self.where(key, at).number(value)

    def flag(self, key: str, at: str | None = None) -> bool:
        """True or false.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.where(key, at).error(f"must be true or false, is {kind_of(value)}")
        return value

    def moment(self, key: str, at: str | None = None) -> datetime | None:
        """A time as the API server writes it, of UTC unless it says otherwise; None = nothing.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        if value is None:
            return None
        try:
            return parse_time(str(value))
        except InputError as error:
            raise self.where(key, at).error(f"{value!r:.40} is no time") from error

    def mapping(self, key: str, at: str | None = None) -> dict[str, Any]:
        """A mapping as it came.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        return {} if value is None else self.where(key, at).mapping(value)

    def entries(self, key: str, at: str | None = None) -> list[Any]:
        """A list as it came.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        return [] if value is None else self.where(key, at).entries(value)

    def fields(self, key: str, at: str | None = None) -> "Fields":
        """A mapping whose fields are spelled below it: `spec.nodeName`.

        Raises:
            InputError: it is something else.
        """
        return Fields.of(self.raw.get(key), self.where(key, at))

    def flat(self, key: str, at: str | None = None) -> "Fields":
        """A mapping whose fields are spelled like those of this one: `nodeName` for one of `spec`.

        Raises:
            InputError: it is something else.
        """
        value = self.raw.get(key)
        if isinstance(value, dict):
            return Fields(value, self.place)
        if value is not None:
            raise self.where(key, at).error(f"must be a mapping, is {kind_of(value)}")
        return Fields(_NOTHING, self.place)

    def each(self, key: str, at: str | None = None) -> "Iterator[Fields]":
        """The mappings of a list, whose fields are spelled below their index: `volumes[2].name`.

        Raises:
            InputError: it is not a list, or an entry is not a mapping.
        """
        value = self.raw.get(key)
        return iter(()) if value is None else Fields.each_of(value, self.where(key, at))

    def each_named(
        self, key: str, form: str, at: str | None = None
    ) -> "Iterator[tuple[str, Fields]]":
        """The mappings of a mapping by name; each has a place of its own within this one's.

        Args:
            key: of the mapping of mappings.
            form: what is spelled after this mapping's place, such as `": input {:.80}"`.
            at: place of the mapping of mappings.

        Raises:
            InputError: it is not a mapping, or an entry is not.
        """
        for name, entry in self.mapping(key, at).items():
            yield name, Fields.of(entry, self.place.then(form, name))

    def each_flat(self, key: str, at: str | None = None) -> "Iterator[Fields]":
        """The mappings of a list, whose fields are spelled like those of this mapping.

        Raises:
            InputError: it is not a list, or an entry is not a mapping.
        """
        listed = self.raw.get(key)
        if listed is None:
            return
        if not isinstance(listed, list):
            raise self.where(key, at).error(f"must be a list, is {kind_of(listed)}")
        place = self.place
        for entry in listed:
            if isinstance(entry, dict):
                yield Fields(entry, place)
            elif entry is None:
                yield Fields(_NOTHING, place)
            else:
                raise self.where(key, at).error(f"must be a mapping, is {kind_of(entry)}")
