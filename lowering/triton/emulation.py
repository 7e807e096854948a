"""What Triton's interpreter lacks when its environment variable was not set before the import.

With the variable set nothing can be compiled in the same process, and tests do both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from triton import language as tl
from triton.language import standard
from triton.runtime.interpreter import (
    InterpretedFunction,
    InterpreterBuilder,
    TensorHandle,
    interpreter_builder,
)
from triton.runtime.jit import JITFunction

with suppress(ImportError):  # which the interpreter imports, and which looks at what is patched
    import triton.experimental.gluon.language  # noqa: F401

__all__ = ["emulation"]


# what the interpreter patches, and does not always put back
PATCHED = (tl, tl.core, tl.math, standard, tl.core.tensor, tl.core.tensor_descriptor_base)


@contextmanager
def emulation() -> Iterator[None]:
    """Triton's own functions that are written in Triton are interpreted, and products of bfloat16
    are products of numbers (the interpreter multiplies the bits)."""
    before = [(target, dict(vars(target))) for target in PATCHED]
    for module in (tl, standard):
        for name, value in list(vars(module).items()):
            if isinstance(value, JITFunction):
                setattr(module, name, InterpretedFunction(value.fn))
    interpreter_builder.create_dot = _dot
    try:
        yield
    finally:
        del interpreter_builder.create_dot
        for target, attributes in before:
            _restore(target, attributes)


def _restore(target: Any, attributes: dict[str, Any]) -> None:
    for name, value in dict(vars(target)).items():
        if name not in attributes:
            delattr(target, name)
        elif value is not attributes[name]:
            setattr(target, name, attributes[name])


def _dot(a: Any, b: Any, *rest: Any) -> Any:
    return InterpreterBuilder.create_dot(interpreter_builder, _wide(a), _wide(b), *rest)


def _wide(x: Any) -> Any:
    if x.dtype.scalar is not tl.bfloat16:
        return x
    return TensorHandle((x.data.astype(np.uint32) << 16).view(np.float32), tl.float32)
