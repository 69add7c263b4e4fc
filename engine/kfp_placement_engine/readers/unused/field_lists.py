"""Lists of the fields of one type of object, by what a plan does with them.

A field is *modelled* if readers turn it into something that planner or `check` use, *irrelevant* if
it changes neither nodes nor times of a run, and *named* if it may change them but is not used.
Every field of a type is in one of its lists: tests compare them with the names that Argo, KFP and
Kubernetes have.

A module of its own because all tables of fields have this form.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Effect(NamedTuple):
    """Effect of a field that a plan does not use.

    Attributes:
        text: text for people, after `priorityClassName is not used: `.
        applies: whether a value has the effect.
    """

    text: str
    applies: Callable[[object], bool] = bool


class FieldList:
    """Fields of one type of object.

    Attributes:
        effects: effects of the fields that are not used.
        types: types of the modelled fields whose own fields are listed.
        names: names of all fields.
        plain: names of the fields that are used or unimportant as a whole.
    """

    __slots__ = ("effects", "names", "plain", "types")

    def __init__(
        self,
        *,
        modelled: str = "",
        irrelevant: str = "",
        named: Mapping[str, Effect] | None = None,
        types: "Mapping[str, FieldType] | None" = None,
    ) -> None:
        """Take the lists.

        Args:
            modelled: names of fields that are used as a whole.
            irrelevant: names of fields that are of no importance as a whole.
            named: effects of the fields that are not used.
            types: types of further modelled fields.
        """
        self.effects = dict(named or {})
        self.types = dict(types or {})
        listed = (*modelled.split(), *irrelevant.split(), *self.effects, *self.types)
        self.names = frozenset(listed)
        self.plain = self.names - self.effects.keys() - self.types.keys()
        if len(self.names) < len(listed):
            raise ValueError(f"a field is in two lists: {sorted(listed)}")

    def with_fields(self, irrelevant: str) -> "FieldList":
        """Return the list of a type that has further fields, which are irrelevant."""
        both = FieldList(irrelevant=irrelevant, named=self.effects, types=self.types)
        both.names |= self.names
        both.plain |= self.plain
        return both

    def with_types(self, **types: "FieldType") -> "FieldList":
        """Return the list in which further modelled fields have their own fields listed."""
        both = FieldList(named=self.effects, types={**self.types, **types})
        both.names |= self.names
        both.plain |= self.plain - types.keys()
        return both

    def all_plain(self, value: object) -> bool:
        """Return whether a value is an object of which every field is plain, as most are."""
        return isinstance(value, dict) and self.plain.issuperset(value)


class MappingOf(NamedTuple):
    """Objects of one type by names that authors choose.

    Attributes:
        each: type of the objects.
    """

    each: FieldList


FieldType = FieldList | MappingOf
"""Type of a field; a list of objects counts as each of them, text as the object in it."""
