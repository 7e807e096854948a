"""`x[mask]` with a traced mask: elements that cannot be counted, until they are written back.

`x[mask] += 1` and `y[mask] = f(x[mask])` need no count: what is elementwise is computed for all
elements, and the mask chooses. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ConcretizationError
from functrans.core.source import user_source

__all__ = ["Selected"]

_REDUCTIONS = ("sum", "prod", "any", "all", "mean", "count_nonzero")


@final
class Selected:
    """The elements of `full` where `mask` holds."""

    __slots__ = ("full", "mask", "of")
    __array_priority__ = 3000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, full: Any, mask: Any, of: Any) -> None:
        self.full = full
        self.mask = mask
        self.of = of  # the array that it was read from

    @property
    def dtype(self) -> Any:
        return self.full.dtype

    def refusal(self, what: str) -> ConcretizationError:
        """The error where the number of selected elements is needed."""
        return ConcretizationError(
            f"x[mask] with a traced mask is {what}.", where=user_source(),
            why="how many elements the mask selects is not known while a program is traced.",
            fix="np.where(mask, f(x), y) in place of f(x[mask]); x[mask] += y, "
                "y[mask] = f(x[mask]) and x[mask].sum() with one mask, m = x > 0, are understood")

    def operate(self, function: Callable[..., Any], *args: Any) -> Selected:
        """An elementwise function of selected elements and numbers."""
        values = []
        for a in args:
            if isinstance(a, Selected):
                if a.mask is not self.mask:
                    raise a.refusal("combined with elements of another mask")
                a = a.full
            elif getattr(a, "ndim", 0) or isinstance(a, (list, tuple)):
                raise self.refusal("combined with an array")
            values.append(a)
        return Selected(function(*values), self.mask, self.of)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        function = getattr(jnp, ufunc.__name__, None)
        if method == "__call__" and function is not None and not options and ufunc.nout == 1 and (
                ufunc.signature is None):
            return self.operate(function, *inputs)
        raise self.refusal(f"an argument of np.{ufunc.__name__}")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__name__ in _REDUCTIONS and args and args[0] is self and len(args) == 1 and (
                not kwargs):
            return self.reduce(func.__name__)
        raise self.refusal(f"an argument of np.{func.__name__}")

    def reduce(self, name: str) -> Any:
        """The sum of the selected elements, or another reduction that has where=."""
        mask = jnp.reshape(self.mask, (*self.mask.shape, *[1] * (self.full.ndim - self.mask.ndim)))
        if name == "count_nonzero":
            return jnp.sum(jnp.logical_and(mask, self.full != 0))
        return getattr(jnp, name)(self.full, where=jnp.broadcast_to(mask, self.full.shape))

    def __getattr__(self, name: str) -> Any:
        if name in _REDUCTIONS:
            return lambda: self.reduce(name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refusal(f"asked for its {name}")

    def __getitem__(self, index: Any) -> Any:
        raise self.refusal("indexed")

    def __len__(self) -> int:
        raise self.refusal("counted")

    def __iter__(self) -> Any:
        raise self.refusal("iterated over")

    def __bool__(self) -> bool:
        raise self.refusal("taken for a truth value")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self.refusal("made an array")

    __functrans_array__ = __array__


def _install() -> None:
    def binary(function: Callable[..., Any]) -> tuple[Any, Any]:
        return (lambda self, other: self.operate(function, self, other),
                lambda self, other: self.operate(function, other, self))

    for name, function in {
            "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "truediv": jnp.true_divide,
            "floordiv": jnp.floor_divide, "mod": jnp.mod, "pow": jnp.power, "and": jnp.bitwise_and,
            "or": jnp.bitwise_or, "xor": jnp.bitwise_xor}.items():
        forward, reflected = binary(function)
        setattr(Selected, f"__{name}__", forward)
        setattr(Selected, f"__r{name}__", reflected)
    for name, function in {
            "lt": jnp.less, "le": jnp.less_equal, "gt": jnp.greater, "ge": jnp.greater_equal,
            "eq": jnp.equal, "ne": jnp.not_equal}.items():
        setattr(Selected, f"__{name}__", binary(function)[0])
    unary: dict[str, Any] = {"neg": jnp.negative, "pos": jnp.positive, "abs": jnp.abs,
                             "invert": jnp.invert}
    for name, single in unary.items():
        setattr(Selected, f"__{name}__", lambda self, single=single: self.operate(single, self))


_install()
