"""Symbolic sizes and shapes under the names of `jax.export`.

A size of a name is a `Dim`. What is known of names is known by their bounds: a scope has those that
its constraints say, and of every other name that it is at least 1, as in JAX.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Dim, Shape, Size, dim
from functrans.core.errors import ArgumentError, public, shown
from functrans.core.size_text import parse_size
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_map, tree_unflatten
from functrans.device import current_device
from functrans.transforms.staged import ShapeDtypeStruct

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["SymbolicScope", "default_export_platform", "is_symbolic_dim", "symbolic_args_specs",
           "symbolic_shape"]


class SymbolicScope:
    """What is known of the names in symbolic shapes.

    A constraint is a bound of a name by an int (`"b >= 8"`, `"b <= 1024"`), a divisor
    (`"mod(b, 8) == 0"`), or an expression that a name is another word for (`"c == 2*b"`). Raises
    ArgumentError for any other.

    >>> b, c = symbolic_shape("b, c", scope=SymbolicScope(["b >= 8", "c == 2*b"]))
    >>> c, b > 7
    (2*b, True)
    >>> scope = SymbolicScope(["b >= 8"])
    >>> scope.size("2*b + 1")
    2*b + 1
    """

    @public
    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ArgumentError("SymbolicScope takes a sequence of constraints, got text.",
                                where=user_source(), fix=f"[{constraints_str!r}]")
        self.constraints = tuple(constraints_str)
        self._bounds: dict[str, dict[str, int]] = {}
        self._same: dict[str, str] = {}
        for text in self.constraints:
            self._read(text)

    def _read(self, text: str) -> None:
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            raise _no_constraint(text) from None
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise _no_constraint(text)
        left, op, right = node.left, node.ops[0], node.comparators[0]
        value = _int_of(right)
        if isinstance(op, (ast.GtE, ast.LtE)) and isinstance(left, ast.Name) and value is not None:
            bounds = self._bounds.setdefault(left.id, {})
            if isinstance(op, ast.GtE):
                bounds["min"] = max(value, bounds.get("min", 1))
            else:
                bounds["max"] = min(value, bounds.get("max", value))
        elif isinstance(op, ast.Eq) and value == 0 and (of := _divisor(left)) is not None:
            name, divisor = of
            self._bounds.setdefault(name, {})["multiple_of"] = divisor
        elif isinstance(op, ast.Eq) and isinstance(left, ast.Name):
            self._same[left.id] = ast.unparse(right)
        else:
            raise _no_constraint(text)

    def size(self, text: str, within: frozenset[str] = frozenset()) -> Size:
        """The size that an expression of the scope's names says, `within` what names stand for."""
        names = {n.id for n in ast.walk(_parsed(text)) if isinstance(n, ast.Name)}
        known: dict[str, Any] = {}
        for name in names:
            if name in within:
                raise _no_constraint(f"{name} == {self._same[name]}")
            if name in self._same:
                known[name] = self.size(self._same[name], within | {name})
            elif name not in ("max", "min", "mod", "floordiv"):
                known[name] = dim(name, **{"min": 1, **self._bounds.get(name, {})})
        return parse_size(text, known)

    def __repr__(self) -> str:
        return f"SymbolicScope({list(self.constraints)})"


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return ast.Module([], [])  # parse_size says what is wrong


def _int_of(node: ast.AST) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _divisor(node: ast.AST) -> tuple[str, int] | None:
    """Name and divisor of `mod(b, 8)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) \
            or node.func.id != "mod" or len(node.args) != 2:
        return None
    name, by = node.args
    divisor = _int_of(by)
    return (name.id, divisor) if isinstance(name, ast.Name) and divisor is not None else None


def _no_constraint(text: str) -> ArgumentError:
    return ArgumentError(
        f"{shown(text)} is no constraint that is known of names.", where=user_source(),
        why="bounds of a name are known before a trace; other relations of sizes become "
            "constraints of the program where Python decides on them while it is traced.",
        fix='"b >= 8", "b <= 1024", "mod(b, 8) == 0" or "c == 2*b"')


@public
def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None,
                   like: Sequence[Size | None] | None = None) -> Shape:
    """The sizes in a text such as `"b, 2*b + 1, 3"`.

    `_` is the size of `like` in its place, and `...` are the sizes of `like` in theirs. Raises
    ArgumentError for what is no size, and for constraints beside a scope.

    >>> symbolic_shape("b, _, 2*b", like=(None, 3, None))
    (b, 3, 2*b)
    >>> symbolic_shape("b, ...", like=(8, 4, 5))
    (b, 4, 5)
    """
    if scope is not None and constraints:
        raise ArgumentError("symbolic_shape: constraints beside a scope.", where=user_source(),
                            fix="scope=SymbolicScope(constraints)")
    scope = SymbolicScope(constraints) if scope is None else scope
    parts = _parts(shape_spec)
    if "..." in parts:
        at = parts.index("...")
        if like is None or len(like) < len(parts) - 1 or parts.count("...") > 1:
            raise ArgumentError(f"symbolic_shape: {shape_spec!r} has ... and like={like}.",
                                where=user_source(), why="... stands for sizes of like.",
                                fix="like=x.shape")
        parts[at:at + 1] = ["_"] * (len(like) - len(parts) + 1)
    if like is not None and len(like) != len(parts):
        raise ArgumentError(f"symbolic_shape: {shape_spec!r} has {len(parts)} sizes, like="
                            f"{tuple(like)} {len(like)}.", where=user_source())
    found: list[Size] = []
    for i, part in enumerate(parts):
        known = None if like is None else like[i]
        if part != "_":
            found.append(scope.size(part.replace("^", "**")))
        elif known is None:
            raise ArgumentError(f"symbolic_shape: size {i} of {shape_spec!r} is _, and like={like} "
                                "has none there.", where=user_source(), fix="like=x.shape")
        else:
            found.append(known)
    return tuple(found)


def _parts(text: str | None) -> list[str]:
    """What stands between the commas that are in no parentheses."""
    inner = "..." if text is None else text.strip()
    if inner.startswith("(") and inner.endswith(")") and _closes_last(inner):
        inner = inner[1:-1]
    parts, depth = [""], 0
    for c in inner:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    parts = [p.strip() for p in parts]
    return parts[:-1] if parts[-1] == "" else parts


def _closes_last(text: str) -> bool:
    """Whether the first parenthesis is closed by the last one."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


@public
def symbolic_args_specs(args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> PyTree:
    """The arguments as ShapeDtypeStructs, with the shapes that texts say.

    `shapes_specs` is a tree of texts, of which one stands for all leaves under its place; None
    keeps shapes as they are.

    >>> import functrans as ft
    >>> x = {"w": ft.numpy.ones((2, 3)), "b": ft.numpy.ones(3)}
    >>> symbolic_args_specs((x,), ({"w": "_, n", "b": "n"},))[0]["w"]
    ShapeDtypeStruct(shape=(2, n), dtype=float32)
    """
    if scope is not None and constraints:
        raise ArgumentError("symbolic_args_specs: constraints beside a scope.",
                            where=user_source(), fix="scope=SymbolicScope(constraints)")
    scope = SymbolicScope(constraints) if scope is None else scope

    def typed(x: Any, text: str | None) -> ShapeDtypeStruct:
        aval = x.aval if isinstance(x, ShapeDtypeStruct) else get_aval(to_array(x, "argument"))
        shape = symbolic_shape(text, scope=scope, like=aval.shape)
        return ShapeDtypeStruct(shape, aval.dtype)

    def below(text: Any, part: Any) -> Any:
        return tree_map(lambda x: typed(x, text), part)

    texts, tree = tree_flatten(shapes_specs, lambda x: x is None or isinstance(x, str))
    parts = tree.flatten_up_to(args)
    return tree_unflatten(tree, list(map(below, texts, parts)))


def is_symbolic_dim(p: Any) -> TypeGuard[Dim]:
    """Whether a size is known only when the program runs.

    >>> [is_symbolic_dim(n) for n in symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(p, Dim)


def default_export_platform() -> str:
    """`cpu` or `cuda`: the target for which programs are exported that name none.

    >>> ft.export.default_export_platform() in ("cpu", "cuda")
    True
    """
    return "cuda" if current_device().platform == "gpu" else "cpu"
