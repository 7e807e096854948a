"""The C text of loops and branches, whose bodies are functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.c.calls import prepare_call, write_call
from functrans.lowering.loops.tensor import (
    Branch,
    Call,
    FunctionCall,
    ScanLoop,
    Tensor,
    WhileLoop,
    item_size,
)
from functrans.lowering.schedule.cpu_target import SERVER

if TYPE_CHECKING:
    from functrans.lowering.c.program import FunctionWriter

__all__ = ["CarryBuffers"]

# Iterations for which a loop that records them makes room at first; the room then doubles.
FIRST_ROOM = 16
# What a call of a body costs besides its work, in the unit of `CPUTarget`: 5 ns.
CALL_WORK = 60
# The iterations that a while is taken to have.
WHILE_ITERATIONS = 16
# A loop without a carry of fewer iterations does not keep the threads equally busy.
FEW_ITERATIONS = 4

MAP = """\
typedef struct {
  void *ctx; char *const *in, *const *out, *const *g; const i64 *z; int error;
} ft_map;
"""


def nbytes(t: Tensor) -> Size:
    return t.size * item_size(t.dtype)


def most(sizes: Sequence[Size]) -> Size:
    """At least the largest of some sizes: their sum where they are symbolic."""
    known = [n for n in sizes if isinstance(n, int)]
    return sum([n for n in sizes if not isinstance(n, int)], max(known, default=0))


def slice_bytes(t: Tensor) -> Size:
    """Bytes of one element along the first axis."""
    total: Size = item_size(t.dtype)
    for n in t.shape[1:]:
        total = total * n
    return total


class CarryBuffers:
    """Where the carry of a loop is: in the results, and unless it is updated in place, one more."""

    def __init__(self, body: FunctionWriter, carry: Sequence[Tensor]) -> None:
        self.in_place = [k in body.aliases.inputs for k in range(len(carry))]

    def scratch(self, carry: Sequence[Tensor]) -> list[Size]:
        return [nbytes(t) for t, alone in zip(carry, self.in_place) if not alone]


def _loop_body(call: Call, out: FunctionWriter, body: Jaxpr, first: int,
               carry: Sequence[Tensor]) -> CarryBuffers:
    writer = out.module.body(body, first, len(carry))
    out.bodies[call] = [writer]
    return CarryBuffers(writer, carry)


def _begin_carry(out: FunctionWriter, step: int, call: Call, carry: Sequence[Tensor],
                 state: CarryBuffers) -> tuple[list[str], list[str]]:
    """The names of the pointers to the carry before and after an iteration, now initialised."""
    now, then = [], []
    place = 0
    for k, (t, result) in enumerate(zip(carry, call.results)):
        out.line(f"  char *c{k} = {out.where[result]};")
        out.line(f"  memcpy(c{k}, {out.where[t]}, {out.size(nbytes(t))});")
        now.append(f"c{k}")
        if state.in_place[k]:
            then.append(f"c{k}")
        else:
            out.line(f"  char *d{k} = {out.offsets[step, place]};")
            place += 1
            then.append(f"d{k}")
    return now, then


def _end_carry(out: FunctionWriter, call: Call, now: Sequence[str], then: Sequence[str]) -> None:
    """Bring the carry to the results, after an odd number of iterations."""
    for a, b, r in zip(now, then, call.results):
        if a != b:
            place = out.where[r]
            out.line(f"  if ({a} != {place}) memcpy({place}, {a}, {out.size(nbytes(r))});")


def _run(out: FunctionWriter, body: FunctionWriter, ins: str, outs: str, arena: str) -> None:
    """Call the function of a body; what it returns unless it succeeds is returned."""
    out.line(f"    {{ const int e = {body.name}(ctx, {ins}, {outs}, g, {arena}, z); "
             "if (e) return e; }")


def _looks_after(*bodies: FunctionWriter) -> int:
    """After how many iterations a loop looks whether it is to end: a power of two."""
    work = sum(body.work + CALL_WORK for body in bodies)
    return 1 << max(SERVER.stop_work // work, 1).bit_length() - 1


def _is_last(often: int) -> str:
    """The C condition, with what joins another, that iteration `n` is the last of `often`."""
    return "" if often == 1 else f"(n & {often - 1}) == {often - 1} && "


def _swap(out: FunctionWriter, now: Sequence[str], then: Sequence[str]) -> None:
    for a, b in zip(now, then):
        if a != b:
            out.line(f"    {{ char *t = {a}; {a} = {b}; {b} = t; }}")


def _array(items: Sequence[str]) -> str:
    return f"(char *const[]){{{', '.join(items) or '0'}}}"


@prepare_call.register(ScanLoop)
def _(call: ScanLoop, out: FunctionWriter) -> None:
    first = call.num_consts
    carry = call.operands[first:first + call.num_carry]
    state = _loop_body(call, out, call.body, first, carry)
    out.carries[call] = state
    body = out.bodies[call][0]
    out.has_hosts |= body.has_hosts
    work = call.length * (body.work + CALL_WORK)
    out.work += work if isinstance(work, int) else SERVER.parallel_work
    out.scratch[call] = [*state.scratch(carry), *([] if _is_parallel(call, body)
                                                  else [body.arena_bytes])]


def _is_parallel(call: ScanLoop, body: FunctionWriter) -> bool:
    """Whether the iterations of a loop are to run on several threads, if there are enough."""
    return call.num_carry == 0 and not body.has_hosts and not (
        isinstance(call.length, int) and (
            call.length < FEW_ITERATIONS
            or call.length * (body.work + CALL_WORK) <= SERVER.parallel_work))


def _parallel_scan(call: ScanLoop, out: FunctionWriter, body: FunctionWriter) -> None:
    """A loop whose iterations know nothing of each other, on the threads.

    Each piece of it has an arena, which the caching allocator gives in 0.1 us.
    """
    out.module.declare(MAP)
    operands, first = call.operands, call.num_consts
    name = f"{out.name}_map{len(out.module.bodies)}"
    ins = [f"m->in[{k}]" + (f" + t * {out.size(slice_bytes(x))}" if k >= first else "")
           for k, x in enumerate(operands)]
    outs = [f"m->out[{k}] + t * {out.size(slice_bytes(y))}" for k, y in enumerate(call.results)]
    needed = out.size(body.arena_bytes)
    out.module.bodies.append(
        f"static void {name}(void *arg, i64 begin, i64 end) {{\n"
        f"  ft_map *m = arg;\n  const i64 *z = m->z;\n  (void)z;\n"
        f"  char *arena = ft->allocate(ft_max({needed}, 1));\n"
        "  if (!arena) { m->error = 2; return; }\n"
        "  for (i64 t = begin; t < end; t++) {\n"
        f"    const int e = {body.name}(m->ctx, {_array(ins)}, {_array(outs)}, m->g, arena, z);\n"
        "    if (e) { m->error = e; break; }\n  }\n  ft->release(arena);\n}\n")
    each = body.work + CALL_WORK
    length = out.size(call.length)
    out.line(f"{{ ft_map m = {{ctx, {_array([out.where[x] for x in operands])}, "
             f"{_array([out.where[y] for y in call.results])}, g, z, 0}};")
    if out.module.timed:  # its clocks are not for several threads
        out.line("  const i64 unclocked = ft_unclocked;\n  ft_unclocked = 1;")
    out.line(f"  if (ft_run(ctx, {name}, &m, {length}, {max(1, SERVER.grain_work // each)}, "
             f"{length} * {each})) return 1;")
    if out.module.timed:
        out.line("  ft_unclocked = unclocked;")
    out.line("  if (m.error) return m.error; }")


@write_call.register(ScanLoop)
def _(call: ScanLoop, out: FunctionWriter, step: int) -> None:
    (body,), state = out.bodies[call], out.carries[call]
    if _is_parallel(call, body):
        _parallel_scan(call, out, body)
        return
    first, n = call.num_consts, call.num_carry
    consts, carry, xs = (call.operands[:first], call.operands[first:first + n],
                         call.operands[first + n:])
    ys = call.results[n:]
    out.line("{")
    now, then = _begin_carry(out, step, call, carry, state)
    length = out.size(call.length)
    out.line(f"  for (i64 n = 0; n < {length}; n++) {{")
    out.line(f"    const i64 t = {f'{length} - 1 - n' if call.reverse else 'n'};\n    (void)t;")
    at = [f"{out.where[x]} + t * {out.size(slice_bytes(x))}" for x in (*xs, *ys)]
    ins = _array([*[out.where[c] for c in consts], *now, *at[:len(xs)]])
    outs = _array([*then, *at[len(xs):]])
    arena = out.offsets[step, len(out.scratch[call]) - 1]
    _run(out, body, ins, outs, arena)
    _swap(out, now, then)
    often = _looks_after(body)
    if not isinstance(call.length, int) or call.length > often:
        out.line(f"    if ({_is_last(often)}ft->stops(ctx)) return 1;")
    out.line("  }")
    _end_carry(out, call, now, then)
    out.line("}")


@prepare_call.register(WhileLoop)
def _(call: WhileLoop, out: FunctionWriter) -> None:
    consts = call.predicate_consts + call.body_consts
    carry = call.operands[consts:]
    state = _loop_body(call, out, call.body, call.body_consts, carry)
    predicate = out.module.body(call.predicate)
    out.bodies[call].append(predicate)
    out.has_hosts |= predicate.has_hosts or out.bodies[call][0].has_hosts
    out.work += WHILE_ITERATIONS * (sum(b.work for b in out.bodies[call]) + CALL_WORK)
    out.module.is_bounded = False
    out.carries[call] = state
    arena = most([b.arena_bytes for b in out.bodies[call]])
    out.scratch[call] = [*state.scratch(carry), arena]


@write_call.register(WhileLoop)
def _(call: WhileLoop, out: FunctionWriter, step: int) -> None:
    (body, predicate), state = out.bodies[call], out.carries[call]
    p, b = call.predicate_consts, call.body_consts
    carry = call.operands[p + b:]
    out.line("{")
    now, then = _begin_carry(out, step, call, carry, state)
    arena = out.offsets[step, len(out.scratch[call]) - 1]
    stacks = [(out.where[r], out.size(slice_bytes(r))) for r in call.records]
    out.line("  u8 holds;\n  i64 n = 0;")
    if stacks:
        out.line("  i64 count = 0, room = 0;")
    out.line("  for (;;) {")
    asked = _array([*[out.where[c] for c in call.operands[:p]], *now])
    _run(out, predicate, asked, "(char *const[]){(char *)&holds}", arena)
    out.line("    if (!holds) break;")
    if stacks:
        out.line("    if (count == room) {")
        out.line(f"      room = room ? 2 * room : {FIRST_ROOM};")
        for place, one in stacks:
            out.line(f"      if (ft_grow(&{place}, count * {one}, room * {one})) return 2;")
        out.line("    }")
    ins = _array([*[out.where[c] for c in call.operands[p:p + b]], *now])
    records = [f"{place} + count * {one}" for place, one in stacks]
    _run(out, body, ins, _array([*then, *records]), arena)
    if stacks:
        out.line("    count++;")
    _swap(out, now, then)
    out.line(f"    if ({_is_last(_looks_after(body, predicate))}ft->stops(ctx)) return 1;\n"
             "    n++;\n  }")
    if call.record is not None:
        out.line(f"  *(i64 *)&{out.size(call.record)} = count;")
    _end_carry(out, call, now, then)
    out.line("}")


@prepare_call.register(Branch)
def _(call: Branch, out: FunctionWriter) -> None:
    out.bodies[call] = [out.module.body(b) for b in call.branches]
    out.scratch[call] = [most([b.arena_bytes for b in out.bodies[call]])]
    out.has_hosts |= any(b.has_hosts for b in out.bodies[call])
    out.work += max(b.work for b in out.bodies[call])


@write_call.register(Branch)
def _(call: Branch, out: FunctionWriter, step: int) -> None:
    index, *operands = call.operands
    ctype = "u8" if index.dtype == "bool" else "i32"
    ins, outs = _array([out.where[x] for x in operands]), _array([out.where[r]
                                                                  for r in call.results])
    last = len(call.branches) - 1
    out.line(f"switch (ft_min(ft_max(*({ctype} *){out.where[index]}, 0), {last})) {{")
    for k, body in enumerate(out.bodies[call]):
        label = "default:" if k == last else f"case {k}:"
        out.line(f"  {label}")
        _run(out, body, ins, outs, out.offsets[step, 0])
        out.line("    break;")
    out.line("}")


@prepare_call.register(FunctionCall)
def _(call: FunctionCall, out: FunctionWriter) -> None:
    body = out.module.body(call.body)
    if not any(body in known for known in out.bodies.values()):  # listed once
        out.bodies[call] = [body]
    out.scratch[call] = [body.arena_bytes]
    out.has_hosts |= body.has_hosts
    out.work += body.work


@write_call.register(FunctionCall)
def _(call: FunctionCall, out: FunctionWriter, step: int) -> None:
    ins, outs = _array([out.where[x] for x in call.operands]), _array([
        out.where[r] for r in call.results])
    _run(out, out.module.body(call.body), ins, outs, out.offsets[step, 0])
