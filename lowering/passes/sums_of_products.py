"""Sums in another order: products of matrices of one form are added up first, together.

A backend can then compute them as one sum, in one accumulator. What else is added comes last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from functrans.core.dtypes import kind
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.primitives.arithmetic import add_p
from functrans.primitives.dot import dot_general_p

__all__ = ["MOST_TERMS", "SHORTEST", "group_products"]

MOST_TERMS: Final = 16
"""Products that are added up together; each is two more arguments of a kernel."""
SHORTEST: Final = 16
"""Shorter sums are of a precision of their own, or written out."""


def group_products(jaxpr: Jaxpr) -> Jaxpr:
    """The program in whose sums products of one form are next to each other, in groups."""
    sums = _SumsOfProducts(jaxpr)
    if not any(sums.order(eqn) for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    gone: set[Atom] = set()
    for eqn in reversed(jaxpr.eqns):
        groups = sums.order(eqn)
        if gone.isdisjoint(eqn.outvars):
            eqns += reversed(_added(eqn, groups) if groups else [eqn])
        if groups:
            gone.update(sums.inner(eqn))
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(reversed(eqns)), jaxpr.outvars,
                 name=jaxpr.name)


def _added(eqn: Equation, groups: Sequence[Sequence[Atom]]) -> list[Equation]:
    """The additions of groups, and of their sums, in place of the last addition of a sum."""
    made: list[Equation] = []

    def total(terms: Sequence[Atom]) -> Atom:
        acc = terms[0]
        for x in terms[1:]:
            out = Var(eqn.outvars[0].aval)
            made.append(eqn.replace(invars=(acc, x), outvars=(out,)))
            acc = out
        return acc

    total([total(group) for group in groups])
    made[-1] = made[-1].replace(outvars=eqn.outvars)
    return made


class _SumsOfProducts:
    """The sums of a program: additions whose results nothing but another addition reads."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.uses: Counter[Atom] = Counter(x for eqn in jaxpr.eqns for x in eqn.invars)
        self.uses.update(jaxpr.outvars)
        self.makers = {eqn.outvars[0]: eqn for eqn in jaxpr.eqns
                       if eqn.primitive in (add_p, dot_general_p)}
        self.parts = {x for eqn in jaxpr.eqns if _is_sum(eqn) for x in eqn.invars
                      if self._is_part(x, eqn)}

    def _is_part(self, x: Atom, of: Equation) -> bool:
        made = self._maker(x)
        return made is not None and self.uses[x] == 1 and _is_sum(made) \
            and made.outvars[0].aval == of.outvars[0].aval

    def _maker(self, x: Atom) -> Equation | None:
        return None if isinstance(x, Literal) else self.makers.get(x)

    def terms(self, eqn: Equation) -> list[Atom]:
        """What a sum adds up, in order."""
        found: list[Atom] = []
        waiting: list[Atom] = [*reversed(eqn.invars)]
        while waiting:
            x = waiting.pop()
            if x in self.parts:
                waiting += reversed(self.makers[x].invars)  # type: ignore[index]
            else:
                found.append(x)
        return found

    def inner(self, eqn: Equation) -> list[Atom]:
        """The sums of some of the terms."""
        found = [x for x in eqn.invars if x in self.parts]
        for x in found:
            found += [y for y in self.makers[x].invars if y in self.parts]  # type: ignore[index]
        return found

    def order(self, eqn: Equation) -> list[list[Atom]]:
        """The terms in groups, products first; none where they are in order."""
        if not _is_sum(eqn) or eqn.outvars[0] in self.parts:
            return []
        terms = self.terms(eqn)
        forms: dict[object, list[Atom]] = {}
        for x in terms:
            if (form := self._form(x)) is not None:
                forms.setdefault(form, []).append(x)
        groups = [part for same in forms.values() if len(same) > 1 for part in _parts(same)]
        if not groups or len(groups[0]) == len(terms):
            return []
        taken = {x for group in groups for x in group}
        return [*groups, *[[x] for x in terms if x not in taken]]

    def _form(self, x: Atom) -> object:
        """What products have in common that are added up together; None of other terms."""
        made = self._maker(x)
        if made is None or made.primitive is not dot_general_p or self.uses[x] != 1 \
                or not _is_long(made):
            return None
        return (*sorted((key, str(value)) for key, value in made.params.items()),
                *[a.aval.dtype for a in made.invars])


def _is_sum(eqn: Equation) -> bool:
    return eqn.primitive is add_p and kind(eqn.outvars[0].aval.dtype) == "f"


def _is_long(product: Equation) -> bool:
    (contracted, _), _ = product.params["dimension_numbers"]
    sizes = [product.invars[0].aval.shape[d] for d in contracted]
    return all(isinstance(n, int) for n in sizes) and math.prod(sizes) >= SHORTEST


def _parts(terms: list[Atom]) -> list[list[Atom]]:
    """Terms in parts of nearly equal size, none of which is too large."""
    count = -(-len(terms) // MOST_TERMS)
    size = -(-len(terms) // count)
    return [terms[k:k + size] for k in range(0, len(terms), size)]
