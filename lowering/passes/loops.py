"""Laws of loops and branches: loop-invariant code is moved before a loop, or after it.

An equation that reads nothing but constants of a loop is computed before it when its result is no
larger than what it reads (or small), or when it is expensive. Movements and broadcasts stay inside,
where they cost nothing. A `while` of no iterations then computes values that nothing reads. All
laws hold exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.prune import has_effects
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable, literal_key
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.callback import pure_callback_p
from functrans.primitives.control_flow.bodies import counted, pick, rearranged
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.shape import iota_p, reshape_p, rev_p, slice_p

__all__ = ["LOOPS"]

LOOPS = RewriteTable("loops")
rule = LOOPS.rule

SMALL = 4096  # bytes that stay in the first-level cache throughout a loop
# without arithmetic, or as cheap to repeat as to read
FREE: frozenset[Primitive] = frozenset((broadcast_in_dim_p, transpose_p, reshape_p, rev_p, slice_p,
                                        iota_p, convert_element_type_p))


# ------------------------------------------------------------------------------- bodies


@rule(scan_p, while_p, cond_p, law="the passes inside a body")
def simplified_bodies(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    params: dict[str, Any] = {}
    for key, value in eqn.params.items():
        if isinstance(value, Jaxpr):
            params[key] = r.simplify(value)
        elif key == "branches":
            params[key] = tuple([r.simplify(b) for b in value])
    if all(params[key] is eqn.params[key] or params[key] == eqn.params[key] for key in params):
        return None
    return r.emit(eqn.replace(params={**eqn.params, **params}))


@rule(scan_p, while_p, cond_p, law="an operand that no body reads is left out")
def unread_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    smaller = eqn.primitive.prune(eqn, [True] * len(eqn.outvars))
    return None if smaller is eqn or len(smaller.invars) == len(eqn.invars) else r.emit(smaller)


def substituted(jaxpr: Jaxpr, env: Mapping[Atom, Atom], invars: Sequence[Var],
                first: Iterable[Equation] = ()) -> Jaxpr:
    """A body on other inputs, with atoms in place of some variables, and equations before it."""
    eqns = list(first)
    for eqn in jaxpr.eqns:
        if any(a in env for a in eqn.invars):
            eqn = eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]))
        eqns.append(eqn)
    return Jaxpr((), tuple(invars), tuple(eqns), tuple([env.get(a, a) for a in jaxpr.outvars]),
                 name=jaxpr.name)


def is_same_program(a: Jaxpr, b: Jaxpr) -> bool:
    """Whether two bodies have the same equations but for the names of variables."""
    if a is b:
        return True
    if len(a.eqns) != len(b.eqns) or len(a.invars) != len(b.invars):
        return False
    name: dict[Atom, Atom] = dict(zip(a.invars, b.invars, strict=True))

    def agree(xs: Sequence[Atom], ys: Sequence[Atom]) -> bool:
        return len(xs) == len(ys) and all(
            literal_key(x) == literal_key(y) if isinstance(x, Literal) and isinstance(y, Literal)
            else name.get(x) is y for x, y in zip(xs, ys, strict=True))

    for e, f in zip(a.eqns, b.eqns, strict=True):
        if e.primitive is not f.primitive or e.params != f.params or not agree(e.invars, f.invars):
            return False
        name.update(zip(e.outvars, f.outvars, strict=True))
    return agree(a.outvars, b.outvars)


class Constants:
    """The constants of a body, brought to normal form.

    A literal is written into the body, an operand that comes twice is one, and what is repeated is
    repeated inside.
    """

    def __init__(self, r: Rewriter, source: Any) -> None:
        self._r = r
        self._source = source
        self._vars: dict[Atom, Var] = {}
        self.env: dict[Atom, Atom] = {}
        self.first: list[Equation] = []
        self.changed = False

    def add(self, var: Var, operand: Atom) -> None:
        """Let `var` stand for `operand` in the body."""
        if isinstance(operand, Literal):
            self.env[var] = operand
            self.changed = True
            return
        made = self._r.made(operand, broadcast_in_dim_p)
        if made is not None:
            source = made.invars[0]
            inside: Atom = source if isinstance(source, Literal) else Var(source.aval)
            if isinstance(inside, Var):
                inside = self._vars.setdefault(source, inside)
            self.first.append(Equation(broadcast_in_dim_p, (inside,), (var,), made.params,
                                       made.source or self._source))
            self.changed = True
        elif operand in self._vars:
            self.env[var] = self._vars[operand]
            self.changed = True
        else:
            self._vars[operand] = var

    @property
    def operands(self) -> list[Atom]:
        return list(self._vars)

    @property
    def invars(self) -> list[Var]:
        return list(self._vars.values())


def hoisted(body: Jaxpr, consts: Sequence[Var]) -> tuple[Jaxpr, Jaxpr] | None:
    """The part of a body that is computed once, from `consts`, and the rest.

    The first program gives values that the rest takes as its first inputs.
    """
    known: set[Atom] = set(consts)
    once: list[Equation] = []
    worth: list[Equation] = []
    for eqn in body.eqns:
        if all(a in known or type(a) is Literal for a in eqn.invars) and _is_pure(eqn):
            known.update(eqn.outvars)
            once.append(eqn)
            if eqn.primitive not in FREE and _is_worth_keeping(eqn):
                worth.append(eqn)
    if not worth:
        return None
    gone = set(worth)
    rest = [eqn for eqn in body.eqns if eqn not in gone]
    read = {a for eqn in rest for a in eqn.invars} | set(body.outvars)
    outs = [v for eqn in worth for v in eqn.outvars if v in read]
    before = Jaxpr((), tuple(consts), tuple(once), tuple(outs), name=body.name)
    return before, Jaxpr((), (*outs, *body.invars), tuple(rest), body.outvars, name=body.name)


def _is_pure(eqn: Equation) -> bool:
    return not has_effects(eqn) and eqn.primitive is not pure_callback_p \
        and not eqn.primitive.collective and not eqn.primitive.decided_sizes(eqn.params)


def _is_worth_keeping(eqn: Equation) -> bool:
    """Whether to keep the results of an equation in memory instead of computing them again."""
    if any(not v.aval.is_static for v in (*eqn.invars, *eqn.outvars)):
        return False
    made: Any = sum(v.aval.nbytes for v in eqn.outvars)
    read: Any = sum(v.aval.nbytes for v in {*eqn.invars})
    if made <= max(read, SMALL):
        return True
    cost = eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params)
    return bool(cost.flops > 8 * made)


# ------------------------------------------------------------------------------- scan


@rule(scan_p, law="constants of a loop in normal form; what it carries unchanged is one")
def constants_of_scan(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    p = eqn.params
    nc, nk, body = p["num_consts"], p["num_carry"], p["jaxpr"]
    consts, carry, xs = counted(operands, nc, nk)
    v_consts, v_carry, v_xs = counted(body.invars, nc, nk)
    known = Constants(r, eqn.source)
    for var, x in zip(v_consts, consts, strict=True):
        known.add(var, x)
    same = [out is v for out, v in zip(body.outvars[:nk], v_carry, strict=True)]
    for var, x in zip(pick(v_carry, same), pick(carry, same), strict=True):
        known.add(var, x)
    new_xs = []
    for var, x in zip(v_xs, xs, strict=True):
        element = _element(r, x)
        if element is not None:
            known.add(var, element)
        else:
            new_xs.append((var, x))
    if not (known.changed or any(same) or len(new_xs) < len(xs)):
        return None
    moved = [not s for s in same]
    invars = [*known.invars, *pick(v_carry, moved), *(v for v, _ in new_xs)]
    jaxpr = substituted(body, known.env, invars, known.first)
    jaxpr = rearranged(jaxpr, invars, [*pick(jaxpr.outvars[:nk], moved), *jaxpr.outvars[nk:]])
    news = iter(r.emit(Equation(
        scan_p, (*known.operands, *pick(carry, moved), *(x for _, x in new_xs)),
        (*pick(eqn.outvars[:nk], moved), *eqn.outvars[nk:]),
        {**p, "jaxpr": jaxpr, "num_consts": len(known.operands), "num_carry": sum(moved)},
        eqn.source)))
    return (*(x if s else next(news) for x, s in zip(carry, same, strict=True)), *news)


def _element(r: Rewriter, x: Atom) -> Atom | None:
    """The element of every iteration, where they are all alike."""
    made = r.made(x, broadcast_in_dim_p)
    if made is None or 0 in made.params["broadcast_dimensions"]:
        return None
    dims = tuple([d - 1 for d in made.params["broadcast_dimensions"]])
    source = made.invars[0]
    if not source.aval.shape and len(x.aval.shape) == 1:
        return source
    return r(broadcast_in_dim_p, source, shape=x.aval.shape[1:], broadcast_dimensions=dims)


@rule(scan_p, law="a stacked result that is known without the loop, or that comes twice")
def stacked_results(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    p = eqn.params
    nc, nk, body = p["num_consts"], p["num_carry"], p["jaxpr"]
    consts = dict(zip(body.invars[:nc], operands[:nc], strict=True))
    elements = dict(zip(body.invars[nc + nk:], operands[nc + nk:], strict=True))
    results: list[Atom | None] = []
    first: dict[Atom, int] = {}
    kept: list[int] = []
    for i, (out, var) in enumerate(zip(body.outvars[nk:], eqn.outvars[nk:], strict=True)):
        if out in elements:
            results.append(elements[out])
        elif isinstance(out, Literal) or out in consts:
            x = consts.get(out, out)
            results.append(r(broadcast_in_dim_p, x, shape=var.aval.shape,
                             broadcast_dimensions=tuple(range(1, len(var.aval.shape)))))
        else:
            results.append(None)
            if out not in first:
                first[out] = len(kept)
                kept.append(i)
    if len(kept) == len(results):
        return None
    outs = [*body.outvars[:nk], *first]
    news = r.emit(Equation(
        scan_p, operands, (*eqn.outvars[:nk], *(eqn.outvars[nk + i] for i in kept)),
        {**p, "jaxpr": rearranged(body, body.invars, outs)}, eqn.source))
    return (*news[:nk], *(news[nk + first[out]] if x is None else x for x, out in
                                zip(results, body.outvars[nk:], strict=True)))


@rule(scan_p, law="what is alike in all iterations is computed before the loop")
def invariant_of_scan(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    p = eqn.params
    nc = p["num_consts"]
    parts = hoisted(p["jaxpr"], p["jaxpr"].invars[:nc])
    if parts is None or p["length"] == 0:
        return None
    values = r.inline(parts[0], operands[:nc], eqn.source)
    return r.emit(eqn.replace(invars=(*values, *operands), params={
        **p, "jaxpr": parts[1], "num_consts": nc + len(values)}))


@rule(scan_p, law="a loop of one iteration is its body")
def single_iteration(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    p = eqn.params
    if p["length"] != 1:
        return None
    first = p["num_consts"] + p["num_carry"]
    elements = [r(reshape_p, x, new_sizes=x.aval.shape[1:]) for x in operands[first:]]
    outs = r.inline(p["jaxpr"], [*operands[:first], *elements], eqn.source)
    stacks = [r(reshape_p, y, new_sizes=v.aval.shape) if y.aval.shape else r.shaped(y, v.aval)
              for y, v in zip(outs[p["num_carry"]:], eqn.outvars[p["num_carry"]:], strict=True)]
    return (*outs[:p["num_carry"]], *stacks)


# ------------------------------------------------------------------------------- while


@rule(while_p, law="constants of a loop in normal form; what it carries unchanged is one")
def constants_of_while(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    p = eqn.params
    nt, nc, test, body = p["cond_nconsts"], p["body_nconsts"], p["cond_jaxpr"], p["body_jaxpr"]
    tests, consts, carry = counted(operands, nt, nc)
    nk = len(carry)
    t_consts, t_carry = counted(test.invars, nt)
    b_consts, b_carry = counted(body.invars, nc)
    of_test, of_body = Constants(r, eqn.source), Constants(r, eqn.source)
    same = [out is v for out, v in zip(body.outvars[:nk], b_carry, strict=True)]
    for known, variables, values in (
            (of_test, [*t_consts, *pick(t_carry, same)], [*tests, *pick(carry, same)]),
            (of_body, [*b_consts, *pick(b_carry, same)], [*consts, *pick(carry, same)])):
        for var, x in zip(variables, values, strict=True):
            known.add(var, x)
    if not (of_test.changed or of_body.changed or any(same)):
        return None
    moved = [not s for s in same]
    new_test = substituted(test, of_test.env, [*of_test.invars, *pick(t_carry, moved)],
                           of_test.first)
    new_body = substituted(body, of_body.env, [*of_body.invars, *pick(b_carry, moved)],
                           of_body.first)
    new_body = rearranged(new_body, new_body.invars,
                          [*pick(new_body.outvars[:nk], moved), *new_body.outvars[nk:]])
    news = iter(r.emit(Equation(
        while_p, (*of_test.operands, *of_body.operands, *pick(carry, moved)),
        (*pick(eqn.outvars[:nk], moved), *eqn.outvars[nk:]),
        {**p, "cond_jaxpr": new_test, "body_jaxpr": new_body,
         "cond_nconsts": len(of_test.operands), "body_nconsts": len(of_body.operands)},
        eqn.source)))
    return (*(x if s else next(news) for x, s in zip(carry, same, strict=True)), *news)


@rule(while_p, law="what is alike in all iterations is computed before the loop")
def invariant_of_while(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    p = eqn.params
    nt, nc = p["cond_nconsts"], p["body_nconsts"]
    tests, consts, carry = counted(operands, nt, nc)
    params = dict(p)
    for key, count, number in (("cond_jaxpr", "cond_nconsts", nt),
                               ("body_jaxpr", "body_nconsts", nc)):
        group = tests if key == "cond_jaxpr" else consts
        parts = hoisted(p[key], p[key].invars[:number])
        if parts is not None:
            group[:0] = r.inline(parts[0], group, eqn.source)
            params[key], params[count] = parts[1], len(group)
    if params == p:
        return None
    return r.emit(eqn.replace(invars=(*tests, *consts, *carry), params=params))


# ------------------------------------------------------------------------------- cond


@rule(cond_p, law="a choice by a literal, or among equals, is the case")
def known_choice(r: Rewriter, eqn: Equation, index: Atom, *operands: Atom) -> Results:
    branches = eqn.params["branches"]
    if isinstance(index, Literal):
        return r.inline(branches[int(index.value)], operands, eqn.source)
    if all(is_same_program(b, branches[0]) for b in branches):
        return r.inline(branches[0], operands, eqn.source)
    return None


@rule(cond_p, law="operands of a choice in normal form")
def operands_of_choice(r: Rewriter, eqn: Equation, index: Atom, *operands: Atom) -> Results:
    branches = []
    for branch in eqn.params["branches"]:
        known = Constants(r, eqn.source)
        for var, x in zip(branch.invars, operands, strict=True):
            known.add(var, x)
        if not known.changed:
            return None
        branches.append(substituted(branch, known.env, known.invars, known.first))
    return r.emit(eqn.replace(invars=(index, *known.operands),
                              params={**eqn.params, "branches": tuple(branches)}))


@rule(cond_p, law="a result that is the same in all cases, or that comes twice")
def results_of_choice(r: Rewriter, eqn: Equation, index: Atom, *operands: Atom) -> Results:
    branches = eqn.params["branches"]
    places = [{v: i for i, v in enumerate(b.invars)} for b in branches]
    results: list[Atom | int] = []
    first: dict[Any, int] = {}
    for outs in zip(*(b.outvars for b in branches), strict=True):
        at = {place.get(out, -1) for place, out in zip(places, outs, strict=True)}
        if len(at) == 1 and -1 not in at:
            results.append(operands[at.pop()])
        elif all(isinstance(out, Literal) and r.intern(out) is r.intern(outs[0])
                 for out in outs):
            results.append(r.intern(outs[0]))
        else:
            results.append(first.setdefault(outs, len(first)))
    if len(first) == len(results):
        return None
    kept = [results.index(i) for i in range(len(first))]
    news = r.emit(Equation(cond_p, eqn.invars, tuple([eqn.outvars[i] for i in kept]), {
        **eqn.params, "branches": tuple([rearranged(b, b.invars, [b.outvars[i] for i in kept])
                           for b in branches])}, eqn.source)) if kept else ()
    return tuple([news[x] if isinstance(x, int) else x for x in results])
