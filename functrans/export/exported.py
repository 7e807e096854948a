"""`export`: a traced function as a value that is saved, loaded and called without its source."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functrans import _runtime
from functrans._runtime import ArrayBase, get_trace
from functrans.core.avals import ShapedArray
from functrans.core.bounds import OPERATORS, Bound
from functrans.core.dims import Dim, size_value
from functrans.core.errors import ArgumentError, ExportError, public
from functrans.core.guards import Guard
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import known_sizes, substitute, substitute_jaxpr
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import PyTreeDef, check_same_structure, tree_unflatten
from functrans.export.constants import ArrayReader
from functrans.export.container import FORMAT_VERSION, pack, unpack
from functrans.export.kernels import Kernel, compile_kernels, read_kernels
from functrans.export.parameters import text_from
from functrans.export.plain import damaged, from_bytes, to_bytes
from functrans.export.programs import ProgramReader, ProgramWriter
from functrans.export.sizes import SizeReader
from functrans.export.trees import read_tree, tree_plain
from functrans.transforms.flat import flatten_args
from functrans.transforms.jit import jit
from functrans.transforms.jit_primitive import jit_p
from functrans.transforms.traces import Traced

__all__ = ["Exported", "deserialize", "export", "load", "save"]


@dataclass(frozen=True, eq=False, repr=False)
class Exported:
    """A program with its constants and types: what `export` and `load` return.

    `in_avals` and `out_avals` are the types of the leaves of the arguments, whose structure is
    `in_tree` (of a pair of positional and keyword arguments), and of the results. `sizes` has the
    bounds of every symbolic size. `kernels[target]` are the compiled kernels that came along, as
    data: nothing runs them.
    """

    fun_name: str
    jaxpr: Jaxpr
    """The program; its first inputs are the constants."""
    consts: Sequence[Any]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    sizes: Mapping[str, Bound]
    constraints: Sequence[Guard]
    """What else holds of the sizes of every call: what Python decided while it was traced."""
    vjp_order: int
    kernels: Mapping[str, Sequence[Kernel]]
    _bytes: bytes
    format_version: int = field(default=FORMAT_VERSION)

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.in_avals[len(self.consts):]

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.out_avals

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.kernels)

    def serialize(self) -> bytes:
        """The program in the format of docs/export_format.md, for `deserialize`."""
        return self._bytes

    def as_text(self) -> str:
        """The program as the text of its jaxpr."""
        return str(self.jaxpr)

    @public
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The exported function; under transforms it is traced as a compiled call.

        Raises ArgumentError for arguments of other structure, types or sizes than exported.
        """
        leaves, tree = flatten_args((args, kwargs), self.fun_name, keywords=True)
        if tree != self.in_tree:
            check_same_structure(self.in_tree, tree, f"{self.fun_name}: the arguments")
        jaxpr = self.jaxpr
        sizes = self._sizes_of(leaves)
        if sizes and (get_trace() is not None or any(isinstance(x, Tracer) for x in leaves)):
            jaxpr = substitute_jaxpr(jaxpr, sizes)
        outs = jit_p.bind(*self.consts, *leaves, jaxpr=jaxpr, name=self.fun_name)
        return tree_unflatten(self.out_tree, [
            _runtime.with_weak_type(o, a.weak_type) if isinstance(o, ArrayBase) else o
            for o, a in zip(outs, self.out_avals, strict=True)])

    def _sizes_of(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """The symbolic sizes of a call, its arguments checked."""
        for i, (x, a) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if x.aval.dtype != a.dtype or len(x.aval.shape) != len(a.shape):
                raise _other_type(self.fun_name, i, x.aval, a)
        sizes = known_sizes(self.in_avals, [x.aval.shape for x in leaves])
        for i, (x, a) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if substitute(a, sizes).shape != x.aval.shape:
                known = ", ".join(f"{k} = {v}" for k, v in sizes.items())
                raise _other_type(self.fun_name, i, x.aval, a, known and f"here {known}.")
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

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.in_avals))
        return f"Exported({self.fun_name}: ({types}) -> ({', '.join(map(str, self.out_avals))}))"


def _other_type(name: str, leaf: int, given: ShapedArray, wanted: ShapedArray,
                why: str = "") -> ArgumentError:
    return ArgumentError(f"{name} was exported for a {wanted} as leaf {leaf} of the arguments, "
                         f"called with a {given}.", where=user_source(), why=why,
                         fix="convert the argument, or export for its type too")


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
                f"multiple_of={bound.multiple_of}.")


@public
def export(fun: Callable[..., Any], *, vjp_order: int = 0,
           targets: Sequence[str] = ()) -> Callable[..., Exported]:
    """The function that exports `fun` for arguments given as arrays or ShapeDtypeStructs.

    What it returns is called, differentiated and mapped as `fun` is. `vjp_order` says how often
    functions with rules of their own (custom_jvp, custom_vjp) can be differentiated. Kernels for
    `targets`, such as `"cpu"` and `"cuda:90"`, come along as data. Raises ExportError for what a
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
    jitted = fun if isinstance(fun, _runtime.JitFunction) else jit(fun)
    if vjp_order < 0:
        raise ArgumentError(f"export: vjp_order is {vjp_order}.", fix="vjp_order=1")

    @public
    def exporter(*args: Any, **kwargs: Any) -> Exported:
        lowered = jitted.lower(*args, **kwargs)
        traced = lowered._traced
        if any(isinstance(c, Tracer) for c in traced.consts):
            raise ExportError(f"{jitted.__name__} closes over a traced value.",
                              why="an exported program has its constants with it.",
                              fix="export outside of the transform, or pass it as an argument")
        kernels = {t: compile_kernels(jitted, args, kwargs, t) for t in targets}
        return deserialize(_written(traced, lowered._in_tree, jitted.__name__, vjp_order, kernels))

    return exporter


def _written(traced: Traced, in_tree: PyTreeDef, name: str, vjp_order: int,
             kernels: Mapping[str, Sequence[Kernel]]) -> bytes:
    writer = ProgramWriter(traced.jaxpr.decided_names)
    main = writer.jaxpr(traced.jaxpr, vjp_order)
    arrays = [writer.array(c) for c in traced.consts]
    trees = [tree_plain(in_tree, "the arguments"), tree_plain(traced.out_tree, "the results")]
    guards = [[g.op, writer.size(g.left), writer.size(g.right)] for g in traced.guards]
    head = [name if name.isprintable() else "fn", vjp_order, main, arrays, trees, guards]
    program = [head, writer.sizes.names, writer.sizes.table, writer.arrays.table, writer.jaxprs]
    described = [[target, [k.plain() for k in found]] for target, found in kernels.items()]
    return pack({b"PROG": to_bytes(program), b"DATA": writer.arrays.data,
                 b"KERN": to_bytes(described)})


@public
def deserialize(data: bytes) -> Exported:
    """The program in some bytes; raises ExportError for what is none, and runs nothing of it.

    >>> deserialize(b"something else")
    Traceback (most recent call last):
    functrans.core.errors.ExportError: the exported program cannot be read: it has 14 bytes, the ...
    """
    data = bytes(data)
    sections = unpack(data)
    program = from_bytes(sections[b"PROG"])
    if not isinstance(program, list) or len(program) != 5:
        raise damaged("its program has not five parts")
    head, names, table, arrays, jaxprs = program
    if not isinstance(head, list) or len(head) != 6:
        raise damaged("its head has not six parts")
    name, vjp_order, main, numbers, trees, guards = head
    if type(vjp_order) is not int or not isinstance(numbers, list) \
            or not isinstance(trees, list) or len(trees) != 2 or not isinstance(guards, list):
        raise damaged("its head is not whole")
    sizes = SizeReader(names, table)
    values = ArrayReader(arrays, sections[b"DATA"])
    reader = ProgramReader(sizes, values, jaxprs)
    jaxpr = reader.jaxpr(main)
    consts = tuple([values[n] for n in numbers])
    in_tree, out_tree = map(read_tree, trees)
    if len(consts) + in_tree.num_leaves != len(jaxpr.invars) \
            or out_tree.num_leaves != len(jaxpr.outvars):
        raise damaged("its structures do not fit its program")
    for const, aval in zip(consts, jaxpr.in_avals):
        if not const.aval.matches(aval):
            raise damaged(f"a constant is {const.aval}, and its program takes {aval}")
    return Exported(text_from(name), jaxpr, consts, in_tree, out_tree, sizes.bounds,
                    tuple([_guard(g, sizes) for g in guards]), vjp_order,
                    read_kernels(sections[b"KERN"]), data)


def _guard(plain: Any, sizes: SizeReader) -> Guard:
    if not isinstance(plain, list) or len(plain) != 3 or not isinstance(plain[0], str) \
            or plain[0] not in OPERATORS:
        raise damaged("a constraint is no relation of two sizes")
    return Guard(plain[0], sizes.size(plain[1]), sizes.size(plain[2]))


@public
def save(exported: Exported, path: str | os.PathLike[str]) -> None:
    """Write an exported program to a file, which is whole or not there."""
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
def load(path: str | os.PathLike[str]) -> Exported:
    """The exported program in a file; raises ExportError for what is none, and runs nothing of it.

    >>> import functrans as ft, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "double.ftx"
    >>> ft.export.save(ft.export.export(lambda x: 2 * x)(1.5), path)
    >>> float(ft.export.load(path).call(4.0))
    8.0
    """
    return deserialize(Path(path).read_bytes())
