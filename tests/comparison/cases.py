"""Cases as files: what was asked and what came of it, one text file each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What a command has done.

    Attributes:
        code: its exit code.
        stdout: what it printed.
        stderr: what it said beside that.
        more: further things that it left, by name, such as files and requests.
    """

    code: int
    stdout: str = ""
    stderr: str = ""
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """Every so many-th case, for several processes beside each other."""

    number: int = 0
    of: int = 1


class CaseFolder:
    """Where the cases of a group are written."""

    def __init__(self, folder: Path, share: Share | None = None) -> None:
        """Take the folder; with a share only that of the cases is asked."""
        self.folder = folder
        self._share = share or Share()
        self._count = 0

    def mine(self) -> bool:
        """Whether the next case is to be asked by this process."""
        self._count += 1
        return self._count % self._share.of == self._share.number

    def write(self, name: str, text: str) -> None:
        """Write a case.

        Raises:
            FileExistsError: another case has that name.
        """
        path = self.folder / f"{file_name(name)}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)

    def command(self, name: str, program: str, arguments: Sequence[str], done: Outcome) -> None:
        """Write what a command has done."""
        parts = {"stdout": done.stdout, "stderr": done.stderr, **done.more}
        shown = [f"$ {program} {' '.join(map(_quoted, arguments))}", f"exit code {done.code}"]
        shown += [f"--- {title}\n{text}" for title, text in parts.items() if text]
        self.write(name, "\n".join(shown) + "\n")


def file_name(name: str) -> str:
    """A name of a case that every file system takes."""
    return re.sub(r"[^\w./=,@-]+", "_", name)[:180].lstrip("/.")


def case_names(folder: Path) -> Iterator[str]:
    """The cases in a folder, sorted."""
    yield from sorted(str(path.relative_to(folder)) for path in folder.rglob("*.txt"))


def _quoted(argument: str) -> str:
    return argument if re.fullmatch(r"[\w./:=,@%+-]+", argument) else repr(argument)
