"""Results by name, as SciPy returns them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from functrans.core.keypath import GetAttrKey
from functrans.core.tree_registry import register_pytree_with_keys


class OptimizeResult(dict[str, Any]):
    """A dict whose entries are attributes, too; a tree, of which text is no leaf.

    >>> found = ft.scipy.optimize.OptimizeResult(x=jnp.ones(1), success=True)
    >>> found.x.tolist(), found["success"]
    ([1.0], True)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the result has no {name!r}; it has "
                                 f"{', '.join(map(str, self))}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *map(str, self)]

    def __repr__(self) -> str:
        if not self:
            return "OptimizeResult()"
        width = max(len(str(k)) for k in self) + 1
        return "\n".join(f"{k!s:>{width}}: {v!r}" for k, v in self.items())


def _flatten(result: OptimizeResult) -> tuple[Iterable[Any], Hashable]:
    names = tuple(k for k, v in result.items() if not isinstance(v, str))
    texts = tuple((k, v) for k, v in result.items() if isinstance(v, str))
    return tuple((GetAttrKey(k), result[k]) for k in names), (names, texts)


def _unflatten(aux: Any, children: Any) -> OptimizeResult:
    names, texts = aux
    return OptimizeResult(**dict(zip(names, children)), **dict(texts))


register_pytree_with_keys(OptimizeResult, _flatten, _unflatten)
