"""Sizes written as text: `B`, `2 * B + 1`, and shapes such as `B S 64`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from functrans.core.dims import Dim, Size, max_dim, min_dim
from functrans.core.errors import ArgumentError

__all__ = ["parse_shape", "parse_size"]

_OPERATORS: dict[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow}

_FUNCTIONS: dict[str, Callable[[Size, Size], Size]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": max_dim, "min": min_dim}


def parse_size(text: str, known: Mapping[str, Dim] = {}) -> Size:
    """The size that an expression of names and ints says; `known` sizes keep their bounds.

    Raises ArgumentError where it is no such expression.
    """
    try:
        size = _size(ast.parse(text.strip(), mode="eval").body, known)
    except (SyntaxError, ZeroDivisionError):
        raise _wrong(text) from None
    if size is None:
        raise _wrong(text)
    return size


def _size(node: ast.AST, known: Mapping[str, Dim]) -> Size | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id) or Dim(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _size(node.left, known), _size(node.right, known)
        if left is not None and right is not None:
            return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords \
            and len(node.args) == 2 and node.func.id in _FUNCTIONS:
        left, right = _size(node.args[0], known), _size(node.args[1], known)
        if left is not None and right is not None:
            return _FUNCTIONS[node.func.id](left, right)
    return None


def _wrong(text: str) -> ArgumentError:
    return ArgumentError(f"{text!r} is no size.", why="a size is an int, a name, or an expression "
                         "of them with + - * // % **, max and min; in a shape blanks stand between "
                         "sizes, and in none of them.", fix='"B", "2*B+1"; a shape: "B 2*S 64"')


def parse_shape(text: str, known: Mapping[str, Dim] = {}) -> tuple[Size, ...]:
    """The sizes of `"B S 2*D"`: parts are separated by blanks; `"()"` is no size at all."""
    inner = text.strip()
    if inner in ("", "()"):
        return ()
    return tuple(parse_size(part, known) for part in inner.split())
