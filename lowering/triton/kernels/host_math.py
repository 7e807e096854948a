"""The functions of `device_math` under the interpreter: NumPy on the arrays behind its tensors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import ml_dtypes
import numpy as np
from triton import language as tl
from triton.runtime.interpreter import InterpretedFunction, TensorHandle
from triton.runtime.jit import JITFunction

from functrans import _runtime
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.triton.kernels import series_math
from functrans.lowering.triton.kernels.source import module_of


def _like(data: Any, x: Any) -> Any:
    return tl.tensor(TensorHandle(np.asarray(data, x.handle.data.dtype), x.handle.dtype), x.type)


def _function(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        widest = max(args, key=lambda a: a.handle.data.size)
        with np.errstate(all="ignore"):
            return _like(f(*[a.handle.data for a in args]), widest)
    return call


exp, exp2, expm1, log, log1p = map(_function, (np.exp, np.exp2, np.expm1, np.log, np.log1p))
sin, cos, tan = map(_function, (np.sin, np.cos, np.tan))
asin, acos, atan, atan2 = map(_function, (np.arcsin, np.arccos, np.arctan, np.arctan2))
sinh, cosh, tanh = map(_function, (np.sinh, np.cosh, np.tanh))
tanh_half = tanh
asinh, acosh, atanh = map(_function, (np.arcsinh, np.arccosh, np.arctanh))
cbrt, floor, ceil, trunc, rint = map(_function, (np.cbrt, np.floor, np.ceil, np.trunc, np.rint))
nextafter, fmod = map(_function, (np.nextafter, np.fmod))
sqrt = square_root = sqrt_rn = _function(np.sqrt)
divide = div_rn = _function(np.divide)
divided = _function(lambda x, y, *_: np.divide(x, y))
inverse_root_cubed = _function(lambda x: 1 / np.sqrt(x) / x)
rsqrt = _function(lambda x: 1 / np.sqrt(x))
logistic = _function(lambda x: 1 / (1 + np.exp(-x)))
pow = _function(np.power)


def root_like_power(x: Any, c: float) -> Any:
    return _function(lambda x: np.power(x, np.float32(c)))(x)


sign = _function(lambda x: np.sign(x))
erf, erfc, erfinv = map(_function, (_runtime.erf, _runtime.erfc, _runtime.erf_inv))
lgamma = _function(_runtime.lgamma)
tgamma = _function(np.frompyfunc(math.gamma, 1, 1))


class _Libdevice:
    """CUDA's library, as entries of `ELEMENTWISE` call it: the references of their primitives."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        for primitive, entry in ELEMENTWISE.items():
            texts = (entry.triton,) if isinstance(entry.triton, str) else entry.triton.values()
            if any(f"fm.libdevice.{name}(" in text for text in texts):
                return _function(primitive.evaluate)
        raise AttributeError(f"no elementwise primitive calls {name} of CUDA's library")


libdevice = _Libdevice()


def _interpreted(names: Sequence[str]) -> list[Any]:
    """Functions of `series_math` as they are, where this module is CUDA's library."""
    text = inspect.getsource(series_math)
    library = "from triton.language.extra.cuda import libdevice"
    assert library in text
    text = text.replace(library, f"from {__package__} import host_math as libdevice")
    module = module_of(text)
    found = {name: InterpretedFunction(value.fn) for name, value in vars(module).items()
             if isinstance(value, (JITFunction, InterpretedFunction))}
    vars(module).update(found)
    return [found[name] for name in names]


digamma, igamma, igammac, random_gamma_grad, zeta = _interpreted(
    ("digamma", "igamma", "igammac", "random_gamma_grad", "zeta"))


_THREAD: ContextVar[int] = ContextVar("the number of the thread", default=0)


def threads(count: int) -> Iterator[None]:
    """Once for each thread of a program, of kernels whose threads go ways of their own."""
    for k in range(count):
        token = _THREAD.set(k)
        try:
            yield
        finally:
            _THREAD.reset(token)


def thread_index(count: Any) -> Any:
    number = np.full(1, _THREAD.get(), np.int32)
    return tl.tensor(TensorHandle(number, tl.int32), tl.int32)


def divisor(y: Any) -> tuple[Any, Any, Any]:
    """A divisor, where quotients are NumPy's."""
    return y, y, y


def sine_cosine(x: Any) -> tuple[Any, Any]:
    return sin(x), cos(x)


def store_scalar(p: Any, x: Any) -> None:
    tl.store(p, x)


sum_of_words = _function(np.add)


def word_of_ones(condition: Any) -> Any:
    return -condition.to(tl.int32)


def by_lanes(i: Any) -> Any:
    return i


def int_div(x: Any, y: Any) -> Any:
    return _function(_divided)(x, y)


def int_rem(x: Any, y: Any) -> Any:
    return _function(lambda a, b: a - _divided(a, b) * b)(x, y)


def _divided(a: Any, b: Any) -> Any:
    """Towards zero; -1 by zero, and what wraps around as it does."""
    safe = np.where(b == 0, 1, b)
    quotient = a // safe
    below = (a % safe != 0) & ((a < 0) != (safe < 0))
    return np.where(b == 0, np.array(-1).astype(a.dtype), quotient + below.astype(a.dtype))


def saturate(x: Any, low: Any, high: Any, above: Any) -> Any:
    """Numbers as they fit an integer type, without a fraction; NaN is 0."""
    data = np.trunc(x.handle.data)
    data = np.where(np.isnan(data), 0, np.clip(data, low, high))
    return _Whole(data, low, high, above)


class _Whole:
    """Numbers on the way to an integer type that a float may not tell apart at its ends."""

    def __init__(self, data: Any, low: int, high: int, above: float) -> None:
        self.data, self.low, self.high, self.above = data, low, high, above

    def to(self, dtype: Any) -> Any:
        limits = np.dtype(f"{'u' if self.low == 0 else ''}int{dtype.primitive_bitwidth}")
        inside = np.where(self.data >= self.above, 0, self.data).astype(limits)
        data = np.where(self.data >= self.above, np.array(self.high, limits), inside)
        type_ = tl.block_type(dtype, list(data.shape)) if data.shape != (1,) else dtype
        return tl.tensor(TensorHandle(data, dtype), type_)


def population_count(x: Any, bits: Any) -> Any:
    return _function(np.bitwise_count)(x)


def clz(x: Any, bits: Any) -> Any:
    def count(data: Any) -> Any:
        width = data.dtype.itemsize * 8
        left = data.astype(np.uint64) & np.uint64((1 << width) - 1)
        found = np.zeros(data.shape, np.int64)
        for k in range(width):
            found += left >> np.uint64(k) != 0
        return width - found
    return _function(count)(x)


def bfloat16(x: Any) -> Any:
    """Rounded to the nearest; the interpreter's own conversion cuts off."""
    data = x.handle.data.astype(ml_dtypes.bfloat16).view(np.uint16)
    return tl.tensor(TensorHandle(data, tl.bfloat16), _of(x, tl.bfloat16))


def _to_float8(dtype: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        with np.errstate(all="ignore"):
            bits = x.handle.data.astype(dtype).view(np.uint8)
        return tl.tensor(TensorHandle(bits, tl.uint8), _of(x, tl.uint8))
    return call


def _from_float8(dtype: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        values = x.handle.data.view(dtype).astype(np.float32)
        return tl.tensor(TensorHandle(values, tl.float32), _of(x, tl.float32))
    return call


def _of(x: Any, dtype: Any) -> Any:
    return tl.block_type(dtype, list(x.type.shape)) if x.type.is_block() else dtype


to_f8e4, to_f8e5 = map(_to_float8, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))
from_f8e4, from_f8e5 = map(_from_float8, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))


def radix_counted(ptx: Any, zero: int | None, operands: Sequence[Any]) -> Any:
    """`radix_tile.counted` on arrays."""
    *words, byte = [x.handle.data for x in operands]
    digits = _digits(np.concatenate(words), byte, zero)
    count = np.zeros(words[0].shape, np.int32)
    count[:256] = np.bincount(digits, minlength=256)
    return _like(count, operands[0])


def radix_spread(ptx: Any, sets: int, zero: int | None, operands: Sequence[Any]) -> list[Any]:
    """`radix_tile.spread` on arrays."""
    *words, begin, byte = [x.handle.data for x in operands]
    along, digits = _in_order(words, sets, byte, zero)
    counts = np.bincount(digits, minlength=256)
    first = begin[:256] - np.cumsum(counts) + counts
    found = [*along, first[digits] + np.arange(digits.size)]
    return [_like(x, operands[0]) for y in found for x in y.reshape(-1, begin.size)]


def radix_arranged(ptx: Any, sets: int, zero: int | None, operands: Sequence[Any]) -> list[Any]:
    """`radix_tile.arranged` on arrays."""
    *words, byte = [x.handle.data for x in operands]
    along, _ = _in_order(words, sets, byte, zero)
    slots = len(words) // sets
    return [_like(x.reshape(-1), operands[0])
            for y in along for x in np.moveaxis(y.reshape(-1, slots, 32), 1, 0)]


def _in_order(words: list[Any], sets: int, byte: Any, zero: int | None) -> tuple[list[Any], Any]:
    """The sets of a tile in the order of the digits of the first, and these digits."""
    slots = len(words) // sets
    along = [np.moveaxis(np.stack(words[s * slots:(s + 1) * slots]).reshape(slots, -1, 32), 0, 1)
             .reshape(-1) for s in range(sets)]  # slot k of a warp follows slot k - 1
    digits = _digits(along[0], byte, zero)
    order = np.argsort(digits, kind="stable")
    return [x[order] for x in along], digits[order]


def _digits(words: Any, byte: Any, zero: int | None) -> Any:
    words = words.view(np.uint32)
    if zero is not None:
        words = np.where(words == zero, words + 1, words)
    return (words >> np.uint32(8 * int(byte.flat[0]))) & 255


def opaque(x: Any) -> Any:
    return x


def grid_dependency_wait() -> None:
    """They have ended."""


def tf32(x: Any) -> Any:
    """The same: there are no tensor cores, and products are those of float32."""
    return x


def tf32_once(x: Any) -> Any:
    return tf32(x)


def products_by_warps() -> None:
    """There are no warps."""


def next_copies_round() -> None:
    """They do not, for the same reason."""
