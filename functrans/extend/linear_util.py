"""Functions with transformations around them, under the names of `jax.extend.linear_util`.

A transformation is a function that is given the one it surrounds (`transformation2`), or a
generator that yields the arguments, is sent the results, and yields these again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from functrans.core.errors import explain_missing_names

__all__ = ["StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
           "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init"]


class StoreException(Exception):
    """What a transformation was to leave behind is not there yet, or there twice."""


class WrappedFun:
    """A function and the keywords that it is called with: what transformations surround."""

    def __init__(self, f: Callable[..., Any], params: Mapping[str, Any], key: Hashable) -> None:
        self.f = f
        self.params = dict(params)
        self.key = key
        """What functions that do the same have in common."""

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the function within its transformations."""
        return self.f(*args, **self.params, **kwargs)

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "function")


def wrap_init(f: Callable[..., Any], params: Mapping[str, Any] | None = None, *,
              debug_info: Any = None) -> WrappedFun:
    """A function with no transformation around it yet.

    >>> def doubled(f, *args):
    ...     return 2 * f(*args)
    >>> transformation2(doubled)(wrap_init(lambda x: x + 1)).call_wrapped(3)
    8
    """
    given = params or {}
    return WrappedFun(f, given, (f, tuple(sorted(given.items()))))


class _Store:
    """What a transformation leaves behind, once."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def __call__(self) -> Any:
        if not self.values:
            raise StoreException("the function was not called yet")
        return self.values[0]

    def put(self, value: Any) -> None:
        if self.values:
            raise StoreException("the function was called twice")
        self.values.append(value)


def transformation2(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation `gen(f, *static, *args)` that calls `f` itself."""
    def around(fun: WrappedFun, *static: Any) -> WrappedFun:
        def call(*args: Any, **kwargs: Any) -> Any:
            return gen(fun.call_wrapped, *static, *args, **kwargs)

        return WrappedFun(call, {}, (gen, static, fun.key))

    return around


def transformation_with_aux2(gen: Callable[..., Any]
                             ) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation `gen(f, store, *static, *args)` that may call `store.put(value)`.

    With the function comes one that returns that value once it is there.
    """
    def around(fun: WrappedFun, *static: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = _Store()

        def call(*args: Any, **kwargs: Any) -> Any:
            return gen(fun.call_wrapped, store, *static, *args, **kwargs)

        return WrappedFun(call, {}, (gen, static, fun.key)), store

    return around


def _run(gen: Callable[..., Any], f: Callable[..., Any], args: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:
    """What a generator makes of the results of a function on the arguments that it yields."""
    steps = gen(*args, **kwargs)
    inner, keywords = next(steps)
    made = steps.send(f(*inner, **keywords))
    steps.close()
    return made


def transformation(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation as a generator of `(args, kwargs)` and then of the results.

    >>> @transformation
    ... def shifted(by, x):
    ...     out = yield (x + by,), {}
    ...     yield out - by
    >>> shifted(wrap_init(lambda x: 2 * x), 10).call_wrapped(1)
    12
    """
    def run(f: Callable[..., Any], *given: Any, **kwargs: Any) -> Any:
        return _run(gen, f, given, kwargs)

    return transformation2(run)


def transformation_with_aux(gen: Callable[..., Any]
                            ) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation as a generator, whose last yield is a pair: results and what is kept."""
    def run(f: Callable[..., Any], store: Any, *given: Any, **kwargs: Any) -> Any:
        outs, kept = _run(gen, f, given, kwargs)
        store.put(kept)
        return outs

    return transformation_with_aux2(run)


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Which of two functions was called, the first one or not, and what it left behind.

    Raises StoreException where none or both were.
    """
    there = []
    for which, aux in ((True, aux1), (False, aux2)):
        try:
            there.append((which, aux()))
        except StoreException:
            continue
    if len(there) != 1:
        raise StoreException(f"{len(there)} of the two functions were called")
    return there[0]


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """`call(fun, *args)`, once for each function within its transformations and arguments."""
    known: dict[Any, Any] = {}

    def cached(fun: WrappedFun, *args: Any) -> Any:
        key = (fun.key, args)
        if key not in known:
            known[key] = call(fun, *args)
        return known[key]

    cached.cache_clear = known.clear  # type: ignore[attr-defined]
    return cached


explain_missing_names(globals())
