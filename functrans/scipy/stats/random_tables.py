"""Random tables of counts with the margins of one that is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_values
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["known_counts", "of_random_tables"]


def known_counts(name: str, table: ArrayLike) -> np.ndarray:
    """A table of counts, which is known, as whole numbers."""
    known = known_values(f"stats.{name}", "the table", table, "how many observations there "
                         "are depends on its values.", "call it outside of jit")
    whole: np.ndarray = known.astype(int)
    if (known != whole).any() or (known < 0).any() or not whole.any():
        raise ArgumentError(f"scipy.stats.{name}: the table has other values than counts.",
                            where=user_source(), why="they are whole, and not all 0.")
    return whole


def of_random_tables(whole: np.ndarray, key: Array, count: int, of: Callable[[Array], Array]
                     ) -> Array:
    """A function of `count` tables: the columns of the observations are shuffled."""
    rows, columns = whole.shape
    row = np.repeat(np.arange(rows), whole.sum(1))
    column = np.repeat(np.arange(columns), whole.sum(0))

    def one(key: Array) -> Array:
        place = row * columns + random.permutation(key, column)
        cells = jnp.zeros(rows * columns).at[place].add(1.0)
        return of(cells.astype(jnp.float64).reshape(rows, columns))

    found: Array = vmap(one, chunk_size=min(count, max(1, (1 << 22) // row.size)))(
        random.split(key, count))
    return found
