"""Attention in a graph: products around a softmax of rows become one kernel, and so do gradients.

What a program multiplies by the weights, and by the gradient of the scores, is found as functions
of the scores' product (see `softmax`), so it does not matter how they are written. Neither weights
nor scores are in memory then: if anything else reads them, all stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

from functrans.core.record import Record
from functrans.lowering.loops.expr import (
    Expr,
    ExprBuilder,
    TooManyExpressions,
    reachable_expressions,
)
from functrans.lowering.loops.index import ZERO, Index, LoopVar, strides_of
from functrans.lowering.loops.tensor import FLOAT8, AnyFlag, Call, Gemm, Map, Stored, Tensor
from functrans.lowering.passes.attention.axes import AxisMap, through_axes
from functrans.lowering.passes.attention.calls import (
    Attend,
    AttendGradient,
    AttentionLayout,
    ScoreFunction,
    View,
)
from functrans.lowering.passes.attention.causal_masks import causal_offset
from functrans.lowering.passes.attention.reindexed import NotSoftmax, moved, split_view
from functrans.lowering.passes.attention.score_flags import ScoreFlags, score_flags
from functrans.lowering.passes.attention.softmax import (
    ABSORBS,
    MASKS,
    MOST_EXPRESSIONS,
    ScoreTerm,
    Softmax,
    is_rounding,
    softmax_of,
)
from functrans.lowering.rules.graph import Graph, live_items
from functrans.primitives.precision import most_precise

__all__ = ["recognize_attention"]

WIDEST = 256  # columns of queries, keys and values that fit in the memory of a multiprocessor
FLOATS = ("f32", "bf16", "f16")
MOST_MADE = 16 * MOST_EXPRESSIONS
"""Expressions of what may be a softmax, in all views of it: sines and cosines of padded rows had
170,000, which took 0.7 s."""


# --------------------------------------------------------------------------- products


class AttentionUse(Record, frozen=False):
    """A product with the weights, or with the gradient of the scores, and what it shows."""

    gemm: Gemm
    role: str
    softmax: Softmax
    names: dict[LoopVar, int]
    through: AxisMap
    cotangent: AxisMap | None
    s: ExprBuilder

    @property
    def kind(self) -> str:
        along = self.through.axes[self.names[self.softmax.along]][0] == "k"
        if self.softmax.cotangent is None:
            return "out" if along else "dv"
        return "dq" if along else "dk"

    @property
    def other(self) -> View:
        return self.through.view("b" if self.role == "a" else "a")


# --------------------------------------------------------------------------- the pass


def recognize_attention(graph: Graph, placed: bool = True) -> Graph:
    """The graph with calls of attention in the place of products, where there is some.

    `placed`: only where kernels can write the results as they are; else results that they cannot
    write are left to what absorbs the transposes that follow.
    """
    gemms = {c.results[0]: c for c in graph.items if isinstance(c, Gemm) and _is_known(c)}
    alone = _read_by_products(graph, gemms)
    if len(gemms) < 2 or not alone:
        return graph
    groups: dict[tuple[Tensor, Tensor], list[AttentionUse]] = {}
    for gemm in gemms.values():
        for role in "ab":
            use = _use(gemm, role, gemms, alone)
            if use is not None:
                p = use.softmax
                groups.setdefault((p.product.aux[0], p.sums.aux[0]), []).append(use)
    for (scores, _), uses in groups.items():
        try:
            new = _replaced(graph, gemms[scores], uses, placed)
        except NotSoftmax:
            continue
        if gemms[scores] not in live_items(new.items, new.outputs):
            graph = new
    return graph


def _is_known(gemm: Gemm) -> bool:
    f = gemm.fields
    return all(isinstance(n, int) for n in (*f.values(), gemm.a_offset, gemm.b_offset)) and all(
        f[n] != 0 for n in ("batch0", "batch1", "m", "n", "k"))


def _read_by_products(graph: Graph, gemms: Mapping[Tensor, Gemm]) -> set[Tensor]:
    """The products that nothing but products reads: what may be scores.

    The logits of a classifier are read by its loss; to see that they are a softmax took 2 ms.
    """
    products = set(gemms.values())
    others = live_items([x for x in graph.items if x not in products
                         and not isinstance(x, AnyFlag)], graph.outputs)
    return gemms.keys() - {*graph.outputs, *(t for x in others for t in x.operands)}


def _use(gemm: Gemm, role: str, gemms: Mapping[Tensor, Gemm],
         alone: Collection[Tensor]) -> AttentionUse | None:
    t = gemm.operands["ab".index(role)]
    if not isinstance(t, Map) or (gemm.a_offset if role == "a" else gemm.b_offset) != 0:
        return None
    if _has_float8(t):
        return None
    s = ExprBuilder(lambda x: not isinstance(x, Map))
    try:
        with s.at_most(MOST_MADE):
            e, variables = split_view(t, s)
        inside = reachable_expressions([e])
        if not any(x.op in ("exp", "exp2") for x in inside):
            return None
        wide = [v for v in variables if v.high != 1]
        whole = [x for x in inside if x.op == "load" and x.aux[0] in gemms
                 and x.aux[1].const == 0 and x.aux[1].terms.keys() == set(wide)]
    except (NotSoftmax, TooManyExpressions):
        return None
    for product in whole:
        if product.aux[0] not in alone:
            continue
        others = [x for x in whole if x is not product]
        names = {v: int(product.aux[1].coefficient(v)) for v in wide}
        if len(set(names.values())) != len(names):
            continue
        try:
            softmax = softmax_of(e, product, others, wide, s)
            places = {names[v]: (int(v.high), variables[v]) for v in wide}
            through = through_axes(gemm, role, places)
            cotangent = None
            if softmax.cotangent is not None:
                tensor, at = softmax.cotangent.aux
                cotangent = through_axes(gemms[tensor], "c", {
                    names[v]: (int(v.high), int(at.coefficient(v))) for v in wide})
            return AttentionUse(gemm, role, softmax, names, through, cotangent, s)
        except NotSoftmax:
            continue
    return None


def _has_float8(t: Tensor) -> bool:
    """Whether something that a value is computed from has too few bits to leave out rounding it."""
    waiting, seen = [t], {t}
    while waiting:
        x = waiting.pop()
        if x.dtype in FLOAT8:
            return True
        inner = [y for y in x.operands if y not in seen and not isinstance(y, Stored)]
        seen.update(inner)
        waiting += inner
    return False


class _Made(Record, frozen=False):
    """New items of a graph, and what they replace."""

    new: list[Tensor | Call] = field(default_factory=list)
    gone: set[Gemm | AnyFlag] = field(default_factory=set)


def _replaced(graph: Graph, product: Gemm, uses: list[AttentionUse], placed: bool) -> Graph:
    """The graph with the uses of a product's softmax computed by attention."""
    kinds = {u.kind: u for u in uses}
    sizes = {n: int(v.high) for v, n in uses[0].names.items()}
    key = uses[0].names[uses[0].softmax.along]
    if len(kinds) != len(uses) or any(
            {n: int(v.high) for v, n in u.names.items()} != sizes
            or u.names[u.softmax.along] != key for u in uses):
        raise NotSoftmax("the weights are read in several ways")
    first = kinds.get("out", uses[0])
    scores = first.softmax.scores
    at = first.softmax.product.aux[1]
    through = through_axes(product, "c", {first.names[v]: (int(v.high), int(at.coefficient(v)))
                                      for v in first.names})
    k_role = {"m": "a", "n": "b"}.get(through.axes[key][0])
    if k_role is None:
        raise NotSoftmax("keys are part of the batch")
    q, k = through.view("b" if k_role == "a" else "a"), through.view(k_role)
    gradients = [u for u in uses if u.cotangent is not None]
    if "out" in kinds:
        v = kinds["out"].other
        value_size = kinds["out"].through.size
    else:
        v, _ = _cotangent(gradients, key)
        value_size = gradients[0].cotangent.size  # type: ignore[union-attr]
    q, k = (_root(x, sizes, through.size, converted=False) for x in (q, k))
    v = _root(v, sizes, value_size, converted=False, multiplied=False)
    made, any_flags = _Made(), score_flags(graph, product.results[0], {
        u.softmax.cotangent.aux[0] for u in uses if u.softmax.cotangent is not None})
    made.gone.update(any_flags.forward, any_flags.backward)
    layout = _layout(sizes, key, through, [k, v], q, scores, first)
    views = {"q": replace(q, factor=1.0), "k": replace(k, factor=1.0), "v": v}
    s = first.s
    seen = _visibility(first, layout.row)
    if seen.masks:
        value = seen.masks[0].value
        for m in seen.masks[1:]:
            value = s.op("and", value, m.value)
        views["mask"] = _score_term(value, "bool", first, made)
    if seen.biases:
        views["bias"] = _score_term(_sum(seen.biases, s), "f32", first, made)
    if through.size > WIDEST or value_size > WIDEST:
        raise NotSoftmax("heads are too wide")
    out = kinds["out"].through.view("c") if "out" in kinds else \
        _fresh(layout, value_size, v.tensor, False)
    for name in {"bias", "mask"} & views.keys():
        views[name] = _by_column(views[name], key)
    for view, keyed in ((views["q"], False), (views["k"], True), (v, True), *[
            (views[name], False) for name in ("bias", "mask") if name in views]):
        layout.strides(view, keyed)
    if placed:
        layout.strides(out)
    if any(t.tensor.dtype not in FLOATS for t in (q, k, v, out)):
        raise NotSoftmax("other types")
    function = ScoreFunction(
        through.size, scores.scale * q.factor * k.factor, seen.offset,
        seen.masks[0].fill if seen.masks else -math.inf, all(m.is_selected for m in seen.masks),
        first.softmax.zero)
    sums = Stored((layout.rows,), "f32", (), product.source)
    precision = most_precise(product.precision, *(u.gemm.precision for u in uses))
    attend = Attend(function, value_size, layout, views, out, sums, any_flags.forward, precision)
    attend.after = {*product.after, *(kinds["out"].gemm.after if "out" in kinds else ())}
    made.new.append(attend)
    if "out" in kinds:
        made.gone.add(kinds["out"].gemm)
    if gradients or "dv" in kinds:
        if not first.softmax.zero and seen.offset is not None and seen.offset < 0:
            raise NotSoftmax("no kernel looks at rows that see nothing, which are NaN")
        _add_gradient(made, attend, kinds, key, placed, any_flags)
    elif any_flags.backward:
        raise NotSoftmax("the gradient of the scores is asked for")
    return _with_items(graph, made)


def _cotangent(gradients: list[AttentionUse], key: int) -> tuple[View, View]:
    """The values and the cotangent that the product of both has."""
    if not gradients:
        raise NotSoftmax("the values are not known")
    through = gradients[0].cotangent
    assert through is not None
    role = {"m": "a", "n": "b"}.get(through.axes[key][0])
    if role is None:
        raise NotSoftmax("keys are part of the batch")
    return through.view(role), through.view("b" if role == "a" else "a")


def _layout(sizes: Mapping[int, int], key: int, scores: AxisMap, keyed: list[View], q: View,
            parts: object, first: AttentionUse) -> AttentionLayout:
    """Which variable is what."""
    alone = [v for v in sizes if v != key and not any(t.steps.get(v) for t in keyed)]
    both = sorted([v for v in sizes if v != key and v not in alone], reverse=True)
    if any(scores.axes[v][0] == scores.axes[key][0] for v in sizes if v != key):
        raise NotSoftmax("keys have another variable")
    row: int | None = None
    for m in first.softmax.scores.masks:
        row = row or next((v for v in alone if _offset(m.value, first, v) is not None), None)
    rows = sorted(alone, key=lambda v: sizes[v])
    if row is None and rows:
        row = rows[-1]
    shared = [v for v in alone if v != row]
    if len(shared) > 1 or len(both) > 2:
        raise NotSoftmax("more dimensions than attention has")
    # of one head of keys: heads of queries need not be beside what they have in common, the batch
    missing: list[int | None] = [None] * (2 - len(both))
    both = [*both, *missing] if shared else [*missing, *both]  # type: ignore[list-item]
    return AttentionLayout(sizes, both[0], both[1], shared[0] if shared else None, row, key)


def _by_column(view: View, key: int) -> View:
    """A tensor whose columns are keys."""
    return replace(view, col=view.steps.get(key, 0))


class _Visibility(Record, frozen=False):
    """What hides keys, and what is added to scores.

    Keys up to the row + `offset` are seen, if that is a number, and those for which all `masks`
    hold, which have one number for what they hide.
    """

    offset: int | None = None
    masks: list[ScoreTerm] = field(default_factory=list)
    biases: list[ScoreTerm] = field(default_factory=list)


def _visibility(use: AttentionUse, row: int | None) -> _Visibility:
    """The masks and biases of scores, as kernels have them."""
    scores, found = use.softmax.scores, _Visibility()
    terms: list[tuple[ScoreTerm, int | None]] = []
    for m in [*scores.masks, *scores.biases]:
        hides = m if m in scores.masks else _as_mask(m, use.s)
        limit = None if hides is None or row is None else _offset(hides.value, use, row)
        # numbers hide only beside what is seen, which each row needs: others may not hide it
        if hides is not None and limit is not None and hides.fill == -math.inf:
            terms.append((hides, limit))
        elif hides is not None and limit is not None and limit >= 0:
            terms.append((m, limit))
        else:
            terms.append((hides if hides is not None and hides.fill == -math.inf else m, None))
    masks = [t for t, n in terms if n is None and (t in scores.masks or not t.is_selected)]
    biases = [t for t, n in terms if n is None and t not in masks]
    limits = [(t, n) for t, n in terms if n is not None]
    sure = not masks and not any(map(_may_hide, biases)) and all(n >= 0 for _, n in limits)
    for t, n in limits:
        if (t.fill == -math.inf and (t in scores.masks or not t.is_selected)) or sure:
            found.offset = n if found.offset is None else min(found.offset, n)
        else:
            (masks if t in scores.masks else biases).append(t)
    fills = {m.fill for m in masks}
    if len(fills) > 1 or (fills - {-math.inf} and found.offset is not None):
        raise NotSoftmax("what is not seen has several scores")
    if fills - {-math.inf} and (scores.adds_to_masks or min(fills) > ABSORBS):
        raise NotSoftmax("what is not seen might have a weight")
    found.masks, found.biases = masks, biases
    return found


def _offset(condition: Expr, use: AttentionUse, row: int) -> int | None:
    """n where a condition is `key <= row + n`."""
    return causal_offset(condition, use.s, use.softmax.along,
                         [v for v, n in use.names.items() if n == row])


def _may_hide(x: ScoreTerm) -> bool:
    return any(e.op in ("load", "select") for e in reachable_expressions([x.value]))


def _as_mask(bias: ScoreTerm, s: ExprBuilder) -> ScoreTerm | None:
    """A bias that is 0, or so low that it hides, as a mask."""
    e = bias.value
    if e.op != "select" or bias.factor <= 0 or any(x.op != "const" for x in e.args[1:]):
        return None
    condition, yes, no = e.args[0], float(e.args[1].aux), float(e.args[2].aux)
    if no == 0:
        condition, yes, no = s.op("not", condition), no, yes
    fill = no * bias.factor
    if yes != 0 or fill > MASKS:
        return None
    return ScoreTerm(condition, fill=fill, is_selected=False)


def _sum(terms: Iterable[ScoreTerm], s: ExprBuilder) -> Expr:
    total: Expr | None = None
    for t in terms:
        value = t.value
        if value.dtype != "f32":
            value = s.op("convert", value, dtype="f32")
        if t.factor != 1:
            value = s.op("mul", value, s.const(t.factor, "f32"))
        total = value if total is None else s.op("add", total, value)
    assert total is not None
    return total


def _score_term(e: Expr, dtype: str, use: AttentionUse, made: _Made) -> View:
    """What is added to scores, or hides them: as it is in memory, else computed apart."""
    inner = e
    while dtype != "bool" and is_rounding(inner):
        inner = inner.args[0]
    if inner.op == "load" and inner.aux[0].dtype in (FLOATS if dtype != "bool" else ("bool",)):
        tensor, at = inner.aux
        if all(isinstance(v, LoopVar) for v in at.terms):
            return View(tensor, int(at.const),
                        {use.names[v]: int(c) for v, c in at.terms.items()})
    variables = sorted(e.variables, key=lambda v: -use.names[v])
    shape = tuple([int(v.high) for v in variables])
    reads = dict.fromkeys(x.aux[0] for x in reachable_expressions([e]) if x.op == "load")

    def define(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        return moved(e, dict(zip(variables, index)), s)

    tensor = Map(shape, dtype, list(reads), define, weight=8)
    made.new.append(tensor)
    return View(tensor, 0, {use.names[v]: int(n)
                            for v, n in zip(variables, strides_of(shape))})


# --------------------------------------------------------------------------- gradients


def _root(view: View, sizes: Mapping[int, int], width: int, converted: bool = True,
          multiplied: bool = True) -> View:
    """What a view is a movement of, or a conversion or a multiple."""
    t = view.tensor
    if not isinstance(t, Map):
        return view
    variables = {v: LoopVar(f"r{v}", n) for v, n in sizes.items()}
    column = LoopVar("c", width)
    place = Index.of(view.offset) + (Index.of(column) * view.col if width > 1 else ZERO)
    for v, n in view.steps.items():
        place = place + Index.of(variables[v]) * n
    s = ExprBuilder(lambda x: not isinstance(x, Map))
    rest, index = place, list[Index]()
    for step in strides_of(t.shape):
        whole, rest = divmod(rest, step)
        index.append(whole)
    e = t.define(s, tuple(index))
    factor = 1.0
    while (converted and is_rounding(e)) or (
            multiplied and e.op in ("mul", "div") and e.args[1].op == "const"
            and e.args[1].aux != 0):
        if e.args[1:]:
            factor *= float(e.args[1].aux) if e.op == "mul" else 1 / float(e.args[1].aux)
        e = e.args[0]
    if e.op != "load" or not isinstance(e.aux[0], Stored) or not all(
            isinstance(a, LoopVar) for a in e.aux[1].terms):
        return view
    at = e.aux[1]
    return View(e.aux[0], int(at.const), {v: int(at.coefficient(x)) for v, x in variables.items()},
                int(at.coefficient(column)) if width > 1 else 1, factor)


def _add_gradient(made: _Made, attend: Attend, kinds: Mapping[str, AttentionUse], key: int,
                  placed: bool, any_flags: ScoreFlags) -> None:
    layout, scale = attend.layout, attend.scores.scale
    sizes, size, value_size = layout.sizes, attend.scores.size, attend.value_size
    gradients = [u for u in kinds.values() if u.cotangent is not None]
    widths = {"q": size, "k": size, "v": value_size, "dout": value_size}

    def ratio(x: View, y: View, name: str) -> float | None:
        """x / y, where one is a multiple of the other."""
        p, q = _root(x, sizes, widths[name]), _root(y, sizes, widths[name])
        return p.factor / q.factor if p.key == q.key else None

    couts = {u.kind: _cotangent([u], key) for u in gradients}
    # that of the values first: what it is multiplied by would have no place
    douts = [u.other for n, u in kinds.items() if n == "dv"]
    dtype = attend.views["v"].tensor.dtype
    known = [_root(d, sizes, value_size, d.tensor.dtype != dtype, multiplied=False)
             for d in (*douts, *[c[1] for c in couts.values()])]
    dout = next((d for d in known if d.tensor.dtype == dtype), None)
    if dout is None or any(ratio(d, dout, "dout") != 1 for d in douts) or dout.factor != 1:
        raise NotSoftmax("other cotangents")

    def multiple_of_cotangents(kind: str) -> float:
        """What the product of values and the cotangent is multiplied by: a number of the loss."""
        values, cotangent = couts[kind]
        of_values = ratio(values, attend.views["v"], "v")
        of_cotangent = ratio(cotangent, dout, "dout")
        if of_values is None or of_cotangent is None:
            raise NotSoftmax("other cotangents")
        return of_values * of_cotangent

    results, factors = dict[str, View](), {"dq": scale, "dk": scale}
    for kind, name in (("dq", "k"), ("dk", "q")):
        if kind in kinds:
            use = kinds[kind]
            multiple = ratio(use.other, attend.views[name], name)
            if multiple is None:
                raise NotSoftmax("the product is of something else")
            results[kind] = use.through.view("c")
            factor = use.softmax.factor * multiple * multiple_of_cotangents(kind)
            if abs(factor - scale) > 1e-5 * abs(scale):
                factors[kind] = factor
    if "dv" in kinds:
        results["dv"] = kinds["dv"].through.view("c")
    for kind, name in (("dq", "q"), ("dk", "k"), ("dv", "v")):
        if kind in results and not _complete(results[kind], layout, kind != "dq"):
            raise NotSoftmax("the gradient is summed over more, or less")
        if kind not in results:
            like = attend.views[name]
            results[kind] = _fresh(layout, widths[name], like.tensor, kind != "dq")
    layout.strides(dout)
    if placed:
        layout.strides(results["dq"])
    layout.strides(results["dk"], keyed=True)
    layout.strides(results["dv"], keyed=True)
    if any(r.tensor.dtype not in FLOATS for r in results.values()):
        raise NotSoftmax("other types")
    gradient = AttendGradient(attend, {"dout": dout}, {n: results[n] for n in (
        "dq", "dk", "dv")}, factors, any_flags.backward)
    products = [kinds[n].gemm for n in ("dq", "dk", "dv") if n in kinds]
    gradient.after = {t for gemm in products for t in gemm.after}
    made.new.append(gradient)
    made.gone.update(products)


def _complete(view: View, layout: AttentionLayout, keyed: bool) -> bool:
    """Whether a gradient has an element for each that a program writes."""
    axes = [layout.batch, layout.head, layout.key] if keyed else [
        layout.batch, layout.head, layout.shared, layout.row]
    wanted = {v for v in axes if v is not None and layout.size(v) > 1}
    return {v for v, n in view.steps.items() if n and layout.size(v) > 1} == wanted


def _fresh(layout: AttentionLayout, width: int, like: Tensor, keyed: bool) -> View:
    """Memory for a result that the program does not have."""
    order = [layout.batch, layout.head, layout.key] if keyed else [
        layout.batch, layout.head, layout.shared, layout.row]
    shape = [layout.size(v) for v in order] + [width]
    steps = {v: int(n) for v, n in zip(order, strides_of(shape)) if v is not None}
    return View(Stored(tuple(shape), like.dtype, (), like.source), 0, steps, 1)


# --------------------------------------------------------------------------- the graph


def _with_items(graph: Graph, made: _Made) -> Graph:
    """The graph with new items, each after what it reads and what comes before it."""
    items = [x for x in graph.items if x not in made.gone]
    makers: dict[Tensor, Tensor | Call] = {}
    for item in (*items, *made.new):
        for t in item.results if isinstance(item, Call) else (item,):
            makers[t] = item
    done: dict[Tensor | Call, bool] = {}
    ordered: list[Tensor | Call] = []

    def put(item: Tensor | Call) -> None:
        stack = [(item, False)]
        while stack:
            x, ready = stack.pop()
            if ready:
                done[x] = True
                ordered.append(x)
            elif x not in done:
                done[x] = False
                stack.append((x, True))
                before = x.after if isinstance(x, Call) else graph.after.get(x, ())
                for t in (*before, *reversed(x.operands)):
                    maker = makers.get(t)
                    if maker is not None and done.get(maker) is False and maker is not x:
                        raise NotSoftmax("the gradient would wait for itself")
                    if maker is not None and maker not in done:
                        stack.append((maker, False))

    for item in (*items, *made.new):
        put(item)
    return replace(graph, items=ordered)
