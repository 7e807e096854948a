"""Tables of rules by primitive: views of what primitives know, not tables of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from functrans.core.errors import ArgumentError, RegistrationError, shown
from functrans.core.primitive import Primitive
from functrans.core.source import user_source
from functrans.extend.user_primitive import UserPrimitive

__all__ = ["RuleTable", "user_primitive"]

Rule = Callable[..., Any]


def user_primitive(primitive: Any, what: str) -> UserPrimitive:
    """A primitive of a user; raises RegistrationError for one of the package."""
    if isinstance(primitive, UserPrimitive):
        return primitive
    if isinstance(primitive, Primitive):
        raise RegistrationError(f"{what}: {primitive.name} is an operation of functrans.",
                                where=user_source(), why="its rules are in its class.",
                                fix="functrans.custom_jvp, custom_vjp or custom_vmap of a function "
                                    "that calls it")
    raise ArgumentError(f"{what}: {shown(primitive)} is no primitive.", where=user_source(),
                        fix='p = functrans.extend.core.Primitive("name")')


class RuleTable(MutableMapping[Primitive, Rule]):
    """The rules of one kind; `of_ours` gives that of a primitive of the package in JAX's form."""

    def __init__(self, name: str, which: str,
                 of_ours: Callable[[Primitive], Rule | None]) -> None:
        self._name = name
        self._which = which
        self._of_ours = of_ours

    def __getitem__(self, primitive: Primitive) -> Rule:
        found = primitive.rules.get(self._which) if isinstance(primitive, UserPrimitive) \
            else self._of_ours(primitive)
        if found is None:
            raise KeyError(primitive)
        return found

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        user_primitive(primitive, self._name).rules[self._which] = rule

    def __delitem__(self, primitive: Primitive) -> None:
        del user_primitive(primitive, self._name).rules[self._which]

    def __iter__(self) -> Iterator[Primitive]:
        raise TypeError(f"{self._name} is asked for one primitive at a time: each knows its rules.")

    def __len__(self) -> int:
        raise TypeError(f"{self._name} is asked for one primitive at a time: each knows its rules.")

    def __bool__(self) -> bool:
        return True
