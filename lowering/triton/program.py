"""From a graph to the steps of a program on a GPU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.core.table import Table, merged
from functrans.lowering.defects import UnsupportedKernel, is_defect
from functrans.lowering.loops.tensor import (
    AnyFlag,
    Call,
    HostCall,
    ScatterTensor,
    Stored,
    Tensor,
    item_size,
    memory_dtype,
)
from functrans.lowering.memory.aliasing import InputOutputAliases
from functrans.lowering.memory.arena import Block, plan_arena
from functrans.lowering.memory.plan import plan_memory
from functrans.lowering.passes.complex_parts import split_complex
from functrans.lowering.passes.compositions import without_compressed_rows
from functrans.lowering.passes.indexing import COMBINING_SCATTERS
from functrans.lowering.passes.interleaved_forms import interleave_forms
from functrans.lowering.passes.interleaved_products import interleave_products
from functrans.lowering.passes.maps import merge_maps
from functrans.lowering.passes.tile_regions import form_tile_regions
from functrans.lowering.rules.complex_memory import PAIRS
from functrans.lowering.rules.graph import (
    CallRule,
    Graph,
    any_flag_rules,
    graph_of,
    with_results_as_outputs,
)
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.rules.memory import memory
from functrans.lowering.rules.reduce import SUMMED_CONTRACTIONS as PLAIN
from functrans.lowering.schedule import plans
from functrans.lowering.schedule.forms import (
    Form,
    StepFailed,
    StepForms,
    choose,
)
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import ANY_FLAG_ROLES, Kernel
from functrans.lowering.schedule.show import domain_text, equations_of_steps, moved_bytes
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.annotations import annotated
from functrans.lowering.triton.communication import (
    Communication,
    in_overlapped_order,
    target_beside_collectives,
)
from functrans.lowering.triton.joining import join_small_kernels
from functrans.lowering.triton.kernels.axis_calls import AxisCall
from functrans.lowering.triton.kernels.kernel import write_kernel
from functrans.lowering.triton.kernels.kernel_source import (
    ANY_FLAG_BYTES,
    ArrivalCounters,
    KernelOperand,
    KernelSource,
    Launches,
    Options,
    PartialResults,
    any_flag_memory,
    arguments_of,
    clear_any_flags,
)
from functrans.lowering.triton.kernels.series import FUNCTIONS, series_rule
from functrans.lowering.triton.kernels.source import TritonModule
from functrans.lowering.triton.libraries.collectives import RULES as COLLECTIVES
from functrans.lowering.triton.libraries.functions import RULES as LIBRARY_RULES
from functrans.lowering.triton.libraries.functions import CudaLibraryCall, library_p
from functrans.lowering.triton.libraries.small_systems import RULES as SMALL_SYSTEMS
from functrans.lowering.triton.loops.forms import LaunchedLoop, LoopForm, loop_forms
from functrans.lowering.triton.loops.iterations import (
    ProgramBody,
    ScanCall,
    WhileCall,
    after,
    scan_rule,
    while_rule,
)
from functrans.lowering.triton.loops.lane_tiles import TILES
from functrans.lowering.triton.loops.phases import Source
from functrans.lowering.triton.loops.thread_regions import region_rule, with_thread_regions
from functrans.lowering.triton.loops.threads import THREADS, region_in_threads
from functrans.lowering.triton.loops.tile_regions import RULES as TILE_REGIONS
from functrans.lowering.triton.planning import planned, planned_again
from functrans.lowering.triton.products.calls import IN_PHASES, launches_of
from functrans.lowering.triton.products.calls import RULES as CALL_RULES
from functrans.lowering.triton.products.choosing import BY_MODEL, Chooser
from functrans.lowering.triton.products.interleaved import RULES as INTERLEAVED
from functrans.lowering.triton.products.interleaved_forms import RULES as INTERLEAVED_FORMS
from functrans.lowering.triton.sort_scan.compressed_rows import RULES as COMPRESSED_ROWS
from functrans.lowering.triton.sort_scan.cumulative import OPS, cumulative_rule
from functrans.lowering.triton.sort_scan.segment_reduce import RULES as SEGMENT_REDUCES
from functrans.lowering.triton.sort_scan.sorting import SORTING
from functrans.lowering.triton.steps.spec import (
    CopyStep,
    GPUProgram,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    Step,
)
from functrans.lowering.triton.templates.kernel import TemplateKernel as Template
from functrans.lowering.triton.unread import (
    accessed_by,
    is_read_through,
    without_unread,
)
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p

__all__ = ["write_program"]

ALIGNMENT = 256  # of tensors: what the copy engine and vector loads want
COUNTERS_ALIGNED = 4  # those of a kernel begin at 16 bytes
RULES: Table[CallRule] = Table(merged(
    CALL_RULES, PAIRS, LIBRARY_RULES, {scan_p: scan_rule, while_p: while_rule}, SORTING,
    SEGMENT_REDUCES, COMPRESSED_ROWS, SMALL_SYSTEMS, INTERLEAVED, INTERLEAVED_FORMS, TILE_REGIONS,
    dict.fromkeys(OPS, cumulative_rule), dict.fromkeys(FUNCTIONS, series_rule), COLLECTIVES),
    otherwise="a kernel computes its elements, or the host all of it")
OF_ANY_DTYPE = frozenset((*PAIRS, library_p, *COLLECTIVES))
"""Primitives whose rules look at the dtypes themselves."""
OF_LANES = (THREADS, TILES)
"""Forms of loops over lanes: a note tells why a loop has none of them."""


def write_program(jaxpr: Jaxpr, any_size: bool = False,
                  donated: Collection[int] = (), choose: Chooser = BY_MODEL) -> GPUProgram:
    """The program of a simplified jaxpr. Raises UnsupportedKernel for what it cannot do.

    With `any_size` the sizes are arguments of its kernels, which programs of the same operations
    on other sizes share, and `specialized` tells what would be faster without. The memory of
    `donated` inputs may become that of outputs.
    """
    jaxpr = without_compressed_rows(jaxpr)
    shared = _Shared(any_size, choose)
    if not any_size:
        for interleave in (interleave_forms, interleave_products):
            jaxpr = interleave(jaxpr, choose.target.multiprocessors)
    body = _write_body(split_complex(jaxpr), shared, donated=donated)
    return GPUProgram([shared.module.text(), *shared.templates], body.steps,
                      [v.aval for v in jaxpr.invars], [v.aval for v in jaxpr.outvars],
                      shared.constants, body.arena_bytes, [*body.notes, *choose.notes],
                      shared.aliases,
                      body.blocks, "; ".join(shared.specialized), shared.arrival_counters,
                      body.apart,
                      body.kept, body.arguments, body.again, body.places)


class _Shared(Record, frozen=False, eq=False):
    """What a program and the bodies of its loops have in common."""

    any_size: bool = False
    choose: Chooser = BY_MODEL  # among the kernels of a call
    is_phase: bool = False  # what is written runs in one program of a loop
    aliases: InputOutputAliases = field(default_factory=InputOutputAliases)  # of the program itself
    module: TritonModule = field(default_factory=TritonModule)
    templates: list[str] = field(default_factory=list)
    constants: list[np.ndarray[Any, Any]] = field(default_factory=list)
    arrival_counters: int = 0
    specialized: list[str] = field(default_factory=list)  # what is faster for given sizes

    def state(self) -> tuple[Any, ...]:
        """What an attempt to write a body changes."""
        return (self.aliases, dict(self.module.functions), list(self.templates),
                list(self.constants), self.arrival_counters, list(self.specialized))

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restore the state before an attempt."""
        self.aliases, self.module.functions, self.templates[:], self.constants[
            :], self.arrival_counters, \
            self.specialized[:] = state

    def source(self, step: Launch) -> str:
        """The text of the module of a launch, in which its function has its name."""
        if step.module:
            return self.templates[step.module - 1]
        return next(text.replace("NAME", name) for text, name in self.module.functions.items()
                    if name == step.kernel)


def _write_body(jaxpr: Jaxpr, shared: _Shared, unaligned_inputs: Iterable[int] = (),
                unaligned_outputs: Iterable[int] = (),
                donated: Collection[int] | None = None) -> ProgramBody:
    """The steps of a jaxpr. Some inputs and outputs are at places of no alignment."""
    plan = plans.GPU_OF_ALL_SIZES if shared.is_phase or shared.any_size else plans.GPU
    jaxpr = plan.program(jaxpr, shared.choose.target)
    own = IN_PHASES if shared.is_phase else any_flag_rules(jaxpr)
    forms = StepForms(partial(_graph, jaxpr, own, not (shared.is_phase or shared.any_size)))
    while True:
        graph, schedule = planned(plan, forms, shared.choose.target)
        unaligned = frozenset([*(graph.inputs[k] for k in unaligned_inputs),
                               *(graph.outputs[k] for k in unaligned_outputs)])
        writer, before = _TritonProgramWriter(graph, schedule, shared, unaligned,
                                              donated), shared.state()
        try:
            body = writer.write()
        except StepFailed as failed:
            # kernels of all sizes, and of one program, are forms of a region that has others
            forms.fall_back(failed, schedule, in_graph=shared.is_phase or shared.any_size)
            shared.restore(before)
        else:
            again = planned_again(plan, forms, shared.choose.target, writer.schedule) \
                if donated is not None else None
            return replace(body, notes=[*body.notes, *forms.texts], again=again)


def _graph(jaxpr: Jaxpr, own: Mapping[Primitive, CallRule], in_regions: bool,
           forms: StepForms) -> Graph:
    """The graph of a program with rules of its own, in which some equations have other forms."""
    if in_regions and forms.lanes:
        jaxpr = form_tile_regions(with_thread_regions(jaxpr))
    jaxpr = merge_maps(jaxpr)

    def plain(primitive: Primitive) -> CallRule:
        return lambda eqn, xs: (PLAIN if eqn in forms.sums else rules)[primitive](eqn, xs)

    rules: Mapping[Primitive, CallRule] = {**RULES, **own}
    if in_regions and forms.lanes:
        rules = {**rules, cond_p: region_rule}
    taken = {**rules, **{p: plain(p) for p in PLAIN if forms.sums}}
    return with_results_as_outputs(graph_of(
        jaxpr, rules=taken, hosted=frozenset([*COMBINING_SCATTERS, *FUNCTIONS, *own]),
        memory=memory, on_host=forms.hosted, stores_literals=forms.stores_literals,
        of_any_dtype=OF_ANY_DTYPE))


class SpecializedKernel(UnsupportedKernel):
    """A kernel for given sizes, where those of all sizes were asked for."""


class _TritonProgramWriter:
    def __init__(self, graph: Graph, schedule: Schedule, shared: _Shared,
                 unaligned: frozenset[Tensor], donated: Collection[int] | None) -> None:
        self.graph, self.schedule, self.shared = graph, schedule, shared
        self.unaligned = unaligned
        self.is_main = donated is not None  # and not the body of a loop
        self.donated = range(len(graph.inputs)) if donated is None else donated
        self.failed: list[tuple[Kernel | Call, Exception]] = []
        self.calls: dict[Call, Launches] = {}
        self.loops: dict[Call, LaunchedLoop] = {}
        self.loop_notes: list[str] = []
        self.communication = Communication()
        self.together: dict[int, list[Kernel]] = {}  # the kernels that one launch computes
        self.where: dict[KernelOperand, Pointer] = {}
        self.any_flags = dict.fromkeys(t for step in schedule.steps for t in _any_flags_of(step))
        self.any_flag_memory = any_flag_memory(len(self.any_flags))
        self.equations = {id(step): equations for step, equations in zip(
            schedule.steps, equations_of_steps(graph, schedule), strict=True)}

    def write(self) -> ProgramBody:
        graph = self.graph
        for k, t in enumerate(graph.inputs):
            self.where.setdefault(t, Pointer("input", k))
        for constant, value in graph.constants:
            self.where[constant] = Pointer("constant", len(self.shared.constants))
            self.shared.constants.append(value)
        for k, result in enumerate(graph.outputs):
            self.where.setdefault(result, Pointer("output", k))
        any_size = self.shared.any_size
        options = Options(any_size, not self.shared.is_phase, self._never_written(),
                          target_beside_collectives(self.schedule, self.target))
        written = [self._kernel(s, options) if isinstance(s, Kernel) else s
                   for s in self.schedule.steps]
        for step in self.schedule.steps:
            if isinstance(step, (ScanCall, WhileCall)):
                self._choose_loop(step)
            elif isinstance(step, Call) and (found := self._launches(step)):
                self.calls[step] = found
        if self.failed:
            raise StepFailed(None, self.failed)
        self.schedule, written = without_unread(self.schedule, written, self.calls, graph.outputs)
        if not (self.shared.is_phase or any_size):
            known = self.calls, self.target
            if self.is_main:
                self.schedule, written = in_overlapped_order(
                    self.schedule, written, self._accessed(written), *known)
            written = self._joined(written)
            if self.is_main:
                self.communication = Communication.of(
                    self.schedule, written, self._accessed(written), *known)
        self._place_arrival_counters(written)
        arena = self._place(written)
        steps: list[Step] = []
        if self.any_flags:
            results = [t for t in self.any_flags if t in graph.outputs]
            steps.append(self._launch(clear_any_flags(self.any_flag_memory, results), {}))
        begins = []
        for step, launches in zip(self.schedule.steps, written, strict=True):
            begins.append(len(steps))
            if isinstance(launches, Call):
                steps += self._call(launches)
                continue
            assert isinstance(step, Kernel)
            first = step.members[0].tensor
            if isinstance(first, ScatterTensor) and not self._begins_in_place(first):
                steps.append(CopyStep(self.where[first], self.where[first.base], _nbytes(first)))
            computed = self.together.get(len(begins) - 1, [step])
            touched = moved_bytes(computed, self.schedule.is_stored)
            steps += annotated(
                [self._launch(w, touched) for w in launches], launches,
                [{f"p{k}": t for k, t in enumerate(w.operands)} for w in launches], computed,
                self.schedule, self.graph, self.equations)
        kept = self._materialized(written, [steps[a:b] for a, b in pairwise([*begins, len(steps)])])
        notes = [*self.loop_notes, *self._joined_notes(steps, begins)]
        steps = self.communication.arranged(steps, begins)
        copies = [CopyStep(Pointer("output", k), self.where[t], _nbytes(t))
                  for k, t in enumerate(graph.outputs) if self.where[t] != Pointer("output", k)]
        if copies:
            steps += [*self.communication.waits_for_all, *copies]
        apart = list(self.schedule.notes)
        for loop in self.loops.values():
            notes += loop.body.notes if loop.body is not None else []
            apart += loop.body.apart if loop.body is not None else []
        places = {t: at for t, at in self.where.items() if isinstance(t, Tensor)}
        return ProgramBody(steps, arena, self._updated(), notes, self.blocks, apart, kept,
                           graph.inputs, places=places)

    def _kernel(self, kernel: Kernel, options: Options) -> list[KernelSource]:
        """The launches of a kernel; none of one that cannot be written."""
        try:
            written = write_kernel(kernel, self.schedule, options)
        except Exception as error:
            self._record_failure(kernel, error)
            return []
        return written if self._is_compilable(kernel, written) else []

    def _launches(self, call: Call) -> Launches | None:
        """The launches of a call, if it has some and they can be written."""
        try:
            if isinstance(call, LaneLoop):
                found: Launches | None = self._region(call)
            elif isinstance(call, AxisCall):
                call.any_size, call.target = self.shared.any_size, self.target
                call.spills = self.shared.choose.spills
                found = call.launches()
            else:
                found = launches_of(call, self.schedule, self.unaligned, self.shared.is_phase,
                                    self.shared.choose, self.shared.any_size)
        except Exception as error:
            self._record_failure(call, error)
            return None
        if found is not None:
            return found if self._is_compilable(call, found.kernels) else None
        if not isinstance(call, HostCall):
            self.failed.append((call, UnsupportedKernel(f"there is no kernel of a {call.name}")))
        return None

    def _region(self, call: LaneLoop) -> Launches:
        """The kernel of a region of lanes; UnsupportedKernel where it spills."""
        found = region_in_threads(call, self)
        if (n := self.shared.choose.spills(found)):
            raise UnsupportedKernel(f"it spills {n} numbers of each thread")
        self.loop_notes.append(f"{call.source or 'somewhere'}: a region of lanes is one kernel of "
                               f"{found.kernels[0].grid[0]} programs, {THREADS}")
        return found

    def _record_failure(self, step: Kernel | Call, error: Exception) -> None:
        """Record a step that cannot be written; others that fail are told at once."""
        if not is_defect(error):
            raise error
        self.failed.append((step, error))

    def _is_compilable(self, step: Kernel | Call,
                       kernels: Sequence[KernelSource | Template]) -> bool:
        """Whether no kernel of a step was rejected before."""
        why = self.shared.choose.rejected.of(kernels)
        if why is not None:
            self.failed.append((step, UnsupportedKernel(why)))
        return why is None

    def _materialized(self, written: list[list[KernelSource] | Call],
                      steps: list[list[Step]]) -> list[tuple[Tensor, list[Step]]]:
        """What one step leaves in memory for others, of which no note says why."""
        noted = {n.tensor for n in self.schedule.notes}
        in_memory = {block.key for block in self.blocks} - noted
        found = []
        for t, uses in self.memory.uses.items():
            readers = [steps[k][0] for k in dict.fromkeys(uses) if k != uses[0] and steps[k]]
            if isinstance(t, Tensor) and t in in_memory and readers:
                found.append((t, readers))
        return found

    def _never_written(self) -> frozenset[Tensor]:
        """The tensors that no launch writes; none is known of the body of a loop."""
        if not self.is_main:
            return frozenset()
        kept = [t for k, t in enumerate(self.graph.inputs) if k not in self.donated]
        return frozenset([*kept, *[t for t, _ in self.graph.constants]])

    def _joined(self, written: list[list[KernelSource] | Call]) -> list[list[KernelSource] | Call]:
        """The launches of the steps, which are put in order so that small kernels share some."""
        nbytes = [0 if isinstance(launches, Call) else sum(
            [_nbytes(t) for w in launches for t in w.operands]) for launches in written]
        found = join_small_kernels(self.schedule, written, self._accessed(written), nbytes,
                                   self.target, self.shared.choose.rejected, self.shared.module)
        self.schedule, self.together = found.schedule, found.together
        return found.written

    def _joined_notes(self, steps: Sequence[Step], begins: Sequence[int]) -> list[str]:
        """Which kernels share a launch."""
        launches = {first: steps[begins[first]] for first in self.together}
        return [f"{launch.kernel} computes {len(self.together[first])} kernels side by side: "
                + "; ".join([domain_text(k) for k in self.together[first]])
                for first, launch in launches.items() if isinstance(launch, Launch)]

    def _place_arrival_counters(self, written: list[list[KernelSource] | Call]) -> None:
        """All launches share the counters: each launch leaves them at 0.

        The kernels of one launch have counters of their own.
        """
        for touched in (*[w.operands for ws in written if isinstance(ws, list) for w in ws],
                        *[launches.touched for launches in self.calls.values()]):
            begin = end = 0
            for t in touched:
                if isinstance(t, ArrivalCounters):
                    self.where[t] = Pointer("tickets", offset=4 * begin)
                    end = begin + t.count
                    begin = -(-end // COUNTERS_ALIGNED) * COUNTERS_ALIGNED
            self.shared.arrival_counters = max(self.shared.arrival_counters, end)

    def _accessed(self, written: list[list[KernelSource] | Call]) -> list[list[KernelOperand]]:
        """The buffers that each step accesses; one launch before all others clears the flags."""
        found: list[list[KernelOperand]] = []
        for launches in written:
            if isinstance(launches, Call):
                found.append(accessed_by(launches, self.calls))
                if launches in self.loops:
                    found[-1].append(self.loops[launches].workspace)
            else:
                found.append([t for w in launches for t in w.operands])
        if self.any_flags:
            found[0] += self.any_flags
        for k, tensors in self.communication.touched_while_waiting(len(found)).items():
            found[k] += tensors
        return found

    def _body(self, jaxpr: Jaxpr, inputs: frozenset[int], outputs: frozenset[int]) -> ProgramBody:
        return _write_body(jaxpr, self.shared, inputs, outputs)

    def _choose_loop(self, call: ScanCall | WhileCall) -> None:
        """Take the form of a loop; one kernel is for its sizes alone, unless it has none."""
        where = call.source or "somewhere"
        forms = loop_forms(call, self, self._body, self.unaligned.__contains__)
        has_sizes = isinstance(call, ScanCall) or any(t.shape for t in call.operands)

        def attempt(form: Form[LoopForm], may_spill: bool) -> LoopForm:
            before = self.shared.state()
            try:
                found = form.write()
                if isinstance(found, Launches):
                    if why := self.shared.choose.rejected.of(found.kernels):
                        raise UnsupportedKernel(why)
                    if not may_spill and (n := self.shared.choose.spills(found)):
                        raise UnsupportedKernel(f"it spills {n} numbers of each thread")
                    if self.shared.any_size and has_sizes:
                        raise SpecializedKernel(f"{where}: a {call.name} is one kernel, which is "
                                                "made for given sizes")
            except UnsupportedKernel as error:
                self.shared.restore(before)
                if isinstance(error, SpecializedKernel):
                    self.shared.specialized.append(str(error))
                raise
            return found

        for may_spill in (False, True):
            chosen = choose(form._replace(write=partial(attempt, form, may_spill))
                            for form in forms)
            if chosen.written is not None:
                break
        name = chosen.form.name
        if isinstance(chosen.written, Launches):
            self.calls[call] = chosen.written
            name = f"one kernel of {chosen.written.kernels[0].grid[0]} programs" + (
                f", {chosen.form.name}" * (chosen.form.name in OF_LANES))
        elif chosen.written is not None:
            self.loops[call] = chosen.written
        why = [x for x in chosen.refused if x.startswith(OF_LANES) and not self.shared.is_phase]
        self.loop_notes.append(f"{where}: {call.name} is {name}" + "".join([
            f" (not {x})" for x in why]))

    @property
    def is_phase(self) -> bool:
        """Whether it is itself part of a loop in one kernel."""
        return self.shared.is_phase

    @property
    def target(self) -> Target:
        """What the program is compiled for."""
        return self.shared.choose.target

    def apart(self, jaxpr: Jaxpr) -> tuple[ProgramBody, Source]:
        """The steps of a body that one program runs, and the modules of its launches."""
        shared = _Shared(choose=Chooser(self.shared.choose.target), is_phase=True,
                         constants=self.shared.constants)
        return _write_body(jaxpr, shared), shared.source

    def constant(self, index: int) -> Tensor:
        """A constant of the program, by number, as a value."""
        value = self.shared.constants[index]
        t = Stored(value.shape, memory_dtype(value.dtype), ())
        self.where[t] = Pointer("constant", index)
        return t

    def memory_of(self, call: Call) -> set[Tensor]:
        """What a loop may read of its operands, and of what they are moved from."""
        waiting, found = list(call.operands), set[Tensor]()
        while waiting:
            t = waiting.pop()
            if is_read_through(t, self.graph, self.schedule):
                waiting += t.operands
            else:
                found.add(t)
        return found

    def with_constant(self, value: np.ndarray[Any, Any]) -> Tensor:
        """A further constant of the program, as a value."""
        self.shared.constants.append(value)
        return self.constant(len(self.shared.constants) - 1)

    def _launch(self, w: KernelSource, touched: Mapping[KernelOperand, int]) -> Launch:
        values, types, divisible = zip(*arguments_of(w.numbers)) if w.numbers else ((), (), ())
        return Launch(0, self.shared.module.name(w.text), (w.grid, 1, 1),
                      (*[self.where[t] for t in w.operands], *values), (*w.types, *types),
                      (*[t not in self.unaligned for t in w.operands], *divisible), w.warps,
                      moved=sum([touched.get(t, _nbytes(t)) for t in w.operands]))

    def _call(self, call: Call) -> list[Step]:
        if call in self.calls:
            known = self.calls[call]
            places = {name: t for name, (t, _) in known.places.items()}
            return [*annotated([self._template(known, k) for k in known.kernels], known.kernels,
                               [places] * len(known.kernels), [call], self.schedule, self.graph,
                               self.equations)]
        if call in self.loops:
            return self.loops[call].steps(self.where.__getitem__)
        if isinstance(call, (ScanCall, WhileCall)):
            call = call.on_host()
        assert isinstance(call, HostCall)
        ins = tuple([self.where[t] for t in call.operands])
        outs = tuple([self.where[t] for t in call.results])
        if isinstance(call, CudaLibraryCall):
            return [LibraryStep(call, ins, outs, call.function, call.numbers)]
        return [HostStep(call, ins, outs)]

    def _template(self, call: Launches, kernel: Template) -> Launch:
        places = {name: after(self.where[t], n) for name, (t, n) in call.places.items()}
        unaligned = {name for name, (t, _) in call.places.items() if t in self.unaligned}
        templates = self.shared.templates
        if kernel.text not in templates:
            templates.append(kernel.text)
        moved = sum(_nbytes(call.places[x.name][0]) for x in kernel.arguments if x.value is None)
        arguments = tuple([places[x.name] if x.value is None else x.value
                           for x in kernel.arguments])
        return Launch(1 + templates.index(kernel.text), kernel.name, kernel.grid, arguments,
                      tuple([x.type for x in kernel.arguments]),
                      tuple([x.divisible and x.name not in unaligned for x in kernel.arguments]),
                      kernel.warps, kernel.stages, kernel.fuses, moved=moved,
                      walkers=kernel.walkers)

    def _begins_in_place(self, t: ScatterTensor) -> bool:
        """Whether the old value of an update is where the new one is: by the runtime, of inputs.

        A loop decides later where the values of its carry are, and leaves out copies.
        """
        aliases = self.memory.aliases
        return aliases.temporaries.get(t.base) is t or (self.is_main and t in aliases.in_place)

    def _updated(self) -> dict[int, int]:
        """The outputs that begin as inputs of which they replace some elements, and these."""
        bases = {t.base for t in self.memory.aliases.in_place if isinstance(t, ScatterTensor)}
        return {j: k for j, k in self.memory.aliases.inputs.items()
                if self.graph.inputs[k] in bases}

    def _place(self, written: list[list[KernelSource] | Call]) -> int:
        """Plan aliases and the arena, whose size this is."""
        outputs = range(len(self.graph.outputs))
        self.memory = plan = plan_memory(
            self.graph, self.schedule, self._accessed(written),
            dict.fromkeys(self.donated, outputs), {*self.where, *self.any_flags}, self.together)
        if self.is_main:
            self.shared.aliases = plan.aliases
        whole = {self.any_flag_memory: (0, len(written))} if self.any_flags else {}
        self.blocks = [Block(t, -(-_nbytes(t) // ALIGNMENT) * ALIGNMENT, *steps)
                       for t, steps in {**whole, **plan.ranges}.items()]
        arena = plan_arena(self.blocks)
        for t, offset in arena.offsets.items():
            self.where[t] = Pointer("arena", 0, offset)
        for k, t in enumerate(self.any_flags):
            self.where.setdefault(t, Pointer("arena", 0, arena.offsets[self.any_flag_memory] + k
                                             * ANY_FLAG_BYTES))
        for base in plan.aliases.temporaries:
            self.where[base] = self.where[plan.aliases.place_of(base)]
        return arena.nbytes


def _any_flags_of(step: Kernel | Call) -> Iterable[Tensor]:
    if isinstance(step, Kernel):
        return [m.tensor for m in step.members if m.role in ANY_FLAG_ROLES]
    return [t for t in step.results if isinstance(t, AnyFlag)]


def _nbytes(t: KernelOperand) -> int:
    if isinstance(t, (PartialResults, ArrivalCounters)):
        return t.nbytes
    if not isinstance(t.size, int):
        raise UnsupportedKernel("a size that is not known")
    return t.size * item_size(t.dtype)
