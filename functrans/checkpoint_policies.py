"""Which results `checkpoint` keeps: policies `(primitive, *avals, **params) -> bool`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.errors import explain_missing_names
from functrans.core.primitive import Primitive
from functrans.primitives.barrier import checkpoint_name_p
from functrans.primitives.dot import dot_general_p

__all__ = ["dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable",
           "nothing_saveable", "save_any_names_but_these", "save_only_these_names"]

Policy = Callable[..., bool]


def everything_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep every result: nothing is recomputed."""
    return True


def nothing_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep no result: everything is recomputed from the inputs."""
    return False


def dots_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep the results of matrix products."""
    return primitive is dot_general_p


def dots_with_no_batch_dims_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep the results of matrix products without batch dimensions (of weights, say)."""
    return primitive is dot_general_p and not params["dimension_numbers"][1][0]


def save_only_these_names(*names: str) -> Policy:
    """Keep the values named by `checkpoint_name` with one of `names`."""
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is checkpoint_name_p and params["name"] in names
    return policy


def save_any_names_but_these(*names: str) -> Policy:
    """Keep the values named by `checkpoint_name` with any name but `names`."""
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is checkpoint_name_p and params["name"] not in names
    return policy


explain_missing_names(globals())
