"""Forms of files that people write by hand: values of each key, and all errors at once.

A `Form` reads a mapping. `Fields` ignores keys that it does not know, since objects of others have
many; a form refuses them, since they are typing errors.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.readers.text.place import Place

EntryT = TypeVar("EntryT")

Reader = Callable[[Place, Any], Any]
"""Reader of a key's value at its place, such as the methods of `Place`."""


class FormError(InputError):
    """The problems of a part of a file, each with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Form(Generic[EntryT]):
    """Form of a mapping: its keys, and the entry that is made from their values.

    Attributes:
        entry: function that makes the entry; its parameters are the keys in snake case.
        keys: readers of the values, by key in camel case.
        required: keys that must be in the mapping.
        others: advice for wrong keys that people often write, by key.
    """

    entry: Callable[..., EntryT]
    keys: Mapping[str, Reader]
    required: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, place: Place, value: Any) -> EntryT:
        """Read a mapping; a key that holds nothing counts as left out.

        Raises:
            FormError: keys are missing or unknown, or have a bad value.
            InputError: the value is not a mapping.
        """
        given = {key: each for key, each in place.mapping(value).items() if each is not None}
        problems: list[str] = []
        values = {}
        for key, read in self.keys.items():
            with _collected(problems):
                if key in given:
                    values[snake_case(key)] = read(place.field(key), given[key])
                elif key in self.required:
                    raise place.field(key).error("is missing")
        problems += [self._unknown(str(key), place) for key in given if key not in self.keys]
        if problems:
            raise FormError(problems)
        return self.entry(**values)

    def _unknown(self, key: str, place: Place) -> str:
        advice = self.others.get(key) or key_advice(key, tuple(self.keys))
        return str(place.field(key[:80]).error(f"is not known here; {advice}"))


def key_advice(key: str, keys: Sequence[str], nouns: str = "keys") -> str:
    """Return advice for a key that is not known: the nearest one, or all."""
    near = difflib.get_close_matches(key[:80], keys, n=1)
    return f"did you mean {near[0]}?" if near else f"the {nouns} are {', '.join(keys)}"


def list_of(read: Reader) -> Reader:
    """Make a reader of a list, which returns a tuple."""

    def read_list(place: Place, value: Any) -> tuple[Any, ...]:
        entries = enumerate(place.entries(value))
        return tuple(_read_each(read, ((place.item(index), each) for index, each in entries)))

    return read_list


def mapping_of(read: Reader) -> Reader:
    """Make a reader of a mapping of names to values."""

    def read_mapping(place: Place, value: Any) -> dict[str, Any]:
        given = {str(key): each for key, each in place.mapping(value).items()}
        places = ((place.entry(key), each) for key, each in given.items())
        return dict(zip(given, _read_each(read, places), strict=True))

    return read_mapping


def _read_each(read: Reader, values: Iterable[tuple[Place, Any]]) -> list[Any]:
    """Read values at their places.

    Raises:
        FormError: values are wrong; the error has all problems.
    """
    problems: list[str] = []
    read_values = []
    for place, value in values:
        with _collected(problems):
            read_values.append(read(place, value))
    if problems:
        raise FormError(problems)
    return read_values


def amount(parse: Callable[[Any], Any]) -> Reader:
    """Make a reader from a parser of quantities, durations or latencies."""

    def read_amount(place: Place, value: Any) -> Any:
        try:
            return parse(value)
        except QuantityError as error:
            raise place.error(str(error)) from error

    return read_amount


def number_reader(maximum: int) -> Reader:
    """Make a reader of a whole number from 1 to `maximum`."""

    def read_number(place: Place, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
            raise place.error(f"{value!r:.60} is not a whole number from 1 to {maximum}")
        return value

    return read_number


@contextmanager
def _collected(problems: list[str]) -> Iterator[None]:
    """Collect problems instead of raising them."""
    try:
        yield
    except FormError as error:
        problems += error.problems
    except InputError as error:
        problems.append(str(error))


def snake_case(key: str) -> str:
    """Return the name of a key in Python: `storeBandwidth` becomes `store_bandwidth`."""
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", key)


def camel_case(name: str) -> str:
    """Return the key of a name in Python: `store_bandwidth` becomes `storeBandwidth`."""
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)
