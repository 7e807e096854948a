"""Functions of slices applied to whole arrays, by vmap: vectorize and apply_along_axis."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from functrans import lax
from functrans.core.errors import ArgumentError, ShapeError, public
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import axis_index, broadcast_shapes, operand
from functrans.numpy.creation import asarray
from functrans.numpy.manipulation import moveaxis
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

T = TypeVar("T")

_ARGUMENT = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*\)"
_SIGNATURE = re.compile(rf"^\s*{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})*\s*->\s*{_ARGUMENT}"
                        rf"(?:\s*,\s*{_ARGUMENT})*\s*$")


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """'(n,m),(m)->(n)' as the names of the core axes of inputs and outputs."""
    if not _SIGNATURE.match(signature):
        raise ArgumentError(f"functrans.numpy.vectorize: {signature!r} is no signature.",
                            where=user_source(), fix="signature='(n,m),(m)->(n)'")

    def names(side: str) -> list[tuple[str, ...]]:
        return [tuple(re.findall(r"\w+", part)) for part in re.findall(_ARGUMENT, side)]

    left, right = signature.split("->")
    return names(left), names(right)


def _check_sizes(args: list[Array], core: list[tuple[str, ...]], sizes: dict[str, Any],
                 what: str) -> None:
    for x, names in zip(args, core, strict=True):
        if x.ndim < len(names):
            raise ShapeError(f"functrans.numpy.vectorize: an {what} of shape {x.shape} lacks the "
                             f"axes {names}.", where=user_source())
        for name, size in zip(names, x.shape[x.ndim - len(names):], strict=True):
            if (name.isdigit() and int(name) != size) or sizes.setdefault(name, size) != size:
                raise ShapeError(f"functrans.numpy.vectorize: the axis {name!r} has sizes "
                                 f"{sizes.get(name, name)} and {size}.", where=user_source())


def vectorize(pyfunc: Callable[..., T], *, excluded: Collection[int | str] = frozenset(),
              signature: str | None = None) -> Callable[..., T]:
    """pyfunc of scalars (or of the core axes in signature) as a function that broadcasts.

    excluded: positions and names of arguments that are passed as they are.

    >>> import functrans.numpy as jnp
    >>> f = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    >>> f(jnp.ones((2, 3)), jnp.ones(3)).tolist()
    [3.0, 3.0]
    """
    left_out = frozenset(excluded)

    @functools.wraps(pyfunc)
    @public
    def vectorized(*args: ArrayLike, **kwargs: Any) -> Any:
        mapped_names = [k for k in kwargs if k not in left_out]
        positions = [i for i in range(len(args)) if i not in left_out]
        fixed = {k: v for k, v in kwargs.items() if k in left_out}
        xs = [asarray(args[i]) for i in positions] + [asarray(kwargs[k]) for k in mapped_names]

        def call(*values: Any) -> Any:
            full = list(args)
            for i, v in zip(positions, values[:len(positions)], strict=True):
                full[i] = v
            named = dict(zip(mapped_names, values[len(positions):], strict=True))
            return pyfunc(*full, **named, **fixed)

        core_in: list[tuple[str, ...]] = [()] * len(xs)
        core_out: list[tuple[str, ...]] | None = None
        sizes: dict[str, Any] = {}
        if signature is not None:
            core_in, core_out = _parse(signature)
            if len(core_in) != len(xs):
                raise ArgumentError(f"functrans.numpy.vectorize: {len(xs)} arguments for the "
                                    f"signature {signature!r}.", where=user_source())
            _check_sizes(xs, core_in, sizes, "argument")

        def checked(*values: Any) -> Any:
            result = call(*values)
            outs = list(result) if isinstance(result, (tuple, list)) else [result]
            if core_out is not None:
                if len(outs) != len(core_out):
                    raise ArgumentError(f"functrans.numpy.vectorize: {len(outs)} results for the "
                                        f"signature {signature!r}.", where=user_source())
                _check_sizes([asarray(o) for o in outs], core_out, sizes, "result")
            return result

        return _map_lead(checked, xs, [len(c) for c in core_in])

    return vectorized


def _map_lead(f: Callable[..., Any], xs: list[Array], core_ranks: list[int]) -> Any:
    """f vmapped over the broadcast leading axes of the arguments; size 1 is not mapped."""
    leads = [x.shape[:x.ndim - rank] for x, rank in zip(xs, core_ranks, strict=True)]
    lead = broadcast_shapes(*leads, name="vectorize") if leads else ()
    squeezed, maps = [], []
    for x, own in zip(xs, leads, strict=True):
        ones = tuple(i for i, s in enumerate(own) if isinstance(s, int) and s == 1)
        maps.append({len(lead) - len(own) + i for i in range(len(own)) if i not in ones})
        squeezed.append(lax.squeeze(x, ones) if ones else x)
    ones_everywhere = []
    for axis in reversed(range(len(lead))):
        in_axes = tuple(0 if axis in m else None for m in maps)
        if all(a is None for a in in_axes):
            ones_everywhere.append(axis)
        else:
            f = vmap(f, in_axes=in_axes)
    result = f(*squeezed)
    if not ones_everywhere:
        return result
    axes = tuple(sorted(ones_everywhere))
    if isinstance(result, (tuple, list)):
        return type(result)(lax.expand_dims(r, axes) for r in result)
    return lax.expand_dims(operand("vectorize", result), axes)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any,
                     **kwargs: Any) -> Array:
    """func1d of every vector along axis, whose results take the place of these vectors.

    >>> jnp.apply_along_axis(jnp.sort, 0, jnp.array([[3, 1], [2, 4]]))
    Array([[2, 1],
           [3, 4]], dtype=int32)
    """
    x = arr if isinstance(arr, ARRAYS) else asarray(arr)
    axis = axis_index(axis, x.ndim, "apply_along_axis")

    def f(vector: Array) -> Any:
        return asarray(func1d(vector, *args, **kwargs))

    mapped: Callable[..., Any] = f
    for _ in range(x.ndim - 1):
        mapped = vmap(mapped)
    result = mapped(moveaxis(x, axis, -1))
    made = result.ndim - (x.ndim - 1)
    return moveaxis(result, tuple(range(x.ndim - 1, result.ndim)), tuple(range(axis, axis + made)))
