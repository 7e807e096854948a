"""What a template gives: the text of a Triton module, and how it is compiled and launched."""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from functrans.core.record import Record
from functrans.lowering.loops.tensor import FLOAT8, ITEM_SIZES
from functrans.lowering.triton.templates.notes import NOTHING_NOTED, KernelNotes, NamedValue

__all__ = ["BYTES", "INT_MAX", "MOST_ARRIVAL_COUNTERS", "PLAIN", "TYPES", "Argument",
           "EpilogueSource", "Expression", "TemplateKernel", "arrivals", "compiled", "expand",
           "flushes_denormals", "function", "integer", "pointer", "power_of_two", "stored_as"]


# by Triton's names of element types
BYTES = {**{f"fp{dtype[1:]}" if dtype[0] == "f" else dtype: size
            for dtype, size in ITEM_SIZES.items() if dtype not in FLOAT8},
         "fp8e4nv": 1, "fp8e5": 1, "i1": 1}
TYPES = {"fp64": "tl.float64", "fp32": "tl.float32", "bf16": "tl.bfloat16", "fp16": "tl.float16",
         "fp8e4nv": "tl.float8e4nv", "fp8e5": "tl.float8e5", "i8": "tl.int8", "u8": "tl.uint8",
         "i32": "tl.int32", "i1": "tl.int1"}
INT_MAX = 2**31 - 1
MOST_ARRIVAL_COUNTERS = 1024
"""Of a launch."""
HEAD = "import triton\nimport triton.language as tl\n"
MATH = "from functrans.lowering.triton.kernels import device_math as fm\n"


class Argument(Record):
    """An argument of a kernel: `*bf16`, `i32`, `i64` or `fp32`; numbers have a value.

    A pointer that is divisible is aligned to 16 bytes, such a number is a multiple of 16.
    """

    name: str
    type: str
    divisible: bool = False
    value: int | float | None = None


def pointer(name: str, dtype: str, aligned: bool = True) -> Argument:
    return Argument(name, f"*{dtype}", aligned)


def arrivals() -> Argument:
    """The arrival counters of a launch."""
    return pointer("arrivals", "i32")


def integer(name: str, value: int) -> Argument:
    return Argument(name, "i32" if -INT_MAX <= value <= INT_MAX else "i64", value % 16 == 0, value)


class TemplateKernel(Record):
    """A launch of a function of a module.

    `arguments` are those of the function in order. A pointer is named after the tensor that it is
    for; `workspace` is memory of the launches of one call, of so many bytes, in any state, and
    `arrivals` are so many arrival counters, which are 0 before and after the launch. `fuses`:
    products and sums round once. `flops` is its arithmetic; None: the first such launch of a call
    has what is known of the call.
    """

    name: str
    text: str
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    warps: int
    stages: int
    workspace: int = 0
    fuses: bool = True
    flops: int | None = None
    arrivals: int = 0
    walkers: int = 0
    """Programs of each multiprocessor, where they walk over all tiles; 0 of others."""
    notes: KernelNotes = field(default=NOTHING_NOTED, compare=False, repr=False)

    @property
    def signature(self) -> dict[str, str]:
        return {a.name: a.type for a in self.arguments}

    @property
    def attributes(self) -> dict[tuple[int], list[list[object]]]:
        """Those of `triton.compiler.ASTSource`."""
        return {(k,): [["tt.divisibility", 16]]
                for k, a in enumerate(self.arguments) if a.divisible}

    @property
    def options(self) -> dict[str, object]:
        return {"num_warps": self.warps, "num_stages": self.stages,
                "enable_fp_fusion": self.fuses,
                "enable_reflect_ftz": flushes_denormals(self.text)}


class EpilogueSource(Record):
    """What is computed from the tile of sums before it is stored: lines of Triton.

    They see `acc` (the sums, times alpha, in float32 for narrow operands), the numbers of the rows
    and columns of the matrix as `rows` (..., 1) and `cols` (1, ...), `inside` (the mask of loads
    and stores, None where all elements are), `b0` and `b1` (the indices of the batch) and the sizes
    `m` and `n`. `result` is the expression that is stored to c, or None where the lines store all
    that there is. `arguments` come after c, before the sizes.
    """

    lines: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    result: str | None = "acc"
    values: tuple[NamedValue, ...] = field(default=(), compare=False, repr=False)


PLAIN = EpilogueSource(())


def power_of_two(n: int, least: int = 16) -> int:
    """The least power of two that is n or more."""
    return max(least, 1 << max(n - 1, 0).bit_length())


class _Expansion(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, object],
                 blocks: Mapping[str, Iterable[str]]) -> None:
        self.constants = {name: ast.parse(repr(v) if not isinstance(v, Expression) else v,
                                          mode="eval").body for name, v in constants.items()}
        self.wide, self.rounds = bool(constants.get("WIDE")), bool(constants.get("ROUNDS"))
        self.blocks = {name: "\n".join(lines) for name, lines in blocks.items()}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.constants:
            return node
        return self.visit(copy.deepcopy(self.constants[node.id]))  # type: ignore[no-any-return]

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        test = self.visit(node.test)
        if any(isinstance(n, ast.Name) for n in ast.walk(test)):
            node.test = test
            node.body = self._all(node.body)
            node.orelse = self._all(node.orelse)
            return node
        taken = eval(compile(ast.fix_missing_locations(ast.Expression(test)), "<template>", "eval"))
        return self._all(node.body if taken else node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = self.visit(node.test)
        if any(isinstance(n, ast.Name) for n in ast.walk(test)):
            self.generic_visit(node)
            return node
        taken = eval(compile(ast.fix_missing_locations(ast.Expression(test)), "<template>", "eval"))
        return self.visit(node.body if taken else node.orelse)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What stands in WIDE(i) is a 64-bit integer, and in ROUNDED(x) a number of
        TensorFloat-32, where the template says so."""
        if isinstance(node.func, ast.Name) and node.func.id in ("WIDE", "ROUNDED"):
            x = self.visit(node.args[0])
            if not (self.wide if node.func.id == "WIDE" else self.rounds):
                return x  # type: ignore[no-any-return]
            text = f"tl.cast({ast.unparse(x)}, tl.int64)" if node.func.id == "WIDE" else \
                f"fm.tf32({ast.unparse(x)})"
            return ast.parse(text, mode="eval").body
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult | ast.FloorDiv) and _is_one(node.right):
            return node.left
        if isinstance(node.op, ast.Mult) and _is_one(node.left):
            return node.right
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        if isinstance(node.value, ast.Name) and node.value.id in self.blocks:
            return self._all(ast.parse(self.blocks[node.value.id]).body)
        self.generic_visit(node)
        return node

    def _all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            made += result if isinstance(result, list) else [result]
        return made


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1 and isinstance(node.value, int)


class Expression(str):
    """A constant of a template that is a piece of text, not a value."""


def stored_as(epilogue: EpilogueSource, dtype: str) -> Expression:
    """What a template stores of an epilogue: its result over the whole tile, in the type of memory.

    The result may vary over rows or columns alone, or be a constant: descriptors store whole tiles.
    """
    result = epilogue.result or "acc"
    cast = f"({result}).to({TYPES[dtype]})"
    return Expression(cast if result == "acc" else f"tl.broadcast_to({cast}, acc.shape)")


def expand(template: str, name: str, arguments: Iterable[Argument],
           constants: Mapping[str, object], blocks: Mapping[str, Iterable[str]] | None = None
           ) -> str:
    """The module of a template: constants become literals, tests on them are decided.

    A statement that is the name of a block becomes its lines (which may name blocks and constants).
    """
    return _expanded(template, name, tuple([a.name for a in arguments]),
                     tuple([(key, type(v), v) for key, v in constants.items()]),
                     tuple([(key, tuple(lines)) for key, lines in (blocks or {}).items()]))


@lru_cache(maxsize=1024)  # 5 ms: a program for other sizes has the same texts
def _expanded(template: str, name: str, arguments: tuple[str, ...],
              constants: tuple[tuple[str, type, object], ...],
              blocks: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    tree = ast.parse(template)
    tree = _Expansion({key: v for key, _, v in constants}, dict(blocks)).visit(tree)
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    function.name = name
    function.args.args = [ast.arg(a) for a in arguments]
    body = ast.unparse(ast.fix_missing_locations(tree))
    return f"{HEAD}{MATH if 'fm.' in body else ''}\n\n{body}\n"


def flushes_denormals(text: str) -> bool:
    """Whether functions of CUDA's library may take numbers below 1e-38 for 0 in a kernel.

    Arithmetic keeps them everywhere. Beside products they would take registers: attention spills.
    """
    return "tl.dot(" in text


# --- Kernels of templates as functions of Triton, and as machine code

def function(kernel: TemplateKernel, folder: str | Path) -> Any:
    """The function of a kernel: Triton reads its source from a file, which stays in `folder`."""
    text = kernel.text
    if os.environ.get("TRITON_INTERPRET") == "1":
        text = text.replace("import device_math as fm", "import host_math as fm")
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    module_name = f"{kernel.name}_{digest}"
    path = Path(folder) / f"{module_name}.py"
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[module_name] = module
    return getattr(sys.modules[module_name], kernel.name)


def compiled(kernel: TemplateKernel, folder: str | Path, arch: int = 90) -> Any:
    """The kernel compiled for an architecture: no GPU is needed. `.asm["cubin"]` is the code."""
    import triton  # noqa: PLC0415

    source = triton.compiler.ASTSource(function(kernel, folder), kernel.signature, {},
                                       kernel.attributes)
    target = triton.backends.compiler.GPUTarget("cuda", arch, 32)
    by_warps = {"DISABLE_MMA_V3": "1"} if "fm.products_by_warps()" in kernel.text else {}
    with mock.patch.dict(os.environ, by_warps):  # `machine/compile.py` runs the stages itself
        return triton.compile(source, target=target, options=kernel.options)
