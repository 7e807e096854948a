"""The Laplacian of a grid, by its products, eigenvalues and eigenvectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.scipy.arguments import known_size, one_of
from functrans.scipy.sparse.arithmetic import CLASSES
from functrans.scipy.sparse.coordinates import dia_array
from functrans.scipy.sparse.maps import LinearOperator
from functrans.scipy.sparse.places import of_columns
from functrans.typing import Array

_KINDS = ("neumann", "dirichlet", "periodic")


class LaplacianNd(LinearOperator):
    """Sums of second differences on a grid of any number of axes, as a linear operator.

    `boundary_conditions` are "neumann" (what is outside is as the edge), "dirichlet" (it is zero)
    or "periodic". `eigenvalues(m)` and `eigenvectors(m)` are known in closed form, in increasing
    order: with `m` the last, which are nearest to zero. `toarray()` and `tosparse()` are the
    matrix. Raises ArgumentError for other conditions and sizes.

    >>> import functrans as ft
    >>> L = ft.scipy.sparse.linalg.LaplacianNd((3,), boundary_conditions="dirichlet")
    >>> L.toarray().tolist(), (L @ ft.numpy.array([1.0, 2.0, 4.0])).tolist()
    ([[-2, 1, 0], [1, -2, 1], [0, 1, -2]], [0.0, 1.0, -6.0])
    >>> L.eigenvalues().round(3).tolist()
    [-3.4140000343322754, -2.0, -0.5860000252723694]
    """

    def __init__(self, grid_shape: tuple[int, ...], *, boundary_conditions: str = "neumann",
                 dtype: Any = np.int8) -> None:
        one_of("sparse.linalg.LaplacianNd", "boundary_conditions", boundary_conditions, _KINDS)
        given = grid_shape if isinstance(grid_shape, (tuple, list)) else (grid_shape,)
        self.grid_shape = tuple(known_size("sparse.linalg.LaplacianNd", "grid_shape", n)
                                for n in given)
        self.boundary_conditions = boundary_conditions
        n = math.prod(self.grid_shape)
        super().__init__((n, n), self._apply, self._apply, dtype=dtype)

    def _apply(self, x: Array) -> Array:
        grid = x.reshape(self.grid_shape)
        total = jnp.zeros_like(grid)
        for axis in range(grid.ndim):
            if self.boundary_conditions == "periodic":
                before, after = jnp.roll(grid, 1, axis), jnp.roll(grid, -1, axis)
            else:
                mode = "edge" if self.boundary_conditions == "neumann" else "constant"
                sides = [(0, 0)] * grid.ndim
                sides[axis] = (1, 1)
                wide = jnp.pad(grid, sides, mode=mode)
                n = grid.shape[axis]
                before, after = (jnp.take(wide, np.arange(n) + k, axis=axis) for k in (0, 2))
            total = total + before + after - 2 * grid
        return total.reshape(-1)

    def _of_axis(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of one axis, and eigenvectors in columns."""
        k, j = np.arange(n), np.arange(n)[:, None]
        if self.boundary_conditions == "dirichlet":
            angle = np.pi * (k + 1) / (n + 1)
            vectors = np.sqrt(2 / (n + 1)) * np.sin((j + 1) * angle)
        elif self.boundary_conditions == "neumann":
            angle = np.pi * k / n
            vectors = np.sqrt(np.where(k == 0, 1, 2) / n) * np.cos((j + 0.5) * angle)
        else:
            angle = 2 * np.pi * ((k + 1) // 2) / n
            alone = (k == 0) | ((k == n - 1) & (n % 2 == 0))
            wave = np.where(alone | (k % 2 == 1), np.cos(j * angle), np.sin(j * angle))
            vectors = np.sqrt(np.where(alone, 1, 2) / n) * wave
        return -4 * np.sin(angle / 2) ** 2, vectors

    def _ordered(self, m: int | None) -> tuple[np.ndarray, np.ndarray]:
        total = np.zeros(())
        for n in self.grid_shape:
            total = total[..., None] + self._of_axis(n)[0]
        order = np.argsort(total, axis=None, kind="stable")
        if m is not None:
            order = order[-min(known_size("sparse.linalg.LaplacianNd", "m", m), order.size):]
        return total.reshape(-1)[order], order

    def eigenvalues(self, m: int | None = None) -> Array:
        """The eigenvalues, increasing; the last `m` of them if given."""
        return jnp.asarray(self._ordered(m)[0].astype(default_float()))

    def eigenvectors(self, m: int | None = None) -> Array:
        """Eigenvectors of length 1 in columns, in the order of `eigenvalues(m)`."""
        _, order = self._ordered(m)
        found = np.ones((1, order.size))
        for k, n in zip(np.unravel_index(order, self.grid_shape), self.grid_shape):
            column = self._of_axis(n)[1][:, k]
            found = (found[:, None, :] * column[None]).reshape(-1, order.size)
        return jnp.asarray(found.astype(default_float()))

    def tosparse(self) -> dia_array:
        """The matrix, by its diagonals."""
        n = self.shape[0]
        places = np.arange(n).reshape(self.grid_shape)
        rows, columns, values = [], [], []
        for axis, size in enumerate(self.grid_shape):
            for step in (-1, 1):
                other = np.roll(places, -step, axis)
                at = np.arange(size).reshape([-1 if a == axis else 1 for a in
                                              range(len(self.grid_shape))]) + step
                inside = np.broadcast_to((at >= 0) & (at < size), places.shape)
                if self.boundary_conditions == "periodic":
                    inside = np.ones(places.shape, bool)
                elif self.boundary_conditions == "neumann":
                    other, inside = np.where(inside, other, places), np.ones(places.shape, bool)
                rows.append(places[inside])
                columns.append(other[inside])
                values.append(np.ones(rows[-1].size))
            rows.append(places.reshape(-1))
            columns.append(places.reshape(-1))
            values.append(np.full(n, -2.0))
        data = jnp.asarray(np.concatenate(values).astype(self.dtype))
        mat = of_columns([np.concatenate(rows), np.concatenate(columns)], data, (n, n))
        made: dia_array = CLASSES["coo", False]._of(mat).sum_duplicates().todia()
        return made

    def toarray(self) -> Array:
        """The matrix, dense."""
        return self.tosparse().toarray()
