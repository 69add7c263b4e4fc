"""A parser of the expression languages of run files, to one form of syntax trees.

KFP's conditions are in CEL, Argo's `{{=...}}` and `depends` in expr-lang, and Argo's `when` in
govaluate. They differ in their tokens and in how strongly operators bind.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_CHARACTERS = 20_000
"""Length of the longest expression that is read; the longest known ones have some hundred."""

MAX_DEPTH = 60
"""Deepest nesting of an expression; each level takes several frames of Python's stack."""

GAP = re.compile("\ue000([0-9]{1,6})\ue001")
"""Mark, of characters for private use, of a part that is not known before the run."""


def gap(index: int) -> str:
    """Return the mark of the part with this index."""
    return f"\ue000{index}\ue001"


class FormulaSyntaxError(Exception):
    """Text that is not an expression of the language, or one beyond the limits."""


class Literal(NamedTuple):
    """A value that is written out."""

    value: Any


class Variable(NamedTuple):
    """A name with its fields, joined by dots; or text that is not known before the run.

    Such text is a mark of an unknown part; in quotes, it may also have several and other text.
    """

    path: str


class Operation(NamedTuple):
    """An operator or function, and what it is applied to.

    Attributes:
        operator: operator, such as `==`, or name of a function with `()`; `&&`, `||`, `[,]` (a
            list) and `{:}` (a mapping: key, value, key, value) have any number of operands.
        operands: syntax trees.
    """

    operator: str
    operands: "tuple[Node, ...]"


Node = Literal | Variable | Operation
"""Syntax tree of an expression."""


@dataclass(frozen=True, eq=False)
class Language:
    """An expression language.

    Attributes:
        tokens: pattern with the groups `number`, `text`, `name`, `gap` and `symbol`.
        infix: strength with which an operator between two operands binds.
        prefix: strength with which an operator before its operand binds.
        right: operators that are applied from right to left.
        words: names that are operators or values.
        plain_words: whether other names are text, and quotes may differ.
    """

    tokens: re.Pattern[str]
    infix: Mapping[str, int]
    prefix: Mapping[str, int]
    right: frozenset[str] = frozenset()
    words: Mapping[str, Any] = field(default_factory=lambda: {"true": True, "false": False})
    plain_words: bool = False


_COMMON = (
    r"\s*(?:(?P<number>%s)|(?P<text>%s)|(?P<name>%s)|(?P<gap>\ue000[0-9]+\ue001)|(?P<symbol>%s))"
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NUMBER = r"0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")

CEL = Language(
    tokens=re.compile(
        _COMMON % (_NUMBER, _QUOTED, _NAME, r"&&|\|\||[=!<>]=|[-+*/%!<>?:()\[\].,]"), re.DOTALL
    ),
    infix={"||": 20, "&&": 30, **dict.fromkeys(_COMPARISONS, 40), "+": 50, "-": 50}
    | dict.fromkeys("*/%", 60),
    prefix={"!": 90, "-": 90},
    words={"true": True, "false": False, "null": None},
)

EXPR = Language(
    tokens=re.compile(
        _COMMON
        % (
            _NUMBER,
            _QUOTED + "|`[^`]*`",
            _NAME,
            r"&&|\|\||[=!<>]=|\*\*|\?\?|\?\.|\.\.|[-+*/%^!<>?:()\[\]{}.,|]",
        ),
        re.DOTALL,
    ),
    infix={"||": 20, "or": 20, "&&": 30, "and": 30, **dict.fromkeys(_COMPARISONS, 40)}
    | dict.fromkeys(("contains", "startsWith", "endsWith", "matches"), 40)
    | {"..": 45, "+": 50, "-": 50, **dict.fromkeys("*/%", 60), "**": 80, "^": 80, "??": 95},
    prefix={"!": 99, "not": 55, "-": 70, "+": 70},
    right=frozenset({"**", "^"}),
    words={"true": True, "false": False, "nil": None},
)

GOVALUATE = Language(
    tokens=re.compile(
        _COMMON
        % (
            r"0x[0-9a-fA-F]+|[0-9.]+",
            r"""['"](?:[^'"\\]|\\.)*['"]|\[(?:[^\]\\]|\\.)*\]""",
            r"[^\W\d_](?:[\w.]|\\.)*",
            # Symbols without space between them are one token; the language does not have `&&!`.
            r"[()]|[^\w\s()\[\]'\"\ue000]+",
        ),
        re.DOTALL,
    ),
    infix={"??": 10, "||": 20, "&&": 30, **dict.fromkeys((*_COMPARISONS, "=~", "!~"), 40)}
    | {"&": 45, "|": 45, "^": 45, "<<": 48, ">>": 48, "+": 50, "-": 50}
    | {**dict.fromkeys("*/%", 60), "**": 80},
    prefix={"!": 90, "-": 90, "~": 90},
    plain_words=True,
)

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}[AP]M|[A-Z]{3} [A-Z]{3} ", re.IGNORECASE
)
"""Beginning of quoted text that govaluate takes for a time, so that other text may be equal."""

_LARGEST_FLOAT = sys.float_info.max
_LARGEST_INTEGER = 2**63 - 1
_TERNARY = 5
_POSTFIX = 100
_SAME = {"and": "&&", "or": "||", "not": "!"}
_ANY_NUMBER = frozenset({"&&", "||"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def parse(text: str, language: Language) -> Node:
    """Return the syntax tree of an expression.

    Raises:
        FormulaSyntaxError: it is not an expression of the language, or is too long or too deep.
    """
    if len(text) > MAX_CHARACTERS:
        raise FormulaSyntaxError("too long")
    parser = _Parser(_tokens(text, language), language)
    node = parser.expression(0, 0)
    if parser.kind:
        raise FormulaSyntaxError("text after the end")
    return node


def variables(node: Node) -> Iterator[str]:
    """Yield the paths of all variables of a syntax tree."""
    if isinstance(node, Variable):
        yield node.path
    elif isinstance(node, Operation):
        for operand in node.operands:
            yield from variables(operand)


def _tokens(text: str, language: Language) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each token; at the end, tokens without a kind."""
    position, end = 0, len(text.rstrip())
    while position < end:
        match = language.tokens.match(text, position)
        if match is None or match.lastgroup is None:
            raise FormulaSyntaxError("not a token")
        position = match.end()
        yield match.lastgroup, match[match.lastgroup]
    while True:
        yield "", ""


class _Parser:
    """Parser that reads operators by how strongly they bind (Pratt)."""

    def __init__(self, tokens: Iterator[tuple[str, str]], language: Language) -> None:
        self._tokens = tokens
        self._language = language
        self.kind, self._text = next(tokens)

    def expression(self, power: int, depth: int) -> Node:
        """Read an expression of operators that bind more strongly than `power`."""
        if depth > MAX_DEPTH:
            raise FormulaSyntaxError("too deep")
        node = self._operand(depth)
        # Operators in a row make a tree that is as deep as the row is long.
        for level in range(depth, MAX_DEPTH):
            operator = self._text if self.kind in ("name", "symbol") else ""
            binds = self._language.infix.get(operator, 0)
            if operator == "?" and power < _TERNARY:
                node = self._ternary(node, depth)
            elif binds > power:
                node = self._infix(node, operator, binds, level)
            else:
                return node
        raise FormulaSyntaxError("too deep")

    def _infix(self, node: Node, operator: str, binds: int, depth: int) -> Node:
        name, operands = _SAME.get(operator, operator), [node]
        while self._takes(operator):
            right = binds - (operator in self._language.right)
            operands.append(self.expression(right, depth + 1))
            if name not in _ANY_NUMBER:
                break
        return Operation(name, tuple(operands))

    def _ternary(self, condition: Node, depth: int) -> Node:
        self._expect("?")
        first = self.expression(0, depth + 1)
        self._expect(":")
        return Operation("?:", (condition, first, self.expression(0, depth + 1)))

    def _operand(self, depth: int) -> Node:
        kind, text = self.kind, self._text
        self._next()
        if kind == "name" and text in self._language.words:
            return Literal(self._language.words[text])
        if text in self._language.prefix and kind in ("name", "symbol"):
            operand = self.expression(self._language.prefix[text], depth + 1)
            return Operation(_SAME.get(text, text) if text != "-" else "-()", (operand,))
        if kind == "symbol" and text == "(":
            node = self._parenthesis(depth)
        elif kind == "symbol" and text == "[" and not self._language.plain_words:
            node = Operation("[,]", self._listed("]", depth))
        elif kind == "symbol" and text == "{":
            node = Operation("{:}", self._entries(depth))
        else:
            node = self._leaf(kind, text)
        return node if self._language.plain_words else self._postfix(node, depth)

    def _parenthesis(self, depth: int) -> Node:
        operands = self._listed(")", depth)
        if len(operands) == 1:
            return operands[0]
        if not operands or not self._language.plain_words:
            raise FormulaSyntaxError("not one expression in parentheses")
        return Operation("[,]", operands)

    def _leaf(self, kind: str, text: str) -> Node:
        if kind == "gap":
            return Variable(text)
        if kind == "number":
            return Literal(_number(text, is_float=self._language.plain_words))
        if kind == "text":
            raw = text[0] == "`"
            value = text[1:-1] if raw else _unescaped(text[1:-1], self._language)
            if GAP.search(value):
                return Variable(f"'{value}'")
            is_time = self._language.plain_words and text[0] != "[" and _TIME.match(value)
            return Variable(value) if is_time else Literal(value)
        if kind != "name" or text in self._language.infix:
            raise FormulaSyntaxError("no operand")
        if not self._language.plain_words:
            return Variable(text)
        if "." in text:
            raise FormulaSyntaxError("fields of a value")
        return Literal(text.replace("\\", ""))

    def _postfix(self, node: Node, depth: int) -> Node:
        """Read the fields, indexes and arguments after an operand."""
        for _ in range(MAX_DEPTH):
            if self._takes("(") and isinstance(node, Variable):
                node = Operation(f"{node.path}()", self._listed(")", depth))
            elif self._takes("["):
                node = _field(node, self._listed("]", depth))
            elif self._takes("."):
                kind, text = self.kind, self._text
                if kind != "name":
                    raise FormulaSyntaxError("no name after a dot")
                self._next()
                node = _field(node, (Literal(text),))
            else:
                return node
        raise FormulaSyntaxError("too deep")

    def _listed(self, closing: str, depth: int) -> tuple[Node, ...]:
        operands: list[Node] = []
        while not self._takes(closing):
            if operands:
                self._expect(",")
            operands.append(self.expression(0, depth + 1))
        return tuple(operands)

    def _entries(self, depth: int) -> tuple[Node, ...]:
        """Read the keys and values of a mapping, in which a name is a key as it is."""
        operands: list[Node] = []
        while not self._takes("}"):
            if operands:
                self._expect(",")
            if self.kind == "name":
                operands.append(Literal(self._text))
                self._next()
            else:
                operands.append(self.expression(_POSTFIX, depth + 1))
            self._expect(":")
            operands.append(self.expression(0, depth + 1))
        return tuple(operands)

    def _takes(self, text: str) -> bool:
        """Return whether the current token is this operator or sign, and go on if it is."""
        if self._text != text or self.kind not in ("name", "symbol"):
            return False
        self._next()
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise FormulaSyntaxError(f"no {text}")

    def _next(self) -> None:
        self.kind, self._text = next(self._tokens)


def _field(node: Node, indexes: tuple[Node, ...]) -> Node:
    if len(indexes) != 1:
        raise FormulaSyntaxError("not one index")
    [index] = indexes
    if isinstance(node, Variable) and isinstance(index, Literal) and isinstance(index.value, str):
        return Variable(f"{node.path}.{index.value}")
    return Operation("[]", (node, index))


def _number(text: str, *, is_float: bool) -> int | float:
    number: int | float
    try:
        number = int(text, 16 if text[:2] in ("0x", "0X") else 10)
    except ValueError:
        try:
            number = float(text)
        except ValueError as error:
            raise FormulaSyntaxError("not a number") from error
    is_float = is_float or isinstance(number, float)
    if number > (_LARGEST_FLOAT if is_float else _LARGEST_INTEGER):
        raise FormulaSyntaxError("too large a number")
    return float(number) if is_float else number


def _unescaped(text: str, language: Language) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if language.plain_words:
            return escaped
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise FormulaSyntaxError("escape")
        return _ESCAPES.get(escaped, escaped)

    return re.sub(r"\\(.)", character, text, flags=re.DOTALL)
