"""DLPack: sharing memory with other libraries, without copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans._runtime import wrap
from functrans.array import Array
from functrans.core.dtypes import as_dtype
from functrans.core.errors import BackendError, NonArrayError, publish
from functrans.core.source import user_source
from functrans.device import find_device

__all__ = ["from_dlpack"]

_CPU = (1, 3)  # DLPack's numbers of ordinary and of pinned host memory


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array on the memory of any object with `__dlpack__`: a tensor of another library.

    The memory is shared unless `copy` is true: nobody may write to it afterwards. Raises
    NonArrayError for an object without DLPack, BackendError for memory of another device.

    >>> import numpy as np
    >>> import functrans as ft
    >>> ft.dlpack.from_dlpack(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    find_device(device)
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise NonArrayError(f"from_dlpack takes an object with __dlpack__, and got a "
                            f"{type(x).__name__}.", where=user_source(),
                            fix="functrans.numpy.asarray(x)")
    if isinstance(x, Array) and not copy:
        return x
    kind, number = x.__dlpack_device__()
    if kind not in _CPU:
        raise BackendError(f"from_dlpack: the memory is on device ({int(kind)}, {number}).",
                           where=user_source(), why="only memory of the CPU can be shared here.",
                           fix="copy it to the CPU first")
    value = np.from_dlpack(x)
    as_dtype(value.dtype)
    return wrap(np.array(value) if copy else value.view())  # type: ignore[return-value]

publish(globals(), __all__)
