"""check: a condition that a program stops at where it does not hold."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import CheckError, DTypeError, FailedCheckError, OutOfBoundsError
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.primitive import Primitive, Sample
from functrans.core.source import Source, user_source
from functrans.primitives.broadcast import broadcast_batch, move_axis

__all__ = ["CHECK", "INDEX", "check_p", "has_checks", "is_region", "range_text"]

CHECK, INDEX = "check", "index"


class Check(Primitive):
    """Raises an error where not all of a boolean array holds; the other operands are told.

    `message` may have `{name}` for each of `names`, which are those of the operands. The first
    `lanes` axes of all operands are those of vmaps.
    """

    multiple_results = True
    widens_halves = False
    is_quiet = True
    has_effect = True
    tells_source = True

    def type(self, ok: ShapedArray, *values: ShapedArray, message: str, names: tuple[str, ...],
             kind: str, lanes: int) -> list[ShapedArray]:
        if dtypes.kind(ok.dtype) != "b":
            raise DTypeError(f"check: the condition is {ok}, and must be boolean.",
                             where=user_source(), fix="check(x > 0, ...)")
        return []

    def evaluate(self, ok: Any, *values: Any, source: Source | None = None,
                 **params: Any) -> list[Any]:
        failure = self.failure(ok, values, source or user_source(), **params)
        if failure is not None:
            raise failure
        return []

    def failure(self, ok: Any, values: Sequence[Any], where: Source | None, *, message: str,
                names: tuple[str, ...], kind: str, lanes: int) -> CheckError | None:
        """The error of values for which it does not hold."""
        ok = np.asarray(ok)
        if ok.all():
            return None
        failed = ~ok.reshape(*ok.shape[:lanes], -1).all(axis=-1)
        lane = tuple(int(i[0]) for i in failed.nonzero()) if lanes else ()
        told = [np.asarray(v)[lane] for v in values]
        first = told
        if kind == INDEX:  # the first that is out of bounds
            first = [told[0].reshape(-1)[np.argmin(ok[lane].reshape(-1))]]
        where_told = "an out-of-bounds index: " if kind == INDEX else ""
        what = _filled_in(message, dict(zip(names, first, strict=True)))
        if lanes:
            count = f"{failed.sum()} of {failed.size} elements of a vmap"
            what += f" ({count}; first in element {lane if len(lane) > 1 else lane[0]})"
        ranges = [f"{n} is {range_text(v)}" for n, v in zip(names, told, strict=True)]
        error = OutOfBoundsError if kind == INDEX else FailedCheckError
        return error(what + ("" if what.endswith((".", "!", "?")) else "."), where=where,
                     why=where_told + "; ".join(ranges) + "." if ranges else "",
                     fix=_INDEX_FIX if kind == INDEX else "")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        self.bind(*primals, **params)
        return [], []

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, lanes: int,
              **params: Any) -> Any:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        ok, *values = [broadcast_batch(x, size) if a is None else move_axis(x, a, 0)
                       for x, a in zip(operands, axes, strict=True)]
        self.bind(ok, *values, lanes=lanes + 1, **params)
        return [], []

    def samples(self) -> Iterator[Sample]:
        return iter(())  # it has no results: tested with conditions that fail


check_p = Check()


_INDEX_FIX = ('an index in bounds, or say what others mean: x.at[i].get(mode="clip"), '
              'x.at[i].set(y, mode="drop"), take(x, i, mode="fill")')


class _Formatter(string.Formatter):
    """Shows arrays as they are where a format is for one number."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return str(value) if np.ndim(value) else format(value, format_spec)


def _filled_in(message: str, values: dict[str, Any]) -> str:
    """The message with values in their places; as it stands where they do not fit."""
    shown = {name: v.item() if np.ndim(v) == 0 else v for name, v in values.items()}
    try:
        return _Formatter().vformat(message, (), shown)
    except (KeyError, IndexError, ValueError, TypeError):
        return message


def range_text(value: Any) -> str:
    """An array in a message: its type, the range of its numbers, and how many are none."""
    x = np.asarray(value)
    text = str(get_aval(x).strong())
    if x.size == 0:
        return f"{text}, empty"
    kind = dtypes.kind(x.dtype)
    if kind == "k":  # keys have no range
        return text
    if kind == "b":
        return f"{text}, true in {int(x.sum())} of {x.size}" if x.ndim else f"{text} {bool(x)}"
    if kind == "c":
        x = np.abs(x)
        text += ", absolute value"
    numbers = x.astype(np.float64) if kind in "fc" else x
    nans = int(np.isnan(numbers).sum()) if kind in "fc" else 0
    infinite = int(np.isinf(numbers).sum()) if kind in "fc" else 0
    left = numbers[~np.isnan(numbers)] if nans else numbers
    if not left.size:
        return f"{text}, all NaN" if x.ndim else f"{text} nan"
    low, high = left.min(), left.max()
    span = _number(low) if low == high else f"{_number(low)}..{_number(high)}"
    more = [f"{n} {what}" for n, what in ((nans, "NaN"), (infinite, "infinite")) if n and x.ndim]
    return f"{text} {span}" + (f" ({', '.join(more)})" if more else "")


def _number(x: Any) -> str:
    return f"{x:.6g}" if isinstance(x, np.floating) else str(x)


def is_region(eqn: Equation) -> bool:
    """Whether an equation calls a function of `checked`, which says itself what to look for."""
    return "checks" in eqn.params


_has_checks: WeakKeyDictionary[Jaxpr, bool] = WeakKeyDictionary()


def has_checks(jaxpr: Jaxpr) -> bool:
    """Whether there is anything to look for in a program that was not told to look."""
    known = _has_checks.get(jaxpr)
    if known is None:
        known = _has_checks[jaxpr] = check_p in jaxpr.primitives or any(
            is_region(eqn) or any(map(has_checks, subjaxprs(eqn))) for eqn in jaxpr.calls)
    return known
