"""`apply_primitive`: an operation on arrays as a program of its own."""

from __future__ import annotations

from typing import Any

from functrans.core.convert import to_arrays
from functrans.core.errors import publish
from functrans.extend.user_primitive import UserPrimitive

__all__ = ["apply_primitive"]


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """The results of a primitive on arrays; one of a user is compiled by its lowering.

    >>> import functrans as ft
    >>> apply_primitive(ft.lax.sin_p, 0.0).item()
    0.0
    """
    if isinstance(prim, UserPrimitive):
        return prim.compiled(to_arrays(args, prim.name), params)
    return prim.bind(*args, **params)


publish(globals(), __all__)
