"""Along which axes of a mesh values vary within a `shard_map`, as types say it.

An operation takes values that vary along the same axes: what does not vary is made varying first
(`pvary`), by an operation of its own whose transpose is a sum over the devices. So the cotangent of
a value that all devices share is added up where it was shared, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans.core.avals import SAME, ShapedArray
from functrans.core.trace import Tracer, get_trace

if TYPE_CHECKING:
    from functrans.core.primitive import Primitive

__all__ = ["aligned", "alike", "set_pvary", "vary", "varying_of", "with_varying"]

_pvary: Final[list[Callable[[Any, frozenset[Any]], Any]]] = []


def set_pvary(operation: Callable[[Any, frozenset[Any]], Any]) -> None:
    """The operation that makes a value varying: a layer above has it."""
    _pvary[:] = [operation]


def varying_of(x: Any) -> frozenset[Any]:
    """The axes along which a value varies; arrays that are closed over are the same everywhere."""
    return x.aval.varying if isinstance(x, Tracer) else SAME


def vary(x: Any, axes: frozenset[Any]) -> Any:
    """x as a value that varies along `axes`, besides those along which it does."""
    missing = axes - varying_of(x)
    return _pvary[0](x, missing) if missing else x


def aligned(primitive: Primitive, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of one operation, all varying along the axes along which any of them does."""
    if primitive.collective or primitive.higher_order or len(args) < 2:
        return args
    kinds = {a.aval.varying for a in args if isinstance(a, Tracer)}
    if len(kinds) < 2:
        return args
    axes: frozenset[Any] = frozenset().union(*kinds)
    return tuple([vary(a, axes) if isinstance(a, Tracer) else a for a in args])


def alike(args: list[Any]) -> list[Any]:
    """Arguments of a call of a function with rules of its own, which no rule aligns."""
    trace = get_trace()
    if trace is None or not trace.is_manual:
        return args
    axes: frozenset[Any] = frozenset().union(*map(varying_of, args))
    return [vary(a, axes) if isinstance(a, Tracer) else a for a in args] if axes else args


def with_varying(primitive: Primitive, operands: Sequence[ShapedArray], results: Any) -> Any:
    """The types of results of an operation: they vary as its operands do.

    Collectives and operations that run programs say it themselves.
    """
    if primitive.collective or primitive.says_varying:
        return results
    axes: frozenset[Any] = SAME
    for a in operands:
        if a.varying and a.varying != axes:
            axes = axes | a.varying
    if primitive.multiple_results:
        return [r.varying_along(axes) for r in results]
    return results.varying_along(axes)
