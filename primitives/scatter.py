"""The scatters besides scatter_add: replacing, multiplying, minimum and maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import get_aval
from functrans.core.primitive import Linear
from functrans.primitives.arithmetic import add, div, mul, neg, sub
from functrans.primitives.base import full, zeros
from functrans.primitives.broadcast import broadcast_in_dim, prod
from functrans.primitives.compare import eq, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import Scatter, bind_scatter, gather_updates, scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.shape import iota, reshape

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["scatter", "scatter_max", "scatter_max_p", "scatter_min",
           "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub"]


class ScatterReplace(Scatter):
    """The operand with indexed places replaced by updates; of several at one place, one wins."""

    name = "scatter"
    widens_halves = False

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
        out = self.bind(operand, indices, updates, **params)
        aval = get_aval(updates).strong()
        if t_updates is None:
            return out, self.bind(t_operand, indices, zeros(aval), **params)
        base = zeros(get_aval(operand).strong()) if t_operand is None else t_operand
        if params["unique_indices"] or is_single(indices):
            return out, self.bind(base, indices, t_updates, **params)
        # which update won is found by scattering their numbers; only the winner's tangent counts
        won = where(_winners(operand, indices, updates, params), t_updates, 0)
        if t_operand is not None:
            base = self.bind(t_operand, indices, zeros(aval), **params)
        return out, scatter_add_p.bind(base, indices, won, **params)

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any,
                  **params: Any) -> tuple[Any, None, Any]:
        ct_operand = ct_updates = None
        if isinstance(operand, Linear):
            aval = updates.aval if isinstance(updates, Linear) else get_aval(updates)
            ct_operand = self.bind(ct, indices, zeros(aval.strong()), **params)
        if isinstance(updates, Linear):
            ct_updates = gather_updates(ct, indices, updates, **params)
        return ct_operand, None, ct_updates


class ScatterMul(Scatter):
    """The operand with indexed places multiplied by updates, several at one place by all."""

    ufunc = np.multiply

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
        out = self.bind(operand, indices, updates, **params)
        tangent = None
        if t_operand is not None:
            tangent = self.bind(t_operand, indices, updates, **params)
        if t_updates is not None:
            others = self._product_of_others(operand, indices, updates, params)
            base = zeros(get_aval(operand).strong()) if tangent is None else tangent
            tangent = scatter_add_p.bind(base, indices, mul(t_updates, others), **params)
        return out, tangent

    def _product_of_others(self, operand: Any, indices: Any, updates: Any,
                           params: dict[str, Any]) -> Any:
        """For each update, the product of everything else at its place, right also at zeros."""
        if params["unique_indices"] or is_single(indices):
            return gather_updates(operand, indices, updates, **params)
        zero = eq(updates, 0.0)
        count = convert_element_type(zero, updates.dtype)
        nonzero = where(zero, 1.0, updates)
        product = self.bind(operand, indices, nonzero, **params)
        num_zeros = scatter_add_p.bind(zeros(get_aval(operand).strong()), indices, count, **params)
        others = sub(gather_updates(num_zeros, indices, updates, **params), count)
        ratio = div(gather_updates(product, indices, updates, **params), nonzero)
        return where(eq(others, 0.0), ratio, 0.0)

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any,
                  **params: Any) -> tuple[Any, None, None]:
        return self.bind(ct, indices, updates, **params), None, None


class ScatterExtremum(Scatter, abstract=True):
    """Ties share the derivative evenly, those among updates and with the operand alike."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
        out = self.bind(operand, indices, updates, **params)
        kept = convert_element_type(eq(operand, out), out.dtype)
        chosen = convert_element_type(
            eq(updates, gather_updates(out, indices, updates, **params)), out.dtype)
        count = scatter_add_p.bind(kept, indices, chosen, **params)
        tangent = zeros(get_aval(out).strong()) if t_operand is None else mul(t_operand, kept)
        if t_updates is not None:
            tangent = scatter_add_p.bind(tangent, indices, mul(t_updates, chosen), **params)
        return out, div(tangent, where(eq(count, 0.0), 1.0, count))


class ScatterMin(ScatterExtremum):
    """The operand with indexed places lowered to the least of it and the updates."""

    ufunc = np.minimum


class ScatterMax(ScatterExtremum):
    """The operand with indexed places raised to the greatest of it and the updates."""

    ufunc = np.maximum


def is_single(indices: Any) -> bool:
    """Whether there is one index vector, which cannot meet another at its place."""
    return all(isinstance(s, int) and s == 1 for s in indices.shape[:-1])


def _numbered(updates: Any, numbers: ScatterDimensionNumbers) -> Any:
    """1, 2, ... for each index vector, in the shape of its updates."""
    shape = updates.shape
    batch = [d for d in range(len(shape)) if d not in numbers.update_window_dims]
    sizes = [shape[d] for d in batch]
    ids = reshape(add(iota(np.int32, prod(sizes)), 1), sizes)
    return broadcast_in_dim(ids, shape, batch)


def _winners(operand: Any, indices: Any, updates: Any, params: dict[str, Any]) -> Any:
    """Which updates are in the result of a scatter that replaces."""
    ids = _numbered(updates, params["dimension_numbers"])
    winner = scatter_p.bind(full(operand.shape, 0, np.int32), indices, ids, **params)
    return eq(ids, gather_updates(winner, indices, ids, **params))


scatter_p, scatter_mul_p = ScatterReplace(), ScatterMul()
scatter_min_p, scatter_max_p = ScatterMin(), ScatterMax()


def scatter(operand: Array, scatter_indices: ArrayLike, updates: ArrayLike,
            dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with updates in place of what is at every index vector.

    Raises ShapeError when the numbers do not fit, DTypeError for indices that are no integers.
    See XLA's operation semantics, Scatter.

    >>> import functrans as ft
    >>> numbers = ft.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> i, u = ft.numpy.array([[1]]), ft.numpy.array([7])
    >>> ft.lax.scatter(ft.numpy.zeros(2, "int32"), i, u, numbers).tolist()
    [0, 7]
    """
    return bind_scatter(scatter_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_sub(operand: Array, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with updates subtracted at every index vector; see `scatter_add`.

    >>> dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [0]]), jnp.array([5, 2])
    >>> lax.scatter_sub(jnp.array([1, 2, 3]), indices, updates, dims)
    Array([-6,  2,  3], dtype=int32)
    """
    return bind_scatter(scatter_add_p, operand, scatter_indices, neg(updates), dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_mul(operand: Array, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand multiplied by updates at every index vector; see `scatter_add`.

    >>> dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [0]]), jnp.array([5, 2])
    >>> lax.scatter_mul(jnp.array([1, 2, 3]), indices, updates, dims)
    Array([10,  2,  3], dtype=int32)
    """
    return bind_scatter(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_min(operand: Array, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The least of operand and updates at every index vector; see `scatter_add`.

    >>> dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [2]]), jnp.array([5, 1])
    >>> lax.scatter_min(jnp.array([1, 2, 3]), indices, updates, dims)
    Array([1, 2, 1], dtype=int32)
    """
    return bind_scatter(scatter_min_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_max(operand: Array, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The greatest of operand and updates at every index vector; see `scatter_add`.

    >>> dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> indices, updates = jnp.array([[0], [2]]), jnp.array([5, 1])
    >>> lax.scatter_max(jnp.array([1, 2, 3]), indices, updates, dims)
    Array([5, 2, 3], dtype=int32)
    """
    return bind_scatter(scatter_max_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)
