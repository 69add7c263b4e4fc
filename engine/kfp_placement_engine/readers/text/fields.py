"""A mapping that others wrote, with typed reads and a place that only an error spells.

`Fields` is a mapping at a `Place`. A value that is read has the wanted type, or is refused with the
place of the field: `file.yaml: node n1: spec.taints: must be a list, is text`.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.place import MAX_COUNT, Place
from kfp_placement_engine.units.times import parse_time

ValueT = TypeVar("ValueT")

RawMapping = Mapping[str, Any]
"""Mapping as others wrote it, such as an object of Kubernetes."""


class Fields:
    """A mapping at its place.

    A method reads the field `key`; in a message its place is the mapping's, then the key.

    Attributes:
        raw: the mapping, as it came.
        place: place of the mapping.
    """

    __slots__ = ("place", "raw")

    def __init__(self, raw: RawMapping, place: Place) -> None:
        """Take a mapping."""
        self.raw = raw
        self.place = place

    @classmethod
    def of(cls, value: Any, place: Place) -> Self:
        """Take a value that must be a mapping; nothing counts as an empty one.

        Raises:
            InputError: the value is something else.
        """
        return cls(place.mapping(value), place)

    @classmethod
    def each_of(cls, value: Any, place: Place) -> Iterator[Self]:
        """Yield the entries of a list of mappings; each entry's place has its index.

        Raises:
            InputError: the value is not a list, or an entry is not a mapping.
        """
        for index, entry in enumerate(place.entries(value)):
            yield cls.of(entry, place.item(index))

    def __contains__(self, key: object) -> bool:
        """Return whether the mapping has a field, even an empty one."""
        return key in self.raw

    def __bool__(self) -> bool:
        """Return whether the mapping has any field."""
        return bool(self.raw)

    def get(self, key: str, default: object = None) -> object:
        """Return a field, as it came."""
        return self.raw.get(key, default)

    def at(self, form: str, *values: Any) -> "Fields":
        """Return the same mapping at a named place within its place, as in `Place.then`."""
        return Fields(self.raw, self.place.then(form, *values))

    def error(self, message: str) -> InputError:
        """Return the error to raise: the mapping's place, and what is wrong there."""
        return self.place.error(message)

    def where(self, key: str) -> Place:
        """Return the place of a field."""
        return self.place.field(key)

    def text(self, key: str) -> str:
        """Read text; numbers and truth values count as their text in YAML.

        Raises:
            InputError: the value is a mapping or a list.
        """
        value = self.raw.get(key)
        if type(value) is str:
            return value
        return "" if value is None else self.where(key).text(value)

    def name(self, key: str) -> str:
        """Read text that is not empty.

        Raises:
            InputError: the value is empty, or a mapping or a list.
        """
        value = self.raw.get(key)
        return value if value and type(value) is str else self.where(key).name(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts.

        Raises:
            InputError: the value is not a list, or an entry is a mapping or a list.
        """
        return self._read(key, Place.texts, ())

    def text_mapping(self, key: str) -> dict[str, str]:
        """Read a mapping of texts, such as labels.

        Raises:
            InputError: the value is not a mapping, or an entry is a mapping or a list.
        """
        return self._read(key, Place.text_mapping, {})

    def resources(self, key: str) -> dict[str, int]:
        """Read a Kubernetes resource list, in canonical units.

        Raises:
            InputError: the value is not a mapping.
            QuantityError: an amount is malformed, negative or beyond int64.
        """
        return self._read(key, Place.resources, {})

    def stored_resources(self, key: str) -> dict[str, int]:
        """Read a resource list that an API server has stored; the largest amount is that of int64.

        Raises:
            InputError: the value is not a mapping.
            QuantityError: an amount is malformed or negative.
        """
        return self._read(key, partial(Place.resources, is_stored=True), {})

    def _read(self, key: str, read: Callable[[Place, Any], ValueT], nothing: ValueT) -> ValueT:
        value = self.raw.get(key)
        return nothing if value is None else read(self.where(key), value)

    def count(self, key: str, *, maximum: int = MAX_COUNT) -> int:
        """Read a whole number from 0 to `maximum`; text with digits is accepted.

        Raises:
            InputError: the value is something else.
        """
        value = self.raw.get(key)
        return 0 if value is None else self.where(key).count(value, maximum=maximum)

    def number(self, key: str) -> float:
        """Read a finite number of 0 or more.

        Raises:
            InputError: the value is something else.
        """
        return self._read(key, Place.number, 0.0)

    def flag(self, key: str) -> bool:
        """Read true or false.

        Raises:
            InputError: the value is something else.
        """
        return self._read(key, Place.flag, False)

    def moment(self, key: str) -> datetime | None:
        """Read a time of the API server, in UTC unless it has an offset; None for an empty field.

        Raises:
            InputError: the value is something else.
        """
        value = self.raw.get(key)
        if value is None:
            return None
        try:
            return parse_time(str(value))
        except InputError as error:
            raise self.where(key).error(f"{value!r:.40} is not a time") from error

    def mapping(self, key: str) -> dict[str, Any]:
        """Read a mapping, as it came.

        Raises:
            InputError: the value is something else.
        """
        value = self.raw.get(key)
        if value is None:
            return {}
        return value if type(value) is dict else self.where(key).mapping(value)

    def entries(self, key: str) -> list[Any]:
        """Read a list, as it came.

        Raises:
            InputError: the value is something else.
        """
        value = self.raw.get(key)
        if value is None:
            return []
        return value if type(value) is list else self.where(key).entries(value)

    def fields(self, key: str) -> "Fields":
        """Read a mapping whose fields are spelled below it: `spec.nodeName`.

        Raises:
            InputError: the value is something else.
        """
        return Fields.of(self.raw.get(key), self.where(key))

    def flat(self, key: str) -> "Fields":
        """Read a mapping whose fields are spelled as if they were of this one: `nodeName`.

        Raises:
            InputError: the value is something else.
        """
        value = self.raw.get(key)
        if type(value) is dict:
            return Fields(value, self.place)
        return Fields({} if value is None else self.where(key).mapping(value), self.place)

    def each(self, key: str) -> "Iterator[Fields]":
        """Yield the mappings of a list, spelled with their index: `volumes[2].name`.

        Raises:
            InputError: the value is not a list, or an entry is not a mapping.
        """
        return Fields.each_of(self.raw.get(key), self.where(key))

    def each_named(self, key: str) -> "Iterator[tuple[str, Fields]]":
        """Yield the mappings of a mapping with their names, which are part of their places.

        Raises:
            InputError: the value is not a mapping, or an entry is not.
        """
        place = self.where(key)
        for name, entry in self.mapping(key).items():
            yield name, Fields.of(entry, place.entry(name))

    def each_flat(self, key: str) -> "Iterator[Fields]":
        """Yield the mappings of a list, whose fields are spelled like those of this mapping.

        Raises:
            InputError: the value is not a list, or an entry is not a mapping.
        """
        for entry in self.entries(key):
            flat = entry if type(entry) is dict else self.where(key).mapping(entry)
            yield Fields(flat, self.place)
