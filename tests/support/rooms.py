"""Rooms of the product: folders of modules, what they import, and how large they are."""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.checkout import ROOT

DISTRIBUTIONS = {
    "kfp_placement": ROOT / "kfp_placement",
    "kfp_placement_controller": ROOT / "controller/kfp_placement_controller",
    "kfp_placement_engine": ROOT / "engine/kfp_placement_engine",
    "kfp_placement_kube": ROOT / "kube/kfp_placement_kube",
}

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
# From Python 3.12 on a formatted string is several tokens; its end stands for it.
_FORMATTED_START = getattr(tokenize, "FSTRING_START", None)
_FORMATTED_END = getattr(tokenize, "FSTRING_END", None)


@dataclass(frozen=True)
class Module:
    """A module of a distribution.

    Attributes:
        name: full name; of a package the package's.
        path: file that it is in.
    """

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        """Return whether the module is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """Full name of the package that the module is in."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.path.read_text("utf-8").splitlines())

    @property
    def docstring(self) -> str:
        """Text of the module's docstring on one line; empty without one."""
        return " ".join((ast.get_docstring(ast.parse(self.path.read_text("utf-8"))) or "").split())


@cache
def product() -> Mapping[str, Module]:
    """Return the modules of the four distributions by name."""
    modules = {}
    for distribution, folder in DISTRIBUTIONS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [distribution, *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module(name, path)
    return modules


def imported(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """Return the names of `modules` that a module imports, wherever in its text it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            names.update(
                full if full in modules else origin
                for full in (f"{origin}.{alias.name}" for alias in node.names)
            )
    return {name for name in names if name in modules} - {module.name}


def _origin(module: Module, node: ast.ImportFrom) -> str:
    """Return the full name of the module from which a statement imports."""
    if not node.level:
        return node.module or ""
    package = module.room.split(".")
    return ".".join([*package[: len(package) + 1 - node.level], *filter(None, [node.module])])


def cycles(imports: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other in a circle, however long."""
    reached = {name: _reachable(name, imports) for name in imports}
    groups = []
    for name in sorted(imports):
        group = {other for other in reached[name] if name in reached[other]}
        if group and group not in groups:
            groups.append(group)
    return groups


def _reachable(name: str, imports: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all that a module imports, and what that imports, and so on."""
    reached: set[str] = set()
    waiting = list(imports[name])
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting.extend(imports[other])
    return reached


def token_count(source: str) -> int:
    """Return the number of a module's Python tokens without comments, docstrings and layout.

    A formatted string is one token, as it was before Python 3.12.
    """
    documented = {line for node in ast.walk(ast.parse(source)) for line in _strings_alone(node)}
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        depth += (token.type == _FORMATTED_START) - (token.type == _FORMATTED_END)
        is_docstring = token.type == tokenize.STRING and token.start[0] in documented
        count += depth == 0 and token.type not in _LAYOUT and not is_docstring
    return count


def _strings_alone(node: ast.AST) -> Iterator[int]:
    """Yield the first lines of the strings that are statements of a body: its docstrings."""
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else []:
        if (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        ):
            yield statement.lineno
