"""A writer of YAML that our reader reads back, and that cannot control a terminal."""

from collections.abc import Mapping
from typing import Any

import yaml

from kfp_placement_engine.readers.text.yaml_events import parse_scalar

_ASTRAL = 0x10000


def yaml_text(document: Mapping[str, Any], *, rows_in_a_line: bool = False) -> str:
    """Write a document of plain values as YAML that our reader reads back.

    Args:
        document: values of the document.
        rows_in_a_line: whether a list or mapping that holds no other takes one line.
    """
    text: str = yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None if rows_in_a_line else False,
    )
    # Characters that can control a terminal are escaped; they are in double quotes by now.
    return text if text.isascii() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    return f"\\u{ord(char):04x}" if ord(char) < _ASTRAL else f"\\U{ord(char):08x}"


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text.isprintable() and _reads_back(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


def _reads_back(text: str) -> bool:
    """Return whether our YAML reader reads the plain text as the same text."""
    try:
        return text != "" and parse_scalar(text) == text
    except ValueError:
        return False


# libyaml's emitter is ten times as fast; it is part of PyYAML's wheels.
_Dumper: Any = type("_Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})
_Dumper.add_representer(str, _represent_text)
