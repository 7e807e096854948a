"""The C text of expressions of a lane: vectors of lanes, or scalars where all lanes agree.

Each expression is a variable, declared as far out of the loops as what it reads allows. Several
vectors are worked at side by side: a line with `@` stands for one for each, with its number
(`side_by_side`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from functrans.lowering.c.expressions import (
    C_TYPES,
    Angles,
    CodeScope,
    ctype,
    index_text,
    operation_text,
)
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.loops.expr import Expr, computed_in
from functrans.lowering.loops.index import Computed, Index, LoopVar, Quotient, Remainder
from functrans.lowering.loops.lane_values import LaneBuilder, OnStack
from functrans.lowering.loops.tensor import ITEM_SIZES, Tensor
from functrans.lowering.schedule.group import has_constant_stride

__all__ = ["LaneExprWriter", "LaneScope", "side_by_side"]

SIMPLE_CONSTANTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic", "div", "rem")
"""Operations that are faster where the text of the second operand is a constant."""
WHOLE = ("i32", "u32", "i64", "u64")
ALL, END = "{@ ", " @}"
"""Around a mask: the masks of all vectors, joined."""
_ALL = re.compile(r"\{@ (.*?) @\}")


def side_by_side(text: str, vectors: int) -> str:
    """The text of a kernel with a line for each vector, where lines have `@` for its number."""
    def joined(found: re.Match[str]) -> str:
        return " | ".join(found[1].replace("@", str(u)) for u in range(vectors))

    lines = []
    for line in _ALL.sub(joined, text).splitlines(keepends=True):
        if "@" in line:
            lines += [line.replace("@", str(u)) for u in range(vectors)]
        else:
            lines.append(line)
    return "".join(lines)


class LaneScope:
    """The lines of one loop or branch, and the variables declared in it."""

    def __init__(self, code: CodeScope) -> None:
        self.code = code
        self.names: dict[Any, str] = {}


class LaneExprWriter:
    """Writes expressions into the scopes of a kernel of lanes, the outermost first."""

    def __init__(self, prelude: Prelude, lanes: int, builder: LaneBuilder,
                 operands: list[Tensor]) -> None:
        self.prelude = prelude
        self.lanes = lanes
        self.s = builder
        self.operands = operands
        self.scopes = [LaneScope(CodeScope("    "))]
        self.levels: dict[Any, int] = {}
        self._known_levels: dict[Expr, int] = {}
        self._count = 0
        self.weight = 0
        self.angles = Angles(prelude)
        self.named: dict[str, Expr] = {}  # for who looks at the kernel

    # --- scopes

    def name(self, letter: str = "v", varies: bool = False) -> str:
        self._count += 1
        return f"{letter}{self._count}{'_@' * varies}"

    def any(self, mask: str) -> str:
        """Whether a mask holds in any lane."""
        return self.prelude.reduce("or", "bool", self.lanes, f"{ALL}{mask}{END}")

    @property
    def level(self) -> int:
        return len(self.scopes) - 1

    def line(self, text: str, scope: LaneScope | None = None) -> None:
        (scope or self.scopes[-1]).code.line(text)

    def push(self) -> None:
        self.scopes.append(LaneScope(self.scopes[-1].code.nested()))

    def pop(self, head: str, end: str = "}") -> None:
        """Close the innermost scope: its lines follow `head`."""
        inner = self.scopes.pop()
        self.line(head)
        self.scopes[-1].code.take(inner.code)
        self.line(end)

    def _level(self, e: Expr) -> int:
        found = self._known_levels.get(e)
        if found is None:
            found = max((self._known_levels[x] for x in e.inside), default=0)
            if e.op == "local":
                found = self.levels[e.aux]
            elif e.op in ("load", "slot", "index"):
                index = e.aux if e.op == "index" else e.aux[1]
                found = max([found, *(self.levels.get(v, 0) for v in index.variables()),
                             *(self._known_levels[x] for x in _computed(e))])
                if e.op == "slot":
                    of = e.aux[0]
                    found = max(found, of.level if isinstance(of, OnStack) else
                                max(self._known_levels[x] for x in of))
                if e.op == "load":
                    found = max(found, self.levels.get(e.aux[0], 0))
            self._known_levels[e] = found
        return found

    # --- values

    def varies(self, e: Expr) -> bool:
        return e.depends_on(self.s.lane)

    def type(self, dtype: str, varies: bool) -> str:
        return self.prelude.vtype(dtype, self.lanes) if varies else ctype(dtype)

    def value(self, e: Expr, varies: bool) -> str:
        """The text of a value, in all lanes or as a scalar."""
        self._write(e)
        return self._vector(e) if varies else self._text(e)

    def _text(self, e: Expr) -> str:
        if e.op == "const":
            return self.prelude.literal(e.aux, e.dtype)
        if e.op == "local":
            return str(e.aux)
        return self.scopes[self._known_levels[e]].names[e]

    def _vector(self, e: Expr) -> str:
        if self.varies(e):
            return self._text(e)
        scope = self.scopes[self._known_levels[e]]
        key = (e, "all")
        if key not in scope.names:
            scope.names[key] = self._fresh(scope, self.type(e.dtype, True), self.prelude.broadcast(
                e.dtype, self.lanes, self._text(e)), False)
        return scope.names[key]

    def _fresh(self, scope: LaneScope, type_name: str, text: str, varies: bool) -> str:
        name = self.name("v", varies)
        self.line(f"const {type_name} {name} = {text};", scope)
        return name

    def _write(self, root: Expr) -> None:
        """Declare an expression and what it reads, operands first."""
        stack: list[Expr | None] = [root]
        while stack:
            e = stack.pop()
            if e is None:
                self._declare(stack.pop())  # type: ignore[arg-type]
            elif not self._is_declared(e):
                stack += (e, None, *_inside(e))

    def order_of(self, roots: Sequence[Expr]) -> tuple[list[int], dict[str, int]]:
        """An order to write some values in, and where in it each variable is read last.

        A value that is there once another one is written follows it.
        """
        numbers: dict[Expr, list[int]] = {}
        for k, e in enumerate(roots):
            numbers.setdefault(e, []).append(k)
        order: dict[int, None] = {}
        last: dict[str, int] = {}
        seen: set[Expr] = set()
        for k, root in enumerate(roots):
            reads, made, stack = set(), [k], [root]
            while stack:
                e = stack.pop()
                if e.op == "local":
                    reads.add(str(e.aux))
                elif e not in seen and not self._is_declared(e):
                    seen.add(e)
                    made += numbers.get(e, [])
                    stack += _inside(e)
            if k not in order:
                order.update(dict.fromkeys(made))
            last.update(dict.fromkeys(reads, len(order) - 1))
        return list(order), last

    def _is_declared(self, e: Expr) -> bool:
        level = self._known_levels.get(e)
        if level is None:
            return False
        return e.op in ("const", "local") or (
            level < len(self.scopes) and e in self.scopes[level].names)

    def _declare(self, e: Expr) -> None:
        level = self._level(e)
        if e.op in ("const", "local") or e in self.scopes[level].names:
            return
        scope, varies = self.scopes[level], self.varies(e)
        if e.op == "load":
            text = self._load(e.aux[0], e.aux[1], varies, scope)
        elif e.op == "slot":
            text = self._slot(e, varies, scope)
        elif e.op == "index":
            text = self._number(e, varies, scope)
        else:
            masked = self._masked(e, level) if varies else None
            if masked is not None:
                text = masked
            else:
                args = [self._operand(e, k, a, varies) for k, a in enumerate(e.args)]
                text = ""
        scope.names[e] = name = self._fresh(scope, self.type(e.dtype, varies), text, varies) \
            if text else self._operated(e, args, scope, varies)
        self.named[name.removesuffix("_@")] = e

    def _operated(self, e: Expr, args: list[str], scope: LaneScope, varies: bool) -> str:
        """A new variable with the value of an operation."""
        lanes = self.lanes if varies else 1
        if e.op in Angles.OTHER:
            joined = self.angles.joined(e, args[0], lanes, scope.code,
                                        lambda: self.name("v", varies))
            if joined is not None:
                return joined
        name = self.name("v", varies)
        number = scope.code.line(f"const {self.type(e.dtype, varies)} {name} = "
                                 f"{operation_text(self.prelude, e, args, lanes)};")
        self.angles.written(e, lanes, scope.code, number, name)
        return name

    def _masked(self, e: Expr, level: int) -> str | None:
        """A choice of whole numbers or zero as bits, where what decides is known before the loop.

        There are few registers for masks: more than these are read from memory in each step.
        """
        if e.op != "select" or e.dtype not in WHOLE or not self.varies(e.args[0]) \
                or self._known_levels[e.args[0]] >= level:
            return None
        mask, one, other = e.args
        zeros = [x.op == "const" and x.aux == 0 for x in (one, other)]
        if not any(zeros):
            return None
        scope, key = self.scopes[self._known_levels[mask]], (mask, "bits", e.dtype)
        if key not in scope.names:
            bits = [self.prelude.broadcast(e.dtype, self.lanes, self.prelude.literal(n, e.dtype))
                    for n in ((1 << 8 * ITEM_SIZES[e.dtype]) - 1 if e.dtype[0] == "u" else -1, 0)]
            scope.names[key] = self._fresh(scope, self.type(e.dtype, True), self.prelude.op(
                "select", ("bool", e.dtype, e.dtype), (self._text(mask), *bits), self.lanes), True)
        bits_text = scope.names[key]
        return f"({self._vector(one)} & {bits_text})" if zeros[1] else \
            f"({self._vector(other)} & ~{bits_text})"

    def _operand(self, e: Expr, k: int, a: Expr, varies: bool) -> str:
        if not varies:
            return self._text(a)
        if k == 1 and a.op == "const" and e.op in SIMPLE_CONSTANTS:
            return self.prelude.broadcast(a.dtype, self.lanes, self._text(a))
        return self._vector(a)

    # --- places

    def index(self, index: Index) -> str:
        """A place that is the same for all lanes of the vector, as C; the first lane is `i`."""
        return index_text(index, {}, lambda atom: f"(i64){self._text(atom.value)}")

    def pointer(self, t: Tensor) -> str:
        return f"p{self.operands.index(t)}"

    def _load(self, t: Tensor, place: Index, varies: bool, scope: LaneScope) -> str:
        p, base = self.prelude, self.pointer(t)
        if not varies:
            return p.load_scalar(t.dtype, f"{base} + ({self.index(place)})")
        if not has_constant_stride(place, self.s.lane):
            return p.gather(t.dtype, self.lanes, base, self._numbers(place, scope), "i32")
        stride = place.coefficient(self.s.lane)
        if stride == 1:
            return p.load(t.dtype, self.lanes, f"{base} + ({self.index(place)})")
        return p.strided(t.dtype, self.lanes, f"{base} + ({self.index(place)})", str(stride))

    def _slot(self, e: Expr, varies: bool, scope: LaneScope) -> str:
        of, place = e.aux
        if isinstance(of, OnStack):
            name, many = of.name, of.varies
        else:
            name, many = self._stacked(of)
        if place.depends_on(self.s.lane):
            lanes = self.lanes if many else 1
            scalar = C_TYPES[e.dtype]
            number = self._numbers(place * lanes, scope)
            if many:
                own = self.prelude.iota("i32", self.lanes, "(i32)0")
                number = f"({number} + {own})"
            return self.prelude.gather(e.dtype, self.lanes, f"(const {scalar} *){name}", number,
                                       "i32")
        text = f"{name}[{self.index(place)}]"
        return text if many or not varies else self.prelude.broadcast(e.dtype, self.lanes, text)

    def _stacked(self, elements: Sequence[Expr]) -> tuple[str, bool]:
        """The array of some values, and whether they are vectors."""
        many = any(map(self.varies, elements))
        scope = self.scopes[max(self._known_levels[e] for e in elements)]
        key = ("stacked", tuple(elements))
        if key not in scope.names:
            name = scope.names[key] = self.name("a", many)
            texts = [self._vector(e) if many else self._text(e) for e in elements]
            self.line(f"{self.type(elements[0].dtype, many)} {name}[{len(texts)}];", scope)
            for k, text in enumerate(texts):
                self.line(f"{name}[{k}] = {text};", scope)
        return scope.names[key], many

    def _number(self, e: Expr, varies: bool, scope: LaneScope) -> str:
        p = self.prelude
        if not varies:
            text = f"((i64)({self.index(e.aux)}))"
            return text if e.dtype == "i64" else p.convert("i64", e.dtype, text, 1)
        value = self._numbers(e.aux, scope)
        return value if e.dtype == "i32" else p.convert("i32", e.dtype, value, self.lanes)

    def _numbers(self, index: Index, scope: LaneScope) -> str:
        """The values of an index in all lanes, in 32 bits."""
        p, lanes = self.prelude, self.lanes
        same = Index({a: c for a, c in index.terms.items()
                      if not Index({a: 1}).depends_on(self.s.lane)}, index.const)
        parts = []
        for atom, c in index.terms.items():
            if atom in same.terms:
                continue
            if isinstance(atom, LoopVar):
                value = p.iota("i32", lanes, f"(i32){atom.name}")
            elif isinstance(atom, Computed):
                value = self._vector(atom.value)
                if atom.value.dtype != "i32":
                    value = p.convert(atom.value.dtype, "i32", value, lanes)
            else:
                assert isinstance(atom, (Quotient, Remainder))
                sign = "/" if isinstance(atom, Quotient) else "%"
                value = f"({self._numbers(atom.index, scope)} {sign} {atom.divisor})"
            parts.append(value if c == 1 else f"{value} * {c}")
        rest = self.index(same)
        if rest != "0":
            parts.append(p.broadcast("i32", lanes, f"(i32)({rest})"))
        return f"({' + '.join(parts)})"


def _computed(e: Expr) -> list[Expr]:
    """The computed values in the place that an expression reads."""
    if e.op == "slot":
        probe = Expr("index", (), "i64", e.aux[1], frozenset())
        return computed_in(probe)
    return computed_in(e)


def _inside(e: Expr) -> list[Expr]:
    """What must be declared before an expression."""
    if e.op != "slot":
        return list(e.inside)
    of = e.aux[0]
    return [*_computed(e), *(() if isinstance(of, OnStack) else of)]
