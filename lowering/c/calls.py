"""The C text of calls: the host, library functions, loops and branches.

`prepare_call` runs before memory is planned: it writes the bodies of loops and says how much memory
a call needs besides its operands. `write_call` writes the statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from functrans.core.dims import Size
from functrans.lowering.c.names import C_TYPES, item_size
from functrans.lowering.loops.call import Branch, Call, Conv, Gemm, HostCall, Library, Scan, While
from functrans.lowering.loops.tensor import Tensor

if TYPE_CHECKING:
    from functrans.lowering.c.program import FunctionWriter

__all__ = ["prepare_call", "write_call"]

# Iterations for which a loop that records them makes room at first; the room then doubles.
FIRST_ROOM = 16


@singledispatch
def prepare_call(call: Call, out: FunctionWriter) -> None:
    """Write the bodies of a call and note the memory that it needs."""


@singledispatch
def write_call(call: Call, out: FunctionWriter, step: int) -> None:
    """Append the C statements of a call."""
    raise AssertionError(f"no C text for {call!r}")


@write_call.register(HostCall)
def _(call: HostCall, out: FunctionWriter, step: int) -> None:
    out.host(call)


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


class Carry:
    """Where the carry of a loop is: two buffers that change places, or one updated in place."""

    def __init__(self, body: FunctionWriter, first_input: int, carry: Sequence[Tensor]) -> None:
        self.in_place = [body.output_aliases[k] == first_input + k for k in range(len(carry))]

    def scratch(self, carry: Sequence[Tensor]) -> list[Size]:
        return [nbytes(t) for t, alone in zip(carry, self.in_place)
                for _ in range(1 if alone else 2)]


def _donated(first: int, count: int) -> frozenset[int]:
    return frozenset(range(first, first + count))


def _loop_body(call: Call, out: FunctionWriter, body: object, first: int,
               carry: Sequence[Tensor]) -> Carry:
    writer = out.module.body(body, _donated(first, len(carry)))  # type: ignore[arg-type]
    if any(a >= 0 and a != first + k for k, a in enumerate(writer.output_aliases)):
        # a value of the carry went into the memory of another one: that needs two buffers
        writer = out.module.body(body)  # type: ignore[arg-type]
    out.bodies[call] = [writer]
    return Carry(writer, first, carry)


def _begin_carry(out: FunctionWriter, step: int, carry: Sequence[Tensor],
                 state: Carry) -> tuple[list[str], list[str]]:
    """The names of the pointers to the carry before and after an iteration, now initialised."""
    now, then = [], []
    place = 0
    for k, t in enumerate(carry):
        first = out.offsets[step, place]
        place += 1
        out.line(f"  char *c{k} = {first};")
        out.line(f"  memcpy(c{k}, {out.where[t]}, {out.size(nbytes(t))});")
        now.append(f"c{k}")
        if state.in_place[k]:
            then.append(f"c{k}")
        else:
            out.line(f"  char *d{k} = {out.offsets[step, place]};")
            place += 1
            then.append(f"d{k}")
    return now, then


def _run(out: FunctionWriter, body: FunctionWriter, ins: str, outs: str, arena: str) -> None:
    """Call the function of a body; what it returns unless it succeeds is returned."""
    out.line(f"    {{ const int e = {body.name}(ctx, {ins}, {outs}, g, {arena}, z); "
             "if (e) return e; }")


def _swap(out: FunctionWriter, now: Sequence[str], then: Sequence[str]) -> None:
    for a, b in zip(now, then):
        if a != b:
            out.line(f"    {{ char *t = {a}; {a} = {b}; {b} = t; }}")


def _array(items: Sequence[str]) -> str:
    return f"(char *const[]){{{', '.join(items) or '0'}}}"


@prepare_call.register(Scan)
def _(call: Scan, out: FunctionWriter) -> None:
    first = call.num_consts
    carry = call.operands[first:first + call.num_carry]
    state = _loop_body(call, out, call.body, first, carry)
    out.carries[call] = state
    out.scratch[call] = [*state.scratch(carry), out.bodies[call][0].arena_bytes]


@write_call.register(Scan)
def _(call: Scan, out: FunctionWriter, step: int) -> None:
    (body,), state = out.bodies[call], out.carries[call]
    first, n = call.num_consts, call.num_carry
    consts, carry, xs = (call.operands[:first], call.operands[first:first + n],
                         call.operands[first + n:])
    ys = call.results[n:]
    out.line("{")
    now, then = _begin_carry(out, step, carry, state)
    length = out.size(call.length)
    out.line(f"  for (i64 n = 0; n < {length}; n++) {{")
    out.line(f"    const i64 t = {f'{length} - 1 - n' if call.reverse else 'n'};\n    (void)t;")
    at = [f"{out.where[x]} + t * {out.size(slice_bytes(x))}" for x in (*xs, *ys)]
    ins = _array([*[out.where[c] for c in consts], *now, *at[:len(xs)]])
    outs = _array([*then, *at[len(xs):]])
    arena = out.offsets[step, len(out.scratch[call]) - 1]
    _run(out, body, ins, outs, arena)
    _swap(out, now, then)
    out.line("  }")
    for c, r in zip(now, call.results[:n]):
        out.line(f"  memcpy({out.where[r]}, {c}, {out.size(nbytes(r))});")
    out.line("}")


@prepare_call.register(While)
def _(call: While, out: FunctionWriter) -> None:
    consts = call.predicate_consts + call.body_consts
    carry = call.operands[consts:]
    state = _loop_body(call, out, call.body, call.body_consts, carry)
    predicate = out.module.body(call.predicate)
    out.bodies[call].append(predicate)
    out.carries[call] = state
    arena = most([b.arena_bytes for b in out.bodies[call]])
    out.scratch[call] = [*state.scratch(carry), arena]


@write_call.register(While)
def _(call: While, out: FunctionWriter, step: int) -> None:
    (body, predicate), state = out.bodies[call], out.carries[call]
    p, b = call.predicate_consts, call.body_consts
    carry = call.operands[p + b:]
    out.line("{")
    now, then = _begin_carry(out, step, carry, state)
    arena = out.offsets[step, len(out.scratch[call]) - 1]
    stacks = [(out.where[r], out.size(slice_bytes(r))) for r in call.records]
    out.line("  u8 holds;")
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
    out.line("  }")
    if call.record is not None:
        out.line(f"  *(i64 *)&{out.size(call.record)} = count;")
    for c, r in zip(now, call.results):
        out.line(f"  memcpy({out.where[r]}, {c}, {out.size(nbytes(r))});")
    out.line("}")


@prepare_call.register(Branch)
def _(call: Branch, out: FunctionWriter) -> None:
    out.bodies[call] = [out.module.body(b) for b in call.branches]
    out.scratch[call] = [most([b.arena_bytes for b in out.bodies[call]])]


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


GEMM = """\
typedef struct {
  i64 batch0, batch1, m, n, k;
  const void *a; i64 a_batch0, a_batch1, a_row, a_col;
  const void *b; i64 b_batch0, b_batch1, b_row, b_col;
  void *c; i64 c_batch0, c_batch1, c_row, c_col;
  int in_type, out_type;
  double alpha;
  int accumulate, a_fill_columns, b_fill_columns;
  void *a_fill, *b_fill, *fill_arg;
  void (*epilogue)(void *arg, i64 batch, i64 i0, i64 i1, i64 j0, i64 j1, const void *tile, i64 row);
  void *epilogue_arg;
} ft_gemm;
"""
CONV = """\
typedef struct {
  i64 rank, groups, batch, in_features, out_features;
  i64 in_size[3], window[3], out_size[3];
  i64 stride[3], pad_low[3], in_dilation[3], window_dilation[3];
  const void *x; i64 x_group, x_batch, x_feature, x_space[3];
  const void *w; i64 w_group, w_out, w_in, w_space[3];
  void *out; i64 out_group, out_batch, out_feature, out_space[3];
  int in_type, out_type;
  double alpha;
  int accumulate;
} ft_conv;
"""
GEMM_TYPES = ("f32", "f64", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


@write_call.register(Gemm)
def _(call: Gemm, out: FunctionWriter, step: int) -> None:
    out.module.declare(GEMM)
    (a, b), (c,) = call.operands, call.results
    fields = [f".{name} = {out.size(n)}" for name, n in call.fields.items()]
    for name, t, offset in (("a", a, call.a_offset), ("b", b, call.b_offset), ("c", c, 0)):
        fields.append(f".{name} = (({C_TYPES[t.dtype]} *){out.where[t]}) + {out.size(offset)}")
    fields.append(f".in_type = {GEMM_TYPES.index(a.dtype)}, .alpha = 1.0")
    fields.append(f".out_type = {GEMM_TYPES.index(c.dtype)}")
    run = f"((int (*)(const ft_gemm *)){out.library('gemm')})"
    out.line(f"{{ const ft_gemm m = {{{', '.join(fields)}}}; if ({run}(&m)) return 2; }}")
    f = call.fields
    out.module.work += _work(f["batch0"] * f["batch1"] * f["m"] * f["n"] * f["k"])


@write_call.register(Conv)
def _(call: Conv, out: FunctionWriter, step: int) -> None:
    out.module.declare(CONV)
    (x, w), (result,) = call.operands, call.results
    fields = []
    for name, n in call.fields.items():
        text = f"{{{', '.join(map(out.size, n))}}}" if isinstance(n, list) else out.size(n)
        fields.append(f".{name} = {text}")
    for name, t, offset in (("x", x, call.offsets[0]), ("w", w, call.offsets[1]),
                            ("out", result, 0)):
        fields.append(f".{name} = (({C_TYPES[t.dtype]} *){out.where[t]}) + {out.size(offset)}")
    fields.append(f".in_type = {GEMM_TYPES.index(x.dtype)}, .alpha = 1.0")
    fields.append(f".out_type = {GEMM_TYPES.index(result.dtype)}")
    run = f"((int (*)(const ft_conv *)){out.library('conv')})"
    out.line(f"{{ const ft_conv m = {{{', '.join(fields)}}}; if ({run}(&m)) return 2; }}")
    out.module.work += _work(result.size * 64)


def _work(flops: Size) -> int:
    return flops // 8 if isinstance(flops, int) else 10**6


@write_call.register(Library)
def _(call: Library, out: FunctionWriter, step: int) -> None:
    arguments = ", ".join(_argument(a, out) for a in call.arguments)
    run = f"((int (*)({call.signature})){out.library(call.function)})"
    out.line(f"if ({run}({arguments})) return 2;")
    out.module.work += sum(_work(t.size * 8) for t in call.operands)


def _argument(value: Any, out: FunctionWriter) -> str:
    if isinstance(value, Tensor):
        return f"(void *){out.where[value]}"
    if isinstance(value, (list, tuple)):
        kind = "void *const" if isinstance(value[0], Tensor) else "const i64"
        return f"({kind}[]){{{', '.join(_argument(v, out) for v in value)}}}"
    return out.size(value)
