"""Operators, methods and conversions of mutable arrays, from the functions of NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ImmutableArrayError, public
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.mutable.arrays import MutableArray, new, unwrap
from functrans.mutable.operations import (
    call_function,
    call_ufunc,
    in_order,
    of_operator,
    of_product,
)
from functrans.mutable.selected import Selected
from functrans.mutable.views import flat_view, ravel, reshape, transpose, viewed
from functrans.mutable.writers import sort_in_place
from functrans.protocol import knows_better

__all__ = ["install"]

_OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
    "matmul": operator.matmul, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift}
_COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
                "eq": operator.eq, "ne": operator.ne}
_UNARY = {"neg": operator.neg, "pos": operator.pos, "abs": operator.abs,
          "invert": operator.invert}
_NUMBERS = (int, float, complex, bool, np.ndarray, np.generic)
# methods that are the function of the same name
_FUNCTIONS = ("all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip",
              "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod",
              "put", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take",
              "trace", "var")


def _other(x: Any) -> Any:
    """The other operand as the value that functrans' operators take, or NotImplemented."""
    if isinstance(x, MutableArray):
        return x.value
    if isinstance(x, (*ARRAYS, *_NUMBERS)):
        return x
    if isinstance(x, (list, tuple)):
        return jnp.asarray(unwrap(x))
    return NotImplemented


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any]:
    symbol = function.__name__.strip("_")
    result = of_product if function is operator.matmul else of_operator

    def forward(self: MutableArray, other: Any) -> Any:
        value = _other(other)
        if value is NotImplemented:
            return NotImplemented
        return result(function(self.value, value), (self, other))

    def reflected(self: MutableArray, other: Any) -> Any:
        value = _other(other)
        if value is NotImplemented:
            return NotImplemented
        return result(function(value, self.value), (other, self))

    def in_place(self: MutableArray, other: Any) -> Any:
        value = _other(other)
        if value is NotImplemented:
            return NotImplemented
        self.check_writable()
        self.fill_from(function(self.value, value), f"x {symbol}= y")
        return self

    return forward, reflected, in_place


def _unary(function: Callable[[Any], Any]) -> Any:
    return lambda self: of_operator(function(self.value), (self,))


def _method(func: Any) -> Any:
    def method(self: MutableArray, *args: Any, **kwargs: Any) -> Any:
        return call_function(func, (self, *args), kwargs)

    method.__name__, method.__doc__ = func.__name__, func.__doc__
    return method


def _conversion(function: Callable[[Any], Any]) -> Any:
    return lambda self: function(self.value)


def _divmod(self: MutableArray, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: MutableArray, other: Any) -> Any:
    return other // self, other % self


def _reshape(self: MutableArray, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _transpose(self: MutableArray, *axes: Any) -> Any:
    if len(axes) == 1 and (axes[0] is None or not isinstance(axes[0], (int, np.integer))):
        return transpose(self, axes[0])
    return transpose(self, axes or None)


def _copy(self: MutableArray, order: str = "C") -> Any:
    return in_order(self.value, (self,), order)


def _astype(self: MutableArray, dtype: Any, order: str = "K", casting: str = "unsafe",
            subok: bool = True, copy: bool = True, device: Any = None) -> Any:
    value = jnp.astype(self.value, dtype, device=device)
    if not copy and value.dtype == self.dtype:
        return self
    return in_order(value, (self,), order)


def _fill(self: MutableArray, value: Any) -> None:
    self[...] = value


def _sort(self: MutableArray, axis: int = -1, kind: Any = None, order: Any = None, *,
          stable: Any = None) -> None:
    sort_in_place(self, "x.sort()", lambda v: jnp.sort(v, axis))


def _partition(self: MutableArray, kth: Any, axis: int = -1, kind: Any = None,
               order: Any = None) -> None:
    # fully sorted is a partition for any kth
    sort_in_place(self, "x.partition()", lambda v: jnp.sort(v, axis))


def _flatten(self: MutableArray, order: str = "C") -> Any:
    return new(jnp.ravel(self.value, order), self._cell.call)


def _compress(self: MutableArray, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return call_function(np.compress, (condition, self), {"axis": axis, "out": out})


def _conj(self: MutableArray) -> Any:
    return of_operator(jnp.conj(self.value), (self,)) if self.dtype.kind == "c" else self


def _item(self: MutableArray, *args: Any) -> Any:
    return self.value.item(*args)


def _tolist(self: MutableArray) -> Any:
    return self.value.tolist()


def _tobytes(self: MutableArray, order: Any = "C") -> Any:
    return self.value.tobytes(order)


def _contains(self: MutableArray, item: Any) -> bool:
    return bool(jnp.any(jnp.equal(self.value, unwrap(item))))


def _ufunc(self: MutableArray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    for x in inputs:
        if not isinstance(x, (MutableArray, Selected, *ARRAYS)) and knows_better(x):
            return NotImplemented
    return call_ufunc(ufunc, method, inputs, kwargs)


def _function(self: MutableArray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    for t in types:
        if not issubclass(t, (MutableArray, Selected, *ARRAYS, np.ndarray)):
            return NotImplemented
    return call_function(func, args, kwargs)


def _refuse(what: str, fix: str) -> Any:
    def method(self: MutableArray, *args: Any, **kwargs: Any) -> Any:
        raise ImmutableArrayError(f"{what} of an array of numpy_code.", where=user_source(),
                                  why="its memory is not NumPy's.", fix=fix)

    return method


def _set_shape(self: MutableArray, shape: Any) -> None:
    other = reshape(self, shape, copy=False)
    self._chain, self._shadow, self._version = other._chain, other._shadow, -1


def _setter(part: str) -> Any:
    def write(self: MutableArray, value: Any) -> None:
        getattr(self, part)[...] = value

    return write


def _set_flat(self: MutableArray, value: Any) -> None:
    flat = flat_view(self)
    flat[...] = jnp.resize(jnp.ravel(jnp.asarray(unwrap(value))), flat.shape)


def install() -> None:
    """Give MutableArray its operators and methods; done once, when the package is imported."""
    methods: dict[str, Any] = {}
    for name, function in _OPERATORS.items():
        for prefix, method in zip(("", "r", "i"), _binary(function), strict=True):
            methods[f"__{prefix}{name}__"] = method
    for name, function in _COMPARISONS.items():
        methods[f"__{name}__"] = _binary(function)[0]
    single: Any
    convert: Any
    for name, single in _UNARY.items():
        methods[f"__{name}__"] = _unary(single)
    for name, convert in {"bool": bool, "int": int, "float": float, "complex": complex,
                          "index": operator.index}.items():
        methods[f"__{name}__"] = _conversion(convert)
    methods |= {name: _method(getattr(np, name)) for name in _FUNCTIONS}
    methods |= {
        "__getitem__": MutableArray.__getitem__, "__setitem__": MutableArray.__setitem__,
        "__divmod__": _divmod, "__rdivmod__": _rdivmod, "__contains__": _contains,
        "__array_ufunc__": _ufunc, "__array_function__": _function,
        "reshape": _reshape, "transpose": _transpose, "ravel": ravel, "copy": _copy,
        "astype": _astype, "fill": _fill, "sort": _sort, "partition": _partition,
        "flatten": _flatten, "compress": _compress, "conj": _conj, "conjugate": _conj,
        "item": _item, "tolist": _tolist, "tobytes": _tobytes, "view": _view_method,
        "resize": _refuse("resize", "x = np.resize(x, shape)"),
        "setflags": _refuse("setflags", "x = x.copy()"),
        "__delitem__": _refuse("del x[i]", "x = np.delete(x, i, axis=0)")}
    for name, method in methods.items():
        setattr(MutableArray, name, public(method))
    properties: dict[str, tuple[Any, Any]] = {
        "T": (transpose, None), "mT": (lambda self: np.matrix_transpose(self), None),
        "real": (lambda self: np.real(self), _setter("real")),
        "imag": (lambda self: np.imag(self), _setter("imag")),
        "flat": (flat_view, _set_flat),
        "strides": (lambda self: tuple(s * self.itemsize for s in self.shadow().strides), None)}
    for name, (getter, setter) in properties.items():
        setattr(MutableArray, name, property(public(getter), setter and public(setter)))
    # the getter is in the class already
    MutableArray.shape = MutableArray.shape.setter(public(_set_shape))  # type: ignore[attr-defined, method-assign]


def _view_method(self: MutableArray, *args: Any, **kwargs: Any) -> Any:
    return viewed(self, *args, **kwargs)


install()
