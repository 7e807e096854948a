"""The stages of a jitted function between its source and its results.

`Traced` is a program of operations, `Lowered` one that is going to be compiled for some backend,
`Compiled` one that runs. Each tells the structure and the types of arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.cells import RefCell
from functrans.core.dims import Shape, Size, is_static
from functrans.core.errors import ArgumentError, public, shown
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr
from functrans.core.record import Record
from functrans.core.sizes import shape_names
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.lowering.backend import Executable, backend_for
from functrans.transforms.flat import flatten_args
from functrans.transforms.jit.calls import Calls, TraceOutcome
from functrans.transforms.jit.cells import CellCall
from functrans.transforms.jit.fitting import fitted, in_fewer, limits_of
from functrans.transforms.jit.sizes import SizedShapes
from functrans.transforms.staged import ShapeDtypeStruct

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "MemoryAnalysis", "Stage",
           "Traced"]

CompilerOptions: TypeAlias = dict[str, "str | bool | None"]

OPTIONS = ("algebra", "autotune", "deterministic", "host_steps", "matmul_precision")
"""The settings of a compilation that `Lowered.compile` takes."""


class ArgInfo(Record):
    """The type of one leaf of the arguments, and whether its memory is given away.

    >>> compiled = ft.jit(jnp.sin).lower(jnp.ones(3)).compile()
    >>> (info,), keywords = compiled.args_info
    >>> info.shape, info.dtype, info.donated
    ((3,), dtype('float32'), False)
    """

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> Shape:
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._aval.dtype


class MemoryAnalysis(dict[str, Size]):
    """Bytes that a program needs: a dict, and the attributes of JAX's class.

    `alias_size_in_bytes` are those results that are in the memory of donated arguments;
    `generated_code_size_in_bytes` is of kernels for GPUs, 0 for a CPU.

    >>> memory = ft.jit(jnp.sin).lower(jnp.ones(256)).compile().memory_analysis()
    >>> memory["arguments"], memory.output_size_in_bytes, memory.peak_memory_in_bytes
    (1024, 1024, 2048)
    """

    def __init__(self, sizes: Mapping[str, Size], code: int = 0) -> None:
        super().__init__(sizes)
        self.generated_code_size_in_bytes = code

    @property
    def argument_size_in_bytes(self) -> Size:
        return self["arguments"]

    @property
    def output_size_in_bytes(self) -> Size:
        return self["outputs"]

    @property
    def temp_size_in_bytes(self) -> Size:
        return self["temporaries"]

    @property
    def alias_size_in_bytes(self) -> Size:
        return self.get("donated", 0)

    @property
    def peak_memory_in_bytes(self) -> Size:
        return self["peak"]


_Stage = TypeVar("_Stage", bound="Stage")


class Stage:
    """What every stage knows: the trace of a function, and what it was traced for."""

    touched: tuple[Calls, tuple[RefCell, ...]] | None = None
    """The calls of a function of cells, and those that it closes over: the stage is of a pure one,
    which takes what is in these cells, what is in cells that are arguments, and all other leaves;
    it returns the result, and what the cells are to have, None where that is the same."""

    def __init__(self, calls: Calls, program: TraceOutcome, in_tree: PyTreeDef,
                 fixed: Any) -> None:
        self._calls = calls
        self._traced = program
        self._in_tree = in_tree
        self._fixed = fixed

    def __repr__(self) -> str:
        jaxpr = self._traced.jaxpr
        types = ", ".join(map(str, jaxpr.in_avals[len(self._traced.consts):]))
        return (f"{type(self).__name__}({self._calls.jitted.name}: ({types}) -> "
                f"({', '.join(map(str, jaxpr.out_avals))}))")

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of a pair: positional arguments and keywords, less the static ones."""
        return self._in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        return self._traced.out_tree

    @property
    def args_info(self) -> PyTree:
        """An ArgInfo for each leaf of the arguments, in their structure."""
        first = len(self._traced.consts)
        infos = [ArgInfo(a, i in self._traced.donated)
                 for i, a in enumerate(self._traced.jaxpr.in_avals[first:], start=first)]
        return tree_unflatten(self._in_tree, infos)

    @property
    def in_avals(self) -> PyTree:
        """The type of each leaf of the arguments, in their structure."""
        avals = self._traced.jaxpr.in_avals[len(self._traced.consts):]
        return tree_unflatten(self._in_tree, list(avals))

    @property
    def out_avals(self) -> PyTree:
        """The type of each leaf of the result, in its structure."""
        return tree_unflatten(self.out_tree, list(self._traced.jaxpr.out_avals))

    @property
    def out_info(self) -> PyTree:
        """A ShapeDtypeStruct for each leaf of the result, in its structure."""
        return tree_unflatten(self.out_tree, [
            ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
            for a in self._traced.jaxpr.out_avals])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The leaves of the arguments, by number, whose memory is given away."""
        first = len(self._traced.consts)
        return tuple(sorted(i - first for i in self._traced.donated))


class Traced(Stage):
    """A function traced for arguments of some types: `jit(f).trace(*args)`.

    >>> import functrans as ft
    >>> traced = ft.jit(lambda x, n: {"y": x * n}, static_argnums=1).trace(1.5, 3)
    >>> traced.jaxpr
    { lambda ; a:f32[]. let b:f32[] = mul a 3.0:f32[] in (b,) }
    >>> traced.out_info["y"].shape, traced.lower().compile()(2.0, 3)["y"].item()
    ((), 6.0)
    """

    def __init__(self, calls: Calls, program: TraceOutcome, in_tree: PyTreeDef, fixed: Any,
                 shapes: Sequence[Shape]) -> None:
        super().__init__(calls, program, in_tree, fixed)
        self._shapes = shapes
        self._backend = config.current().backend

    @property
    def program(self) -> TraceOutcome:
        """What the trace gave, with constants as leading inputs."""
        return self._traced

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program and its constants."""
        inner, n = self._traced.jaxpr, len(self._traced.consts)
        return ClosedJaxpr(Jaxpr(inner.invars[:n], inner.invars[n:], inner.eqns, inner.outvars,
                                 name=inner.name), tuple(self._traced.consts))

    @property
    def fun_name(self) -> str:
        return self._calls.jitted.name

    @public
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The program for one platform, by default that of calls: `("cpu",)`, `("cuda:90",)`.

        Raises BackendError for a platform that there is no compiler for, and ArgumentError for
        several: a program is compiled for each by itself.
        """
        backend = self._backend
        if lowering_platforms is not None:
            if isinstance(lowering_platforms, str) or len(lowering_platforms) != 1:
                raise ArgumentError(
                    f"lower: lowering_platforms is {shown(lowering_platforms)}.",
                    where=user_source(), why="a program is compiled for one platform.",
                    fix='lowering_platforms=("cpu",); functrans.export.export(f, targets=...) '
                        "for several")
            backend = backend_for(lowering_platforms[0])
        found = Lowered(self._calls, self._traced, self._in_tree, self._fixed, self._shapes,
                        backend)
        found.touched = self.touched
        return found


class Lowered(Stage):
    """A traced function before compilation; `shapes` are those of the arguments at hand.

    >>> lowered = ft.jit(lambda x: x * 2).lower(jnp.ones(2))
    >>> lowered.compile()(jnp.ones(2)).tolist()
    [2.0, 2.0]
    >>> print(lowered.as_text())
    { lambda ; a:f32[2]. let b:f32[2] = mul a 2.0:f32[] in (b,) }
    >>> lowered.cost_analysis()["flops"], lowered.memory_analysis()["outputs"]
    (2, 8)
    """

    def __init__(self, calls: Calls, program: TraceOutcome, in_tree: PyTreeDef, fixed: Any,
                 shapes: Sequence[Shape], backend: str) -> None:
        super().__init__(calls, program, in_tree, fixed)
        self._shapes = [*map(np.shape, program.consts), *shapes]
        self._backend = backend

    @property
    def jaxpr(self) -> Jaxpr:
        return self._traced.jaxpr

    @property
    def backend(self) -> str:
        """The name of the backend that compiles it; `auto` is decided by where arguments are."""
        return self._backend

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function that was traced; None where some of its arguments are static."""
        jitted = self._calls.jitted
        return None if jitted.static.argnums or jitted.static.argnames else jitted.fun

    @property
    def limits(self) -> dict[str, Any]:
        """The settings of the memory that it may need."""
        return limits_of(self._calls.jitted, self._traced)

    def in_fewer(self) -> Iterator[Lowered]:
        """The same, with batches that ask for it in more and more chunks."""
        for traced in in_fewer(self._traced) if self._traced.asks_chunks else ():
            found = copy(self)
            found._traced = traced
            yield found

    @property
    def donated(self) -> frozenset[int]:
        """The inputs of the jaxpr, by number, whose memory the caller gives away."""
        return self._traced.donated

    def cost_analysis(self) -> dict[str, Size]:
        """That of the compiled program."""
        return self.compile().cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """That of the compiled program."""
        return self.compile().memory_analysis()

    def inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The inputs of the jaxpr for these arguments: constants of the trace come first."""
        (dynamic, keywords), _ = self._calls.jitted.static.split(args, kwargs)
        return [*self._traced.consts, *tree_flatten((dynamic, keywords))[0]]

    def without_donation(self) -> Lowered:
        """The same, of programs that leave the memory of all arguments alone."""
        traced = copy(self._traced)
        traced.donated = frozenset()
        found = copy(self)
        found._traced = traced
        return found

    def compiled_by(self, backend: str) -> Lowered:
        """The same, for a backend whose name is given."""
        found = copy(self)
        found._backend = backend
        return found

    @public
    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The jaxpr as text; raises ArgumentError for a dialect of another compiler."""
        if dialect not in (None, "jaxpr"):
            raise _no_dialect("as_text", dialect)
        return str(self._traced.jaxpr)

    @public
    def compiler_ir(self, dialect: str | None = None) -> NoReturn:
        """Raises ArgumentError: there is no module of MLIR or HLO behind a program."""
        raise _no_dialect("compiler_ir", dialect)

    @public
    def compile(self, compiler_options: CompilerOptions | None = None) -> Compiled:
        """Make the program ready to run.

        `compiler_options` are settings of `functrans.config` for this program: algebra, autotune,
        deterministic, host_steps and matmul_precision. Raises ArgumentError for any other.
        """
        options = dict(compiler_options or {})
        for name in options:
            if name not in OPTIONS:
                raise ArgumentError(f"compile: there is no option {name!r}.", where=user_source(),
                                    why="options are settings, not flags of XLA.",
                                    fix=f"one of {', '.join(OPTIONS)}")
        with config.scope(backend=self._backend, **options):
            compiled = Compiled(self._calls, self._traced, self._in_tree, self._fixed)
            compiled.touched = self.touched
            self._at_hand(compiled.executable)
            return compiled

    def executable(self) -> Executable:
        """What the backend makes: for the sizes at hand, where each set of sizes has its own."""
        with config.scope(backend=self._backend):
            return self._at_hand(self.compile().executable)

    def _at_hand(self, executable: Executable) -> Executable:
        if shape_names(self._shapes):
            return executable
        return executable.at([tuple(map(int, shape)) for shape in self._shapes])


def _no_dialect(what: str, dialect: str | None) -> ArgumentError:
    return ArgumentError(
        f"{what}: there is no text of {'another compiler' if dialect is None else repr(dialect)}.",
        where=user_source(), why="programs are jaxprs that become C and Triton, not MLIR.",
        fix=".as_text() is the jaxpr, .compile().as_text() the C or the kernels")


class Compiled(Stage):
    """A program for arguments of one structure, shapes and dtypes.

    >>> compiled = ft.jit(lambda x: x * 2).lower(jnp.ones(2)).compile()
    >>> compiled.memory_analysis().output_size_in_bytes
    8
    >>> compiled(jnp.ones(2)).tolist(), compiled.cost_analysis()["flops"]
    ([2.0, 2.0], 2)
    >>> compiled.as_text().splitlines()[0]
    '{ lambda ; a:f32[2]. let b:f32[2] = mul a 2.0:f32[] in (b,) }'
    """

    def __init__(self, calls: Calls, program: TraceOutcome, in_tree: PyTreeDef,
                 fixed: Any) -> None:
        traced, executable = fitted(calls.jitted, program)
        super().__init__(calls, traced, in_tree, fixed)
        self._settings = config.current()
        self._executable = executable

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.touched is None:
            return self._call(*args, **kwargs)
        calls, cells = self.touched
        call = CellCall(calls.jitted, args, kwargs)
        return call.run(self._call, cells, call.given)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        (dynamic, keywords), fixed = self._calls.jitted.static.split(args, kwargs)
        leaves, tree = flatten_args((dynamic, keywords), "compiled function", keywords=True)
        if tree != self._in_tree or fixed != self._fixed:
            raise ArgumentError(f"compiled for arguments of structure {self._in_tree}, called with "
                                f"{tree}.", where=user_source(), fix="call the jitted function")
        avals = self._traced.jaxpr.in_avals[len(self._traced.consts):]
        self._check_sizes([a.shape for a in avals], [x.shape for x in leaves])
        for i, (x, a) in enumerate(zip(leaves, avals, strict=True)):
            if x.dtype != a.dtype or (x.shape != a.shape and is_static((*x.shape, *a.shape))):
                raise ArgumentError(f"compiled for a {a} as leaf {i} of the arguments, called with "
                                    f"a {x.aval}.", where=user_source(),
                                    fix="call the jitted function, which compiles again")
        # the program that was compiled, whatever the settings are by now
        with config.scope(backend=self._settings.backend, algebra=self._settings.algebra,
                          matmul_precision=self._settings.matmul_precision,
                          deterministic=self._settings.deterministic,
                          autotune=self._settings.autotune,
                          host_steps=self._settings.host_steps):
            return self._calls.apply(None, self._traced, leaves, None)

    def _check_sizes(self, mine: Sequence[Any], shapes: Sequence[Any]) -> None:
        if not shape_names(mine):
            return
        sized = SizedShapes(tuple(mine), self._traced.guards)
        sizes = sized.sizes(shapes)
        broken = None if sizes is None else sized.broken(sizes)
        if sizes is None or broken is not None:
            said = "" if broken is None else f" ({broken})"
            raise ArgumentError(f"compiled for shapes {mine}{said}; called with {list(shapes)}.",
                                where=user_source(),
                                fix="call the jitted function, which compiles again")

    @property
    def executable(self) -> Executable:
        """What the backend made."""
        return self._executable

    def as_text(self) -> str:
        """The program in the backend's own terms."""
        return self._executable.as_text()

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of a program for GPUs, as frozen records; empty for the CPU.

        A record has the `name` of a kernel, the user's `lines` that it computes, its `grid`,
        `launches`, `warps`, `stages`, bytes of `shared` memory, `registers` and `spills` of a
        thread, and as texts and bytes Triton's `text`, `ptx`, `cubin` and `sass`.
        """
        return self._executable.kernels

    def cost_analysis(self) -> dict[str, Size]:
        """`flops` and `bytes accessed` of one run."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Bytes of arguments, outputs, temporaries, and at the peak.

        Of the outputs, `donated` are in the memory of arguments that were given away.
        """
        return MemoryAnalysis(self._executable.memory_analysis(),
                              sum(len(getattr(k, "cubin", b"")) for k in self.kernels))

    def runtime_executable(self) -> Executable:
        """What the backend made."""
        return self._executable
