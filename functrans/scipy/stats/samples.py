"""Samples along an axis, and elements that are missing: what all statistics share.

A statistic is written for samples along their last axes. `over_axis` gives it `axis` (also None and
a tuple), `nan_policy` and `keepdims`, as the parameters of these names in its signature say.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.missing_names import argument_fix
from functrans.core.source import user_source
from functrans.core.tree import tree_map
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact
from functrans.scipy.stats.missing import check_policy, refuse_missing
from functrans.transforms.vmap import vmap
from functrans.typing import Array

__all__ = ["over_axis"]

P = ParamSpec("P")
R = TypeVar("R")
_MOST_BRANCHES = 32  # one a number of elements that are left, 50 ms or more of compilation each


Masks = bool | Callable[[dict[str, Any]], bool]


def over_axis(*names: str, paired: bool = False, masks: Masks = False, least: int = 1,
              whole: bool = False, propagates: bool = True
              ) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a statistic of samples along their last axes have an axis and a policy for NaN.

    `names` are the parameters that are samples, or the one that takes all ("*samples"). Of `paired`
    samples an element is left out with its partners. A statistic that `masks`, or does with these
    arguments, is given "omit" itself. Samples of less than `least` elements give NaN. `whole`:
    integers stay as they are. Where it `propagates`, a NaN in a sample is one in the results.
    """
    def decorate(fun: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(fun)
        many = [n.removeprefix("*") for n in names if n.startswith("*")]
        name = fun.__name__

        @functools.wraps(fun)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentError(f"{name}(): {error}.", where=user_source(),
                                    fix=argument_fix(fun, str(error))) from None
            bound.apply_defaults()
            given = bound.arguments
            policy, axis = given.get("nan_policy", "propagate"), given.get("axis", 0)
            check_policy(name, policy)
            keepdims = bool(given.get("keepdims", False))
            used = [] if many else [n for n in names if given[n] is not None]
            parts, restore = _along_last(
                name, given[many[0]] if many else [given[n] for n in used], axis, keepdims, whole)

            def of(values: Sequence[Array], own: str = "propagate") -> Any:
                settings = dict(given)
                settings.update({many[0]: tuple(values)} if many else dict(zip(used, values)))
                settings.update({k: v for k, v in (("axis", -1), ("keepdims", False),
                                                   ("nan_policy", own)) if k in settings})
                call_of = inspect.BoundArguments(signature, settings)
                return fun(*call_of.args, **call_of.kwargs)

            masked = masks(given) if callable(masks) else masks
            lead = parts[0].shape[:-1] if parts else ()
            lines: Any
            if not any(dtypes.kind(p.dtype) in "fc" for p in parts):
                lines = of(parts)
            elif not all(p.shape[-1] for p in parts):
                lines = _nothing(of, parts, least)
            elif policy == "omit" and not masked:
                lines = _omitting(name, of, parts, paired, least)
            elif policy == "omit":
                lines = of(parts, policy)
            else:
                if policy == "raise":
                    for p in parts:
                        refuse_missing(name, p)
                lines = _propagating(of(parts), parts) if propagates else of(parts)
            result: R = tree_map(lambda v: restore(v, lead), lines)
            return result

        return call

    return decorate


def _along_last(name: str, samples: Sequence[Any], axis: Any, keepdims: bool, whole: bool
                ) -> tuple[list[Array], Callable[[Any, tuple[int, ...]], Any]]:
    """The samples along their last axes, with common axes before, and what restores a result."""
    known = [jnp.asarray(s) if whole else s for s in samples]
    xs = known if whole and all(dtypes.kind(s.dtype) in "iub" for s in known) else inexact(*samples)
    ndim = max((x.ndim for x in xs), default=0)
    if axis is None:
        axes = tuple(range(ndim))
        xs = [x.reshape(-1) for x in xs]
    else:
        axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
        if not all(isinstance(a, (int, np.integer)) for a in axes):
            raise ArgumentError(f"scipy.stats.{name}: axis is {shown(axis)}.", where=user_source(),
                                why="it is an int, a tuple of ints or None.", fix="axis=0")
        if any(not -ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) < len(axes):
            raise ShapeError(f"scipy.stats.{name}: axis {axis} is not one of the {ndim} axes.",
                             where=user_source())
        axes = tuple(a % ndim for a in axes)
        moved = []
        for x in xs:
            x = x.reshape((1,) * (ndim - x.ndim) + x.shape)
            x = jnp.moveaxis(x, axes, tuple(range(ndim - len(axes), ndim)))
            moved.append(x.reshape(*x.shape[:ndim - len(axes)],
                                   math.prod(x.shape[ndim - len(axes):])))
        try:
            lead = np.broadcast_shapes(*(x.shape[:-1] for x in moved))
        except ValueError:
            raise ShapeError(
                f"scipy.stats.{name}: the samples have shapes "
                f"{' and '.join(str(x.shape) for x in xs)}.", where=user_source(),
                why="their axes but that of the test broadcast.") from None
        xs = [jnp.broadcast_to(x, (*lead, x.shape[-1])) for x in moved]

    def restore(value: Any, lead: tuple[int, ...]) -> Any:
        if not keepdims or not hasattr(value, "shape") or value.shape[:len(lead)] != lead:
            return value
        return jnp.expand_dims(value, tuple(sorted(axes)))

    return xs, restore


def _propagating(lines: Any, parts: Sequence[Array]) -> Any:
    """Results that are NaN where a sample has one."""
    floating = [p for p in parts if dtypes.kind(p.dtype) in "fc"]
    lost = functools.reduce(lambda a, b: a | b, [jnp.any(jnp.isnan(p), -1) for p in floating])
    return tree_map(lambda v: _lost(v, lost), lines)


def _lost(value: Any, lost: Array) -> Any:
    if not hasattr(value, "dtype") or dtypes.kind(value.dtype) not in "fc" or \
            value.shape[:lost.ndim] != lost.shape:
        return value
    return jnp.where(lost.reshape(lost.shape + (1,) * (value.ndim - lost.ndim)), math.nan, value)


def _omitting(name: str, of: Callable[[Sequence[Array]], Any], parts: list[Array], paired: bool,
              least: int) -> Any:
    """The statistic of each line without its NaN.

    Lines of known values are taken together where as many elements are left; of traced ones there
    is a branch for each number that may be left.
    """
    masks = [jnp.isnan(p) for p in parts]
    if paired:
        masks = [functools.reduce(lambda a, b: a | b, jnp.broadcast_arrays(*masks))]
    known = [lax.stop_gradient(m) for m in masks]
    if any(map(is_traced, known)):
        return _branches(name, of, parts, masks, least)
    return _grouped(of, parts, [np.asarray(m) for m in known], least)


def _grouped(of: Callable[[Sequence[Array]], Any], parts: list[Array], masks: list[np.ndarray],
             least: int) -> Any:
    lead = parts[0].shape[:-1]
    flat = [p.reshape(-1, p.shape[-1]) for p in parts]
    lost = [m.reshape(-1, m.shape[-1]) for m in masks]
    orders = [np.argsort(m, -1, kind="stable") for m in lost]
    counts = np.stack([(~m).sum(-1) for m in lost], -1)
    found, places = [], []
    for key in np.unique(counts, axis=0):
        rows = np.nonzero((counts == key).all(-1))[0]
        chosen = []
        for i, p in enumerate(flat):
            j = i if len(lost) > 1 else 0
            chosen.append(jnp.take_along_axis(p[rows], jnp.asarray(orders[j][rows, :key[j]]), -1))
        found.append(_or_nan(of, chosen, flat, rows, least))
        places.append(rows)
    if not found:
        return of(parts)
    back = np.argsort(np.concatenate(places))

    def together(*leaves: Any) -> Any:
        if not hasattr(leaves[0], "shape"):
            return leaves[0]
        return jnp.concatenate(leaves)[back].reshape(lead + leaves[0].shape[1:])

    return tree_map(together, *found)


def _nothing(of: Callable[[Sequence[Array]], Any], parts: Sequence[Array], least: int) -> Any:
    """NaN in the place of all results: a sample is empty."""
    size = max(least, 8)
    return _or_nan(of, [p[..., :0] for p in parts], [jnp.zeros((*p.shape[:-1], size), p.dtype)
                                                     for p in parts], None, least)


def _or_nan(of: Callable[[Sequence[Array]], Any], chosen: Sequence[Array], flat: Sequence[Array],
            rows: np.ndarray | None, least: int) -> Any:
    """The statistic, or NaN in its place where a sample is too small."""
    if rows is not None and all(c.shape[-1] >= least for c in chosen):
        return of(chosen)
    lead = [p.shape[:-1] if rows is None else (len(rows),) for p in flat]
    stand_in = of([jnp.broadcast_to(jnp.arange(p.shape[-1], dtype=p.dtype), (*before, p.shape[-1]))
                   for p, before in zip(flat, lead)])
    return tree_map(lambda v: jnp.full_like(v, math.nan)
                    if hasattr(v, "dtype") and dtypes.kind(v.dtype) in "fc" else v, stand_in)


def _branches(name: str, of: Callable[[Sequence[Array]], Any], parts: list[Array],
              masks: list[Array], least: int) -> Any:
    sizes = [m.shape[-1] for m in masks]
    if math.prod(n + 1 for n in sizes) > _MOST_BRANCHES:
        raise ArgumentError(
            f'scipy.stats.{name}: nan_policy is "omit", and samples of '
            f"{' and '.join(map(str, sizes))} elements are traced.", where=user_source(),
            why="the program would have a branch for each number of elements that may be left.",
            fix="call it outside of jit, or leave NaN out of the samples before")
    lead = parts[0].shape[:-1]
    rows = []
    for i, p in enumerate(parts):
        order = jnp.argsort(masks[i if len(masks) > 1 else 0], -1)
        full = jnp.take_along_axis(p, order, -1)
        # what is left out is no longer NaN: derivatives of other branches would be
        rows.append(jnp.where(jnp.isnan(full), 0, full).reshape(-1, p.shape[-1]))
    index: Any = 0
    for m in masks:
        index = index * (m.shape[-1] + 1) + jnp.sum(~m, -1).reshape(-1)

    def branch(key: tuple[int, ...]) -> Callable[..., Any]:
        def run(*lines: Array) -> Any:
            cut = [v[:key[i if len(key) > 1 else 0]] for i, v in enumerate(lines)]
            found = _or_nan(of, [c[None] for c in cut], [v[None] for v in lines],
                            np.zeros(1, int), least)
            return tree_map(lambda v: v[0] if hasattr(v, "shape") else v, found)

        return run

    branches = [branch(key) for key in itertools.product(*(range(n + 1) for n in sizes))]
    found = vmap(lambda i, *lines: lax.switch(i, branches, *lines))(index, *rows)
    return tree_map(lambda v: v.reshape(lead + v.shape[1:]) if hasattr(v, "shape") else v, found)
