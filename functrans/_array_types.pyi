"""What type checkers know of arrays and of the functions that are made by tables.

The methods are those that `functrans.methods` installs in `Array`, and
`tests/test_public_annotations.py` compares them.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from functrans._runtime import ArrayBase
from functrans.array import Array
from functrans.at import At
from functrans.typing import (
    ArrayLike,
    Axis,
    DeviceLike,
    DTypeLike,
    Index,
    PrecisionLike,
    PyTree,
    ShapeLike,
    Size,
)

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

class ArrayMethods(ArrayBase):
    @property
    def T(self) -> Array:
        """The array with its axes reversed."""
    @property
    def mT(self) -> Array:
        """The array with its last two axes exchanged."""
    @property
    def real(self) -> Array:
        """The real part."""
    @property
    def imag(self) -> Array:
        """The imaginary part."""
    @property
    def flat(self) -> Array:
        """The elements in row-major order, as a vector."""
    @property
    def at(self) -> At:
        """Changed copies: `x.at[index].set(values)`, `add`, `multiply`, `get`, ..."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each axis."""
    def all(self, axis: Axis = None, out: None = None, keepdims: bool = False, *,
            where: ArrayLike | None = None) -> Array:
        """Whether all elements along axes are true."""
    def any(self, axis: Axis = None, out: None = None, keepdims: bool = False, *,
            where: ArrayLike | None = None) -> Array:
        """Whether any element along axes is true."""
    def argmax(self, axis: int | None = None, out: None = None,
               keepdims: bool | None = None) -> Array:
        """Index of the first maximum along axis, or in the flattened array; NaN counts as largest.
        """
    def argmin(self, axis: int | None = None, out: None = None,
               keepdims: bool | None = None) -> Array:
        """Index of the first minimum along axis, or in the flattened array; NaN counts as smallest.
        """
    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """The indices that partition a around its kth element along axis."""
    def argsort(self, axis: int | None = -1, *, kind: str | None = None, order: None = None,
                stable: bool = True, descending: bool = False,
                dtype: DTypeLike | None = None) -> Array:
        """The indices that sort a along axis, in an integer dtype; equal elements keep their order.
        """
    def astype(self, dtype: DTypeLike | None, copy: bool = False,
               device: DeviceLike | None = None) -> Array:
        """The array converted to a dtype; itself when it has it."""
    def byteswap(self) -> Array:
        """The numbers that the bytes of each element are in the other order."""
    def choose(self, choices: ArrayLike | Sequence[ArrayLike], out: None = None,
               mode: str = "raise") -> Array:
        """For each element the choice whose number a gives; a must be concrete unless mode is
        given."""
    def clip(self, /, min: ArrayLike | None = None, max: ArrayLike | None = None, *,
             a_min: ArrayLike | None = None, a_max: ArrayLike | None = None,
             out: None = None) -> Array:
        """arr limited to [min, max]; where min exceeds max, max."""
    def compress(self, condition: ArrayLike, axis: int | None = None, *, size: int | None = None,
                 fill_value: ArrayLike = 0, out: None = None) -> Array:
        """The parts along an axis for which a condition holds."""
    def conj(self) -> Array:
        """The complex conjugate."""
    def conjugate(self) -> Array:
        """The complex conjugate."""
    def copy(self) -> Array:
        """Another array of the same values, which outlives the donation of the first."""
    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None,
                out: None = None) -> Array:
        """Running product along axis, or over the flattened array."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None,
               out: None = None) -> Array:
        """Running sum along axis, or over the flattened array."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """A diagonal of the matrices that two axes span, as the last axis."""
    def dot(self, b: ArrayLike, *, precision: PrecisionLike = None,
            preferred_element_type: DTypeLike | None = None, out: None = None) -> Array:
        """Sum of products over the last axis of a and the second to last of b (or its only one)."""
    def flatten(self, order: str = "C") -> Array:
        """The elements as a vector."""
    def item(self, *args: int | tuple[int, ...]) -> Any:
        """The only element, or the one at an index, as a Python number."""
    def max(self, axis: Axis = None, out: None = None, keepdims: bool = False,
            initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """Maximum over axes (all by default); NaN if there is one."""
    def mean(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
             keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Arithmetic mean over axes (all by default); float16 and bfloat16 are summed in float32.
        """
    def min(self, axis: Axis = None, out: None = None, keepdims: bool = False,
            initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """Minimum over axes (all by default); NaN if there is one."""
    def nonzero(self, *, size: int | None = None,
                fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
                ) -> tuple[Array, ...]:
        """The indices of the elements that are not zero, one vector for each axis."""
    def prod(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
             keepdims: bool = False, initial: ArrayLike | None = None,
             where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """Product over axes (all by default), of elements where `where` holds, times `initial`."""
    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """Maximum minus minimum along axes."""
    def ravel(self, order: str = "C") -> Array:
        """The elements of a as a vector."""
    def repeat(self, repeats: ArrayLike, axis: int | None = None, *,
               total_repeat_length: int | None = None) -> Array:
        """Each element of a repeated along axis, repeats times; counts may differ between elements.
        """
    def reshape(self, *shape: ShapeLike, order: str = "C") -> Array:
        """The elements in another shape, given as one tuple or as sizes; one may be -1."""
    def round(self, decimals: int = 0, out: None = None) -> Array:
        """a rounded to so many decimals, halves to even; in a's dtype."""
    def searchsorted(self, v: ArrayLike, side: Literal["left", "right"] = "left",
                     sorter: ArrayLike | None = None, *, method: str = "scan") -> Array:
        """Where values v go into the sorted vector a: before equal elements ("left") or behind."""
    def sort(self, axis: int | None = -1, *, kind: str | None = None, order: None = None,
             stable: bool = True, descending: bool = False) -> Array:
        """a sorted along axis, or flattened and sorted if axis is None; NaN comes last."""
    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """a without the given axes of size 1, or without all such axes."""
    def std(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
            mean: ArrayLike | None = None, correction: float | None = None) -> Array:
        """Standard deviation over axes: the square root of var."""
    def sum(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """Sum over axes (all by default), of elements where `where` holds, plus `initial`."""
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """a with two axes exchanged."""
    def take(self, indices: ArrayLike, axis: int | None = None, out: None = None,
             mode: str | None = None, unique_indices: bool = False,
             indices_are_sorted: bool = False, fill_value: ArrayLike | None = None) -> Array:
        """The elements or slices of a at indices along axis (of the flattened array if None)."""
    def to_device(self, device: DeviceLike, *, stream: Any = None) -> Array:
        """The array on a device."""
    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """The bytes of the elements in row-major order."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1,
              dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Sum of a diagonal of the matrices that two axes span."""
    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """The axes in the given order, as one tuple or as numbers; reversed by default."""
    def var(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
            mean: ArrayLike | None = None, correction: float | None = None) -> Array:
        """Variance over axes: the mean squared distance from the mean, over N - ddof."""
    def view(self, dtype: DTypeLike | None = None, *sizes: Size) -> Array:
        """The bytes read as another dtype; the last axis grows or shrinks with its width."""
    def __contains__(self, value: ArrayLike) -> bool: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any,
                        **kwargs: Any) -> Any: ...
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any: ...

class Derivative(Protocol[P, R]):
    """A function that a transform has made, with the parameters of the user's."""

    @property
    def __name__(self) -> str: ...
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

class Decorator(Protocol):
    """What a transform without a function is: `@ft.grad(argnums=1)` above a function."""

    def __call__(self, fun: Callable[P, Any], /) -> Callable[P, PyTree]: ...

class ValueDecorator(Protocol):
    """The same of `value_and_grad`."""

    def __call__(self, fun: Callable[P, T], /) -> Callable[P, tuple[T, PyTree]]: ...

class SameDecorator(Protocol):
    """The same of a transform whose function has the type of the user's."""

    def __call__(self, fun: Callable[P, T], /) -> Callable[P, T]: ...

class OfOneArray:
    """An elementwise function of one array.

    A class, and no protocol, so that only these functions are taken for it: `grad` tells them
    apart from those of users, which say what their first argument is.
    """

    __name__: str
    def __call__(self, x: ArrayLike, /) -> Array: ...

class Unary(OfOneArray):
    def __call__(self, x: ArrayLike) -> Array: ...

class Binary(Protocol):
    """An elementwise function of two arrays."""

    __name__: str
    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...

class UnaryUfunc(OfOneArray):
    """An elementwise function of one array; zero where `where` does not hold."""

    def __call__(self, x: ArrayLike, /, *, out: None = None,
                 where: ArrayLike | None = None) -> Array: ...

class BinaryFunction(Protocol):
    """An elementwise function of two arrays that promotes and broadcasts."""

    __name__: str
    def __call__(self, x: ArrayLike, y: ArrayLike, /, *, out: None = None,
                 where: ArrayLike | None = None) -> Array: ...

class BinaryUfunc(BinaryFunction, Protocol):
    """A function of two arrays with the methods of NumPy's ufuncs."""
    def reduce(self, a: ArrayLike, axis: Axis = 0, dtype: DTypeLike | None = None,
               out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array: ...
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None,
                   out: None = None) -> Array: ...
    def reduceat(self, a: ArrayLike, indices: ArrayLike, axis: int = 0,
                 dtype: DTypeLike | None = None, out: None = None) -> Array: ...
    def outer(self, a: ArrayLike, b: ArrayLike, /, *, out: None = None,
              where: ArrayLike | None = None) -> Array: ...
    def at(self, a: ArrayLike, indices: Index, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array: ...
