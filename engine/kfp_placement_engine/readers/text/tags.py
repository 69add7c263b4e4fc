"""Argo's template tags in text, `{{inputs.parameters.x}}` and `{{=...}}`, found in linear time.

A module of its own because both those who read tags and those who look past them need the form.
"""

import re
from collections.abc import Callable, Iterator

_TAG = re.compile(r"\{\{(=.*?|[^{}]*)\}\}", re.DOTALL)


def tags_in(text: str) -> Iterator[re.Match[str]]:
    """Return the matches of tags; the only group is what a tag names or computes."""
    return _TAG.finditer(text, 0, _end_of_tags(text))


def with_replaced_tags(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    """Return the text with other text in place of its tags."""
    end = _end_of_tags(text)
    return _TAG.sub(replacement, text[:end]) + text[end:]


def _end_of_tags(text: str) -> int:
    """Return where the last tag ends; a search for the end of a later one would find none."""
    return text.rfind("}}") + len("}}")
