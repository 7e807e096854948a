"""What a program is after the passes, and its steps and memory on a CPU and a GPU, as text.

Only what is the field's or the program's is in it: equations, shapes, sizes, places, counts; no
name of a class, a kernel or a role, and no sentence of the compiler. So a change of names leaves
the texts alone, and a change of a text is a change of what is computed where. What knows the
insides of the backends is this module alone.

The targets are fixed: vectors of 32 bytes, and GPUs of capability 90 as the model of costs sees
them, of which none is needed. Steps of an arena are those of the schedule: on a GPU each is some
launches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import functrans as ft
from functrans.core.jaxpr import Equation, Jaxpr, jaxpr_parts
from functrans.core.sizes import substitute_jaxpr
from functrans.lowering.c.isa import AVX2
from functrans.lowering.c.lower import lower as lower_to_c
from functrans.lowering.c.program import FunctionWriter
from functrans.lowering.loops.tensor import Call, Gemm, Reduce, ScatterTensor, Tensor
from functrans.lowering.memory.arena import Block, plan_arena
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.show import equations_of_steps, members_of
from functrans.lowering.schedule.target import cuda_target
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import (
    CopyStep,
    DoubleBufferedSteps,
    GPUProgram,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
    launch_key,
)

__all__ = ["text_of"]

SIZE = 96
"""Of named sizes on GPUs, where programs are written for each set of them."""
PLACES = {"b": "in", "w": "out", "g": "const", "own": "own"}


def text_of(name: str, fun: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """The golden text of a program."""
    lowered = ft.lower(fun, *args)
    jaxpr, donated = lowered.jaxpr, lowered.donated
    simplified = simplify(jaxpr)
    sections = [
        (f"{name}, simplified", _jaxpr(simplified)),
        ("CPU, vectors of 32 bytes", list(_cpu(jaxpr, donated))),
        ("GPU, capability 90", list(_gpu(jaxpr, donated))),
    ]
    return "\n\n".join("\n".join([title, "-" * len(title), *lines])
                       for title, lines in sections) + "\n"


# --- equations


def _jaxpr(jaxpr: Jaxpr) -> list[str]:
    head, texts, outs = jaxpr_parts(jaxpr)
    found = [head]
    for number, text in enumerate(texts):
        first, *rest = text.split("\n")
        found += [f"{number:4} {first}", *(f"     {line}" for line in rest)]
    return [*found, f"  in ({outs}) }}"]


def _equations(jaxpr: Jaxpr | None, equations: Sequence[Equation]) -> str:
    """`equations 0-2: 2 mul, tanh`: numbers where they are of the program, and primitives."""
    known = {eqn: k for k, eqn in enumerate(jaxpr.eqns if jaxpr is not None else ())}
    numbers = sorted(known[e] for e in equations if e in known)
    runs = [list(run) for _, run in groupby(enumerate(numbers), lambda p: p[1] - p[0])]
    which = ", ".join(str(r[0][1]) if len(r) == 1 else f"{r[0][1]}-{r[-1][1]}" for r in runs)
    counts: dict[str, int] = {}
    for e in sorted(equations, key=lambda e: known.get(e, -1)):
        counts[e.primitive.name] = counts.get(e.primitive.name, 0) + 1
    names = ", ".join(f"{n} {name}" if n > 1 else name for name, n in sorted(counts.items()))
    head = f"; equation{'s' * (len(numbers) > 1)} {which}: " if which else "; "
    return f"{head}{names}" if names else ""


def _tensor(t: Tensor) -> str:
    """`add f32[3]` of a reduction or a scatter; elements as bytes alone are `8-byte`."""
    op = f"{t.op} " if isinstance(t, (Reduce, ScatterTensor)) else ""
    dtype = re.sub(r"^raw(\d+)$", r"\1-byte", t.dtype)
    return f"{op}{dtype}[{', '.join(map(str, t.shape))}]"


def _block(b: Block[Any], place: str) -> str:
    kind = _tensor(b.key) if isinstance(b.key, Tensor) else "scratch"
    steps = f"step {b.first}" if b.first == b.last else f"steps {b.first}-{b.last}"
    return f"    {place}: {b.nbytes} bytes, {kind}, {steps}"


# --- on a CPU


def _cpu(jaxpr: Jaxpr, donated: frozenset[int]) -> Iterator[str]:
    lowered = lower_to_c(jaxpr, donated, isa=AVX2)
    assert lowered is not None
    main = lowered.text.main
    yield from _function(main, lowered.simplified)
    for k, alias in enumerate(lowered.text.aliases):
        if alias >= 0:
            yield f"out{k} is in the memory of in{alias}"
    for t, _ in lowered.text.copied:
        yield f"{_tensor(t)} begins as a copy"
    for title, writer in _bodies(main, ""):
        assert writer.graph.jaxpr is not None
        yield from ("", title, *_function(writer, writer.graph.jaxpr))


def _bodies(main: FunctionWriter, of: str) -> Iterator[tuple[str, FunctionWriter]]:
    for number, step in enumerate(main.schedule.steps):
        for k, writer in enumerate(main.bodies.get(step, ()) if isinstance(step, Call) else ()):
            title = f"body {k} of step {number}{of}"
            yield title, writer
            yield from _bodies(writer, f" of {title}")


def _function(w: FunctionWriter, jaxpr: Jaxpr) -> Iterator[str]:
    steps = w.schedule.steps
    for number, (step, equations) in enumerate(zip(
            steps, equations_of_steps(w.graph, w.schedule), strict=True)):
        yield f"step {number}: {_form(w, number, step)}{_equations(jaxpr, equations)}"
        yield from (f"    {line}" for line in _inside(step))
        reads, writes = _touched(w, number, step)
        yield f"    {', '.join(reads) or 'nothing'} -> {', '.join(writes) or 'nothing'}"
    yield f"arena: {w.arena_bytes} bytes"
    for block in sorted(w.blocks, key=lambda b: (*_offset(w.offsets[b.key]), b.first)):
        yield _block(block, _place(w.offsets[block.key]))
    for t in w.aliases.in_place:
        yield f"{_tensor(t)} is updated in place"


def _form(w: FunctionWriter, number: int, step: Any) -> str:
    if isinstance(step, Kernel):
        text = w.texts[number]
        assert text is not None
        d = step.domain
        parts = f" in {d.parts} parts" if d.parts != 1 else ""
        size = f"{d.total} in pieces of {d.row}" if d.total is not None else f"{d.rows} x {d.row}"
        threads = ", one thread" if text.serial else ""
        lanes = f"{text.lanes} lanes" if text.lanes > 1 else "no vectors"
        return f"kernel over {size}{parts}, {lanes}{threads}"
    if isinstance(step, Chain):
        return f"{len(step.steps)} steps on each of {step.count} blocks"
    return _call(step)


def _call(step: Call) -> str:
    if isinstance(step, Gemm):
        f = step.fields
        count = f["batch0"] * f["batch1"]
        many = f"{count} products" if count != 1 else "product"
        epilogue = " with an epilogue" if isinstance(step, FusedGemm) else ""
        return f"{many} of {f['m']} x {f['k']} and {f['k']} x {f['n']}{epilogue}"
    return "call"


def _inside(step: Any) -> Iterator[str]:
    """What is computed in the loops of a step, value by value."""
    if isinstance(step, Chain):
        for inner in step.steps:
            if isinstance(inner, Call):
                yield _call(inner)
            yield from _inside(inner)
        return
    found = [_tensor(t) for t in members_of(step)]
    if found:
        yield f"computes {', '.join(found)}"


def _touched(w: FunctionWriter, number: int, step: Any) -> tuple[list[str], list[str]]:
    """Where a step finds what it reads, and where it writes."""
    def at(t: Tensor) -> str:
        return f"{_place(w.where[t])} {_tensor(t)}"

    if isinstance(step, Call):
        return [at(t) for t in step.operands], [at(t) for t in step.results]
    text = w.texts[number]
    assert text is not None
    made = set(members_of(step))
    tensors = [t for t in text.operands if isinstance(t, Tensor)]
    return [at(t) for t in tensors if t not in made], [at(t) for t in tensors if t in made]


def _place(text: str) -> str:
    """`in0`, `out1`, `const2` or `arena+64`, from the C expression of a place."""
    if (found := re.fullmatch(r"(b|w|g|own)\[(\d+)\]", text)) is not None:
        return f"{PLACES[found[1]]}{found[2]}"
    symbol, number = _offset(text)
    return f"arena+{symbol}{number}"


def _offset(text: str) -> tuple[str, int]:
    """The offset of a place in the arena: a number, or a symbol that depends on sizes, as `s0`."""
    found = re.fullmatch(r"\(arena \+ (s?)(\d+)\)", text)
    assert found is not None, text
    return found[1], int(found[2])


# --- on a GPU


def _gpu(jaxpr: Jaxpr, donated: frozenset[int]) -> Iterator[str]:
    sizes = dict.fromkeys(sorted(jaxpr.size_names), SIZE)
    simplified = simplify(substitute_jaxpr(jaxpr, sizes)) if sizes else simplify(jaxpr)
    if sizes:
        yield f"kernels of all sizes, at {', '.join(f'{name} = {n}' for name, n in sizes.items())}"
    program = write_program(simplified, bool(sizes), donated, Chooser(cuda_target(90)))
    kernels: dict[Any, int] = {}
    # at given sizes the passes find another program than the one above, with other numbers
    yield from _steps(program.steps, None if sizes else simplified, kernels)
    yield f"arena: {program.arena_bytes} bytes"
    yield from _arena(program)
    for j, k in sorted(program.aliases.inputs.items()):
        yield f"out{j} is in the memory of in{k}"
    for t, _ in program.aliases.copied:
        yield f"{_tensor(t)} begins as a copy"


def _arena(program: GPUProgram) -> list[str]:
    offsets: Mapping[Any, int] = plan_arena(program.blocks).offsets
    return [_block(b, f"arena+{offsets[b.key]}")
            for b in sorted(program.blocks, key=lambda b: (offsets[b.key], b.first))]


def _steps(steps: Sequence[Step], jaxpr: Jaxpr | None,
           kernels: dict[Any, int]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Launch):
            number = kernels.setdefault(launch_key(step), len(kernels))
            grid = " x ".join(map(str, step.grid))
            flops = f"{step.flops} FLOP, " if step.flops else ""
            yield (f"kernel {number} over {grid}: {step.warps} warps, {step.stages} stages, "
                   f"{flops}{step.moved} bytes{_equations(jaxpr, step.equations)}")
            yield f"    {', '.join(_pointers(step))}"
        elif isinstance(step, CopyStep):
            yield f"copy {_pointer(step.source)} -> {_pointer(step.target)}, {step.nbytes} bytes"
        elif isinstance(step, HostStep):
            kind = "library" if isinstance(step, LibraryStep) else "host"
            name = step.call.eqn.primitive.name if step.call is not None else ""
            yield (f"{kind} {name}: {', '.join(map(_pointer, step.inputs))} -> "
                   f"{', '.join(map(_pointer, step.outputs))}")
        elif isinstance(step, RepeatedSteps):
            yield f"repeat {step.count} times"
            yield from (f"    {line}" for line in _steps(step.steps, jaxpr, kernels))
        else:
            assert isinstance(step, DoubleBufferedSteps)
            yield f"loop while a flag holds{', ahead of the flag' if step.ahead else ''}"
            for k, side in enumerate(step.sides):
                for title, inner in (("condition", side.holds), ("body", side.body),
                                     ("results", side.ends)):
                    yield f"    {title} {k}, flag {_pointer(side.flag)}"
                    yield from (f"        {line}" for line in _steps(inner, jaxpr, kernels))


def _pointers(step: Launch) -> Iterator[str]:
    """What a launch points to; the sizes and strides beside them follow from the equations."""
    for a, kind in zip(step.arguments, step.types, strict=True):
        if isinstance(a, Pointer):
            yield f"{_pointer(a)} {kind.removeprefix('*')}"


def _pointer(p: Pointer) -> str:
    name = {"input": "in", "output": "out", "constant": "const", "arena": "arena"}.get(
        p.kind, "counters")
    number = "" if name in ("arena", "counters") else str(p.index)
    offset = f"+{p.offset}" if p.offset or name == "arena" else ""
    return f"{name}{number}{offset}{f' by {p.stride} a round' if p.stride else ''}"
