"""What Triton's interpreter lacks when its environment variable was not set before the import.

With the variable set nothing can be compiled in the same process, and tests do both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from triton import language as tl
from triton.language import standard
from triton.runtime import interpreter
from triton.runtime.interpreter import (
    InterpretedFunction,
    InterpreterBuilder,
    ReduceOps,
    ScanOps,
    TensorHandle,
    interpreter_builder,
)
from triton.runtime.jit import JITFunction

with suppress(ImportError):  # which the interpreter imports, and which looks at what is patched
    import triton.experimental.gluon.language  # noqa: F401

__all__ = ["emulation"]


FLOAT8 = {tl.float8e4nv: ml_dtypes.float8_e4m3fn, tl.float8e5: ml_dtypes.float8_e5m2}
# what the interpreter patches, and does not always put back
PATCHED = (tl, tl.core, tl.math, standard, tl.core.tensor, tl.core.tensor_descriptor_base)


@contextmanager
def emulation() -> Iterator[None]:
    """Triton's own functions that are written in Triton are interpreted, and products of bfloat16
    and float8 are products of numbers (the interpreter multiplies the bits)."""
    before = [(target, dict(vars(target))) for target in PATCHED]
    for module in (tl, standard):
        for name, value in list(vars(module).items()):
            if isinstance(value, JITFunction):
                setattr(module, name, InterpretedFunction(value.fn))
    interpreter_builder.create_dot = _dot
    interpreter_builder.create_splat = _splat
    interpreter_builder.create_si_to_fp = _from_integer
    interpreter_builder.create_fp_to_fp = _from_float
    interpreter_builder.create_fp_ext = _extended
    folds = ReduceOps.generic_reduce, ScanOps.generic_scan
    ReduceOps.generic_reduce, ScanOps.generic_scan = _reduced, _scanned
    patch = interpreter._patch_lang_tensor
    interpreter._patch_lang_tensor = partial(_patched, patch)
    try:
        yield
    finally:
        for name in ("create_dot", "create_splat", "create_si_to_fp", "create_fp_to_fp",
                     "create_fp_ext"):
            delattr(interpreter_builder, name)
        ReduceOps.generic_reduce, ScanOps.generic_scan = folds
        interpreter._patch_lang_tensor = patch
        for target, attributes in before:
            _restore(target, attributes)


def _patched(patch: Callable[..., None], tensor: Any, scope: Any) -> None:
    """As Triton 3.6 patches tensors, but that NumPy 2.4 makes no number of an array of one."""
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


def _restore(target: Any, attributes: dict[str, Any]) -> None:
    for name, value in dict(vars(target)).items():
        if name not in attributes:
            # functions that the interpreter has rewritten go on to use its names
            if name not in vars(interpreter):
                delattr(target, name)
        elif value is not attributes[name]:
            setattr(target, name, attributes[name])


def _combined(op: Any, first: list[Any], second: list[Any], types: list[Any]) -> list[Any]:
    """Arrays combined element by element."""
    found = op.combine_fn.fn(*[op.to_tensor(a, t) for a, t in zip(first, types, strict=True)],
                             *[op.to_tensor(a, t) for a, t in zip(second, types, strict=True)])
    return [x.handle.data for x in (found if isinstance(found, tuple) else (found,))]


def _reduced(self: Any, tensors: Any) -> list[Any]:
    """By halves; the interpreter's own way is element by element."""
    arrays = [t.handle.data for t in tensors]
    types = [t.dtype for t in tensors]
    rank = arrays[0].ndim
    if self.axis is None:
        arrays = [a.reshape(-1) for a in arrays]
    axis = 0 if self.axis is None else self.axis
    while (n := arrays[0].shape[axis]) > 1:
        pairs = [np.take(a, range(k, n, 2), axis) for k in (0, 1) for a in arrays]
        arrays = _combined(self, pairs[:len(arrays)], pairs[len(arrays):], types)
    if self.axis is None:
        arrays = [a.reshape([1] * rank) if self.keep_dims else a[0] for a in arrays]
    elif not self.keep_dims:
        arrays = [np.squeeze(a, axis) for a in arrays]
    return [self.to_tensor(a if a.ndim else a.item(), t)
            for a, t in zip(arrays, types, strict=True)]


def _scanned(self: Any, tensors: Any) -> list[Any]:
    """By doubling: each element takes in the one so many before it."""
    arrays = [t.handle.data for t in tensors]
    types = [t.dtype for t in tensors]
    n, step = arrays[0].shape[self.axis], 1
    while step < n:  # in whole arrays: sizes are powers of two
        made = _combined(self, [np.roll(a, step, self.axis) for a in arrays], arrays, types)
        first = [np.take(a, range(step), self.axis) for a in arrays]
        rest = [np.take(m, range(step, n), self.axis) for m in made]
        arrays = [np.concatenate(x, self.axis) for x in zip(first, rest, strict=True)]
        step *= 2
    return [self.to_tensor(a, t) for a, t in zip(arrays, types, strict=True)]


def _dot(a: Any, b: Any, *rest: Any) -> Any:
    return InterpreterBuilder.create_dot(interpreter_builder, _wide(a), _wide(b), *rest)


def _from_integer(x: Any, target: Any) -> Any:
    """An integer as a float: the interpreter takes one for the bits of bfloat16."""
    if target.scalar != tl.bfloat16:
        return InterpreterBuilder.cast_impl(interpreter_builder, x, target)
    bits = x.data.astype(ml_dtypes.bfloat16).view(np.uint16)
    return TensorHandle(bits, target.scalar)


def _extended(x: Any, target: Any) -> Any:
    """A float as a wider one: the interpreter loses the subnormal numbers of bfloat16."""
    if x.dtype.scalar == tl.bfloat16 and target.scalar == tl.float32:
        return _wide(x)
    return InterpreterBuilder.cast_impl(interpreter_builder, x, target)


def _from_float(x: Any, target: Any, rounding: Any) -> Any:
    """A float as another; of float8 by its values, those that are no numbers included."""
    if x.dtype.scalar not in FLOAT8 or target.scalar not in (tl.bfloat16, tl.float16):
        return InterpreterBuilder.create_fp_to_fp(interpreter_builder, x, target, rounding)
    values = x.data.view(FLOAT8[x.dtype.scalar])
    wide = values.astype(ml_dtypes.bfloat16).view(np.uint16) if target.scalar == tl.bfloat16 \
        else values.astype(np.float16)
    return TensorHandle(wide, target.scalar)


def _splat(target: Any, x: Any) -> Any:
    """A scalar in all places; one that is true or false is of the type of what was compared."""
    number = np.asarray(x.data).reshape(-1)[0]
    return TensorHandle(np.full(target.shape, number), x.dtype.scalar)


def _wide(x: Any) -> Any:
    if (eight := FLOAT8.get(x.dtype.scalar)) is not None:
        return TensorHandle(x.data.view(eight).astype(np.float32), tl.float32)
    if x.dtype.scalar is not tl.bfloat16:
        return x
    return TensorHandle((x.data.astype(np.uint32) << 16).view(np.float32), tl.float32)
