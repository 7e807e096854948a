"""`ufunc`, and `frompyfunc`, which makes one of a function of numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, final

from functrans import lax
from functrans._runtime import EagerOp
from functrans.core.errors import ArgumentError, public
from functrans.core.source import user_source
from functrans.numpy import ufunc_methods
from functrans.numpy.common import broadcast_all, operand, refuse_out
from functrans.numpy.ufuncs import astype
from functrans.numpy.vectorizing import vectorize
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["frompyfunc", "ufunc"]


class _UfuncType(type):
    """The class of `ufunc`: functions of the namespace that have its methods are instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is cls or (isinstance(instance, (EagerOp, FunctionType))
                                         and hasattr(instance, "identity"))


@final
class ufunc(metaclass=_UfuncType):
    """A function of `nin` numbers with `nout` results that takes arrays, elementwise.

    `call`, `reduce`, `accumulate`, `at` and `reduceat` are what the methods of these names run
    instead of what they make of `func`; `identity` is the value that changes nothing, which a
    reduction of no elements gives.

    >>> import functrans.numpy as jnp
    >>> larger = jnp.ufunc(lambda x, y: jnp.where(x > y, x, y), 2, 1, name="larger")
    >>> larger.reduce(jnp.array([1, 3, 2])).item(), isinstance(jnp.add, jnp.ufunc)
    (3, True)
    >>> x = jnp.array([1, 3, 2])
    >>> larger.accumulate(x), larger.at(x, 0, 5, inplace=False)
    (Array([1, 3, 3], dtype=int32), Array([5, 3, 2], dtype=int32))
    >>> larger.reduceat(x, jnp.array([0, 1])), jnp.multiply.outer(x, x)[1]
    (Array([1, 3], dtype=int32), Array([3, 9, 6], dtype=int32))
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *,
                 name: str | None = None, nargs: int | None = None, identity: Any = None,
                 call: Callable[..., Any] | None = None,
                 reduce: Callable[..., Any] | None = None,
                 accumulate: Callable[..., Any] | None = None,
                 at: Callable[..., Any] | None = None,
                 reduceat: Callable[..., Any] | None = None) -> None:
        self.nin, self.nout = operator.index(nin), operator.index(nout)
        self.nargs = self.nin if nargs is None else operator.index(nargs)
        self.identity = identity
        self.__name__: str = name or str(getattr(func, "__name__", type(func).__name__))
        self.__doc__ = func.__doc__
        self._func = func
        self._call = vectorize(func) if call is None else call
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    def __repr__(self) -> str:
        return f"<functrans.numpy.ufunc '{self.__name__}'>"

    def __eq__(self, other: object) -> bool:
        return type(other) is ufunc and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self._func, self.__name__, self.identity, self.nin, self.nout, self.nargs

    @public
    def __call__(self, *args: ArrayLike, out: None = None, where: ArrayLike | None = None) -> Any:
        refuse_out(self.__name__, out)
        if len(args) != self.nin:
            raise ArgumentError(f"{self!r} takes {self.nin} arrays and got {len(args)}.",
                                where=user_source())
        outs = self._call(*[operand(self.__name__, x) for x in args])
        if where is None:
            return outs
        kept = [_kept(self.__name__, x, where) for x in ([outs] if self.nout == 1 else outs)]
        return kept[0] if self.nout == 1 else tuple(kept)

    @public
    def reduce(self, a: ArrayLike, axis: Any = 0, dtype: DTypeLike | None = None,
               out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array:
        """All elements along axes combined into one, with `initial` first where it is given."""
        self._of_two("reduce")
        if initial is None and (where is not None or not operand("reduce", a).size):
            initial = self.identity
        found: Array = self._method("reduce")(a, axis, dtype, out, keepdims, initial, where)
        return found

    @public
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None,
                   out: None = None) -> Array:
        """The results of combining the first 1, 2, ..., n elements along an axis."""
        self._of_two("accumulate")
        found: Array = self._method("accumulate")(a, axis, dtype, out)
        return found

    @public
    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None,
                 out: None = None) -> Array:
        """The elements from each index to the next combined; see `functrans.numpy.add.reduceat`."""
        self._of_two("reduceat")
        found: Array = self._method("reduceat")(a, indices, axis, dtype, out)
        return found

    @public
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array:
        """a with its elements at an index combined with b; `inplace` must be False."""
        if self.nin > 1:
            self._of_two("at")
        found: Array = self._method("at")(a, indices, b, inplace=inplace)
        return found

    @public
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of every pair of an element of A and one of B."""
        self._of_two("outer", results=None)
        result: Array = ufunc_methods.outer(self, A, B)
        return result

    def _method(self, name: str) -> Callable[..., Any]:
        own = self._own[name]
        if own is not None:
            return own
        method: Callable[..., Any] = getattr(ufunc_methods, name)
        return lambda *args, **kwargs: method(self, *args, **kwargs)

    def _of_two(self, method: str, results: int | None = 1) -> None:
        if self.nin != 2 or results not in (None, self.nout):
            raise ArgumentError(
                f"{method} of {self!r}, which has {self.nin} operands and {self.nout} results.",
                where=user_source(), why="elements are combined two by two into one.")


def _kept(name: str, x: Array, where: ArrayLike) -> Array:
    """x where `where` holds, and zero elsewhere, as in the other functions of the namespace."""
    x, mask = broadcast_all(name, x, astype(operand(name, where), bool))
    return lax.select_n(mask, lax.full_like(x, 0), x)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A `ufunc` of a function of `nin` numbers (scalars, traced) with `nout` results.

    >>> import functrans.numpy as jnp
    >>> f = jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1)
    >>> f.accumulate(jnp.array([1, 2, 3])).tolist(), f.outer(jnp.arange(2), jnp.arange(2)).tolist()
    ([1, 12, 123], [[0, 1], [10, 11]])
    """
    return ufunc(func, nin, nout, identity=identity)
