"""What a program and its inputs are called in the user's code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

from functrans.core.keypath import DictKey, keystr
from functrans.core.tree import tree_paths
from functrans.transforms.jit.api import Lowered

__all__ = ["input_names", "result_names", "short_path", "title_of"]


def title_of(lowered: Lowered, f: Any) -> str:
    """The name of a traced function; `call` of what was exported has the name of that."""
    if isinstance(f, MethodType):
        # later: explaining a function needs nothing of files
        from functrans.export.exported import Exported  # noqa: PLC0415

        if isinstance(f.__self__, Exported):
            return f.__self__.fun_name
    return lowered.jaxpr.name


def short_path(path: Iterable[Any]) -> str:
    """`[0].w`: keys of dicts that are names are written as attributes are."""
    return "".join([f".{key.key}" if isinstance(key, DictKey) and isinstance(key.key, str)
                    and key.key.isidentifier() else str(key) for key in path])


def result_names(lowered: Lowered) -> list[str]:
    """`result[0].w` for each output, or `result` where it is the only one."""
    return [f"result{short_path(path)}" for path in tree_paths(lowered.out_tree)]


def input_names(lowered: Lowered, f: Any, args: tuple[Any, ...],
                text: Callable[[Iterable[Any]], str] = keystr) -> list[str]:
    """`params['w']` for each input; constants of the trace, which come first, by number.

    `text` writes paths: `short_path` those of explanations.
    """
    paths = tree_paths(lowered.in_tree)
    count = len(lowered.jaxpr.invars) - len(paths)
    positional = 1 + max((path[0][1].idx for path in map(_halves, paths) if path[0][0] == 0),
                         default=-1)
    static = len(args) - positional  # where some are static, who is who is not known
    if isinstance(f, Lowered) and not args:
        f, static = f.function, 0
    names = _parameters(f) if callable(f) and static >= 0 else []
    found = [f"constant {k}" for k in range(count)]
    for (half, first), rest in map(_halves, paths):
        if half == 1:
            name = keystr([first], simple=True)
        elif static == 0 and first.idx < len(names):
            name = names[first.idx]
        else:
            name = f"argument {first.idx}"
        found.append(name + text(rest))
    return found


def _halves(path: Any) -> tuple[tuple[int, Any], Any]:
    """Whether a leaf is of a positional argument (0) or a keyword, which one, and where in it."""
    half, first, *rest = path
    return (half.idx, first), rest


def _parameters(f: Callable[..., Any]) -> list[str]:
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
