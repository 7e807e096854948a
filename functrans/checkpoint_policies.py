"""Which results `checkpoint` keeps: policies `(primitive, *avals, **params) -> bool`.

Policies that move values to the host in JAX keep them where they are, which costs memory of the
device and no transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.errors import explain_missing_names
from functrans.core.primitive import Primitive
from functrans.primitives.barrier import checkpoint_name_p
from functrans.primitives.dot import dot_general_p

__all__ = ["checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable",
           "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
           "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
           "save_any_names_but_these", "save_anything_except_these_names",
           "save_from_both_policies", "save_only_these_names"]

Policy = Callable[..., bool]


def everything_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep every result: nothing is recomputed.

    >>> f = ft.checkpoint(jnp.sin, policy=ft.checkpoint_policies.everything_saveable)
    >>> ft.grad(f)(0.0).item()
    1.0
    """
    return True


def nothing_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep no result: everything is recomputed from the inputs.

    >>> policy = ft.checkpoint_policies.nothing_saveable
    >>> f = ft.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)
    >>> len(ft.ad_checkpoint.saved_residuals(f, 1.0))
    1
    """
    return False


def dots_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep the results of matrix products.

    >>> policy = ft.checkpoint_policies.dots_saveable
    >>> f = ft.checkpoint(lambda x: jnp.sin(x @ x).sum(), policy=policy)
    >>> len(ft.ad_checkpoint.saved_residuals(f, jnp.ones((2, 2))))
    2
    """
    return primitive is dot_general_p


def dots_with_no_batch_dims_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep the results of matrix products without batch dimensions (of weights, say).

    >>> policy = ft.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> f = ft.checkpoint(lambda x: jnp.sin(x @ x).sum(), policy=policy)
    >>> len(ft.ad_checkpoint.saved_residuals(f, jnp.ones((5, 2, 2))))
    1
    """
    return primitive is dot_general_p and not params["dimension_numbers"][1][0]


def save_only_these_names(*names: str) -> Policy:
    """Keep the values named by `checkpoint_name` with one of `names`.

    >>> policy = ft.checkpoint_policies.save_only_these_names("hidden")
    >>> f = lambda x: jnp.sin(ft.checkpoint_name(jnp.exp(x), "hidden"))
    >>> f = ft.checkpoint(f, policy=policy)
    >>> len(ft.ad_checkpoint.saved_residuals(f, 1.0))
    2
    """
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is checkpoint_name_p and params["name"] in names
    return policy


def save_any_names_but_these(*names: str) -> Policy:
    """Keep the values named by `checkpoint_name` with any name but `names`.

    >>> policy = ft.checkpoint_policies.save_any_names_but_these("hidden")
    >>> f = lambda x: jnp.sin(ft.checkpoint_name(jnp.exp(x), "hidden"))
    >>> f = ft.checkpoint(f, policy=policy)
    >>> len(ft.ad_checkpoint.saved_residuals(f, 1.0))
    1
    """
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is checkpoint_name_p and params["name"] not in names
    return policy


def save_anything_except_these_names(*names: str) -> Policy:
    """Keep every result but the values named by `checkpoint_name` with one of `names`.

    >>> policy = ft.checkpoint_policies.save_anything_except_these_names("hidden")
    >>> f = ft.checkpoint(lambda x: ft.checkpoint_name(jnp.exp(x), "hidden") ** 2, policy=policy)
    >>> ft.grad(f)(0.0).item()
    2.0
    """
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is not checkpoint_name_p or params["name"] not in names
    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either of two policies keeps.

    >>> names = ft.checkpoint_policies.save_only_these_names("hidden")
    >>> dots = ft.checkpoint_policies.dots_saveable
    >>> policy = ft.checkpoint_policies.save_from_both_policies(names, dots)
    >>> ft.grad(ft.checkpoint(lambda x: (x @ x).sum(), policy=policy))(jnp.ones((1, 1))).tolist()
    [[2.0]]
    """
    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return policy_1(primitive, *avals, **params) or policy_2(primitive, *avals, **params)
    return policy


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep the results of matrix products without batch dimensions, on their device.

    >>> offload = ft.checkpoint_policies.offload_dot_with_no_batch_dims
    >>> policy = offload("device", "pinned_host")
    >>> f = ft.checkpoint(lambda x: jnp.sin(x @ x).sum(), policy=policy)
    >>> ft.grad(f)(jnp.zeros((1, 1))).tolist()
    [[0.0]]
    """
    return dots_with_no_batch_dims_saveable


def save_and_offload_only_these_names(
        *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str],
        offload_src: str, offload_dst: str) -> Policy:
    """Keep the values named by `checkpoint_name` with one of both lists, on their device.

    >>> policy = ft.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=[], names_which_can_be_offloaded=["h"],
    ...     offload_src="device", offload_dst="pinned_host")
    >>> f = ft.checkpoint(lambda x: ft.checkpoint_name(jnp.exp(x), "h") ** 2, policy=policy)
    >>> ft.grad(f)(0.0).item()
    2.0
    """
    return save_only_these_names(*names_which_can_be_saved, *names_which_can_be_offloaded)


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

explain_missing_names(globals())
