"""Which inputs each output of a linear program depends on, by a rule for each primitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import HigherOrder
from functrans.core.table import Table
from functrans.core.trace import Tracer
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.coordinate_products import coo_dot_p, inside_pairs
from functrans.primitives.cumulative import cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.fft import fft_p
from functrans.primitives.geometry import embed, taps
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.index_layout import window_sizes
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import concatenate_p, copy_p, pad_p, reshape_p, rev_p, slice_p
from functrans.primitives.sparse import csr_dot_p, stored_elements
from functrans.primitives.sparse_sums import sum_places_p
from functrans.primitives.window import reduce_window_sum_p
from functrans.sparse.patterns import Pattern, combined, moved, reduced, spread, united

__all__ = ["dependence"]

# Loops of so many iterations are followed one by one, others to where their sets stay the same.
UNROLLED = 64
# So often the sets of a loop may grow before everything is taken to depend on everything.
ROUNDS = 64
# Prefix sums and sums of windows list so many pairs of elements, else each has all of its axis.
MOST_PAIRS = 1 << 24

Maybe = Pattern | None  # None: depends on no input
Values = Sequence[Any]  # of operands; None where it is not known
Rule = Callable[[Equation, list[Maybe], list[Any]], list[Maybe]]


def dependence(jaxpr: Jaxpr, consts: Sequence[Any], patterns: Sequence[Maybe],
               values: Sequence[Any] | None = None) -> list[Maybe]:
    """The patterns of the results of a program that is linear in its inputs with patterns.

    `values` of other inputs are used where they are known. What has no rule is taken to depend on
    all that its operands depend on, so that a pattern may be too large and is never too small.
    """
    found: dict[Var, Maybe] = {}
    known: dict[Var, Any] = {}
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        if not isinstance(const, Tracer):
            known[var] = np.asarray(const)
    for i, (var, pattern) in enumerate(zip(jaxpr.invars, patterns, strict=True)):
        found[var] = pattern
        if values is not None and values[i] is not None:
            known[var] = values[i]

    def pattern_of(atom: Atom) -> Maybe:
        return None if isinstance(atom, Literal) else found.get(atom)

    def value_of(atom: Atom) -> Any:
        return np.asarray(atom.value, atom.aval.dtype) if isinstance(atom, Literal) else \
            known.get(atom)

    for eqn in jaxpr.eqns:
        operands = [pattern_of(a) for a in eqn.invars]
        inputs = [value_of(a) for a in eqn.invars]
        if all(p is None for p in operands):
            if all(v is not None for v in inputs):
                outs = _evaluated(eqn, inputs)
                known.update(zip(eqn.outvars, outs, strict=True) if outs is not None else ())
            continue
        for var, pattern in zip(eqn.outvars, _apply(eqn, operands, inputs), strict=True):
            found[var] = pattern if np.dtype(var.aval.dtype).kind not in "biu" else None
    return [pattern_of(a) for a in jaxpr.outvars]


def _evaluated(eqn: Equation, values: Values) -> list[Any] | None:
    primitive = eqn.primitive
    if primitive.has_effect or primitive.tells_source or primitive.collective:
        return None
    out = primitive.run(*values, **eqn.params)
    return list(out) if primitive.multiple_results else [np.asarray(out)]


def _apply(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    primitive = eqn.primitive
    if (rule := RULES.get(primitive)) is not None:
        return rule(eqn, patterns, values)
    if isinstance(primitive, Elementwise):
        return _elementwise(eqn, patterns, values)
    if isinstance(primitive, HigherOrder) and primitive.called is not None:
        inner, operands = primitive.called(list(zip(patterns, values, strict=True)), **eqn.params)
        return dependence(inner, (), [o[0] for o in operands], [o[1] for o in operands])
    return _all_of_all(eqn, patterns, values)


def _all_of_all(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    given = [p for p in patterns if p is not None]
    return [spread(v.aval.shape, given) for v in eqn.outvars]


def _elementwise(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    return [combined(eqn.outvars[0].aval.shape, [p for p in patterns if p is not None])]


def _same(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    return patterns


def _movement(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    """What moves elements moves the numbers of their rows; other operands hold places."""
    places = range(len(patterns))
    if eqn.primitive in (dynamic_slice_p, gather_p):
        places = range(1)
    elif eqn.primitive is dynamic_update_slice_p:
        places = range(2)
    if any(values[k] is None for k in range(len(patterns)) if k not in places):
        return _all_of_all(eqn, patterns, values)
    params = {**eqn.params, "fill_value": 0} if eqn.primitive is gather_p else eqn.params
    given = [k for k in places if patterns[k] is not None]

    def move(*rows: Any) -> Any:
        operands = list(values)
        for k in places:
            operands[k] = np.zeros(eqn.invars[k].aval.shape, np.int64)
        for k, r in zip(given, rows, strict=True):
            operands[k] = np.asarray(r, np.int64)
        return eqn.primitive.run(*operands, **params)

    return [moved([p for p in patterns if p is not None], move)]


def _reduce_sum(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    (x,) = patterns
    return [reduced(x, eqn.params["axes"])] if x is not None else [None]


def _cumsum(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    (x,), axis = patterns, eqn.params["axis"]
    assert x is not None
    n, total = x.rows.shape[axis], x.rows.size
    if total * n > MOST_PAIRS:
        whole = reduced(x, (axis,))
        return [whole.with_rows(np.broadcast_to(np.expand_dims(whole.rows, axis), x.rows.shape))]
    i, j = np.tril_indices(n)
    if eqn.params["reverse"]:
        i, j = j, i
    out = np.moveaxis(np.arange(total).reshape(x.rows.shape), axis, 0)
    return [united(x.rows.shape, [(out[i], x, np.moveaxis(x.rows, axis, 0)[j])])]


def _window_sum(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    (x,), p = patterns, eqn.params
    assert x is not None
    parts = [embed(x.rows, p["padding"], p["base_dilation"], 0)]
    for axis, (n, stride, dilation) in enumerate(zip(
            p["window_dimensions"], p["window_strides"], p["window_dilation"], strict=True)):
        parts = [t for part in parts for t in taps(part, axis, n, stride, dilation)]
    return [combined(eqn.outvars[0].aval.shape, [x.with_rows(t) for t in parts])]


def _select(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    _, *cases = patterns
    if values[0] is None:
        return _elementwise(eqn, cases, values)
    zero = np.zeros(eqn.outvars[0].aval.shape, np.int64)
    given = [k for k, c in enumerate(cases) if c is not None]

    def choose(*rows: Any) -> Any:
        options: list[Any] = [zero] * len(cases)
        for k, r in zip(given, rows, strict=True):
            options[k] = r
        return select_n_p.run(values[0], *options)

    return [moved([c for c in cases if c is not None], choose)]


def _scatter(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    x, _, updates = patterns
    indices, p = values[1], eqn.params
    if indices is None:
        return _all_of_all(eqn, patterns, values)
    shape: Any = eqn.outvars[0].aval.shape
    size = math.prod(shape)
    numbers = p["dimension_numbers"]
    sizes = window_sizes(numbers, eqn.invars[2].aval, len(shape))
    # the place that each update goes to, from 1 on; 0 where it is dropped
    at = gather_p.run(np.arange(1, size + 1).reshape(shape), indices, slice_sizes=sizes,
                      dimension_numbers=numbers.gather, fill_value=0, mode=p["mode"],
                      unique_indices=False, indices_are_sorted=False)
    parts = []
    if x is not None:
        kept = np.ones(size, bool)
        if eqn.primitive is scatter_p:  # what is written takes the place of what was there
            kept[at[at > 0] - 1] = False
        parts.append((np.flatnonzero(kept), x, x.rows.reshape(-1)[kept]))
    if updates is not None:
        inside = at.reshape(-1) > 0
        parts.append((at.reshape(-1)[inside] - 1, updates, updates.rows.reshape(-1)[inside]))
    return [united(shape, parts)]


def _dot(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    out: Any = eqn.outvars[0].aval.shape
    parts: list[Pattern] = []
    for k, (contract, batch, c_other, b_other) in enumerate(((cx, bx, cy, by), (cy, by, cx, bx))):
        pattern = patterns[k]
        if pattern is None:
            continue
        rows = pattern.rows
        free = [a for a in range(rows.ndim) if a not in contract and a not in batch]
        lanes = math.prod(rows.shape[a] for a in batch)
        depth = math.prod(rows.shape[a] for a in contract)
        rows = rows.transpose((*batch, *free, *contract)).reshape(lanes, -1, depth)
        other = values[1 - k]
        other_shape: Any = eqn.invars[1 - k].aval.shape
        columns = [a for a in range(len(other_shape)) if a not in c_other and a not in b_other]
        width = math.prod(other_shape[a] for a in columns)
        if other is None or patterns[1 - k] is not None:
            united_rows = reduced(pattern.with_rows(rows), (2,))
            ids = np.broadcast_to(united_rows.rows[:, :, None], (lanes, rows.shape[1], width))
            found = united_rows.with_rows(ids)
        else:
            matrix = np.asarray(other != 0).transpose((*b_other, *c_other, *columns)).reshape(
                lanes, depth, width)
            b, d, j = np.nonzero(matrix)
            i = np.arange(rows.shape[1])
            owners = (b[:, None] * rows.shape[1] + i) * width + j[:, None]
            found = united((lanes, rows.shape[1], width),
                           [(owners, pattern, rows[b[:, None], i, d[:, None]])])
        ids = found.rows if k == 0 else found.rows.swapaxes(1, 2)
        parts.append(found.with_rows(ids.reshape(out)))
    return [combined(out, parts)]


def _sparse_product(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    data, *_, x = patterns
    _, indices, *pointers, _ = values
    if indices is None or pointers == [None] or (data is not None and x is not None):
        return _all_of_all(eqn, patterns, values)
    p = eqn.params
    shape: Any = eqn.outvars[0].aval.shape
    if pointers:
        e, row, column = stored_elements(indices, pointers[0], p["columns"])
    else:
        e = inside_pairs(indices, p["sizes"])
        row, column = indices[e].T
    to, of = (column, row) if p["transpose"] else (row, column)
    owners = to[:, None] * shape[1] + np.arange(shape[1])
    if x is not None:
        return [united(shape, [(owners, x, x.rows[of])])]
    assert data is not None
    return [united(shape, [(owners, data, np.broadcast_to(data.rows[e, None], owners.shape))])]


def _sum_places(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    """Each sum depends on the elements that are numbered so; places depend on none."""
    step = 3 if eqn.params["compressed"] else 2
    operands = list(values)
    if any(operands[k] is None for k in range(len(operands)) if k % step):
        return _all_of_all(eqn, patterns, values)
    for k in range(0, len(operands), step):
        operands[k] = np.zeros(eqn.invars[k].aval.shape, np.float32)
    outs = sum_places_p.run(*operands, **{**eqn.params, "numbered": True})
    numbers = outs[-len(operands) // step:]
    shape: Any = eqn.outvars[0].aval.shape
    parts = []
    for x, number in zip(patterns[::step], numbers, strict=True):
        lane, e = np.nonzero(number < shape[1])
        if x is not None:
            parts.append((lane * shape[1] + number[lane, e], x, x.rows[lane, e]))
    return [united(shape, parts), *[None] * (len(eqn.outvars) - 1)]


def _conv(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    """One convolution of row numbers for each element of a kernel that is not zero."""
    x, w = patterns
    if w is not None or x is None:
        return _all_of_all(eqn, patterns, values)
    params = {**eqn.params, "preferred_element_type": None, "precision": None}
    spec = params["dimension_numbers"].rhs_spec
    shape = eqn.invars[1].aval.shape
    kernel = np.ones(shape) if values[1] is None else np.asarray(values[1] != 0, np.float64)
    inner = [spec[1], *spec[2:]]
    parts = []
    for at in np.ndindex(*[shape[a] for a in inner]):
        one = np.zeros(shape)
        place = tuple([at[inner.index(a)] if a in inner else slice(None)
                       for a in range(len(shape))])
        one[place] = kernel[place]
        if one.any():
            rows = conv_general_dilated_p.run(x.rows.astype(np.float64), one, **params)
            parts.append(x.with_rows(np.rint(rows)))
    return [combined(eqn.outvars[0].aval.shape, parts) if parts else None]


def _fft(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    (x,) = patterns
    out: Any = eqn.outvars[0].aval.shape
    assert x is not None
    rank = len(eqn.params["fft_lengths"])
    whole = reduced(x, tuple(range(x.rows.ndim - rank, x.rows.ndim)))
    rows = whole.rows.reshape(*whole.rows.shape, *[1] * rank)
    return [whole.with_rows(np.broadcast_to(rows, out))]


def _both(a: Maybe, b: Maybe) -> Maybe:
    if a is None or b is None:
        return b if a is None else a
    return combined(a.rows.shape, [a, b])


def _cond(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    branches = eqn.params["branches"]
    if values[0] is not None:
        branches = [branches[int(np.clip(int(values[0]), 0, len(branches) - 1))]]
    outs = [dependence(b, (), patterns[1:], values[1:]) for b in branches]
    found = outs[0]
    for more in outs[1:]:
        found = [_both(a, b) for a, b in zip(found, more, strict=True)]
    return found


def _canonical(pattern: Maybe) -> Maybe:
    """Sets without rows that nothing has any more, so that two can be compared."""
    return None if pattern is None else united(
        pattern.rows.shape, [(np.arange(pattern.rows.size), pattern, pattern.rows)])


def _is_same(a: Maybe, b: Maybe) -> bool:
    if a is None or b is None:
        return a is b
    return np.array_equal(a.starts, b.starts) and np.array_equal(a.members, b.members)


def _until_same(carry: list[Maybe], shapes: Sequence[Any],
                body: Callable[[list[Maybe]], list[Maybe]]) -> list[Maybe]:
    """What a carry may depend on after any number of iterations."""
    carry = [_canonical(c) for c in carry]
    for _ in range(ROUNDS):
        grown = [_canonical(_both(a, b)) for a, b in zip(carry, body(carry), strict=True)]
        if all(map(_is_same, carry, grown)):
            return carry
        carry = grown
    given = [c for c in carry if c is not None]
    return [None if c is None else spread(shape, given) for c, shape in
            zip(carry, shapes, strict=True)]


def _while(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    p = eqn.params
    first, body = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    count = len(patterns) - body
    shapes = [a.aval.shape for a in eqn.invars[body:]]
    if len(eqn.outvars) != count:
        return _all_of_all(eqn, patterns, values)
    consts, numbers = patterns[first:body], [*values[first:body], *[None] * count]
    return _until_same(patterns[body:], shapes,
                       lambda c: dependence(p["body_jaxpr"], (), [*consts, *c], numbers))


def _scan(eqn: Equation, patterns: list[Maybe], values: list[Any]) -> list[Maybe]:
    p, jaxpr, length = eqn.params, eqn.params["jaxpr"], eqn.params["length"]
    c, end = p["num_consts"], p["num_consts"] + p["num_carry"]
    if not isinstance(length, int) or not length:
        return _all_of_all(eqn, patterns, values)
    consts, carry, xs = patterns[:c], patterns[c:end], patterns[end:]
    shapes = [a.aval.shape for a in eqn.invars[c:end]]
    y_avals: list[Any] = [v.aval for v in eqn.outvars[end - c:]]
    if length <= UNROLLED:
        order = range(length)[::-1] if p["reverse"] else range(length)
        numbers = list(values[c:end])
        ys: list[list[Maybe]] = [[None] * length for _ in y_avals]
        for i in order:
            here = [None if x is None else x.with_rows(x.rows[i]) for x in xs]
            known = [*values[:c], *numbers, *[None if v is None else v[i] for v in values[end:]]]
            outs = dependence(jaxpr, (), [*consts, *carry, *here], known)
            carry, numbers = outs[:end - c], [None] * (end - c)
            for y, out in zip(ys, outs[end - c:], strict=True):
                y[i] = out
        return [*carry, *[_stacked(y, a.shape) for y, a in zip(ys, y_avals, strict=True)]]
    # all iterations at once: each may read what any element of xs depends on
    whole = [None if x is None else reduced(x, (0,)) for x in xs]
    numbers = [*values[:c], *[None] * (len(patterns) - c)]

    def body(carry: list[Maybe]) -> list[Maybe]:
        return dependence(jaxpr, (), [*consts, *carry, *whole], numbers)[:end - c]

    carry = _until_same(carry, shapes, body)
    outs = dependence(jaxpr, (), [*consts, *carry, *whole], numbers)[end - c:]
    return [*carry, *[None if o is None else o.with_rows(np.broadcast_to(o.rows, a.shape))
                      for o, a in zip(outs, y_avals, strict=True)]]


def _stacked(parts: list[Maybe], shape: Any) -> Maybe:
    given = [k for k, y in enumerate(parts) if y is not None]
    if not given:
        return None

    def stack(*rows: Any) -> Any:
        out = np.zeros(shape, np.int64)
        for k, r in zip(given, rows, strict=True):
            out[k] = r
        return out

    return moved([y for y in parts if y is not None], stack)


RULES: Table[Rule] = Table({
    **dict.fromkeys((broadcast_in_dim_p, transpose_p, concatenate_p, pad_p, reshape_p, rev_p,
                     slice_p, dynamic_slice_p, dynamic_update_slice_p, gather_p), _movement),
    **dict.fromkeys((convert_element_type_p, copy_p, checkpoint_name_p, optimization_barrier_p),
                    _same),
    add_any_p: _elementwise, select_n_p: _select, reduce_sum_p: _reduce_sum, cumsum_p: _cumsum,
    reduce_window_sum_p: _window_sum, dot_general_p: _dot, conv_general_dilated_p: _conv,
    **dict.fromkeys((coo_dot_p, csr_dot_p), _sparse_product), sum_places_p: _sum_places,
    fft_p: _fft, scatter_add_p: _scatter, scatter_p: _scatter,
    cond_p: _cond, scan_p: _scan, while_p: _while},
    otherwise="each result depends on all that the operands depend on")


