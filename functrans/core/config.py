"""Settings that hold inside a scope: a frozen `Config`, the current one, and context managers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from functrans._runtime import current_config, set_process_config
from functrans.core.precision import PRECISIONS, Precision

if TYPE_CHECKING:
    from contextlib import _GeneratorContextManager

    # typed as contextlib types its own: these decorate functions, too
    Scope: TypeAlias = _GeneratorContextManager["Config"]

__all__ = ["ALGEBRA", "AUTOTUNE", "CHECKS", "DYNAMIC_SHAPES", "HOST_STEPS", "PRNG_IMPLS",
           "PRNG_NAMES", "Config", "SettingError",
           "Within", "algebra", "autotune", "current", "debug_internal_frames", "default_prng_impl",
           "deterministic", "disable_jit", "dynamic_shapes", "host_steps", "matmul_precision",
           "narrow_64bit", "of_process", "progress", "scope", "set_current", "set_process",
           "use_backend"]

_FLOAT32: Final = np.dtype(np.float32)
_INT32: Final = np.dtype(np.int32)
DEBUG_VARIABLE: Final = "FUNCTRANS_DEBUG"
ALGEBRA: Final = ("auto", "always", "off")
AUTOTUNE: Final = ("auto", "off", "thorough")
DYNAMIC_SHAPES: Final = ("auto", "off")
HOST_STEPS: Final = ("warn", "error", "allow")
PRNG_IMPLS: Final = ("threefry2x32", "philox")
PRNG_NAMES: Final[Mapping[str, str]] = MappingProxyType({"rbg": "philox", "unsafe_rbg": "philox"})
"""JAX's names of a fast generator, whose numbers are those of XLA for a device: philox serves."""
CHECKS: Final = ("nan", "inf", "index")


class SettingError(ValueError):
    """A word that a setting does not take; users get it as an ArgumentError."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one scope; frozen and hashable, so that a compilation cache can key on it.

    `float_dtype` and `int_dtype` are the dtypes that Python scalars and dtype-less creation
    functions get; `disable_jit` runs the target of `jit` eagerly; `internal_frames` keeps the
    package's own frames in tracebacks; `backend` names what compiles the programs of `jit`, where
    it is not "auto", which is "triton" for a GPU and "c" for the CPU;
    `algebra` says when compiled programs contract factors instead of materialising their product;
    `matmul_precision` is of products of float32 on GPUs, None where nobody said;
    `device` names where arrays go that nobody put anywhere, None for a GPU if there is one;
    `autotune` says which kernels for GPUs are chosen by measurement; `deterministic` programs give
    the same bits in every run; `dynamic_shapes` says whether a second size in one axis gives a
    program for all sizes; `host_steps` says what becomes of operations that GPUs have no kernel
    for; `checks` are what programs look for while they run, among `CHECKS`;
    `prng_impl` names the generator of keys that are made without one;
    `memory_limit` is what a program may need in bytes, None where nobody said; `chunks_batches`
    asks for batches in chunks before products are computed again to keep it;
    `rank_promotion` and `dtype_promotion` say whether operands of unlike ranks and dtypes meet;
    `narrow_64bit` gives 32 bits for 64-bit dtypes while the default dtypes have 32, as JAX does;
    No program depends on the rest: `progress` shows what takes long, `log_compiles` and
    `explain_misses` write what is traced and why, `enable_checks` looks at each program, and
    `no_tracing` refuses to make one. `token` is a number for each set of the others: the runtime's
    part of the key of compiled programs, negative where it has to narrow NumPy's arguments of 64
    bits.

    >>> with ft.config.scope(disable_jit=True):
    ...     ft.config.current().disable_jit
    True
    >>> ft.config.current().disable_jit
    False
    """

    float_dtype: np.dtype[Any] = _FLOAT32
    int_dtype: np.dtype[Any] = _INT32
    disable_jit: bool = False
    internal_frames: bool = False
    backend: str = "auto"
    algebra: str = "auto"
    matmul_precision: str | None = None
    device: str | None = None
    autotune: str = "auto"
    deterministic: bool = False
    dynamic_shapes: str = "auto"
    host_steps: str = "warn"
    checks: frozenset[str] = frozenset()
    prng_impl: str = "threefry2x32"
    memory_limit: int | None = None
    chunks_batches: bool = False
    narrow_64bit: bool = False
    rank_promotion: str = "allow"
    dtype_promotion: str = "standard"
    progress: bool = field(default=True, compare=False)
    log_compiles: bool = field(default=False, compare=False)
    explain_misses: bool = field(default=False, compare=False)
    enable_checks: bool = field(default=False, compare=False)
    no_tracing: bool = field(default=False, compare=False)
    token: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", -_number(self) if self.narrows else _number(self))

    @property
    def narrows(self) -> bool:
        """Whether 64-bit dtypes are taken to be the 32-bit ones of their kind."""
        return self.narrow_64bit and self.float_dtype.itemsize < 8 and self.int_dtype.itemsize < 8


def debug_from_environment() -> bool:
    """Whether the one debug variable, FUNCTRANS_DEBUG, asks for debugging ('' and '0' do not)."""
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


@cache
def _number(config: Config) -> int:
    """Equal settings have the same, however they were made."""
    return next(_numbers)


_numbers: Final = count(1)
_current: Final[ContextVar[Config]] = ContextVar("functrans_config")
set_process_config(_current, Config(internal_frames=debug_from_environment()))

current: Callable[[], Config] = current_config
"""The Config of the running thread or task: that of the scope that it is in, else the process's."""


@contextmanager
def scope(**changes: Any) -> Iterator[Config]:
    """Change fields of `Config` inside a `with` block, or inside a function that it decorates.

    Raises TypeError for a name that is no field.

    >>> with scope(disable_jit=True) as config:
    ...     config.disable_jit, current().disable_jit
    (True, True)
    >>> current().disable_jit
    False
    """
    config = replace(current(), **changes)
    token = _current.set(config)
    try:
        yield config
    finally:
        _current.reset(token)


def set_current(**changes: Any) -> None:
    """Change fields of `Config` for the rest of the scope that this is called in.

    Outside of all scopes they change for the process: in every thread and task that is in no scope,
    those that begin later among them.

    >>> set_current(host_steps="allow")
    >>> current().host_steps
    'allow'
    >>> set_current(host_steps="warn")
    """
    config = replace(current(), **changes)
    if _current.get(None) is None:
        set_process_config(_current, config)
    else:
        _current.set(config)


def of_process() -> Config:
    """The Config of threads and tasks that are in no scope."""
    return Context().run(current)


def set_process(**changes: Any) -> None:
    """Change fields of `Config` for the process, and for the scopes that this is called in."""
    set_process_config(_current, replace(of_process(), **changes))
    here = _current.get(None)
    if here is not None:
        _current.set(replace(here, **changes))


class Within:
    """Calls functions under settings that are found once, where `scope` finds them at each call.

    >>> within = Within(disable_jit=True)
    >>> within(lambda: current().disable_jit), current().disable_jit
    (True, False)
    """

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._known: tuple[Config, Config] | None = None

    def __call__(self, fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        config = current()
        known = self._known
        if known is None or known[0] is not config:
            known = self._known = config, replace(config, **self._changes)
        token = _current.set(known[1])
        try:
            return fun(*args, **kwargs)
        finally:
            _current.reset(token)


def disable_jit(disable: bool = True) -> Scope:
    """Context manager: `jit` calls its target as plain Python, so that a debugger can step in.

    >>> with disable_jit():
    ...     current().disable_jit
    True
    """
    return scope(disable_jit=disable)


def debug_internal_frames(show: bool = True) -> Scope:
    """Context manager: tracebacks keep the frames inside the package.

    >>> with debug_internal_frames():
    ...     current().internal_frames
    True
    """
    return scope(internal_frames=show)


def use_backend(name: str) -> Scope:
    """Context manager: `jit` compiles with the backend of this name.

    `"c"` compiles C programs, `"triton"` kernels for GPUs, `"reference"` evaluates with NumPy;
    plug-ins register others. `"auto"` compiles for the device of the arguments.

    >>> with use_backend("reference"):
    ...     current().backend
    'reference'
    """
    return scope(backend=name)


def algebra(when: str) -> Scope:
    """Context manager: when compiled programs contract the factors of per-sample gradients.

    `"auto"` where it costs less than materialising them, `"always"` where it can be done at all,
    `"off"` never. Results differ by roundings only. Raises ValueError for another word.

    >>> with algebra("off"):
    ...     current().algebra
    'off'
    """
    if when not in ALGEBRA:
        raise SettingError(f"algebra is 'auto', 'always' or 'off', not {when!r}")
    return scope(algebra=when)


def matmul_precision(precision: str | Precision) -> Scope:
    """Context manager: how products of float32 matrices are computed on GPUs.

    `"default"` rounds the factors to TensorFloat-32 (10 bits of fraction) for the matrix units and
    adds up in float32, `"high"` adds the products of what was rounded off (22 bits or so), and
    `"highest"` computes in float32. The CPU always does. It is of operations without a `precision`
    of their own, whose other words are understood here too. Raises ValueError for another word.

    >>> with matmul_precision("highest"):
    ...     current().matmul_precision
    'highest'
    """
    found = precision if isinstance(precision, Precision) else PRECISIONS.get(precision)
    if found is None:
        raise SettingError(f"matmul_precision is one of {', '.join(map(repr, PRECISIONS))}, "
                           f"not {precision!r}")
    return scope(matmul_precision=found.value)


def autotune(when: str) -> Scope:
    """Context manager: which kernels for GPUs are chosen by measurement.

    A product of matrices, a convolution or an attention has several kernels, of which a model of
    the GPU likes one best. With `"auto"` the best few are compiled and timed on the GPU where the
    model says that one takes more than 0.1 ms, with `"thorough"` all of them for every size; the
    winner is kept on disk. `"off"` takes the model's word: nothing is timed, and every process on
    every machine has the same kernels. Raises ValueError for another word.

    >>> with autotune("off"):
    ...     current().autotune
    'off'
    """
    if when not in AUTOTUNE:
        raise SettingError(f"autotune is 'auto', 'off' or 'thorough', not {when!r}")
    return scope(autotune=when)


def deterministic(always: bool = True) -> Scope:
    """Context manager: compiled programs give the same bits in every run, on one kind of device.

    On GPUs a gradient of indexing, or an embedding's, adds floating updates of one place by atomic
    operations, in the order in which they come. With this they are sorted by their places first,
    and nothing else depends on an order or on measurements. On the CPU all programs are such.

    >>> with deterministic():
    ...     current().deterministic
    True
    """
    return scope(deterministic=always)


def dynamic_shapes(when: str) -> Scope:
    """Context manager: whether `jit` makes programs that serve every size.

    With `"auto"` the second size that an axis of an argument has makes that axis symbolic instead
    of compiling once more; with `"off"` every shape has a program of its own, but for
    sizes that `jit(f, dynamic_shapes=...)` names. Raises ValueError for another word.

    >>> with dynamic_shapes("off"):
    ...     current().dynamic_shapes
    'off'
    """
    if when not in DYNAMIC_SHAPES:
        raise SettingError(f"dynamic_shapes is 'auto' or 'off', not {when!r}")
    return scope(dynamic_shapes=when)


def host_steps(what: str) -> Scope:
    """Context manager: what becomes of operations of a program for a GPU that the host computes.

    There are few (`docs/internals/gpu.md`), and they cost copies and a wait. `"warn"` tells of each
    once, when it is compiled, with its line and the reason; `"error"` raises HostStepError instead,
    and `"allow"` says nothing. Callbacks, which are Python by request, are neither told of nor
    refused. Raises ValueError for another word.

    >>> with host_steps("error"):
    ...     current().host_steps
    'error'
    """
    if what not in HOST_STEPS:
        raise SettingError(f"host_steps is 'warn', 'error' or 'allow', not {what!r}")
    return scope(host_steps=what)


def default_prng_impl(name: str) -> Scope:
    """Context manager: the generator of random keys that are made without one, as in JAX.

    `"threefry2x32"`, or `"philox"` (also called `"rbg"`), which is faster on GPUs. Plain
    words, as `PRNGKey` makes them, are keys of it wherever they are used. Raises ValueError
    for another name.

    >>> import functrans as ft
    >>> with default_prng_impl("philox"):
    ...     ft.random.key(0).dtype
    dtype(key<philox>)
    """
    name = PRNG_NAMES.get(name, name)
    if name not in PRNG_IMPLS:
        raise SettingError(
            f"default_prng_impl is {' or '.join(map(repr, PRNG_IMPLS))}, not {name!r}")
    return scope(prng_impl=name)


def narrow_64bit(narrow: bool = True) -> Scope:
    """Context manager: 64-bit dtypes and NumPy values become 32-bit ones, as in JAX by default.

    It holds where the default dtypes have 32 bits, so not within `ft.enable_x64(True)`. Programs
    that were written for JAX may rely on it; `functrans.as_jax` turns it on.

    >>> import numpy as np
    >>> import functrans.numpy as jnp
    >>> with narrow_64bit():
    ...     jnp.asarray(np.ones(2)).dtype, jnp.zeros(2, "int64").dtype
    (dtype('float32'), dtype('int32'))
    """
    return scope(narrow_64bit=narrow)


def progress(show: bool = True) -> Scope:
    """Context manager: whether a compilation that takes long says on stderr what it does.

    Those for the CPU say it after 1 s, those for GPUs after 2 s, on a line that is cleared
    afterwards; in a notebook it stays, and a file has it for what took 10 s.

    >>> with progress(False):
    ...     current().progress
    False
    """
    return scope(progress=show)
