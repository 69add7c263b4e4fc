"""`{{...}}` in templates, replaced as Argo does it: text by text, in keys and values alike.

What cannot be resolved stays as it is, unless its prefix is named as strict. Replaced text is not
looked at again in the same pass. Argo's expressions (`{{=...}}`) are not evaluated: KFP has none.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.controlplane.argo.exceptions import UnresolvedError

_TAG = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def substitute(value: Any, values: Mapping[str, str], strict: Sequence[str] = ()) -> Any:
    """A JSON value with its placeholders replaced; parts without any are shared, not copied.

    Args:
        value: the JSON value.
        values: name -> text.
        strict: prefixes, such as `tasks`, of names that must be resolved.

    Raises:
        UnresolvedError: a strict name is missing.
    """
    if isinstance(value, str):
        return substitute_text(value, values, strict) if "{{" in value else value
    if isinstance(value, dict):
        return _entries(value, values, strict)
    if isinstance(value, list):
        items = [substitute(item, values, strict) for item in value]
        changed = any(new is not old for new, old in zip(items, value, strict=True))
        return items if changed else value
    return value


def _entries(value: dict[str, Any], values: Mapping[str, str], strict: Sequence[str]) -> Any:
    changed = False
    entries = {}
    for key, entry in value.items():
        new_key, new = key, entry
        # Most entries are texts without placeholders: no call for these.
        if isinstance(entry, str):
            if "{{" in entry:
                new = substitute_text(entry, values, strict)
        elif isinstance(entry, (dict, list)):
            new = substitute(entry, values, strict)
        if "{{" in key:
            new_key = substitute_text(key, values, strict)
        changed = changed or new is not entry or new_key is not key
        entries[new_key] = new
    return entries if changed else value


def substitute_text(text: str, values: Mapping[str, str], strict: Sequence[str] = ()) -> str:
    """A text with its placeholders replaced."""
    if "{{" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        tag = match.group(1)
        name = tag.strip()
        if name in values:
            return values[name]
        if name.startswith(tuple(f"{prefix}." for prefix in strict)):
            raise UnresolvedError(f"failed to resolve {{{{{tag}}}}}")
        return match.group(0)

    return _TAG.sub(replaced, text)
