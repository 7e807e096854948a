"""JAX's switches that are context managers; those that change nothing here say why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from functrans import _runtime
from functrans.core import config
from functrans.core.errors import ArgumentError, publish, shown
from functrans.core.source import user_source
from functrans.core.switches import DTYPE_PROMOTION, RANK_PROMOTION, no_execution, watching
from functrans.device import find_device
from functrans.typing import Array

__all__ = ["allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast",
           "copy_to_host_async", "enable_checks", "enable_custom_prng", "explain_cache_misses",
           "jax2tf_associative_scan_reductions", "legacy_prng_key", "live_arrays", "log_compiles",
           "no_execution", "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion",
           "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard",
           "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
           "transfer_guard_device_to_host", "transfer_guard_host_to_device"]

Scope = AbstractContextManager[object]
T = TypeVar("T")


def _chosen(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ArgumentError(f"{name}({shown(value)}).", where=user_source(),
                            fix=f"one of {', '.join(map(repr, choices))}")
    return value


def numpy_rank_promotion(new_val: str) -> Scope:
    """Context manager: whether arrays of unlike ranks meet, "allow", "warn" or "raise".

    It is of functions of `functrans.numpy` and of operators as they are called; single numbers go
    with all ranks. Raises ShapeError where they are refused.

    >>> import functrans as ft
    >>> with ft.numpy_rank_promotion("raise"):      # jnp.ones((2, 3)) + jnp.ones(3) is an error
    ...     ft.config.current().rank_promotion
    'raise'
    """
    return watching(rank_promotion=_chosen("numpy_rank_promotion", new_val, RANK_PROMOTION))


def numpy_dtype_promotion(new_val: str) -> Scope:
    """Context manager: whether arrays of unlike dtypes meet, "standard" or "strict".

    With "strict" they have to have one dtype; Python numbers go with the dtypes of their kind.
    Raises PromotionError where they are refused.

    >>> import functrans as ft
    >>> with ft.numpy_dtype_promotion("strict"):    # jnp.ones(2) + jnp.arange(2) is an error
    ...     ft.config.current().dtype_promotion
    'strict'
    """
    return watching(dtype_promotion=_chosen("numpy_dtype_promotion", new_val, DTYPE_PROMOTION))


def log_compiles(new_val: bool = True) -> Scope:
    """Context manager: each trace and compilation is a warning of the logger "functrans".

    >>> import functrans as ft, logging
    >>> with ft.log_compiles():      # "tracing f for f32[3], called at ..."
    ...     _ = ft.jit(lambda x: x * 2)(ft.numpy.ones(3))
    """
    return config.scope(log_compiles=bool(new_val))


def explain_cache_misses(new_val: bool = True) -> Scope:
    """Context manager: why a function is traced again is a warning of the logger "functrans".

    It says what `ft.explain_retrace` says of that call.

    >>> import functrans as ft
    >>> f = ft.jit(lambda x: x * 2)
    >>> with ft.explain_cache_misses():
    ...     _ = f(ft.numpy.ones(3)), f(ft.numpy.ones(3, int))
    """
    return config.scope(explain_misses=bool(new_val))


def enable_checks(new_val: bool = True) -> Scope:
    """Context manager: every program is checked after it was traced; see `core.check_jaxpr`.

    >>> import functrans as ft
    >>> with ft.enable_checks():
    ...     ft.jit(lambda x: x * 2)(3.0).item()
    6.0
    """
    return config.scope(enable_checks=bool(new_val))


def no_tracing(new_val: bool = True) -> Scope:
    """Context manager: a function that `jit` would have to trace, again or for the first time, is
    an error (BackendError), which says what was new.

    >>> import functrans as ft
    >>> f = ft.jit(lambda x: x * 2)
    >>> _ = f(1.0)
    >>> with ft.no_tracing():
    ...     f(2.0).item()
    4.0
    """
    return config.scope(no_tracing=bool(new_val))


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays whose data is there, of one platform or of all; those that caches keep, too.

    >>> import functrans as ft
    >>> x = ft.numpy.ones(3)
    >>> any(a is x for a in ft.live_arrays())
    True
    """
    found = _runtime.live_arrays()
    if platform is None:
        return found
    wanted = find_device(platform).platform
    return [x for x in found if next(iter(x.devices())).platform == wanted]


def copy_to_host_async(x: T) -> T:
    """The pytree itself: arrays are copied to the host once, when they are asked for.

    >>> import functrans as ft
    >>> ft.copy_to_host_async(ft.numpy.ones(2)).tolist()
    [1.0, 1.0]
    """
    return x


# transfers -------------------------------------------------------------------------------------

_GUARDS = {"allow": "allow", "log": "warn", "log_explicit": "warn", "disallow": "error",
           "disallow_explicit": "error"}


def transfer_guard(new_val: str) -> Scope:
    """Context manager: what becomes of copies that a program for a GPU needs between its steps.

    Such copies are those of operations that the host computes: "log" tells of them, "disallow"
    refuses them (`ft.config.host_steps`). A copy to NumPy, or of an argument, is asked for by
    whoever writes it, and always made. Raises ArgumentError for another word.

    >>> import functrans as ft
    >>> with ft.transfer_guard("disallow"):
    ...     ft.config.current().host_steps
    'error'
    """
    return config.host_steps(_GUARDS[_chosen("transfer_guard", new_val, tuple(_GUARDS))])


def transfer_guard_host_to_device(new_val: str) -> Scope:
    """`transfer_guard`: a step on the host copies both ways.

    >>> import functrans as ft
    >>> with ft.transfer_guard_host_to_device("log"):
    ...     ft.config.current().host_steps
    'warn'
    """
    return transfer_guard(new_val)


def transfer_guard_device_to_host(new_val: str) -> Scope:
    """`transfer_guard`: a step on the host copies both ways.

    >>> import functrans as ft
    >>> with ft.transfer_guard_device_to_host("log"):
    ...     ft.config.current().host_steps
    'warn'
    """
    return transfer_guard(new_val)


def transfer_guard_device_to_device(new_val: str) -> Scope:
    """Context manager that changes nothing: arrays move between devices where a program says so.

    >>> import functrans as ft
    >>> with ft.transfer_guard_device_to_device("disallow"):
    ...     ft.device_put(ft.numpy.ones(2), ft.devices("cpu")[0]).tolist()
    [1.0, 1.0]
    """
    _chosen("transfer_guard_device_to_device", new_val, tuple(_GUARDS))
    return nullcontext()


# one position ----------------------------------------------------------------------------------

def _with_example(text: str, name: str, expression: str, result: str) -> str:
    """The documentation of a switch, with what an expression gives within it."""
    return f"""{text}

    >>> import functrans as ft
    >>> with ft.{name}():
    ...     {expression}
    {result}
    """


def _always(name: str, value: Any, why: str, expression: str, result: str) -> Callable[..., Scope]:
    """A switch that has one position here; the other one is refused."""
    def switch(new_val: bool = value) -> Scope:
        if new_val != value:
            raise ArgumentError(f"{name}({new_val!r}): it is always {value!r} here.",
                                where=user_source(), why=why)
        return nullcontext()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = _with_example(
        f"Context manager that changes nothing: it is always {value!r}, as {why}", name,
        expression, result)
    return switch


def _unneeded(name: str, why: str, expression: str, result: str) -> Callable[..., Scope]:
    """A switch that no result depends on."""
    def switch(new_val: bool = True) -> Scope:
        return nullcontext()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = _with_example(f"Context manager that changes nothing: {why}", name,
                                   expression, result)
    return switch


threefry_partitionable = _always(
    "threefry_partitionable", True, "draws do not depend on how they are divided.",
    "ft.random.split(ft.random.key(0), 3).shape", "(3,)")
enable_custom_prng = _always(
    "enable_custom_prng", True, "keys have a dtype; ft.random.PRNGKey gives words.",
    "ft.random.PRNGKey(7).tolist()", "[0, 7]")
softmax_custom_jvp = _always(
    "softmax_custom_jvp", True, "the derivative of softmax is in its result.",
    "ft.grad(lambda x: ft.nn.softmax(x)[0])(ft.numpy.zeros(2)).tolist()", "[0.25, -0.25]")
allow_f16_reductions = _unneeded(
    "allow_f16_reductions", "sums of halves are added up in float32.",
    "float(ft.numpy.ones(5000, 'float16').sum())", "5000.0")
array_garbage_collection_guard = _unneeded(
    "array_garbage_collection_guard", "arrays hold no objects, so that no cycle keeps one.",
    "float(ft.numpy.ones(3).sum())", "3.0")
legacy_prng_key = _unneeded(
    "legacy_prng_key", "plain words are keys wherever they are used.",
    "ft.random.bits(ft.random.PRNGKey(0), (2,)).shape", "(2,)")
thread_guard = _unneeded(
    "thread_guard", "arrays and programs may be used by all threads.",
    "float(ft.numpy.arange(3.0).max())", "2.0")
auto_pcast = _unneeded(
    "auto_pcast", "values are made varying where they meet others that are.",
    "ft.vmap(lambda x: ft.lax.psum(x, 'i'), axis_name='i')(ft.numpy.arange(3)).tolist()",
    "[3, 3, 3]")
remove_size_one_mesh_axis_from_type = _unneeded(
    "remove_size_one_mesh_axis_from_type", "shardings are no part of types.",
    "ft.typeof(ft.numpy.ones(3))", "ShapedArray(f32[3])")
jax2tf_associative_scan_reductions = _unneeded(
    "jax2tf_associative_scan_reductions", "nothing is converted to TensorFlow.",
    "ft.lax.associative_scan(ft.numpy.add, ft.numpy.arange(4)).tolist()", "[0, 1, 3, 6]")

publish(globals(), __all__)
