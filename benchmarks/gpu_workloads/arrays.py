"""The same numbers in every library: torch draws them on the device, the others share its memory.

Where nothing is shared (on a CPU, whose NumPy has no bfloat16), they are copied through NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
from harness import first_line

PIECE = 2**26
"""Elements that are compared at a time: in float64 they take half a gigabyte."""


def tree_map(function: Callable, tree: Any) -> Any:
    """The same lists and tuples, of `function` of each leaf."""
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, child) for child in tree)
    return function(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves of lists and tuples, in order."""
    if isinstance(tree, list | tuple):
        return [leaf for child in tree for leaf in leaves(child)]
    return [tree]


def to_numpy(torch: ModuleType, x: Any) -> np.ndarray:
    """A tensor as a NumPy array, bfloat16 by its bits."""
    x = x.detach().cpu()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def from_numpy(torch: ModuleType, x: np.ndarray) -> Any:
    """The tensor of a NumPy array, which it owns."""
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(x))


def to_library(torch: ModuleType, library: ModuleType, x: Any) -> Any:
    """The array of a library with JAX's names, on the memory of a tensor on a GPU."""
    if x.is_cuda:
        torch.cuda.synchronize()
        try:
            return library.dlpack.from_dlpack(x.detach())
        except Exception as error:  # then it takes longer and more memory
            print(f"({library.__name__} copies what it is given: {first_line(error)})")
    return library.numpy.asarray(to_numpy(torch, x))


def to_tensor(torch: ModuleType, x: Any) -> Any:
    """A result of any library as a tensor, on its memory where that is a GPU's."""
    if isinstance(x, torch.Tensor):
        return x.detach()
    if torch.cuda.is_available() and x.__dlpack_device__()[0] == 2:
        return torch.from_dlpack(x)
    return from_numpy(torch, np.asarray(x))


def difference(actual: Sequence[Any], expected: Sequence[Any], tolerance: float,
               stray: float = 0.0) -> str:  # fmt: skip
    """How tensors are off by more than `tolerance` of the largest element; empty if they are not.

    A part `stray` of the elements may be: those that rounding moves across a comparison, to another
    branch. None may be infinite or NaN.
    """
    if len(actual) != len(expected):
        return f"{len(actual)} arrays instead of {len(expected)}"
    for index, (a, e) in enumerate(zip(actual, expected)):
        if a.shape != e.shape:
            return f"output {index} has shape {tuple(a.shape)} instead of {tuple(e.shape)}"
        if not a.numel():
            continue
        a, e = (x.view(x.real.dtype) if x.is_complex() else x for x in (a, e.contiguous()))
        most = max(float(e.abs().max()), 1e-30)
        a, e = a.reshape(-1), e.to(a.device).reshape(-1)
        worst, count = 0.0, 0
        for start in range(0, a.numel(), PIECE):
            part = a[start : start + PIECE].double()
            if not part.isfinite().all():
                return f"output {index} is not finite everywhere"
            off = (part - e[start : start + PIECE].double()).abs() / most
            worst, count = max(worst, float(off.max())), count + int((off > tolerance).sum())
        if count > stray * a.numel():
            part = f", {count / a.numel():.1e} of them by more than allowed" if stray else ""
            return f"output {index} is off by {worst:.1e} of its largest element{part}"
    return ""
