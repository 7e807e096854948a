"""Symbolic sizes: a `Dim` is an integer expression over named, non-negative sizes.

A plain name needs no algebra, so sympy is imported only when an expression is built. What Python
decides on a size (a comparison, `int`, `range`) is answered by the scope of the trace that runs,
which knows the sizes at hand and keeps the answer as a guard (core/guards.py).
"""

from __future__ import annotations

import itertools
import operator
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy as np

from functrans.core.bounds import OPERATORS, Bound, provable
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
)
from functrans.core.source import (
    is_internal_module,
)

if TYPE_CHECKING:
    import sympy

__all__ = ["Decider", "Deciding", "Dim", "Shape", "Size", "bounds_of", "cached_by_sizes",
           "deciding", "dim", "is_static", "known_relation", "max_dim", "min_dim",
           "same_shape", "size_value", "substitute_shape"]

Size = Union[int, "Dim"]
Shape = tuple[Size, ...]

_fresh = itertools.count()
_INTEGERS = (int, np.integer)


Bounds = tuple[tuple[str, Bound], ...]


class Decider(Protocol):
    """Who answers questions about sizes while a function is traced."""

    def decide(self, op: str, left: Size, right: Size) -> bool | None: ...

    def pin(self, size: Dim) -> None: ...


class Deciding(threading.local):
    """The scope in which sizes are decided in this thread."""

    scope: Decider | None = None

    def __reduce__(self) -> str:
        return "deciding"  # functions that are pickled by value look at that of their process


deciding = Deciding()


class Dim:
    """A size that is known only when the program runs, such as `B` or `2*B + 1`.

    >>> n = ft.dim("n", min=1)
    >>> 2 * n + 1, bool(n > 0)
    (2*n + 1, True)
    >>> (2 * n + 1).substitute({"n": 3})
    7
    """

    __slots__ = ("_expr", "bounds", "name")

    array_operator: Callable[[str, Any, Any], Any]
    """What sizes and numbers give that no size can be; `functrans.operators` installs it."""

    def __init__(self, name: str, expr: sympy.Expr | None = None, bounds: Bounds = ()) -> None:
        self.name = name
        self._expr = expr
        self.bounds = bounds

    @staticmethod
    def fresh(prefix: str) -> Dim:
        """A size with a name that no other size has: one that a program decides as it runs."""
        return Dim(f"{prefix}{next(_fresh)}")

    @property
    def expr(self) -> sympy.Expr:
        if self._expr is None:
            # lazy: only programs with symbolic arithmetic pay for it
            import sympy  # noqa: PLC0415

            self._expr = sympy.Symbol(self.name, integer=True, nonnegative=True)
        return self._expr

    @property
    def is_name(self) -> bool:
        """True of a bare name, False of an expression over names."""
        return self._expr is None or self._expr.is_Symbol is True

    @property
    def is_remainder(self) -> bool:
        """True of `B % 4`."""
        return not self.is_name and type(self.expr).__name__ == "Mod"

    def names(self) -> frozenset[str]:
        if self.is_name:
            return frozenset((self.name,))
        return frozenset(str(symbol) for symbol in self.expr.free_symbols)

    def substitute(self, sizes: Mapping[str, Size]) -> Size:
        """This size with the known names replaced; an int when all of them are known."""
        if any(isinstance(name, Dim) for name in sizes):
            sizes = {str(name): size for name, size in sizes.items()}
        if self.is_name:
            return sizes.get(self.name, self)
        known = {s: _expr(sizes[str(s)]) for s in self.expr.free_symbols if str(s) in sizes}
        bounds = [size.bounds for n, size in sizes.items() if isinstance(size, Dim)]
        return _simplify(self.expr.subs(known), _merged(self.bounds, *bounds)) if known else self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            if self.name == other.name:
                return True
        elif not isinstance(other, _INTEGERS) or other < 0:
            return False
        else:
            other = int(other)
        return self._equals(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec.rstrip("d,_"))  # those of ints

    def __add__(self, other: Any) -> Any:
        return self if _is_int(other, 0) else _arithmetic("add", self, other)

    def __sub__(self, other: Any) -> Any:
        return self if _is_int(other, 0) else _arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self if _is_int(other, 1) else _arithmetic("mul", self, other)

    def __floordiv__(self, other: Any) -> Any:
        return self if _is_int(other, 1) else _arithmetic("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _arithmetic("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _arithmetic("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _arithmetic("mod", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, _INTEGERS) and other >= 0:
            return _arithmetic("pow", self, other)
        return _number("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _number("pow", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _number("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _number("truediv", other, self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return _simplify(-self.expr, self.bounds)

    def __lt__(self, other: Size) -> bool:
        return self._decide("<", other)

    def __le__(self, other: Size) -> bool:
        return self._decide("<=", other)

    def __gt__(self, other: Size) -> bool:
        return self._decide(">", other)

    def __ge__(self, other: Size) -> bool:
        return self._decide(">=", other)

    def __bool__(self) -> bool:
        return not self._equals(0)

    def _equals(self, other: Size) -> bool:
        """Whether two sizes that are written differently are one; outside of traces none are."""
        scope = deciding.scope
        if scope is None:
            return False
        answer = scope.decide("==", self, other)
        # the package compares types, as they are written; a branch of the user's needs the answer
        if answer is None and not is_internal_module(sys._getframe(2).f_globals["__name__"]):
            answer = provable("==", self, other, bounds_of(self, other))
            if answer is None:
                raise self._undecided("==", other)
        return answer is True

    def _decide(self, op: str, other: Size) -> bool:
        if not isinstance(other, (Dim, *_INTEGERS)):
            return NotImplemented
        scope = deciding.scope
        answer = None if scope is None else scope.decide(op, self, other)
        if answer is None:
            answer = provable(op, self, other, bounds_of(self, other))
        if answer is None:
            raise self._undecided(op, other)
        return answer

    def _undecided(self, op: str, other: Size) -> ConcretizationError:
        one = "one name for sizes that agree, " if isinstance(other, Dim) else ""
        return ConcretizationError(
            f"whether {self} {op} {other} holds is not known here.",
            why=f"{self} is a symbolic size.",
            fix=f'{one}functrans.dim("{min(self.names())}", min=..., max=..., multiple_of=...) '
                "where that decides it, or a call of functrans.jit, which takes the sizes at hand")

    def sqrt(self) -> Any:
        """What `np.sqrt` of an object calls."""
        return self ** np.float64(0.5)  # of the dtype that NumPy gives for an int

    def __int__(self) -> int:
        if deciding.scope is not None:
            deciding.scope.pin(self)
        raise ConcretizationError(
            f"the symbolic size {self} has no value here.",
            why="int, float, range, len and NumPy need one, and so do arrays computed right now.",
            fix="inside of a traced function keep it symbolic: x.shape[0] for len(x), "
                "functrans.numpy for numpy, lax.scan for loops; "
                f'outside put a value in: size.substitute({{"{min(self.names())}": 4}})')

    __index__ = __int__
    __float__ = __int__


def dim(name: str, *, min: int | None = None, max: int | None = None,
        multiple_of: int = 1) -> Dim:
    """A named size, for `jit(dynamic_shapes=)` and the shapes of ShapeDtypeStructs.

    `min`, `max` and `multiple_of` are promises: comparisons that they decide need no guard, and a
    call that breaks one raises ArgumentError. Sizes 0 and 1 broadcast and get programs of their
    own, but where `min` admits them: such a name is never broadcast.
    Raises ArgumentError for a name that is no identifier and for bounds that no size meets.

    >>> import functrans as ft
    >>> B = ft.dim("B", min=2, max=4096, multiple_of=2)
    >>> ft.eval_shape(lambda x: x.reshape(-1, 10), ft.ShapeDtypeStruct((B, 5), "float32"))
    ShapeDtypeStruct(shape=(floor(B/2), 10), dtype=float32)
    >>> B > 1, B % 2
    (True, 0)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"dim takes a name, which is an identifier, got {name!r}.",
                            fix='functrans.dim("B")')
    for key, value in (("min", min), ("max", max), ("multiple_of", multiple_of)):
        if not isinstance(value, _INTEGERS) and (value is not None or key == "multiple_of"):
            raise ArgumentError(f"dim({name!r}): {key} is an int, got {value!r}.",
                                fix=f'functrans.dim("{name}", {key}=4)')
    low = 0 if min is None else int(min)
    if low < 0 or multiple_of < 1:
        raise ArgumentError(f"dim({name!r}): min is {min} and multiple_of {multiple_of}.",
                            why="sizes are at least 0, and multiples of 1 or more.",
                            fix=f'functrans.dim("{name}", min=0, multiple_of=1)')
    if max is not None and max // multiple_of * multiple_of < low:
        raise ArgumentError(f"dim({name!r}): no size is at least {low}, at most {max} and a "
                            f"multiple of {multiple_of}.", fix="a larger max")
    bound = Bound(min, max, multiple_of)
    return Dim(name, bounds=() if bound == Bound() else ((name, bound),))


def _is_int(x: Any, value: int) -> bool:
    return isinstance(x, int) and x == value


def _expr(x: Size) -> sympy.Expr:
    if isinstance(x, Dim):
        return x.expr
    import sympy  # noqa: PLC0415  lazy: see `expr`

    return sympy.Integer(int(x))


def _merged(*bounds: Bounds) -> Bounds:
    found = {name: bound for group in bounds for name, bound in group}
    return tuple(sorted(found.items())) if len(found) > 1 else tuple(found.items())


def bounds_of(*sizes: Size) -> dict[str, Bound]:
    """What is known of the names in some sizes."""
    return {name: bound for size in sizes if isinstance(size, Dim) for name, bound in size.bounds}


def _simplify(expr: sympy.Expr, bounds: Bounds = ()) -> Size:
    if expr.is_Integer:
        return int(expr)
    return Dim(str(expr), expr, bounds)


def _arithmetic(op: str, x: Any, y: Any) -> Any:
    """Sizes and ints give a size; with a float the result is an array, and arrays know sizes."""
    other = y if isinstance(x, Dim) else x
    if isinstance(other, Dim):
        return _combined(op, x, y, x.bounds, y.bounds)
    if isinstance(other, _INTEGERS):
        return _combined(op, x, y, (x if isinstance(x, Dim) else y).bounds, ())
    return _number(op, x, y)


def _number(op: str, x: Any, y: Any) -> Any:
    other = y if isinstance(x, Dim) else x
    if isinstance(other, (Dim, int, float, np.number)):
        return Dim.array_operator(op, x, y)
    return NotImplemented


@lru_cache(maxsize=4096)
def _combined(op: str, x: Size, y: Size, mine: Bounds, theirs: Bounds) -> Size:
    """Sympy takes 100 us for what a trace asks again and again."""
    a, b = _expr(x), _expr(y)
    bounds = _merged(mine, theirs)
    if op in ("mod", "floordiv") and bounds:
        divided = _with_multiples(a, bounds) % _with_multiples(b, bounds)
        if op == "mod" and divided.is_Integer:
            return int(divided)
    return _simplify(_exact(_SYMPY_OPERATORS[op](a, b), bounds), bounds)


_SYMPY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "mod": operator.mod, "pow": operator.pow}


def _with_multiples(expr: sympy.Expr, bounds: Bounds) -> sympy.Expr:
    """The expression with `4*B` in place of a `B` that is a multiple of 4."""
    factors = {name: bound.multiple_of for name, bound in bounds if bound.multiple_of > 1}
    return expr.subs({s: factors[str(s)] * s for s in expr.free_symbols if str(s) in factors})


def _exact(expr: sympy.Expr, bounds: Bounds) -> sympy.Expr:
    """`D` for `4*floor(D/4)`, of a D that is a multiple of 4: no rest was dropped."""
    factors = {name: bound.multiple_of for name, bound in bounds if bound.multiple_of > 1}
    if not factors or _is_polynomial(expr):
        return expr
    whole = _with_multiples(expr, bounds)
    back = whole.subs({s: s / factors[str(s)] for s in whole.free_symbols if str(s) in factors})
    return back if _is_polynomial(back) else expr


def _is_polynomial(expr: sympy.Expr) -> bool:
    """Whether it is a sum of products of names and ints."""
    return all(c.is_Integer and all(x.is_Symbol or x.is_Integer for x in term.as_powers_dict())
               for term, c in expr.expand().as_coefficients_dict().items())


def size_value(size: Size, sizes: Mapping[str, int]) -> int | None:
    """The value of a size where its names have these, None where one is missing."""
    if not isinstance(size, Dim):
        return int(size)
    if size.is_name:
        return sizes.get(size.name)
    try:
        return int(_value(size.expr, sizes))
    except KeyError:
        return None


def _value(e: Any, sizes: Mapping[str, int]) -> Any:
    """An expression at some sizes: 20 times as fast as `subs`."""
    if e.is_Integer:
        return int(e)
    if e.is_Symbol:
        return sizes[str(e)]
    if e.is_Add:
        return sum(_value(a, sizes) for a in e.args)
    if e.is_Mul and all(a.is_integer for a in e.args):
        out = 1
        for a in e.args:
            out *= _value(a, sizes)
        return out
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return _value(e.base, sizes) ** int(e.exp)
    if type(e).__name__ == "floor":
        numerator, denominator = e.args[0].together().as_numer_denom()
        return _value(numerator, sizes) // _value(denominator, sizes)
    if type(e).__name__ == "Mod":
        return _value(e.args[0], sizes) % _value(e.args[1], sizes)
    if type(e).__name__ in ("Max", "Min"):
        return (max if type(e).__name__ == "Max" else min)(_value(a, sizes) for a in e.args)
    return e.subs({s: sizes[str(s)] for s in e.free_symbols})


def cached_by_sizes(maxsize: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An lru_cache for functions of shapes: not used where sizes are decided, which makes guards.
    """
    def decorate(fun: Callable[..., Any]) -> Callable[..., Any]:
        known = lru_cache(maxsize=maxsize)(fun)

        @wraps(fun)
        def call(*args: Any) -> Any:
            return (known if deciding.scope is None else fun)(*args)

        return call

    return decorate


def known_relation(op: str, left: Size, right: Size) -> bool | None:
    """Whether a relation holds, as far as that is known or can be decided here; else None."""
    if isinstance(left, Dim) or isinstance(right, Dim):
        scope = deciding.scope
        answer = None if scope is None else scope.decide(op, left, right)
        return provable(op, left, right, bounds_of(left, right)) if answer is None else answer
    return bool(OPERATORS[op](left, right))


def same_shape(x: Shape, y: Shape) -> bool:
    """Whether two shapes are equal; axes of shapes of two ranks are not compared, as tuples are."""
    return len(x) == len(y) and x == y


def is_static(shape: Iterable[Size]) -> bool:
    """True when every size in `shape` is an int."""
    return all(isinstance(size, int) for size in shape)


def static_shape(shape: Iterable[Size]) -> tuple[int, ...]:
    """Sizes that are known to be ints."""
    return tuple([int(n) for n in shape])


def substitute_shape(shape: Shape, sizes: Mapping[str, Size]) -> Shape:
    """`shape` with the known symbolic sizes replaced."""
    return tuple(s.substitute(sizes) if isinstance(s, Dim) else s for s in shape)


def max_dim(d1: Size, d2: Size) -> Size:
    """The larger of two sizes, which is a size of its own where neither is known to be.

    >>> max_dim(2, 3), max_dim(dim("B", min=4), 3), max_dim(dim("B"), 3)
    (3, B, Max(3, B))
    """
    return _extreme(d1, d2, "Max")


def min_dim(d1: Size, d2: Size) -> Size:
    """The smaller of two sizes, which is a size of its own where neither is known to be.

    >>> min_dim(2, 3), min_dim(dim("B", min=4), 3), min_dim(dim("B"), 3)
    (2, 3, Min(3, B))
    """
    return _extreme(d1, d2, "Min")


def _extreme(x: Size, y: Size, which: str) -> Size:
    if x == y:
        return x
    bounds = bounds_of(x, y)
    for a, b in ((x, y), (y, x)):
        if known_relation(">=" if which == "Max" else "<=", a, b):
            return a
    import sympy  # noqa: PLC0415  0.2 s

    return _simplify(getattr(sympy, which)(_expr(x), _expr(y)), tuple(sorted(bounds.items())))
