"""Launches as functions that one kernel calls: the phases of a loop that stays on the GPU.

A phase does what a launch does, one program of its grid after the other.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import field

from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.triton.kernels.axis_calls import module_text
from functrans.lowering.triton.kernels.reductions import FUNCTIONS
from functrans.lowering.triton.steps.spec import CopyStep, Launch, Pointer, Step
from functrans.lowering.triton.templates.single_program import HELD_REGISTERS

__all__ = ["PhaseOperand", "Phases", "Source", "bytes_of"]

Source = Callable[[Launch], str]
"""The text of the module of a launch, in which its function has its name."""


class PhaseOperand(Record, eq=False):
    """A place: its text as a pointer to elements of a type, and its own type if it has one.

    `is_fixed`: it is the same place in every iteration, and nothing writes there.
    """

    at: Callable[[str], str]
    kind: str | None = None
    is_fixed: bool = False

MOST_PHASES = 32  # of a body: each is compiled
COPY = '''
@triton.jit
def moved(target, source, count, BLOCK: tl.constexpr):
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(target + at, tl.load(source + at, mask=at < count), mask=at < count)
'''
COPIED = 1024  # elements at once
HOLDING = ("hold", "release")  # functions of what a phase wants held
ARANGE = re.compile(r"tl\.arange\(0, (\d+)\)")
MOST_REGISTERS = 255  # of a thread


def bytes_of(kind: str) -> int:
    """Bytes of an element of a type of Triton's."""
    return int(kind.lstrip("bfpiu")) // 8


class Phases(Record, frozen=False, eq=False):
    """The functions of a kernel, and the lines that call them.

    `held` and `released` are the lines before and behind the loop, of what stays in registers.
    """

    functions: dict[str, str] = field(default_factory=dict)  # by text: its name
    helpers: dict[str, str] = field(default_factory=dict)  # by name: the text
    held: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    warps: int = 1
    stages: int = 1
    launches: list[tuple[str, Launch]] = field(default_factory=list)  # that they do, by function

    def lines(self, steps: Sequence[Step], source: Source,
              place: Callable[[Pointer], PhaseOperand]) -> list[str]:
        """The calls of some steps, with barriers where one touches what another wrote.

        Raises UnsupportedKernel.
        """
        if len(steps) > MOST_PHASES:
            raise UnsupportedKernel("a loop whose body has many steps")
        found: list[str] = []
        read: set[str] = set()  # since the last barrier
        written: set[str] = set()
        for step in steps:
            if isinstance(step, Launch):
                calls = self._call(step, source(step), place)
                reads, writes = _touched(step, source(step))
            elif isinstance(step, CopyStep):
                calls = self.moved(place(step.target), place(step.source), step.nbytes)
                reads, writes = [step.source], [step.target]
            else:
                raise UnsupportedKernel("a step that is no kernel")
            if not calls:
                continue
            ins, outs = ({_memory(x, place) for x in places} for places in (reads, writes))
            if written & (ins | outs) or read & outs:
                found.append("tl.debug_barrier()")
                read, written = set(), set()
            found += calls
            read |= ins
            written |= outs
        return [*found, "tl.debug_barrier()"]

    def moved(self, target: PhaseOperand, source: PhaseOperand, nbytes: int) -> list[str]:
        """Bytes moved, unless they are there already."""
        kind = target.kind or source.kind or ("i32" if nbytes % 4 == 0 else "u8")
        to, here = target.at(kind), source.at(kind)
        if to == here:
            return []
        self.helpers["moved"] = COPY.strip()
        return [f"moved({to}, {here}, {nbytes // bytes_of(kind)}, {COPIED})"]

    def use(self, launch: Launch) -> None:
        """The kernel is for as many threads as a launch wants."""
        self.warps = max(self.warps, launch.warps)
        self.stages = max(self.stages, launch.stages)

    def _call(self, step: Launch, source: str,
              place: Callable[[Pointer], PhaseOperand]) -> list[str]:
        if step.grid[1:] != (1, 1):
            raise UnsupportedKernel("a phase over several axes")
        if step.grid[0] == 0:
            return []
        self.use(step)
        name, parts = self._function(step.kernel, source)
        self.launches.append((name, step))
        arguments = [place(x).at(t[1:]) if isinstance(x, Pointer) else repr(x)
                     for x, t in zip(step.arguments, step.types, strict=True)]
        if parts:
            weights = step.arguments[1]
            assert isinstance(weights, Pointer)
            arguments += self._held(step, source, place(weights), parts)
        if step.grid[0] == 1:
            return [f"{name}({', '.join(['0', '1', *arguments])})"]
        # by another name than the argument of a phase, which may be a number, and has phases itself
        return [f"for turn in range({step.grid[0]}):",
                f"    {name}({', '.join(['turn', str(step.grid[0]), *arguments])})"]

    def _function(self, kernel: str, source: str) -> tuple[str, list[str]]:
        """The name of a launch's function, and those of its arguments that a loop may hold.

        Its first arguments are its program and the grid.
        """
        made, parts = "", []
        for node in ast.parse(source).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            if node.name == kernel:
                parts = [x.arg for x in node.args.args if x.arg.startswith(("held", "kept"))]
                made = self._named(_Phase().visit(node), "phase")
            elif node.name not in HOLDING and f"def {node.name}(" not in FUNCTIONS \
                    and self.helpers.setdefault(node.name, ast.unparse(node)) != ast.unparse(node):
                raise UnsupportedKernel("functions of one name")
        return made, parts

    def _named(self, node: ast.FunctionDef, name: str) -> str:
        """The name of a function, by its text: what is called may itself have phases."""
        node.name = "NAME"
        return self.function(ast.unparse(ast.fix_missing_locations(node)), name)

    def function(self, text: str, name: str) -> str:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self.functions.setdefault(text, f"{name}_{digest[:8]}")

    def _held(self, launch: Launch, source: str, at: PhaseOperand, parts: list[str]) -> list[str]:
        """What a phase wants held, read before the loop where it is always the same."""
        hold, release = [self._named(node, node.name) for node in ast.parse(source).body
                         if isinstance(node, ast.FunctionDef) and node.name in HOLDING]
        kind = launch.types[1][1:]
        where = at.at(kind)
        texts = [f"{hold}({where}, {k})" for k in range(len(parts))]
        if not at.is_fixed or self.held:  # there is room for one
            tile = math.prod(map(int, ARANGE.findall(source[source.index("def hold"):])[:2]))
            nbytes = tile * len(parts) * bytes_of(kind) + HELD_REGISTERS * bool(self.held)
            if nbytes > 4 * MOST_REGISTERS * 32 * launch.warps:
                raise UnsupportedKernel("its products read more ahead than there are registers for")
            return texts
        # what is known to be just loaded would not stay in registers
        self.held = [f"{part} = {f'fm.opaque({text})' if part[0] == 'k' else text}"
                     for part, text in zip(parts, texts, strict=True)]
        self.released = [f"{release}({where}, {part})" for part in parts if part[0] == "k"]
        return parts

    def module(self, kernel: str) -> str:
        """The module of a kernel that calls the phases."""
        phases = [text.replace("NAME", name, 1) for text, name in self.functions.items()]
        return module_text(*self.helpers.values(), *phases, kernel)


def _memory(p: Pointer, place: Callable[[Pointer], PhaseOperand]) -> str:
    """What tells the memory of a place: the arena is one, its values take turns in it."""
    if p.kind == "arena":
        return "arena"
    base = place(Pointer(p.kind, p.index))
    return base.at(base.kind or "u8")


def _touched(step: Launch, source: str) -> tuple[list[Pointer], list[Pointer]]:
    """The places that a launch may read, and those that it may write."""
    function = next(node for node in ast.parse(source).body
                    if isinstance(node, ast.FunctionDef) and node.name == step.kernel)
    names = [x.arg for x in function.args.args]
    pointers = {name: x for name, x in zip(names, step.arguments, strict=False)
                if isinstance(x, Pointer)}
    comes_from: dict[str, set[str]] = {name: {name} for name in pointers}

    def behind(node: ast.AST) -> set[str]:
        found = [comes_from.get(n.id, set()) for n in ast.walk(node) if isinstance(n, ast.Name)]
        return set().union(*found)

    written: set[str] = set()
    for _ in range(2):  # names that are changed in loops
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (n.id for t in targets for n in ast.walk(t)
                             if isinstance(n, ast.Name)):
                    comes_from.setdefault(name, set()).update(behind(node.value))
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called == "tl.store" or called.startswith("tl.atomic"):
                    written |= behind(node.args[0])
                elif not called.startswith(("tl.", "fm.")):  # it may write to what it is given
                    for x in node.args:
                        written |= behind(x)
    return list(pointers.values()), [pointers[name] for name in sorted(written)]


class _Phase(ast.NodeTransformer):
    """A kernel as a function of its place in the grid."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.args.args = [ast.arg("program"), ast.arg("programs"), *node.args.args]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        # a number that is known is made a tensor, as Triton's own is: kernels call its methods
        names = {"tl.program_id(0)": "program", "tl.num_programs(0)": "programs"}
        text = ast.unparse(node)
        if text in names:
            return ast.parse(f"tl.full((), {names[text]}, tl.int32)", mode="eval").body
        if text.startswith(("tl.program_id(", "tl.num_programs(")):
            raise UnsupportedKernel("a phase over several axes")
        return node
