"""Static arguments of `jit`: hashable Python values that a program is made for."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from functrans.core.errors import StaticArgumentError, shown
from functrans.core.record import Record
from functrans.core.source import user_source
from functrans.core.trace import is_array
from functrans.transforms.flat import name_of

__all__ = ["StaticArguments"]


class StaticArguments(Record):
    """Which arguments of a function are static: positions, and names when passed by keyword."""

    argnums: tuple[int, ...]
    argnames: tuple[str, ...]
    name: str
    parameters: tuple[str, ...] | None
    variadic: bool = False
    keywords: tuple[str, ...] | None = None

    @staticmethod
    def of(fun: Callable[..., Any], argnums: Any, argnames: Any,
           what: str = "jit") -> StaticArguments:
        """Complete one by the other from the function's signature, where it has one.

        Raises StaticArgumentError when a name or position is not there.
        """
        name = name_of(fun)
        nums = _positions(argnums, "static_argnums", what)
        names = _names(argnames, "static_argnames", what)
        signature = _signature(fun)
        if signature is None:
            return StaticArguments(nums, names, name, None)
        positional, variadic, keywords = signature
        for i in nums:
            if not variadic and not -len(positional) <= i < len(positional):
                raise StaticArgumentError(
                    f"{what}: static_argnums={i} is out of range: {name} has {len(positional)} "
                    "positional parameters.", where=user_source())
        for n in names:
            if n not in positional and n not in keywords and "**" not in keywords:
                raise StaticArgumentError(
                    f"{what}: static_argnames names {n!r}, but {name} has no such parameter.",
                    where=user_source(), fix=f"one of {', '.join((*positional, *keywords))}")
        all_nums = sorted({i % len(positional) if positional and not variadic else i for i in nums}
                          | {positional.index(n) for n in names if n in positional})
        all_names = sorted(set(names) | {positional[i] for i in all_nums if i < len(positional)})
        return StaticArguments(tuple(all_nums), tuple(all_names), name, tuple(positional),
                               variadic, tuple(keywords))

    def has_parameter(self, name: str) -> bool:
        """Whether the function can be called with an argument of that name."""
        return self.parameters is None or self.keywords is None or name in self.parameters \
            or name in self.keywords or "**" in self.keywords

    def positions(self, argnums: Any, argnames: Any, what: str) -> tuple[int, ...]:
        """Positions given as ints and names; none of them may be static."""
        nums, names = _positions(argnums, what), _names(argnames, what.replace("nums", "names"))
        if self.parameters is not None and not self.variadic:
            for i in nums:
                if not -len(self.parameters) <= i < len(self.parameters):
                    raise StaticArgumentError(
                        f"jit: {what}={i} is out of range: {self.name} has "
                        f"{len(self.parameters)} positional parameters.")
        found = set(nums)
        for n in names:
            if self.parameters is None or n not in self.parameters:
                raise StaticArgumentError(f"jit: {self.name} has no parameter {n!r}.",
                                          where=user_source())
            found.add(self.parameters.index(n))
        both = found & set(self.argnums)
        if both:
            raise StaticArgumentError(f"jit: argument {min(both)} of {self.name} is both static "
                                      f"and in {what}.", where=user_source(),
                                      why="only arrays can be donated.")
        return tuple(sorted(found))

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """((dynamic args, dynamic kwargs), static values as a hashable key)."""
        if not self.argnums and not self.argnames:
            return (args, kwargs), None
        nums = {i % len(args) if i < 0 else i for i in self.argnums}
        fixed_args = tuple((i, args[i]) for i in sorted(nums) if i < len(args))
        fixed_kwargs = tuple((k, kwargs[k]) for k in sorted(kwargs) if k in self.argnames)
        fixed: tuple[tuple[int | str, Any], ...] = (*fixed_args, *fixed_kwargs)
        for key, value in fixed:
            self._check_hashable(key, value)
        dynamic = tuple(a for i, a in enumerate(args) if i not in nums)
        keywords = {k: v for k, v in kwargs.items() if k not in self.argnames}
        typed = tuple((k, Static(v)) for k, v in fixed)
        return (dynamic, keywords), (len(args), typed)

    def restore(self, fun: Callable[..., Any], fixed: Any) -> Callable[..., Any]:
        """`fun` with the static values filled in."""
        if fixed is None:
            return fun
        count, values = fixed
        by_key = {k: v.value for k, v in values}

        def call(*dynamic: Any, **keywords: Any) -> Any:
            rest = iter(dynamic)
            args = [by_key[i] if i in by_key else next(rest) for i in range(count)]
            named = {k: v for k, v in by_key.items() if isinstance(k, str)}
            return fun(*args, **keywords, **named)

        return call

    def _check_hashable(self, key: int | str, value: Any) -> None:
        try:
            hash(value)
            return
        except TypeError as error:
            reason = str(error)
        label = repr(key) if isinstance(key, str) else f"argument {key}"
        if isinstance(key, int) and self.parameters and key < len(self.parameters):
            label += f" ({self.parameters[key]!r})"
        path, part = _unhashable_part(value)
        inner = f", whose part {path} is a {type(part).__name__}" if path else ""
        raise StaticArgumentError(
            f"jit of {self.name}: the static {label} is not hashable: it is a "
            f"{type(value).__name__}{inner}.", where=user_source(),
            why=f"programs are looked up by the values of static arguments ({reason}).",
            fix=_hashable_instead(part))


def _positions(given: Any, what: str, of: str = "jit") -> tuple[int, ...]:
    """An int or several, as a tuple."""
    values = () if given is None else (given,) if isinstance(given, (int, str)) else tuple(given)
    for i in values:
        if not isinstance(i, int):
            raise StaticArgumentError(f"{of}: {what} takes positions, got {shown(i)}.",
                                      fix=f"{what.replace('nums', 'names')}={given!r}"
                                      if isinstance(i, str) else f"{what}=(0, 1)")
    return values


def _names(given: Any, what: str, of: str = "jit") -> tuple[str, ...]:
    """A name or several, as a tuple."""
    values = () if given is None else (given,) if isinstance(given, (int, str)) else tuple(given)
    for n in values:
        if not isinstance(n, str):
            raise StaticArgumentError(f"{of}: {what} takes names of parameters, got {shown(n)}.",
                                      fix=f"{what.replace('names', 'nums')}={given!r}")
    return values


class Static(Record):
    """A static value compared with its type, so that 1, 1.0 and True are different programs."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Static) and type(self.value) is type(other.value)
                and bool(self.value == other.value))

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


def _unhashable_part(value: Any) -> tuple[str, Any]:
    """Where inside a container the unhashable part is, `.layers[0]`, and that part."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(f".{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        parts = [(f"[{i}]" if names is None else f".{names[i]}", v) for i, v in enumerate(value)]
    else:
        return "", value
    for label, part in parts:
        try:
            hash(part)
        except TypeError:
            path, innermost = _unhashable_part(part)
            return label + path, innermost
    return "", value


def _hashable_instead(part: Any) -> str:
    """What to pass in place of an unhashable value."""
    if isinstance(part, list):
        return "a tuple instead of the list"
    if isinstance(part, dict):
        return "tuple(sorted(d.items())) instead of the dict, or a frozen dataclass"
    if isinstance(part, (set, bytearray)):
        return f"{'frozenset' if isinstance(part, set) else 'bytes'}(x) instead"
    if dataclasses.is_dataclass(part):
        return f"@dataclass(frozen=True) for {type(part).__name__}"
    if is_array(part):
        return "make it a dynamic argument: leave it out of static_argnums and static_argnames"
    return f"define __eq__ and __hash__ of {type(part).__name__}"


def _signature(fun: Callable[..., Any]) -> tuple[list[str], bool, list[str]] | None:
    """Positional parameters, whether there is *args, and keyword-only ones ("**" for **kwargs)."""
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        return None
    positional, keywords, variadic = [], [], False
    for p in signature.parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            positional.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            variadic = True
        elif p.kind is p.KEYWORD_ONLY:
            keywords.append(p.name)
        else:
            keywords.append("**")
    return positional, variadic, keywords
