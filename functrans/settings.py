"""Settings under JAX's names: `config.update`, and switches that are context managers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from functrans.core import config
from functrans.core.dtypes import default_dtypes
from functrans.core.errors import ArgumentError
from functrans.core.key_reuse import check_key_reuse, is_checked
from functrans.core.source import user_source
from functrans.core.switches import DTYPE_PROMOTION, RANK_PROMOTION, watching
from functrans.device import current_device, find_device

if TYPE_CHECKING:
    from functrans.transforms.checks.api import debug_nans

__all__ = ["check_tracer_leaks", "checking_leaks", "debug_infs", "disable_x64", "enable_x64",
           "is_ignored", "is_known", "known", "read", "update"]


def enable_x64(new_val: bool = True) -> AbstractContextManager[config.Config]:
    """Context manager: Python numbers and functions that make arrays give 64 bits, or 32 again.

    That is all that JAX's switch can do here, as 64-bit dtypes are always legal; it is
    `ft.default_dtypes("float64", "int64")`.

    >>> import functrans as ft
    >>> with ft.enable_x64(True):
    ...     ft.numpy.ones(2).dtype, (ft.numpy.float32(1) * 2.0).dtype
    (dtype('float64'), dtype('float32'))
    """
    return default_dtypes("float64", "int64") if new_val else default_dtypes("float32", "int32")


def disable_x64() -> AbstractContextManager[config.Config]:
    """Context manager: `enable_x64(False)`."""
    return enable_x64(False)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """Context manager: an infinity where no operand has one is an error; see `ft.debug_nans`.

    >>> import functrans as ft
    >>> with ft.debug_infs():
    ...     ft.numpy.exp(1000.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.NotFiniteError: exp gave an infinity: b:f32[] = exp a.
    ...
    """
    from functrans.transforms.checks.api import debug_nans  # noqa: PLC0415  (10 ms)
    return debug_nans(("inf",)) if new_val else nullcontext()


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """Context manager that changes nothing: a leaked tracer is always reported where it is used.

    >>> import functrans as ft
    >>> with ft.check_tracer_leaks():
    ...     pass
    """
    return nullcontext()


def checking_leaks() -> AbstractContextManager[None]:
    """`check_tracer_leaks()`, which changes nothing.

    >>> with ft.checking_leaks():
    ...     ft.jit(lambda x: x * 2)(3.0).item()
    6.0
    """
    return check_tracer_leaks()


# config.update ---------------------------------------------------------------------------------


def _field(name: str, convert: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], None]:
    return lambda value: config.set_current(**{name: convert(value)})


def _precision(value: Any) -> Any:
    if value is None:
        return None
    with config.matmul_precision(value) as changed:
        return changed.matmul_precision


def _prng(value: Any) -> Any:
    with config.default_prng_impl(value) as changed:
        return changed.prng_impl


def _device(value: Any) -> Any:
    if isinstance(value, str):  # of "cuda,cpu" the first
        value = value.partition(",")[0] or None
    return None if value is None else repr(find_device(value))


def _x64(value: Any) -> None:
    with enable_x64(bool(value)) as changed:
        dtypes = {"float_dtype": changed.float_dtype, "int_dtype": changed.int_dtype}
    config.set_current(**dtypes)


_checks: ContextVar[Mapping[str, debug_nans]] = ContextVar("functrans_checks",
                                                           default=MappingProxyType({}))


def _check(kind: str) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        current = dict(_checks.get())
        kinds = [k for k in current if k != kind] + [kind] * bool(value)
        running = next(iter(current.values()), None)
        if running is not None:
            running.__exit__(None, None, None)
        if kinds:
            from functrans.transforms.checks.api import debug_nans  # noqa: PLC0415
            running = debug_nans(tuple(kinds))
            running.__enter__()
        _checks.set(MappingProxyType({k: running for k in kinds if running is not None}))

    return change


def _always(expected: Any, why: str) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        if value != expected:
            raise ArgumentError(f"config.update: the setting is always {expected!r} here.",
                                where=user_source(), why=why)

    return change


_watched: ContextVar[Mapping[str, Any]] = ContextVar("functrans_watched",
                                                     default=MappingProxyType({}))


def _watch(name: str, choices: tuple[str, ...]) -> Callable[[Any], None]:
    """A setting that operations are looked at for, as long as it is not the first choice."""
    def change(value: Any) -> None:
        if value not in choices:
            raise ArgumentError(f"config.update: {name} is {value!r}.", where=user_source(),
                                fix=f"one of {', '.join(map(repr, choices))}")
        kept = {k: v for k, v in _watched.get().items() if k not in (name, "scope")}
        running = _watched.get().get("scope")
        if running is not None:
            running.__exit__(None, None, None)
        if value != choices[0]:
            kept[name] = value
        if kept:
            scope = watching(**kept)
            scope.__enter__()
            _watched.set(MappingProxyType({**kept, "scope": scope}))
        else:
            _watched.set(MappingProxyType({}))

    return change


def _frames(value: Any) -> None:
    config.set_current(internal_frames=value in ("off", "quiet_remove_frames_off", False))


def _ignored(value: Any) -> None:
    """Of caches, logs and devices that JAX has, and that change no result."""


_OPTIONS: Final[Mapping[str, Callable[[Any], None]]] = MappingProxyType({
    "jax_enable_x64": _x64, "jax_disable_jit": _field("disable_jit", bool),
    "jax_debug_nans": _check("nan"), "jax_debug_infs": _check("inf"),
    "jax_debug_key_reuse": check_key_reuse,
    "jax_default_matmul_precision": _field("matmul_precision", _precision),
    "jax_default_prng_impl": _field("prng_impl", _prng),
    "jax_default_device": _field("device", _device),
    "jax_platform_name": _field("device", _device), "jax_platforms": _field("device", _device),
    "jax_traceback_filtering": _frames,
    "jax_check_tracer_leaks": _ignored,  # always on
    "jax_threefry_partitionable": _always(True, "draws do not depend on how they are divided."),
    "jax_enable_custom_prng": _always(True, "keys have a dtype; ft.random.PRNGKey gives words."),
    "jax_numpy_dtype_promotion": _watch("dtype_promotion", DTYPE_PROMOTION),
    "jax_numpy_rank_promotion": _watch("rank_promotion", RANK_PROMOTION),
    "jax_log_compiles": _field("log_compiles", bool),
    "jax_explain_cache_misses": _field("explain_misses", bool),
    "jax_enable_checks": _field("enable_checks", bool),
    "jax_no_tracing": _field("no_tracing", bool),
    **dict.fromkeys((
        "jax_compilation_cache_dir",
        "jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes", "jax_compiler_enable_remat_pass",
        "jax_include_full_tracebacks_in_locations", "jax_exec_time_optimization_effort",
        "jax_array_garbage_collection_guard", "jax_cpu_enable_async_dispatch",
        "jax_pgle_profiling_runs", "jax_use_shardy_partitioner"), _ignored)})


def is_known(name: str) -> bool:
    """Whether `update` takes a setting."""
    return name in _OPTIONS


def is_ignored(name: str) -> bool:
    """Whether a setting of JAX's changes nothing here."""
    return _OPTIONS.get(name) is _ignored and name != "jax_check_tracer_leaks"


def known() -> tuple[str, ...]:
    """The names of the settings."""
    return tuple(_OPTIONS)


def update(name: str, val: Any) -> None:
    """Change a setting of JAX's, by its name, for the process; within a scope, until that ends.

    `jax_enable_x64` says what Python numbers become, as 64-bit dtypes are always legal. Settings of
    caches and logs are accepted and change nothing; NaN, and keys that are used twice, are looked
    for in this thread. A scope ends with what held before it: `with ft.config.scope(...)` and its
    relatives are the better way. Raises ArgumentError for a setting that has no counterpart, and
    for a value that cannot be.

    >>> import functrans as ft
    >>> ft.config.update("jax_enable_x64", True)
    >>> ft.numpy.ones(2).dtype, ft.config.read("jax_enable_x64")
    (dtype('float64'), True)
    >>> ft.config.update("jax_enable_x64", False)
    """
    option = _OPTIONS.get(name)
    if option is None:
        raise ArgumentError(f"config.update: there is no setting {name!r}.", where=user_source(),
                            why=f"the settings are {', '.join(_OPTIONS)}.",
                            fix="a scope, such as with ft.config.matmul_precision(...): ...")
    option(val)


def read(name: str) -> Any:
    """The value of a setting of JAX's that changes something here; see `update`.

    Raises ArgumentError for another name.

    >>> import functrans as ft
    >>> ft.config.read("jax_disable_jit")
    False
    """
    now = config.current()
    known: dict[str, Any] = {
        "jax_enable_x64": now.float_dtype.itemsize == 8, "jax_disable_jit": now.disable_jit,
        "jax_debug_nans": "nan" in now.checks, "jax_debug_infs": "inf" in now.checks,
        "jax_debug_key_reuse": is_checked(),
        "jax_default_matmul_precision": now.matmul_precision,
        "jax_default_prng_impl": now.prng_impl, "jax_default_device": now.device,
        "jax_platform_name": current_device().platform, "jax_platforms": now.device,
        "jax_traceback_filtering": "off" if now.internal_frames else "auto",
        "jax_check_tracer_leaks": True, "jax_threefry_partitionable": True,
        "jax_enable_custom_prng": True, "jax_numpy_dtype_promotion": now.dtype_promotion,
        "jax_numpy_rank_promotion": now.rank_promotion, "jax_log_compiles": now.log_compiles,
        "jax_explain_cache_misses": now.explain_misses, "jax_enable_checks": now.enable_checks,
        "jax_no_tracing": now.no_tracing}
    if name not in known:
        raise ArgumentError(f"config.read: there is no setting {name!r}.", where=user_source(),
                            why=f"the settings are {', '.join(known)}.")
    return known[name]
