"""A parser of expressions in any of the languages, to one form of syntax trees."""

import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from kfp_placement_engine.readers.formulas.syntax import (
    GAP,
    MAX_CHARACTERS,
    MAX_DEPTH,
    Language,
    Literal,
    Node,
    Operation,
    Variable,
)

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}[AP]M|[A-Z]{3} [A-Z]{3} ", re.IGNORECASE
)
"""Beginning of quoted text that govaluate takes for a time, so that other text may be equal."""

_LARGEST_FLOAT = sys.float_info.max
_LARGEST_INTEGER = 2**63 - 1
_TERNARY = 5
_POSTFIX = 100
_SAME = {"and": "&&", "or": "||", "not": "!", "IN": "in", "matches": "=~"}
_ANY_NUMBER = frozenset({"&&", "||"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@lru_cache(maxsize=64)
def parsed(text: str, language: Language) -> Node | None:
    """Return the syntax tree of an expression; None = its engine refuses it, or it is too long."""
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        return _Parser(_tokens(text, language), language).whole()
    except _FormulaError:
        return None


def problem_of(text: str, node: Node | None, engine: str) -> str:
    """Return why an engine cannot evaluate a condition, as the end of a sentence; "" = it can.

    Args:
        text: the condition as written.
        node: meaning of the condition; None = the engine cannot read it.
        engine: words for the engine, and for the way out.
    """
    if len(text) > MAX_CHARACTERS:
        return f"is longer than {MAX_CHARACTERS} characters; plans do not read it"
    return "" if node is not None else f"is not an expression that {engine}"


class _FormulaError(Exception):
    """Text that is not an expression of the language, or one beyond the limits."""


def _tokens(text: str, language: Language) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each token; at the end, tokens without a kind."""
    position, end = 0, len(text.rstrip())
    while position < end:
        match = language.tokens.match(text, position)
        if match is None or match.lastgroup is None:
            raise _FormulaError("not a token")
        position = match.end()
        yield match.lastgroup, match[match.lastgroup]
    while True:
        yield "", ""


class _Parser:
    """Parser that reads operators by how strongly they bind (Pratt)."""

    def __init__(self, tokens: Iterator[tuple[str, str]], language: Language) -> None:
        self._tokens = tokens
        self._language = language
        self._kind, self._text = next(tokens)

    def whole(self) -> Node:
        """Read the expression, which has nothing behind it."""
        node = self._expression(0, 0)
        if self._kind:
            raise _FormulaError("text after the end")
        return node

    def _expression(self, power: int, depth: int) -> Node:
        """Read an expression of operators that bind more strongly than `power`."""
        if depth > MAX_DEPTH:
            raise _FormulaError("too deep")
        node = self._operand(depth)
        # Operators in a row make a tree that is as deep as the row is long.
        for level in range(depth, MAX_DEPTH):
            operator = self._text if self._kind in ("name", "symbol") else ""
            binds = self._language.infix.get(operator, 0)
            if operator == "?" and power < _TERNARY:
                node = self._ternary(node, depth)
            elif binds > power:
                node = self._infix(node, operator, binds, level)
            else:
                return node
        raise _FormulaError("too deep")

    def _infix(self, node: Node, operator: str, binds: int, depth: int) -> Node:
        name, operands = _SAME.get(operator, operator), [node]
        while self._takes(operator):
            right = binds - (operator in self._language.right)
            operands.append(self._expression(right, depth + 1))
            if name not in _ANY_NUMBER:
                break
        return Operation(name, tuple(operands))

    def _ternary(self, condition: Node, depth: int) -> Node:
        self._expect("?")
        first = self._expression(0, depth + 1)
        self._expect(":")
        return Operation("?:", (condition, first, self._expression(0, depth + 1)))

    def _operand(self, depth: int) -> Node:
        kind, text = self._kind, self._text
        self._next()
        if kind == "name" and text in self._language.words:
            return Literal(self._language.words[text])
        if text in self._language.prefix and kind in ("name", "symbol"):
            operand = self._expression(self._language.prefix[text], depth + 1)
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
            raise _FormulaError("not one expression in parentheses")
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
            raise _FormulaError("no operand")
        if not self._language.plain_words:
            return Variable(text)
        if "." in text:
            raise _FormulaError("fields of a value")
        return Literal(text.replace("\\", ""))

    def _postfix(self, node: Node, depth: int) -> Node:
        """Read the fields, indexes and arguments after an operand."""
        for _ in range(MAX_DEPTH):
            if self._takes("(") and isinstance(node, Variable):
                node = Operation(f"{node.path}()", self._listed(")", depth))
            elif self._takes("["):
                node = _field(node, self._listed("]", depth))
            elif self._takes("."):
                kind, text = self._kind, self._text
                if kind != "name":
                    raise _FormulaError("no name after a dot")
                self._next()
                node = _field(node, (Literal(text),))
            else:
                return node
        raise _FormulaError("too deep")

    def _listed(self, closing: str, depth: int) -> tuple[Node, ...]:
        operands: list[Node] = []
        while not self._takes(closing):
            if operands:
                self._expect(",")
            operands.append(self._expression(0, depth + 1))
        return tuple(operands)

    def _entries(self, depth: int) -> tuple[Node, ...]:
        """Read the keys and values of a mapping, in which a name is a key as it is."""
        operands: list[Node] = []
        while not self._takes("}"):
            if operands:
                self._expect(",")
            if self._kind == "name":
                operands.append(Literal(self._text))
                self._next()
            else:
                operands.append(self._expression(_POSTFIX, depth + 1))
            self._expect(":")
            operands.append(self._expression(0, depth + 1))
        return tuple(operands)

    def _takes(self, text: str) -> bool:
        """Return whether the current token is this operator or sign, and go on if it is."""
        if self._text != text or self._kind not in ("name", "symbol"):
            return False
        self._next()
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise _FormulaError(f"no {text}")

    def _next(self) -> None:
        self._kind, self._text = next(self._tokens)


def _field(node: Node, indexes: tuple[Node, ...]) -> Node:
    if len(indexes) != 1:
        raise _FormulaError("not one index")
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
            raise _FormulaError("not a number") from error
    is_float = is_float or isinstance(number, float)
    if number > (_LARGEST_FLOAT if is_float else _LARGEST_INTEGER):
        raise _FormulaError("too large a number")
    return float(number) if is_float else number


def _unescaped(text: str, language: Language) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if language.plain_words:
            return escaped
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise _FormulaError("escape")
        return _ESCAPES.get(escaped, escaped)

    return re.sub(r"\\(.)", character, text, flags=re.DOTALL)
