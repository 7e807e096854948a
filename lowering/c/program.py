"""The C text of a whole program: its kernels, and one function that runs the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.c.bodies import CarryBuffers
from functrans.lowering.c.calls import ChainText, prepare_call, write_call
from functrans.lowering.c.dynamic_buffers import GROW, DynamicBuffers
from functrans.lowering.c.expressions import KernelText, RowMarks, Scratch, size_text
from functrans.lowering.c.functions import FunctionForms
from functrans.lowering.c.interface import API
from functrans.lowering.c.isa import SCHEDULED_FLAGS, Isa
from functrans.lowering.c.lanes.calls import LaneText
from functrans.lowering.c.outlined import outlined
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.c.row_lists import LIST_ROWS, run_with_lists, write_kernel
from functrans.lowering.c.shared_loops import share_loops
from functrans.lowering.c.step_table import as_table
from functrans.lowering.c.units import Parts, in_units
from functrans.lowering.loops.tensor import (
    Call,
    HostCall,
    ScatterTensor,
    Tensor,
    WhileLoop,
    item_size,
)
from functrans.lowering.memory.aliasing import Aliases
from functrans.lowering.memory.arena import Block, plan_arena
from functrans.lowering.memory.plan import plan_memory
from functrans.lowering.passes.rematerialize import Prices
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.forms import StepFailed
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.recomputation_prices import CPU_PRICES

__all__ = ["ProgramText", "write_program"]

T = TypeVar("T")

ABI = API + """\
const i64 ft_abi = 2;
static const ft_api *ft;
static inline i64 ft_min(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 ft_max(i64 a, i64 b) { return a > b ? a : b; }
static inline i64 ft_floordiv(i64 a, i64 b) {
  i64 q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
static inline i64 ft_mod(i64 a, i64 b) { return a - b * ft_floordiv(a, b); }
#ifdef __AVX__
#define ft_clear_upper() __builtin_ia32_vzeroupper()
#else
#define ft_clear_upper() ((void)0)
#endif
#ifndef FT_PARALLEL_WORK
#define FT_PARALLEL_WORK SERVER.parallel_work
#endif
static inline int ft_run(void *ctx, ft_range body, void *arg, i64 n, i64 grain, i64 work) {
  int error = 0;
  if (work > FT_PARALLEL_WORK && n > grain) error = ft->parallel(ctx, body, arg, n, grain);
  else body(arg, 0, n);
  ft_clear_upper();
  return error;
}
void *memcpy(void *, const void *, __SIZE_TYPE__);
void *memset(void *, int, __SIZE_TYPE__);
"""

# ft_clear_upper: gcc leaves vzeroupper out at -O1. Without it what was compiled for SSE, as the
# runtime and libm are, waits for the upper halves of vectors: a Schur form of 128 complex columns
# took 22.8 ms after any kernel, and 13.1 before.

CLOCK = """\
typedef struct { long s, ns; } ft_time;
int clock_gettime(int, ft_time *);
i64 ft_ticks[COUNT];
i64 ft_spent[SLOTS], ft_counts[SLOTS], ft_unclocked = 1;
static inline i64 ft_now(void) {
  ft_time t;
  clock_gettime(1, &t);
  return t.s * 1000000000 + t.ns;
}
static inline void ft_tick(i64 k) { ft_ticks[k] = ft_now(); }
static inline i64 ft_begin(void) { return ft_unclocked ? 0 : ft_now(); }
static inline i64 ft_done(i64 k, i64 begin) {
  if (ft_unclocked) return 0;
  const i64 now = ft_now();
  ft_spent[k] += now - begin;
  ft_counts[k]++;
  return now;
}
"""
"""The nanoseconds of a timed program: when it began, and when each of its steps was done.

The clocks in bodies of loops, which take 20 ns each, are on unless it is `ft_unclocked`: then the
nanoseconds spent in each step of a body are added up, and its runs are counted.
"""


class ProgramText(Record, frozen=False, eq=False, repr=False):
    """A program in C, and what the runtime must know to run it.

    `units` are the same for the compiler: the text, or parts of a long one. `parts` are what it is
    made of, `single_parts` those with one vector of lanes at a time. `aliases[k]` is the input
    whose memory output k is in, or -1; `main` is what wrote the text.
    """

    text: str
    units: list[str]
    parts: Parts
    single_parts: Callable[[], Parts]
    main: FunctionWriter
    constants: list[np.ndarray[Any, Any]]
    arena_bytes: Size
    libs: list[str]
    hosts: list[HostCall]
    heavy: bool
    aliases: list[int]
    kernels: list[KernelText] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    copied: list[tuple[Tensor, str]] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    """Of the compiler, besides those of all programs."""
    is_fallback: bool = False
    """Whether some of it could not be written as planned."""


def write_program(graph: Graph, isa: Isa, size_names: dict[str, str],
                  donated: frozenset[int] = frozenset(), decided: Sequence[str] = (),
                  timed: bool = False, plain: bool = False,
                  prices: Prices = CPU_PRICES) -> ProgramText:
    """The C text of a graph; the memory of `donated` inputs may be reused.

    Steps that cannot be written as planned have plainer forms; all have where it is to be `plain`.

    `size_names` has the C expression of every size that the inputs tell, `decided` those that the
    program decides as it runs. A `timed` program notes when each of its steps was done. `prices`
    are those of what bodies of loops keep.
    """
    forms = FunctionForms(graph, plain, prices)
    while True:
        try:
            return _written(forms, isa, size_names, donated, decided, timed)
        except StepFailed as failed:
            forms.fall_back(failed)


def _written(forms: FunctionForms, isa: Isa, size_names: dict[str, str], donated: frozenset[int],
             decided: Sequence[str], timed: bool) -> ProgramText:
    graph = forms.graph(None)
    given = len(size_names)
    places = {name: f"z[{given + k}]" for k, name in enumerate(decided)}
    module = CModule(isa, {**size_names, **places}, forms)
    table = ""
    if decided:
        module.declare(GROW)
        copy = f"memcpy(sizes, z, {8 * given});" if given else ""
        table = f"  i64 sizes[{len(module.sizes)}] = {{0}};\n  {copy}\n  z = sizes;\n"
    outputs = range(len(graph.outputs))
    module.timed = timed
    main = FunctionWriter(module, None, "ft_main", dict.fromkeys(donated, outputs), timed)
    main.write()
    if timed:
        module.bodies.insert(0, CLOCK.replace("COUNT", str(len(main.schedule.steps) + 2))
                             .replace("SLOTS", str(max(module.slots, 1))))
    inputs = len(graph.inputs)
    abi = ABI.replace("SERVER.parallel_work", str(SERVER.parallel_work))
    head = f"{module.prelude.source()}\n{abi}\n{''.join(module.declarations)}"
    program = ("int ft_program(const ft_api *api, void *ctx, char *const *b, char *arena, "
               f"const i64 *z) {{\n  ft = api;\n{table}"
               f"  return ft_main(ctx, b, b + {inputs + len(module.constants)}, b + {inputs}, "
               f"arena, z);\n}}\n"
               f"{_shapes_function(graph, main.arena_bytes, module) if given else ''}")

    def parts(singles: Mapping[str, str]) -> Parts:
        kernels, first = module.kernel_texts(singles)
        return Parts(head, first, list(kernels.values()), module.bodies, program)

    whole = parts({})
    text = whole.text
    units = in_units(whole) or [text]
    return ProgramText(text, units, whole,
                       lambda: parts(module.singles) if module.singles else whole, main,
                       module.constants, main.arena_bytes, module.libs, module.hosts,
                       main.work > SERVER.heavy_work or not module.is_bounded,
                       [main.aliases.inputs.get(j, -1) for j in range(len(graph.outputs))],
                       module.kernels, module.schedules, module.copied, module.flags,
                       forms.changed)


def _shapes_function(graph: Graph, arena: Size, module: CModule) -> str:
    """What tells the runtime the shapes of the results, where sizes are symbolic."""
    assert graph.jaxpr is not None
    dims = [n for v in graph.jaxpr.outvars for n in v.aval.shape]
    lines = [f"  out[{k}] = {size_text(n, module.sizes)};\n" for k, n in enumerate(dims)]
    return ("void ft_shapes(const i64 *z, i64 *out, i64 *arena) {\n  (void)z; (void)out;\n"
            f"{''.join(lines)}  *arena = {size_text(arena, module.sizes)};\n}}\n")


class CModule:
    """What the functions of one program share."""

    def __init__(self, isa: Isa, sizes: dict[str, str], forms: FunctionForms) -> None:
        self.isa = isa
        self.forms = forms
        self.prelude = Prelude(isa)
        self.sizes = sizes
        self.functions: dict[str, str] = {}
        self.singles: dict[str, str] = {}
        """Texts of kernels of lanes with one vector at a time, by their texts."""
        self.bodies: list[str] = []
        self.shared_steps: dict[str, str] = {}
        self.declarations: list[str] = []
        self.constants: list[np.ndarray[Any, Any]] = []
        self.libs: list[str] = []
        self.hosts: list[HostCall] = []
        self.kernels: list[KernelText] = []
        self.schedules: list[Schedule] = []
        self.copied: list[tuple[Tensor, str]] = []
        self.has_large_state: bool | None = None  # kernels of lanes, if there are any
        self.is_bounded = True  # no loop that may run for any time
        self.timed = False
        self.slots = 0  # steps of bodies, of a timed program
        self._known: dict[Any, FunctionWriter] = {}

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the compiler for this program."""
        return SCHEDULED_FLAGS if self.has_large_state is False else ()

    def declare(self, text: str) -> None:
        """Put a declaration before the functions, once."""
        if text not in self.declarations:
            self.declarations.append(text)

    def kernel_name(self, text: str) -> str:
        """The name of the function with this text: equal kernels are one."""
        return self.functions.setdefault(text, f"k{len(self.functions)}")

    def apart(self) -> set[str]:
        """The names of functions that are no kernels by themselves, and what walks loops."""
        own = {k.text for k in self.kernels}
        return {name for text, name in self.functions.items() if text not in own}

    def kernel_texts(self, singles: Mapping[str, str]) -> tuple[dict[str, str], str]:
        """The texts of all kernels by name, and that of functions which they share.

        Some have other texts, by their own: `singles`.
        """
        apart = self.apart()
        texts = {name: singles.get(text, text).replace("NAME", name)
                 for text, name in self.functions.items()}
        texts, loops = share_loops(texts, apart)
        texts, called = outlined({"": loops, **texts}, self.prelude.functions(), apart)
        return texts, called + texts.pop("")

    def size(self, n: Size) -> str:
        return size_text(n, self.sizes)

    def library(self, name: str) -> str:
        """The expression of the address of a library function."""
        if name not in self.libs:
            self.libs.append(name)
        return f"ft->lib[{self.libs.index(name)}]"

    def body(self, jaxpr: Jaxpr, first: int = 0, carry: int = 0) -> FunctionWriter:
        """The function of the body of a loop or a branch.

        A loop gives it `carry` inputs, from the `first` on, whose memory may be that of the first
        outputs.
        """
        key = (jaxpr, first, carry)
        if key not in self._known:
            self.forms.graph(key, jaxpr)
            writer = FunctionWriter(self, key, f"body{len(self._known)}",
                                    {first + k: (k,) for k in range(carry)})
            self._known[key] = writer
            writer.write()
        return self._known[key]


class FunctionWriter:
    """Writes `int name(ctx, b, w, g, arena, z)`: inputs, outputs, and constants of the program."""

    def __init__(self, module: CModule, key: object, name: str,
                 donated: Mapping[int, Collection[int]], timed: bool = False) -> None:
        self.module = module
        self.key = key
        self.graph = module.forms.graph(key)
        self.timed = timed
        self.prelude = module.prelude
        self.sizes = module.sizes
        self.name = name
        self.donated = donated
        self.schedule = module.forms.schedule(key)
        module.schedules.append(self.schedule)
        self.lines: list[str] = []
        self.where: dict[Tensor, str] = {}
        self.aliases = Aliases()
        self.bodies: dict[Call, list[FunctionWriter]] = {}
        self.scratch: dict[Call, list[Size]] = {}
        self.carries: dict[Call, CarryBuffers] = {}
        self.epilogues: dict[Call, KernelText] = {}
        self.chains: dict[Call, ChainText] = {}
        self.lanes: dict[Call, LaneText] = {}
        self.texts: list[KernelText | None] = []
        self.blocks: list[Block[Any]] = []
        self.work = 0
        self.has_hosts = False
        self.own = DynamicBuffers(self.schedule.steps, self.sizes)
        self.arena_bytes: Size = 0
        self.slot = module.slots  # of the first step, of a body of a timed program
        if module.timed and not timed:
            module.slots += len(self.schedule.steps)

    def write(self) -> None:
        """Add the function to the module. Raises Failed."""
        self.module.forms.written(self.key, None, self._write)

    def _write(self) -> None:
        self._place_arguments()
        texts = self.texts
        for step in self.schedule.steps:
            texts.append(self._step(step, partial(
                write_kernel, step, self.schedule, self.prelude, self.sizes))
                if isinstance(step, Kernel) else None)
        for step in self.schedule.steps:
            if isinstance(step, Call):
                self._step(step, partial(prepare_call, step, self))
        self.arena_bytes = self._place_temporaries(texts)
        self._tick(0)
        begins = list[int]()
        for number, (step, text) in enumerate(zip(self.schedule.steps, texts)):
            begins.append(len(self.lines))
            for place, nbytes in self.own.made(number):
                self.line(f"if (!({place} = ft->allocate(ft_max({self.size(nbytes)}, 1)))) "
                          "return 2;")
            self._step(step, partial(self._statements, step, text, number))
            for place in self.own.done(number):
                self.line(f"ft->release({place}); {place} = 0;")
            self._tick(number + 1)
        self._share_steps([*begins, len(self.lines)])
        self._copy_outputs()
        self._tick(len(self.schedule.steps) + 1)
        self.module.bodies.append(self._function())

    def _share_steps(self, ends: Sequence[int]) -> None:
        """Write many steps, which begin and end at these lines, as a table."""
        if not self.module.timed and not self.own.at:
            steps = ["".join(self.lines[a:b]) for a, b in pairwise(ends)]
            self.lines[ends[0]:] = as_table(self.name, steps, self.module,
                                             once=self.key is None)

    def _step(self, step: Step, write: Callable[[], T]) -> T:
        return self.module.forms.written(self.key, step, write)

    def _statements(self, step: Step, text: KernelText | None, number: int) -> None:
        if isinstance(step, Call):
            before = self.work
            write_call(step, self, number)
            if self.work - before >= SERVER.stop_work:
                self.line("if (ft->stops(ctx)) return 1;")
            return
        assert text is not None
        self.own.check(number, text.text)
        self._prepare_scatter(step, text)
        self._kernel(text, number)

    def _function(self) -> str:
        """The text of the function, in another that frees what is not in the arena."""
        inner = f"{self.name}_steps" if self.own.at else self.name
        own = ", char **own" if self.own.at else ""
        signature = "(void *ctx, char *const *b, char *const *w, char *const *g, char *arena, " \
                    "const i64 *z"
        text = (f"static int {inner}{signature}{own}) {{\n"
                "  (void)ctx; (void)b; (void)w; (void)g; (void)arena; (void)z;\n"
                f"{''.join(self.lines)}  return 0;\n}}\n")
        if not own:
            return text
        count, sizes = max(self.own.count, 1), len(self.sizes)
        return (f"{text}static int {self.name}{signature}) {{\n"
                f"  char *own[{count}] = {{0}};\n  i64 sizes[{sizes}];\n"
                f"  memcpy(sizes, z, sizeof sizes);\n"
                f"  const int e = {inner}(ctx, b, w, g, arena, sizes, own);\n"
                f"  for (int k = 0; k < {count}; k++) if (own[k]) ft->release(own[k]);\n"
                "  return e;\n}\n")

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}\n")

    def _tick(self, number: int) -> None:
        if self.timed:
            self.line(f"ft_tick({number});")
        elif self.module.timed and number == 0:
            self.line("i64 ft_last = ft_begin();\n  (void)ft_last;")
        elif self.module.timed and number <= len(self.schedule.steps):
            self.line(f"ft_last = ft_done({self.slot + number - 1}, ft_last);")

    def size(self, n: Size) -> str:
        return size_text(n, self.sizes)

    def nbytes(self, t: Tensor | Scratch) -> Size:
        return t.size * item_size(t.dtype)

    # --- where everything is

    def _place_arguments(self) -> None:
        for k, t in enumerate(self.graph.inputs):
            self.where.setdefault(t, f"b[{k}]")
        for t, value in self.graph.constants:
            self.where[t] = f"g[{len(self.module.constants)}]"
            self.module.constants.append(value)
        for k, output in enumerate(self.graph.outputs):
            self.where.setdefault(output, f"w[{k}]")

    def _accessed(self, texts: Sequence[KernelText | None]) -> list[list[Tensor]]:
        """The values that the code of each step accesses."""
        return [[*step.operands, *step.results] if isinstance(step, Call)
                else [t for t in text.operands if not isinstance(t, Scratch)] if text else []
                for step, text in zip(self.schedule.steps, texts)]

    def _scratch(self, texts: Sequence[KernelText | None]) -> Iterator[Block[Any]]:
        """Memory that one step needs besides, and marks of rows."""
        marks: dict[RowMarks, list[int]] = {}
        for k, (step, text) in enumerate(zip(self.schedule.steps, texts)):
            if isinstance(step, Call):
                for i, nbytes in enumerate(self.scratch.get(step, ())):
                    yield Block((k, i), nbytes, k, k)
            elif text is not None:
                for t in text.operands:
                    if isinstance(t, RowMarks):
                        marks.setdefault(t, []).append(k)
                    elif isinstance(t, Scratch):
                        yield Block((k, t), self.nbytes(t), k, k)
        for t, used in marks.items():
            yield Block(t, self.nbytes(t), used[0], used[-1])

    def _place_temporaries(self, texts: Sequence[KernelText | None]) -> Size:
        """Plan aliases and the arena, whose size this is."""
        accessed = self._accessed(texts)
        plan = plan_memory(self.graph, self.schedule, accessed, self.donated, self.where,
                           by_rows=True)
        self.aliases, ranges = plan.aliases, plan.ranges
        self.module.copied += self.aliases.copied
        blocks = [*self._scratch(texts),
                  *(Block(t, self.nbytes(t), *steps) for t, steps in ranges.items())]
        self.blocks = blocks
        arena = plan_arena([b for b in blocks if not self.own.has(b.nbytes)])
        self.offsets = {key: f"(arena + {at})" for key, at in arena.offsets.items()}
        recorded = [self.aliases.place_of(r) for step in self.schedule.steps
                    if isinstance(step, WhileLoop) for r in step.records]
        self.offsets.update(self.own.place(
            [b for b in blocks if self.own.has(b.nbytes)], recorded))
        end: Size = arena.nbytes
        for n, (nbytes, keys) in enumerate(arena.symbolic):
            self.line(f"const i64 s{n} = {self.size(end)};")
            self.offsets.update((key, f"(arena + s{n})") for key in keys)
            end = end + (nbytes + 63) // 64 * 64
        self.where.update((t, self.offsets[t]) for t in ranges)
        for t in self.aliases.temporaries:
            self.where[t] = self.where[self.aliases.place_of(t)]
        return end

    def place(self, t: Tensor | Scratch, step: int) -> str:
        if isinstance(t, Scratch):
            return self.offsets[t if isinstance(t, RowMarks) else (step, t)]
        return self.where[t]

    # --- steps

    def _kernel(self, text: KernelText, number: int) -> None:
        self.module.kernels.append(text)
        name = self.module.kernel_name(text.text)
        pointers = ", ".join([*[self.place(t, number) for t in text.operands], "(void *)z"])
        weight = 2 + text.weight
        work = text.size * weight
        per_range = work // text.count if isinstance(work, int) and isinstance(text.count, int) \
            and text.count > 0 else None
        grain = text.grain
        if per_range is not None and isinstance(grain, int) and grain > 0:
            # a multiple of the kernel's own
            grain *= max(1, SERVER.grain_work // max(per_range * grain, 1))
        self.work += work if isinstance(work, int) else SERVER.parallel_work
        run = (f"if (ft_run(ctx, {name}, a, {self.size(text.count)}, {self.size(grain)}, "
               f"{self.size(work)})) return 1")
        if text.serial or (isinstance(work, int) and work <= SERVER.parallel_work):
            run = f"{name}(a, 0, {self.size(text.count)})"
        elif text.lists is not None:
            self.module.declare(LIST_ROWS)
            run = run_with_lists(name, text, self.size, self.size(work),
                                 self.library("scatter_slices")) + run
        finish = f" {name}_finish(a);" if text.has_finish else ""
        self.line(f"{{ void *a[] = {{{pointers}}}; {run};{finish} }}")

    def _prepare_scatter(self, step: Kernel, text: KernelText) -> None:
        t = step.members[0].tensor
        if t in self.schedule.marked:
            for marks in text.operands:
                if isinstance(marks, RowMarks):
                    self.line(f"memset({self.offsets[marks]}, 0, {marks.size});")
        elif isinstance(t, ScatterTensor) and t not in self.aliases.in_place:
            self._copy(self.where[t], self.where[t.base], t)

    def _copy(self, out: str, x: str, t: Tensor) -> None:
        nbytes = self.nbytes(t)
        self.line(f"memcpy({out}, {x}, {self.size(nbytes)});")

    def host(self, call: HostCall) -> None:
        self.has_hosts = True
        hosts = self.module.hosts
        hosts.append(call)
        pointers = ", ".join(self.where[t] for t in (*call.operands, *call.results)) or "0"
        sizes = [n for v in (*call.eqn.invars, *call.eqn.outvars) for n in v.aval.shape]
        dims = "0"
        if any(not isinstance(n, int) for n in sizes):
            dims = f"(const i64[]){{{', '.join(map(self.size, sizes))}}}"
        self.line(f"if (ft->host(ctx, {len(hosts) - 1}, (void *const[]){{{pointers}}}, {dims})) "
                  "return 1;")

    def library(self, name: str) -> str:
        return self.module.library(name)

    def _copy_outputs(self) -> None:
        for k, t in enumerate(self.graph.outputs):
            out = f"w[{k}]"
            if self.where[t] != out:
                self._copy(out, self.where[t], t)


