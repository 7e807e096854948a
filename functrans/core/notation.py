"""Programs in a short notation for people: names of arguments, numbers and axes in few words.

`dot_general[ij,jk->ik]` has its axes as letters, and what the type of a result says already (the
shape of a `broadcast_in_dim`, the dtype of a conversion) is not said again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from functrans.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Literal,
    Var,
    letters,
    literal_text,
    param_text,
)
from functrans.core.record import Record

__all__ = ["Names", "bodies", "equation_line", "short_params"]

IN_THE_TYPE: Final = frozenset({
    "new_sizes", "new_dtype", "dtype", "weak_type", "sharding", "num_carry", "num_consts",
    "body_nconsts", "cond_nconsts"})
"""Parameters that the types of results and bodies say."""
DEFAULTS: Final[Mapping[str, Any]] = {
    "precision": None, "preferred_element_type": None, "fill_value": None, "out_sharding": None,
    "indices_are_sorted": False, "unique_indices": False, "reverse": False, "unroll": 1,
    "is_stable": True, "accuracy": None, "dimensions": None,
    "num_keys": 1, "masked": False, "record": None}
AXES: Final = "ijklmnopqrstuvw"
BATCH: Final = "bcdefgh"
SHORT: Final = {"broadcast_dimensions": "dims", "dimension_numbers": "dims", "permutation": "perm"}
LONGEST: Final = 80  # characters of a parameter


class Names:
    """What variables are called: some by given names, others by letters as they are met.

    The same variable has one name in all programs that are written with them.
    """

    def __init__(self, given: Mapping[Any, str] | None = None) -> None:
        self._names: dict[Atom, str] = dict(given or {})
        self._taken = {*self._names.values()}
        self._count = 0

    def __call__(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return literal_text(atom.value)
        name = self._names.get(atom)
        if name is None:
            name = letters(self._count)
            while name in self._taken:
                self._count += 1
                name = letters(self._count)
            self._count += 1
            self._names[atom] = name
        return name

    def give(self, names: Mapping[Var, str]) -> None:
        """Names for variables that have none yet."""
        for var, name in names.items():
            if self._names.setdefault(var, name) is name:
                self._taken.add(name)


def short_params(eqn: Equation) -> list[str]:
    """The parameters that tell something: `ij,jk->ik`, `axes=(1,)`; bodies are left out."""
    writer = _WRITERS.get(eqn.primitive.name)
    if writer is not None:
        return writer(eqn)
    found = []
    for key, value in sorted(eqn.params.items()):
        if key in IN_THE_TYPE or _is_body(value):
            continue
        if key in DEFAULTS and (value is DEFAULTS[key] or value == DEFAULTS[key]):
            continue
        if eqn.primitive.name == "broadcast_in_dim" and key == "shape":
            continue
        text = " ".join(param_text(value, 0).split())
        found.append(f"{SHORT.get(key, key)}="
                     f"{text if len(text) <= LONGEST else text[:LONGEST] + '...'}")
    return found


def _dot(eqn: Equation) -> list[str]:
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    x, y = [len(a.aval.shape) for a in eqn.invars[:2]]
    if x + y > len(AXES):
        return [f"dims={eqn.params['dimension_numbers']}"]
    first, second = [""] * x, [""] * y
    for letter, i, j in zip(BATCH, left_batch, right_batch):
        first[i] = second[j] = letter
    free = iter(AXES)
    for i in range(x):
        if not first[i]:
            first[i] = next(free)
    for i, j in zip(left, right, strict=True):
        second[j] = first[i]
    second = [letter or next(free) for letter in second]
    batch = [first[i] for i in left_batch]
    out = [*batch, *[c for i, c in enumerate(first) if i not in (*left, *left_batch)],
           *[c for j, c in enumerate(second) if j not in (*right, *right_batch)]]
    rest = [f"{k}={v}" for k, v in sorted(eqn.params.items())
            if k not in ("dimension_numbers", *IN_THE_TYPE) and v is not None]
    return [f"{''.join(first)},{''.join(second)}->{''.join(out)}", *rest]


def _slice(eqn: Equation) -> list[str]:
    p = eqn.params
    strides = p.get("strides") or (1,) * len(p["start_indices"])
    shape = eqn.invars[0].aval.shape
    parts = []
    for a, b, s, n in zip(p["start_indices"], p["limit_indices"], strides, shape, strict=True):
        whole = a == 0 and b == n
        parts.append((":" if whole else f"{a}:{b}") + (f":{s}" if s != 1 else ""))
    return [",".join(parts)]


_WRITERS: Final[Mapping[str, Callable[[Equation], list[str]]]] = {
    "dot_general": _dot, "slice": _slice}


def bodies(eqn: Equation) -> Iterator[tuple[str, Jaxpr]]:
    """The programs among the parameters of an equation, with what they are of it."""
    for key, value in sorted(eqn.params.items()):
        items = value if isinstance(value, (tuple, list)) else (value,)
        for k, item in enumerate(items):
            body = item.jaxpr if isinstance(item, ClosedJaxpr) else item
            if isinstance(body, Jaxpr):
                label = {"jaxpr": "body", "body_jaxpr": "body", "cond_jaxpr": "condition",
                         "branches": f"branch {k}"}.get(key, key)
                yield label, body


def _is_body(value: Any) -> bool:
    items = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(item, (Jaxpr, ClosedJaxpr)) for item in items)


class EquationLine(Record):
    """The parts of an equation as text."""

    outs: Sequence[tuple[str, str]]
    primitive: str
    params: str
    ins: Sequence[str]

    def __str__(self) -> str:
        outs = " ".join(f"{name}:{kind}" for name, kind in self.outs)
        params = f"[{self.params}]" if self.params else ""
        return f"{outs} = {self.primitive}{params} {' '.join(self.ins)}".rstrip()


def equation_line(eqn: Equation, names: Names) -> EquationLine:
    """An equation in the short notation, without its bodies."""
    ins = [names(a) for a in eqn.invars]
    return EquationLine([(names(v), str(v.aval)) for v in eqn.outvars], eqn.primitive.name,
                        " ".join(short_params(eqn)), ins)
