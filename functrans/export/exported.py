"""`export`: a traced function as a value that is saved, loaded and called without its source."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functrans import _runtime
from functrans._runtime import get_trace
from functrans.core.avals import ShapedArray
from functrans.core.bounds import OPERATORS, Bound
from functrans.core.dims import Dim, size_value
from functrans.core.errors import ArgumentError, ExportError, public, shown
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import known_sizes, substitute, substitute_jaxpr
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import PyTreeDef, check_same_structure, tree_paths
from functrans.export.container import FORMAT_VERSION
from functrans.export.files import Contents, read, written
from functrans.export.kernels import Kernel, compile_targets
from functrans.export.ready import ReadyPrograms
from functrans.export.rules import has_rules
from functrans.transforms.flat import argument_name, flatten_args
from functrans.transforms.jit.api import jit
from functrans.transforms.jit.calls import Calls, Jitted, TraceOutcome
from functrans.transforms.jit.executables import provide
from functrans.transforms.jit.primitive import jit_p
from functrans.transforms.jit.sizes import NamedSizes
from functrans.transforms.reverse import vjp
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.transforms.static import StaticArguments
from functrans.transforms.tangents import is_differentiable

__all__ = ["Exported", "deserialize", "export", "load", "save"]


@dataclass(frozen=True, eq=False, repr=False)
class Exported(Contents):
    """A program with its constants and types: what `export` and `load` return.

    `in_avals` and `out_avals` are the types of the leaves of the arguments, whose structure is
    `in_tree` (of a pair of positional and keyword arguments), and of the results. `consts` are the
    first inputs of `jaxpr`. `sizes` has the bounds of every symbolic size, `constraints` what else
    holds of the sizes of every call. `kernels[target]` are the compiled kernels that came along;
    they run where `trusts_kernels` says so, on what they were compiled for.

    >>> exported = ft.export.export(lambda x: x * 2)(jnp.ones(2))
    >>> exported.in_avals, exported.call(jnp.ones(2)).tolist()
    ((ShapedArray(f32[2]),), [2.0, 2.0])
    >>> print(exported.as_text())
    { lambda ; a:f32[2]. let b:f32[2] = mul a 2.0:f32[] in (b,) }
    >>> exported.has_vjp(), len(exported.serialize()) > 0
    (True, True)
    """

    trusts_kernels: bool
    _bytes: bytes
    format_version: int = field(default=FORMAT_VERSION)
    _function: Callable[..., Any] = field(init=False)
    """What remembers, without Python, which program runs arguments of which types."""
    _calls: Calls = field(init=False)

    def __post_init__(self) -> None:
        static = StaticArguments((), (), self.fun_name, None)
        calls = Calls(Jitted(self.call, self.fun_name, static, (), False, False,
                             NamedSizes(None, static)))
        object.__setattr__(self, "_calls", calls)
        object.__setattr__(self, "_function", _runtime.JitFunction(self._miss, (), ()))

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.in_avals[len(self.consts):]

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.out_avals

    @property
    def kernels(self) -> dict[str, tuple[Kernel, ...]]:
        return {target: tuple([k for p in programs for k in p.kernels])
                for target, programs in self.programs.items()}

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.programs)

    def serialize(self) -> bytes:
        """The program in the format of docs/reference/export_format.md, for `deserialize`."""
        return self._bytes

    def __reduce__(self) -> Any:
        return _restored, (self._bytes, self.trusts_kernels)

    def as_text(self) -> str:
        """The program as the text of its jaxpr."""
        return str(self.jaxpr)

    @public
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The exported function; under transforms it is traced as a compiled call.

        Raises ArgumentError for arguments of other structure, types or sizes than exported.
        """
        return self._function(*args, **kwargs)

    def _miss(self, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
        """The result for arguments of types that were not there yet."""
        leaves, tree = flatten_args((args, kwargs), self.fun_name, keywords=True)
        if tree != self.in_tree:
            check_same_structure(self.in_tree, tree, f"{self.fun_name}: what it is called with",
                                 where=user_source(), fix="pass arguments as when it was exported")
        jaxpr = self.jaxpr
        sizes = self._sizes_of(leaves)
        if sizes and (get_trace() is not None or any(isinstance(x, Tracer) for x in leaves)):
            jaxpr = substitute_jaxpr(jaxpr, sizes)
        return self._calls.apply(call, _Read(jaxpr, self.consts, self.out_tree), leaves, key)

    def has_vjp(self) -> bool:
        """Whether the file tells all that `vjp` needs."""
        return has_rules(self.jaxpr)

    @public
    def vjp(self) -> Exported:
        """The exported program that computes the cotangents of the arguments.

        Its arguments are the leaves of this one's arguments and then a cotangent of each leaf of
        the results; its result is a tuple, a cotangent for each leaf of the arguments. Integers
        and booleans have None for one. Raises ExportError without `has_vjp()`.

        >>> exported = export(lambda x, y: x * y ** 2)(2.0, 3.0)
        >>> [float(ct) for ct in exported.vjp().call(2.0, 3.0, 1.0)]
        [9.0, 12.0]
        """
        count = len(self.in_avals)
        active = [k for k, a in enumerate(self.in_avals) if is_differentiable(a)]

        def cotangents(*args: Any) -> tuple[Any, ...]:
            def results(*primals: Any) -> list[Any]:
                leaves = list(args[:count])
                for k, x in zip(active, primals, strict=True):
                    leaves[k] = x
                outs = jit_p.bind(*self.consts, *leaves, jaxpr=self.jaxpr, name=self.fun_name)
                return [o for o, a in zip(outs, self.out_avals, strict=True)
                        if is_differentiable(a)]

            _, pull = vjp(results, *[args[k] for k in active])
            found = dict(zip(active, pull([ct for ct in args[count:] if ct is not None])))
            return tuple([found.get(k) for k in range(count)])

        cts = [a.strong() if is_differentiable(a) else None for a in self.out_avals]
        specs = [a and ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
                 for a in (*self.in_avals, *cts)]
        lowered = jit(cotangents).lower(*specs)
        return deserialize(written(
            lowered.jaxpr, lowered._traced.consts, (lowered.in_tree, lowered.out_tree),
            f"vjp_{self.fun_name}", self.constraints, max(self.vjp_order - 1, 0)))

    def _sizes_of(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """The symbolic sizes of a call, its arguments checked."""
        for i, (x, a) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if x.aval.dtype != a.dtype or len(x.aval.shape) != len(a.shape):
                raise self._other_type(i, x.aval, a)
        sizes = known_sizes(self.in_avals, [x.aval.shape for x in leaves])
        for i, (x, a) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if substitute(a, sizes).shape != x.aval.shape:
                known = ", ".join(f"{k} = {v}" for k, v in sizes.items())
                raise self._other_type(i, x.aval, a, known and f"here {known}.")
        for name, bound in self.sizes.items():
            if name in sizes:
                _check_bound(self.fun_name, name, bound, sizes[name])
        for guard in self.constraints:
            if not OPERATORS[guard.op](substitute(guard.left, sizes),
                                       substitute(guard.right, sizes)):
                known = ", ".join(f"{k} = {v}" for k, v in sizes.items())
                raise ArgumentError(f"{self.fun_name} was exported for {guard}, called with "
                                    f"{known}.", where=user_source())
        return sizes

    def _other_type(self, leaf: int, given: ShapedArray, wanted: ShapedArray,
                    why: str = "") -> ArgumentError:
        where = argument_name(tree_paths(self.in_tree)[leaf], True)
        return ArgumentError(f"{self.fun_name} was exported for a {wanted} as {where}, called with "
                             f"a {given}.", where=user_source(), why=why,
                             fix="convert the argument, or export for its type too")

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.in_avals))
        return f"Exported({self.fun_name}: ({types}) -> ({', '.join(map(str, self.out_avals))}))"


class _Read(TraceOutcome):
    """What a file tells, in the place of a trace."""

    __slots__ = ()

    def __init__(self, jaxpr: Jaxpr, consts: tuple[Any, ...], out_tree: PyTreeDef) -> None:
        self.jaxpr, self.consts, self.out_tree = jaxpr, consts, out_tree
        self.donated = frozenset()
        self.guards = ()
        self.closed_over_tracers = False
        self.asks_chunks = False


def _check_bound(function: str, name: str, bound: Bound, value: Any) -> None:
    known = value if isinstance(value, int) else None
    if isinstance(value, Dim):
        known = size_value(value, {})
    if known is None:
        return
    if known < (bound.min or 0) or (bound.max is not None and known > bound.max) \
            or known % bound.multiple_of:
        raise ArgumentError(
            f"{function}: the size {name} is {known}.", where=user_source(),
            why=f"it was exported for min={bound.min}, max={bound.max}, "
                f"multiple_of={bound.multiple_of}.",
            fix="another size, or export for wider bounds")


@public
def export(fun: Callable[..., Any], *, vjp_order: int = 0,
           targets: Sequence[str] | Mapping[str, Sequence[Mapping[str, int]]] = ()
           ) -> Callable[..., Exported]:
    """The function that exports `fun` for arguments given as arrays or ShapeDtypeStructs.

    What it returns is called, differentiated and mapped as `fun` is. `vjp_order` says how often
    functions with rules of their own (custom_jvp, custom_vjp) can be differentiated. Kernels for
    `targets`, such as `"cpu"` and `"cuda:90"`, come along; those for GPUs are made for numbers, and
    `targets={"cuda:90": [{"B": 8}, {"B": 64}]}` says for which. Raises ExportError for what a
    file cannot hold, such as callbacks, and whatever tracing raises.

    >>> import functrans as ft
    >>> B = ft.dim("B", min=1)
    >>> exported = ft.export.export(ft.jit(lambda x: ft.numpy.sin(x).sum()))(
    ...     ft.ShapeDtypeStruct((B, 2), "float32"))
    >>> exported
    Exported(<lambda>: (f32[B,2]) -> (f32[]))
    >>> loaded = ft.export.deserialize(exported.serialize())
    >>> x = ft.numpy.zeros((3, 2))
    >>> float(loaded.call(x)), ft.grad(loaded.call)(x).shape
    (0.0, (3, 2))
    """
    jitted: Any = fun if isinstance(fun, _runtime.JitFunction) else jit(fun)
    if vjp_order < 0:
        raise ArgumentError(f"export: vjp_order is {vjp_order}.", fix="vjp_order=1")
    if isinstance(targets, str):
        raise ArgumentError(f"export: the targets are a str, {targets!r}.",
                            fix=f"targets=[{targets!r}]")
    sets = targets if isinstance(targets, Mapping) else dict.fromkeys(targets, ())

    @public
    def exporter(*args: Any, **kwargs: Any) -> Exported:
        lowered = jitted.lower(*args, **kwargs)
        traced = lowered._traced
        if any(isinstance(c, Tracer) for c in traced.consts):
            raise ExportError(f"{jitted.__name__} closes over a traced value.",
                              why="an exported program has its constants with it.",
                              fix="export outside of the transform, or pass it as an argument")
        return deserialize(written(
            traced.jaxpr, traced.consts, (lowered.in_tree, traced.out_tree), jitted.__name__,
            traced.guards, vjp_order,
            lambda jaxpr: compile_targets(jaxpr, jitted.__name__, sets)))

    return exporter


@public
def _restored(data: bytes, trust_kernels: bool) -> Exported:
    """One that was pickled: who reads pickles trusts them."""
    return deserialize(data, trust_kernels=trust_kernels)


def deserialize(data: bytes, *, trust_kernels: bool = False) -> Exported:
    """The program in some bytes; raises ExportError for what is none, and runs nothing of it.

    With `trust_kernels` calls run the machine code in it where it is for this machine, which can
    do whatever this process can: only for bytes from whom you would run a program.

    >>> deserialize(b"something else")
    Traceback (most recent call last):
    functrans.core.errors.ExportError: the exported program cannot be read: it has 14 bytes, the ...
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ArgumentError(f"deserialize takes bytes, got {shown(data)}.",
                            fix="functrans.export.load(path) for a file")
    data = bytes(data)
    found = read(data)
    if trust_kernels:
        provide(found.jaxpr, ReadyPrograms(found.fun_name, found.programs))
    return Exported(**vars(found), trusts_kernels=trust_kernels, _bytes=data)


@public
def save(exported: Exported, path: str | os.PathLike[str]) -> None:
    """Write an exported program to a file, which is whole or not there.

    >>> import tempfile
    >>> exported = ft.export.export(lambda x: x * 2)(jnp.ones(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ft.export.save(exported, f"{folder}/double.ftx")
    ...     ft.export.load(f"{folder}/double.ftx").call(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if not isinstance(exported, Exported):
        raise ArgumentError(f"save takes an exported program, got {shown(exported)}.",
                            fix="exported = functrans.export.export(f)(*types); "
                                "functrans.export.save(exported, path)")
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(exported.serialize())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@public
def load(path: str | os.PathLike[str], *, trust_kernels: bool = False) -> Exported:
    """The exported program in a file; raises ExportError for what is none, and runs nothing of it.

    With `trust_kernels` calls run the machine code in it, as `deserialize` says.

    >>> import functrans as ft, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "double.ftx"
    >>> ft.export.save(ft.export.export(lambda x: 2 * x)(1.5), path)
    >>> float(ft.export.load(path).call(4.0))
    8.0
    """
    return deserialize(Path(path).read_bytes(), trust_kernels=trust_kernels)
