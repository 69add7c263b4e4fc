"""Texts that tests expect, kept in a file beside each test module.

A sentence that changes is then one changed line of a file, not an edit of a test: the fixture
`golden` compares text with the one kept, and records it where REGENERATE is 1.
"""

import contextlib
import difflib
import fcntl
import functools
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.checkout import ROOT

Texts = dict[str, dict[str, str]]
"""Test, with its parameters -> part -> text."""

HEADING = "# The texts that the tests of {module} expect; `make regenerate` writes them again.\n"
# The checkout, and what pytest makes for tests.
HERE_ALONE = (str(ROOT), f"{tempfile.gettempdir()}/pytest-of-")


def recording() -> bool:
    """Return whether golden files are written and not compared with; never in CI."""
    return os.environ.get("REGENERATE") == "1" and not os.environ.get("CI")


def file_of(module: Path) -> Path:
    """Return the path of the golden texts of a test module."""
    return module.parent / "golden" / f"{module.stem}.yaml"


class Golden:
    """Compares the texts of one test with those kept; when recording, keeps them."""

    def __init__(self, module: Path, test: str) -> None:
        self._module = module
        self._test = test
        self._texts: dict[str, str] = {}

    def __call__(self, text: str | Iterable[str], part: str = "text") -> None:
        """The text, or the lines, must be what is kept for this test under the part's name."""
        actual = text if isinstance(text, str) else "\n".join(text)
        if any(folder in actual for folder in HERE_ALONE):
            pytest.fail(f"{part!r} of {self._test} names a folder of this machine:\n{actual}")
        if self._texts.setdefault(part, actual) != actual:
            pytest.fail(f"{self._test} has two texts {part!r}: each needs a name of its own")
        if recording():
            return
        expected = self._kept.get(part)
        if expected is None:
            pytest.fail(f"no text {part!r} is kept for {self._test}: {self._how}\n{actual}")
        if expected != actual:
            lines, other = expected.splitlines(), actual.splitlines()
            difference = "\n".join(difflib.ndiff(lines, other)) if lines != other else repr(actual)
            pytest.fail(
                f"{part!r} is not the text that is kept: if it should be, {self._how}\n{difference}"
            )

    @contextlib.contextmanager
    def error(
        self, kind: type[BaseException], part: str = "text", match: str | None = None
    ) -> Iterator[None]:
        """The block must raise such an error, whose message is what is kept."""
        with pytest.raises(kind, match=match) as raised:
            yield
        self(str(raised.value), part)

    def finish(self) -> None:
        """The test has passed: it has given text, and nothing else may be kept for it."""
        if not self._texts:
            pytest.fail(f"{self._test} gives no text, so that nothing is compared")
        if recording():
            _change(self._module, {self._test: self._texts})
            return
        unused = self._kept.keys() - self._texts
        if unused:
            pytest.fail(f"{self._test} no longer says {sorted(unused)}: {self._how}")

    @property
    def _kept(self) -> dict[str, str]:
        return expected_texts(file_of(self._module)).get(self._test, {})

    @property
    def _how(self) -> str:
        module = self._module.relative_to(ROOT) if ROOT in self._module.parents else self._module
        return f"`REGENERATE=1 .venv/bin/python -m pytest {module}` records it"


def forget_others(module: Path, tests: Collection[str]) -> None:
    """Drop what is kept for tests that the module no longer has."""
    if file_of(module).exists():
        _change(module, {}, lambda test: test in tests)


def _change(module: Path, new: Texts, stays: Any = lambda test: True) -> None:
    """Write the file with other texts; processes that run tests side by side take turns."""
    file = file_of(module)
    file.parent.mkdir(exist_ok=True)
    with file.open("a+", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.seek(0)
        before = opened.read()
        texts = {test: parts for test, parts in _loaded(before).items() if stays(test)} | new
        after = _dumped(module, {test: parts for test, parts in texts.items() if parts})
        if after != before:
            opened.truncate(0)
            opened.write(after)
        if not any(texts.values()):
            file.unlink(missing_ok=True)


@functools.cache
def expected_texts(file: Path) -> Texts:
    return _loaded(file.read_text("utf-8")) if file.exists() else {}


def _loaded(content: str) -> Texts:
    tests = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    return {
        test: {
            part: "\n".join(text) if isinstance(text, list) else text
            for part, text in parts.items()
        }
        for test, parts in tests.items()
    }


class _Literal(str):
    """Text that is written line by line, as it is."""


def _readable(text: str) -> object:
    """Represent text as a block of its lines where YAML can; else as a list of them."""
    lines = text.split("\n")
    if all(line.isprintable() and line == line.rstrip() for line in lines) and text.strip():
        return _Literal(text)
    return lines


def _dumped(module: Path, texts: Texts) -> str:
    shown = {
        test: {part: _readable(text) for part, text in texts[test].items()}
        for test in sorted(texts)
    }
    text: str = yaml.dump(shown, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**20)
    assert _loaded(text) == texts
    return HEADING.format(module=module.name) + text


_Dumper: Any = type("_Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})
_Dumper.add_representer(
    _Literal,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|"),
)
