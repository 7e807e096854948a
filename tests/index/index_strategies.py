"""Random arrays and index expressions that NumPy accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

sizes = st.integers(1, 5)


@st.composite
def slices(draw: Any) -> slice:
    bound = st.none() | st.integers(-7, 7)
    step = draw(st.none() | st.integers(-3, 3))
    return slice(draw(bound), draw(bound), None if step == 0 else step)


@st.composite
def indexed_arrays(draw: Any, max_ndim: int = 4, masks: bool = True, arrays: bool = True) -> Any:
    """(x, index): x float64 of distinct values, an index expression that is in bounds."""
    ndim = draw(st.integers(1, max_ndim))
    shape = tuple(draw(sizes) for _ in range(ndim))
    x = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
    block = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    index: list[Any] = []
    axis, dots = 0, False
    while axis < ndim:
        kinds = ["int", "slice", "slice", "new", "stop"]
        kinds += [] if dots else ["dots"]
        kinds += ["array"] * 3 if arrays else []
        kinds += ["mask", "scalar"] if masks else []
        kind = draw(st.sampled_from(kinds))
        if kind == "int":
            index.append(draw(st.integers(-shape[axis], shape[axis] - 1)))
            axis += 1
        elif kind == "slice":
            index.append(draw(slices()))
            axis += 1
        elif kind == "new":
            index.append(None)
        elif kind == "dots":
            dots = True
            skipped = draw(st.integers(0, ndim - axis))
            index.append(Ellipsis)
            axis += skipped
            if skipped and axis < ndim:  # the rest has to be named for Ellipsis to be this wide
                index += [slice(None)] * (ndim - axis)
                axis = ndim
        elif kind == "array":
            dropped = draw(st.integers(0, len(block)))
            own = tuple(draw(st.sampled_from([1, s])) for s in block[dropped:])
            values = draw(st.lists(st.integers(-shape[axis], shape[axis] - 1),
                                   min_size=int(np.prod(own)), max_size=int(np.prod(own))))
            dtype = draw(st.sampled_from(["int8", "int32", "int64"]))
            index.append(np.array(values, dtype).reshape(own))
            axis += 1
        elif kind == "mask":
            wide = draw(st.integers(1, min(2, ndim - axis)))
            seed = draw(st.integers(0, 99))
            index.append(np.random.default_rng(seed).random(shape[axis:axis + wide]) < 0.5)
            axis += wide
        elif kind == "scalar":
            index.append(draw(st.booleans()))
            if draw(st.booleans()):
                break
        else:
            break
    return x, tuple(index)


def is_integer_array(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind in "iu"
