"""The engine of the passes: one sweep over a program that applies tables of rules as it goes.

A sweep emits the equations of a new program one by one. Each is looked up among those already
there (common subexpressions) and offered to the rules of its primitive; what a rule emits is
offered again. Operands are final when an equation is reached, so a chain of rewrites along the
program takes one sweep, and a sweep costs a few microseconds an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, literal_text
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.prune import has_effects
from functrans.core.record import Record
from functrans.core.sizes import substitute
from functrans.core.source import Source
from functrans.core.staging import stage
from functrans.lowering.defects import is_defect, warn_of_fallback
from functrans.primitives.arithmetic import add_p, max_p, min_p, mul_p
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.compare import and_p, eq_p, ne_p, or_p, xor_p
from functrans.primitives.differentiable import add_any_p

__all__ = ["COMMUTATIVE", "Change", "Results", "RewriteRule", "RewriteTable", "Rewriter",
           "count_uses", "equation_text", "inlined", "inlined_jaxpr", "key_of", "literal_key",
           "with_bodies", "with_equations"]


# --- Common subexpressions: the keys under which equal equations are found
#
# Two equations are one where primitive, parameters and operands agree; the order of the operands of
# a commutative operation does not count. Literals agree in dtype and bits, so -0.0 is not 0.0.
# Random bits are a function of their key and are merged too. What acts on the world is never
# merged, nor is `optimization_barrier`, which separates a recomputation from the first computation:
# what reads its results differs from what reads its operands.

COMMUTATIVE = frozenset((add_p, add_any_p, mul_p, max_p, min_p, and_p, or_p, xor_p, eq_p, ne_p))


def literal_key(literal: Literal) -> Any:
    """Equal for literals of one dtype and the same bits."""
    value = np.asarray(literal.value)
    return value.dtype, value.tobytes()


def key_of(eqn: Equation) -> Any:
    """Equal for equations that compute the same; None for those that must not be merged.

    Literals among the operands are interned, so operands are compared by identity.
    """
    primitive, operands, params = eqn.primitive, eqn.invars, eqn.params
    if primitive is optimization_barrier_p or (primitive.higher_order and has_effects(eqn)):
        return None
    if len(operands) == 2 and primitive in COMMUTATIVE:
        a, b = operands
        return primitive, ((a, b) if id(a) < id(b) else (b, a))
    if not params:
        return primitive, operands
    try:
        key = primitive, operands, frozenset(params.items())
        hash(key)
    except TypeError:  # a parameter that cannot be compared
        return None
    if float in map(type, params.values()):  # 0.0 == -0.0
        return *key, str(params)
    return key


Results = Atom | tuple[Atom, ...] | None
"""What a rule returns: the atoms in place of the results, or None where it does not apply."""

NEAR = 3  # rules look at the makers of operands, at their operands, and rarely at those of these


class Change(NamedTuple):
    """One rewrite: which pass and law, at which line of the user, and the equation as text.

    `of` are the results of the equation, `by` what stands in their place: by these it is found in
    the programs before and after.
    """

    table: str
    law: str
    source: Source | None
    before: str
    after: str
    of: tuple[Atom, ...] = ()
    by: tuple[Atom, ...] = ()

    def __str__(self) -> str:
        where = f" at {self.source.place}" if self.source else ""
        return f"{self.table}: {self.before}  ->  {self.after}  ({self.law}){where}"


class RewriteRule(Record):
    """A law and the function that applies it: (rewriter, equation, *operands) -> Results."""

    table: str
    law: str
    on: tuple[Primitive | type, ...]
    of: tuple[Primitive | type, ...]
    function: Callable[..., Results]

    def fits(self, primitive: Primitive) -> bool:
        """Whether it is for a primitive, whatever makes the operands."""
        return any(primitive is p or (isinstance(p, type) and isinstance(primitive, p))
                   for p in self.on)


class RewriteTable:
    """The rules of one pass, in the order in which they are tried."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: list[RewriteRule] = []

    def rule(self, *on: Primitive | type, law: str,
             of: Primitive | type | tuple[Primitive | type, ...] = ()) -> Callable[..., Any]:
        """Decorator: enter a function for some primitives, or for the classes of primitives.

        It is tried where an operand is made by one of the primitives `of`, or is a `Literal`;
        where `of` is not given, always.
        """
        def enter(function: Callable[..., Results]) -> Callable[..., Results]:
            self.rules.append(RewriteRule(self.name, law, on,
                                          of if isinstance(of, tuple) else (of,),
                                          function))
            return function
        return enter


class Dispatch:
    """The rules of several tables by primitive and by what makes its operands."""

    def __init__(self, tables: Sequence[RewriteTable]) -> None:
        self._rules = [rule for table in tables for rule in table.rules]
        self._of_primitive: dict[Primitive, tuple[RewriteRule, ...]] = {}
        self._known: dict[Any, tuple[RewriteRule, ...]] = {}

    def rules(self, primitive: Primitive, makers: frozenset[Any]) -> tuple[RewriteRule, ...]:
        """The rules to try; `makers` are the primitives of the operands, and `Literal`."""
        found = self._known.get((primitive, makers))
        if found is None:
            own = self._of_primitive.get(primitive)
            if own is None:
                own = self._of_primitive[primitive] = tuple(
                    [rule for rule in self._rules if rule.fits(primitive)])
            found = self._known[primitive, makers] = tuple(
                [rule for rule in own if not rule.of or not makers.isdisjoint(rule.of)])
        return found


class Rewriter:
    """A sweep, and the next: the equations emitted so far, and what rules ask about them."""

    def __init__(self, rules: Dispatch, simplify: Callable[[Jaxpr], Jaxpr],
                 log: list[Change] | None = None) -> None:
        self.rules = rules
        self.log = log
        self.simplify = simplify  # for the bodies of loops and branches
        self.eqns: list[Equation] = []
        self.changed = False
        self._source: Source | None = None
        self._makers: dict[Atom, Equation] = {}
        self._known: dict[Any, tuple[Atom, ...]] = {}
        self._keys: dict[Equation, Any] = {}
        self._literals: dict[Any, Literal] = {}
        self._uses: dict[Atom, int] = {}
        self._decided: set[str] = set()
        # equations that no rule applied to, and variables near which something changed since
        self._tried: set[Equation] = set()
        self._dirty: dict[Atom, int] = {}

    # ------------------------------------------------------------------ what rules ask and do

    def made(self, x: Atom, *primitives: Primitive) -> Equation | None:
        """The equation that makes x, if it is one of these primitives."""
        eqn = self._makers.get(x)
        return eqn if eqn is not None and eqn.primitive in primitives else None

    def maker(self, x: Atom) -> Equation | None:
        """The equation that makes x; None of inputs and literals."""
        return self._makers.get(x)

    def once(self, x: Atom) -> bool:
        """Whether x is known to be used once: rewriting its only reader leaves it dead."""
        return self._uses.get(x, 0) <= 1

    def constant(self, x: Atom) -> Any:
        """The NumPy scalar that every element of x is, or None."""
        if type(x) is Literal:
            return x.value
        eqn = self._makers.get(x)
        if eqn is not None and eqn.primitive is broadcast_in_dim_p \
                and type(eqn.invars[0]) is Literal:
            return eqn.invars[0].value
        return None

    def scalar(self, value: Any, dtype: np.dtype[Any]) -> Literal:
        """The literal of that value and dtype."""
        return self.intern(Literal(dtype.type(value), ShapedArray((), dtype)))

    def full(self, value: Any, aval: ShapedArray) -> Atom:
        """An array of the type of `aval`, every element of which is `value`."""
        return self.shaped(self.scalar(value, aval.dtype), aval)

    def shaped(self, x: Atom, aval: ShapedArray) -> Atom:
        """x where it has the shape of `aval`; repeated where it is a scalar and `aval` is not."""
        if len(x.aval.shape) == len(aval.shape):
            return x
        return self(broadcast_in_dim_p, x, shape=aval.shape, broadcast_dimensions=())

    def __call__(self, primitive: Primitive, *operands: Atom, **params: Any) -> Atom:
        """Emit an operation with one result, itself simplified."""
        aval = primitive.type(*[a.aval for a in operands], **params)
        return self.emit(Equation(primitive, operands, (Var(aval),), params, self._source))[0]

    def at(self, source: Source | None) -> None:
        """What is emitted next comes from this line of the user."""
        self._source = source

    def keep(self, eqn: Equation) -> None:
        """Add an equation as it is, with its variables."""
        self._append(eqn)

    def emit(self, eqn: Equation) -> tuple[Atom, ...]:
        """Emit a new equation, itself simplified: the atoms of its results."""
        uses = self._uses
        for a in eqn.invars:
            uses[a] = uses.get(a, 0) + 1
        return self.process(eqn)

    def intern(self, literal: Literal) -> Literal:
        """The one literal object of that dtype and those bits."""
        return self._literals.setdefault(literal_key(literal), literal)

    # ------------------------------------------------------------------ the sweep

    def sweep(self, jaxpr: Jaxpr) -> Jaxpr:
        """The rewritten program; `jaxpr` itself when no rule applies.

        A further sweep tries rules only near what changed since the last one.
        """
        uses = count_uses(jaxpr)
        if self._tried:
            self._dirty = {v: NEAR for v, n in uses.items() if self._uses.get(v, 0) != n}
            self._tried.intersection_update(jaxpr.eqns)
            if not self._dirty and len(self._tried) == len(jaxpr.eqns):
                return jaxpr
        self._uses = uses
        self.eqns, self._makers, self._known = [], {}, {}
        self._decided = set()
        self.changed = False
        env: dict[Atom, Atom] = {}
        self._run(jaxpr, env, {}, None, None)
        self._tried.update(self.eqns)
        if not self.changed:
            return jaxpr
        return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(self.eqns),
                     tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name)

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Atom],
               source: Source | None = None) -> tuple[Atom, ...]:
        """The results of `jaxpr` on `operands`, its equations among those of this program."""
        self.changed = True
        env: dict[Atom, Atom] = dict(zip(jaxpr.invars, operands, strict=True))
        sizes = _sizes_of_operands(jaxpr.invars, operands)
        # a size that the body decides gets another name where that name is taken
        sizes.update((n, Dim.fresh("n")) for n in jaxpr.decided_names & self._decided)
        uses = count_uses(jaxpr)
        for var, operand in env.items():
            self._uses[operand] = self._uses.get(operand, 0) + uses.get(var, 0)
        self._run(jaxpr, env, {n: s for n, s in sizes.items() if s != Dim(n)}, uses, source)
        return tuple([self._read(a, env) for a in jaxpr.outvars])

    def _read(self, atom: Atom, env: dict[Atom, Atom]) -> Atom:
        found = env.get(atom)
        if found is None:
            if isinstance(atom, Var):
                return atom
            found = env[atom] = self.intern(atom)
        return found

    def _run(self, jaxpr: Jaxpr, env: dict[Atom, Atom], sizes: dict[str, Any],
             body_uses: dict[Atom, int] | None, caller: Source | None) -> None:
        """Process the equations of a program.

        `env` maps variables and literals to atoms of the new program where they differ, `sizes` the
        names of sizes. The equations of an inlined body, of which `body_uses` says how often each
        variable is read, define variables of their own.
        """
        log = self.log
        fresh = body_uses is not None
        read = env.get
        dirty, tried = self._dirty, self._tried
        for eqn in jaxpr.eqns:
            outvars = eqn.outvars
            same = not fresh
            ins = []
            near = 0
            for a in eqn.invars:
                b = read(a)
                if b is None:
                    b = a if type(a) is Var else self._read(a, env)
                if b is not a:
                    same = False
                elif b in dirty and dirty[b] > near:
                    near = dirty[b]
                ins.append(b)
            if same and not near and eqn in tried and self._keys.get(eqn) not in self._known:
                self._append(eqn)
                continue
            self._source = source = eqn.source or caller
            if isinstance(eqn.primitive, HigherOrder) and eqn.primitive.called is not None:
                body, operands = eqn.primitive.called(ins, **eqn.params)
                results = self.inline(body, operands, source)
                if log is not None:
                    log.append(Change("inline", "a call is its body", source, eqn.primitive.name,
                                      f"{len(body.eqns)} equations", outvars, results))
                env.update(zip(outvars, results, strict=True))
                self._merge_uses(outvars, results, body_uses)
                sizes.update((n, s) for n, s in _sizes_of_operands(outvars, results).items()
                             if s != Dim(n))
                continue
            if not same:
                params: Mapping[str, Any] = eqn.params
                news = outvars
                if sizes:
                    known = {**sizes, **_sizes_of_operands(eqn.invars, ins)}
                    params = {k: substitute(v, known) for k, v in params.items()}
                    news = tuple([Var(v.aval.substitute(known)) for v in outvars])
                elif fresh:
                    news = tuple([Var(v.aval) for v in outvars])
                if news is not outvars:
                    self._merge_uses(outvars, news, body_uses)
                eqn = Equation(eqn.primitive, tuple(ins), news, params, source)
            results = self.process(eqn)
            if results is outvars and same and near > 1:
                dirty.update((v, max(dirty.get(v, 0), near - 1)) for v in outvars)
            if results is not outvars:
                env.update(zip(outvars, results, strict=True))
                if not fresh:
                    self.changed = True

    def _append(self, eqn: Equation) -> None:
        """Add an equation that no rule applies to."""
        self.eqns.append(eqn)
        makers = self._makers
        for v in eqn.outvars:
            makers[v] = eqn
        key = self._keys.get(eqn)
        if key is not None:
            self._known[key] = eqn.outvars
        if eqn.primitive.higher_order:
            self._decided |= eqn.primitive.decided_sizes(eqn.params)

    def process(self, eqn: Equation) -> tuple[Atom, ...]:
        """Add an equation to the new program, or what the rules make of it: its results' atoms."""
        primitive = eqn.primitive
        key = None if primitive.has_effect else key_of(eqn)
        if key is not None:
            known = self._known.get(key)
            if known is not None:
                if self.log is not None:
                    self.log.append(Change("cse", "the same operation on the same operands",
                                           eqn.source, equation_text(eqn), "merged",
                                           eqn.outvars, known))
                self._merge_uses(eqn.outvars, known)
                return known
        makers = self._makers
        operands = eqn.invars
        made_by = frozenset([makers[a].primitive if a in makers else type(a) for a in operands])
        for rule in self.rules.rules(primitive, made_by):
            try:
                found = rule.function(self, eqn, *operands)
            except Exception as error:
                if not is_defect(error):
                    raise
                # what the rule has added already is dead code
                warn_of_fallback(equation_text(eqn), f"the law {rule.law!r} is not applied",
                                 error, self._source)
                continue
            if found is not None:
                results = found if isinstance(found, tuple) else (found,)
                self.changed = True
                if self.log is not None:
                    self.log.append(Change(rule.table, rule.law, eqn.source, equation_text(eqn),
                                           ", ".join(map(self._made_text, results)),
                                           eqn.outvars, results))
                if key is not None:
                    self._known[key] = results
                self._merge_uses(eqn.outvars, results)
                return results
        if key is not None:
            self._keys[eqn] = key
        if eqn not in self._tried:
            self._dirty.update(dict.fromkeys(eqn.outvars, NEAR))
        self._append(eqn)
        return eqn.outvars

    def _merge_uses(self, olds: Sequence[Var], news: Sequence[Atom],
                    olds_uses: dict[Atom, int] | None = None) -> None:
        """What read the old variables reads the new ones."""
        uses = self._uses
        given = uses if olds_uses is None else olds_uses
        for old, new in zip(olds, news, strict=True):
            if new is not old:
                uses[new] = uses.get(new, 0) + given.get(old, 0)

    def _made_text(self, atom: Atom) -> str:
        eqn = self._makers.get(atom)
        return equation_text(eqn) if eqn is not None else _atom_text(atom)


def count_uses(jaxpr: Jaxpr) -> dict[Atom, int]:
    """How often each variable is read, by equations and outputs."""
    uses: dict[Atom, int] = {}
    for eqn in jaxpr.eqns:
        for a in eqn.invars:
            uses[a] = uses.get(a, 0) + 1
    for a in jaxpr.outvars:
        uses[a] = uses.get(a, 0) + 1
    return uses


def _sizes_of_operands(olds: Sequence[Atom], news: Sequence[Atom]) -> dict[str, Any]:
    """What the named sizes in the types of some variables are in those that replace them."""
    sizes: dict[str, Any] = {}
    for old, new in zip(olds, news, strict=True):
        for a, b in zip(old.aval.shape, new.aval.shape, strict=True):
            if isinstance(a, Dim) and a.is_name:
                sizes[a.name] = b
    return sizes


def _atom_text(atom: Atom) -> str:
    return f"{literal_text(atom.value)}:{atom.aval}" if isinstance(atom, Literal) else \
        str(atom.aval)


def equation_text(eqn: Equation) -> str:
    """An equation in a few words: its primitive and the types of its operands."""
    return " ".join([eqn.primitive.name, *map(_atom_text, eqn.invars)])


# --- Equations of functions: what rules that are written as functions put in place of an equation

def inlined(fun: Callable[..., Sequence[Any]], operands: Sequence[Atom], eqns: list[Equation],
            name: str, source: Source | None) -> list[Atom]:
    """The results of a flat function of some values, whose equations are added to `eqns`.

    Literals reach the function as scalars, other values as tracers.
    """
    variables = [x for x in operands if not isinstance(x, Literal)]

    def function(*given: Any) -> Sequence[Any]:
        values = iter(given)
        return fun(*[x.value if isinstance(x, Literal) else next(values) for x in operands])

    with config.narrow_64bit(False):  # the program has the dtypes that it has
        closed = stage(function, [x.aval for x in variables], name=name)
    assert not closed.consts
    env: dict[Var, Atom] = dict(zip(closed.jaxpr.invars, variables, strict=True))

    def read(x: Atom) -> Atom:
        return x if isinstance(x, Literal) else env.get(x, x)

    eqns += [eqn.replace(invars=tuple(map(read, eqn.invars)), source=source)
             for eqn in closed.jaxpr.eqns]
    return list(map(read, closed.jaxpr.outvars))


def with_functions(jaxpr: Jaxpr,
                   function_of: Callable[[Equation], Callable[..., Sequence[Any]] | None]) -> Jaxpr:
    """The program with the equations of functions in place of those that `function_of` knows.

    It is asked with operands as they are in the new program.
    """
    env: dict[Atom, Atom] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if any(a in env for a in eqn.invars):
            eqn = eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]))
        function = function_of(eqn)
        if function is None:
            eqns.append(eqn)
        else:
            outs = inlined(function, eqn.invars, eqns, eqn.primitive.name, eqn.source)
            env.update(zip(eqn.outvars, outs, strict=True))
    if not env:
        return jaxpr
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns),
                 tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name)


def with_equations(jaxpr: Jaxpr,
                   instead: Callable[[Equation], list[Equation] | None]) -> Jaxpr:
    """The program with several equations in place of those for which there are such."""
    found = [instead(eqn) for eqn in jaxpr.eqns]
    if not any(found):
        return jaxpr
    eqns = [new for eqn, own in zip(jaxpr.eqns, found, strict=True) for new in own or [eqn]]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def inlined_jaxpr(branch: Jaxpr, operands: Sequence[Atom], eqns: list[Equation]) -> list[Atom]:
    """The results of a branch, whose equations are added with variables of their own."""
    env: dict[Var, Atom] = dict(zip(branch.invars, operands, strict=True))

    def read(a: Atom) -> Atom:
        return a if isinstance(a, Literal) else env[a]

    for eqn in branch.eqns:
        outs = tuple([Var(v.aval) for v in eqn.outvars])
        eqns.append(eqn.replace(invars=tuple(map(read, eqn.invars)), outvars=outs))
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in branch.outvars]


def with_bodies(jaxpr: Jaxpr, change: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """The program with the bodies of its loops and branches changed."""
    if not jaxpr.calls:
        return jaxpr
    eqns = []
    for eqn in jaxpr.eqns:
        params: dict[str, Any] = {}
        for key, value in eqn.params.items():
            if isinstance(value, Jaxpr):
                params[key] = change(value)
            elif key == "branches":
                params[key] = tuple(map(change, value))
        same = all(params[key] == eqn.params[key] for key in params)
        eqns.append(eqn if same else eqn.replace(params={**eqn.params, **params}))
    if all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)):
        return jaxpr
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)
