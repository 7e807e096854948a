"""What `jit(f).lower(*args)` gives: a traced function, and the program that it compiles to."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.dims import Shape, Size, is_static
from functrans.core.errors import ArgumentError, public
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import shape_names
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_flatten
from functrans.lowering.backend import Executable
from functrans.transforms.calls import Calls
from functrans.transforms.dynamic import SizedShapes
from functrans.transforms.executables import executable_of
from functrans.transforms.flat import flatten_args
from functrans.transforms.traces import Traced

__all__ = ["Compiled", "Lowered"]


class Lowered:
    """A traced function before compilation; `shapes` are those of the arguments at hand."""

    def __init__(self, calls: Calls, traced: Traced, in_tree: PyTreeDef, fixed: Any,
                 shapes: Sequence[Shape]) -> None:
        self._calls = calls
        self._traced = traced
        self._in_tree = in_tree
        self._fixed = fixed
        self._shapes = [*map(np.shape, traced.consts), *shapes]
        self._backend = config.current().backend

    @property
    def jaxpr(self) -> Jaxpr:
        return self._traced.jaxpr

    @property
    def out_tree(self) -> PyTreeDef:
        return self._traced.out_tree

    @property
    def in_tree(self) -> PyTreeDef:
        return self._in_tree

    @property
    def backend(self) -> str:
        """The name of the backend that compiles it; `auto` is decided by where arguments are."""
        return self._backend

    @property
    def donated(self) -> frozenset[int]:
        """The inputs of the jaxpr, by number, whose memory the caller gives away."""
        return self._traced.donated

    def cost_analysis(self) -> dict[str, Size]:
        """That of the compiled program."""
        return self.compile().cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
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

    def as_text(self) -> str:
        """The jaxpr as text."""
        return str(self._traced.jaxpr)

    def compile(self) -> Compiled:
        """Make the program ready to run."""
        with config.scope(backend=self._backend):
            compiled = Compiled(self._calls, self._traced, self._in_tree, self._fixed)
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


class Compiled:
    """A program for arguments of one structure, shapes and dtypes."""

    def __init__(self, calls: Calls, traced: Traced, in_tree: PyTreeDef, fixed: Any) -> None:
        self._calls = calls
        self._traced = traced
        self._in_tree = in_tree
        self._fixed = fixed
        self._settings = config.current()
        self._executable = executable_of(traced.jaxpr, traced.donated, calls.jitted.require_inplace)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
                          autotune=self._settings.autotune):
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

    def memory_analysis(self) -> dict[str, Size]:
        """Bytes of arguments, outputs, temporaries, and at the peak.

        Of the outputs, `donated` are in the memory of arguments that were given away.
        """
        return self._executable.memory_analysis()
