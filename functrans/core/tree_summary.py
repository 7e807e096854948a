"""`tree.summary`: the arrays of a tree as a table that folds, with their ranges and NaN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from html import escape
from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.byte_text import byte_text
from functrans.core.keypath import DictKey, GetAttrKey
from functrans.core.record import Record
from functrans.core.trace import Tracer
from functrans.core.tree import tree_flatten_with_path

__all__ = ["Leaf", "Summary", "summary_of"]

MOST_LINES: Final = 60
"""Of a table on a terminal: below it levels are folded, the deepest first."""
TITLES: Final = ("", "shape", "dtype", "bytes", "min", "max", "NaN")


class Leaf(Record):
    """An array of a tree: where it is, its type, and what is known of its numbers.

    `low`, `high` and `nans` are None for what has no values yet, or none that are numbers.
    """

    path: tuple[Any, ...]
    shape: tuple[Any, ...]
    dtype: str
    nbytes: int
    low: float | int | None = None
    high: float | int | None = None
    nans: int | None = None

    @property
    def name(self) -> str:
        """`.layers[0].w`."""
        return "".join(map(_key_text, self.path))


class _SummaryNode(Record, frozen=False, eq=False):
    """A level of a tree: its leaf, or the levels below."""

    name: str
    leaf: Leaf | None = None
    below: dict[Any, _SummaryNode] = field(default_factory=dict)

    def leaves(self) -> Iterator[Leaf]:
        if self.leaf is not None:
            yield self.leaf
        for node in self.below.values():
            yield from node.leaves()


class Summary:
    """The arrays of a tree: printed as a table, in a notebook one that folds; `leaves` as data."""

    def __init__(self, leaves: Sequence[Leaf], depth: int | None) -> None:
        self.leaves = tuple(leaves)
        self._depth = depth
        self._root = _SummaryNode("tree")
        for leaf in leaves:
            node = self._root
            for key in leaf.path:
                node = node.below.setdefault(key, _SummaryNode(_key_text(key)))
            node.leaf = leaf

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(leaf.nbytes for leaf in self.leaves)

    @property
    def nans(self) -> int:
        """Of all arrays."""
        return sum(leaf.nans or 0 for leaf in self.leaves)

    def __str__(self) -> str:
        depths = range(max((len(x.path) for x in self.leaves), default=0), 0, -1)
        rows = [list(_rows(self._root, 0, self._depth))]
        if self._depth is None:
            rows += [list(_rows(self._root, 0, d)) for d in depths]
        shown = next((r for r in rows if len(r) <= MOST_LINES), rows[-1])
        table = [list(TITLES), *shown]
        widths = [max(len(row[c]) for row in table) for c in range(len(TITLES))]
        return "\n".join("  ".join(
            text.ljust(w) if c in (0, 1, 2) else text.rjust(w)
            for c, (text, w) in enumerate(zip(row, widths, strict=True))).rstrip()
            for row in table)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f'<b role="columnheader">{escape(t)}</b>' for t in TITLES[1:])
        return (f'<div class="ft-summary" role="table"><style>{STYLE}</style>'
                f'<div class="r" role="row"><span role="columnheader"></span>{head}</div>'
                f"{_html(self._root, True)}</div>")


STYLE: Final = """\
.ft-summary{font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;overflow-x:auto}
.ft-summary details{margin-left:14px}.ft-summary summary{cursor:pointer;margin-left:-14px}
.ft-summary .r{display:grid;gap:0 8px;margin-left:14px;min-width:38em;
grid-template-columns:minmax(4em,1fr) 8em 5.5em 5em 5em 5em 3em}
.ft-summary .r>*{overflow-wrap:anywhere;text-align:right}
.ft-summary .r>:nth-child(-n+3){text-align:left}
.ft-summary .nan{color:#c2560c;font-weight:700}
@media (prefers-color-scheme:dark){.ft-summary .nan{color:#f0945a}}
"""


def _html(node: _SummaryNode, is_open: bool) -> str:
    if node.leaf is not None:
        cells = _cells(node.leaf)
        marks = [' class="nan"' if node.leaf.nans and c == len(cells) - 1 else ""
                 for c in range(len(cells))]
        inner = "".join(f'<span role="cell"{mark}>{escape(text)}</span>'
                        for text, mark in zip(cells, marks, strict=True))
        return (f'<div class="r" role="row"><span role="rowheader">{escape(node.name)}</span>'
                f"{inner}</div>")
    inner = "".join(_html(below, len(node.below) <= 12) for below in node.below.values())
    state = " open" if is_open else ""
    return (f"<details{state}><summary>{escape(node.name)} "
            f"<span style='opacity:.7'>{escape(_total(node))}</span></summary>{inner}</details>")


def _rows(node: _SummaryNode, level: int, depth: int | None) -> Iterator[list[str]]:
    name = "  " * level + node.name
    if node.leaf is not None:
        yield [name, *_cells(node.leaf)]
        return
    leaves = list(node.leaves())
    if depth is not None and level >= depth:
        known = [x for x in leaves if x.low is not None and x.high is not None]
        low = _number(min((x.low for x in known if x.low is not None), default=None))
        high = _number(max((x.high for x in known if x.high is not None), default=None))
        kinds = {x.dtype for x in leaves}
        yield [name, f"{len(leaves)} array{'s' * (len(leaves) != 1)}",
               kinds.pop() if len(kinds) == 1 else f"{len(kinds)} dtypes",
               byte_text(sum(x.nbytes for x in leaves)), low, high, _count(leaves)]
        return
    yield [name, f"{len(leaves)} array{'s' * (len(leaves) != 1)}", "",
           byte_text(sum(x.nbytes for x in leaves)), "", "", _count(leaves)]
    for below in node.below.values():
        yield from _rows(below, level + 1, depth)


def _total(node: _SummaryNode) -> str:
    leaves = list(node.leaves())
    nans = sum(x.nans or 0 for x in leaves)
    told = f", {nans} NaN" if nans else ""
    return (f"{len(leaves)} array{'s' * (len(leaves) != 1)}, "
            f"{byte_text(sum(x.nbytes for x in leaves))}{told}")


def _count(leaves: Sequence[Leaf]) -> str:
    return str(sum(x.nans or 0 for x in leaves) or "")


def _cells(leaf: Leaf) -> list[str]:
    return [f"[{','.join(map(str, leaf.shape))}]", leaf.dtype, byte_text(leaf.nbytes),
            _number(leaf.low), _number(leaf.high), str(leaf.nans or "")]


def _number(x: float | int | None) -> str:
    if x is None:
        return ""
    return str(x) if isinstance(x, int) else f"{x:.4g}"


def _key_text(key: Any) -> str:
    match key:
        case DictKey(str() as name) if name.isidentifier():
            return f".{name}"
        case GetAttrKey():
            return str(key)
        case _:
            return str(key)


def summary_of(tree: Any, depth: int | None) -> Summary:
    """The summary of a tree; what is neither an array nor a number is named by its type."""
    return Summary([_leaf(path, x) for path, x in tree_flatten_with_path(tree)[0]], depth)


def _leaf(path: tuple[Any, ...], x: Any) -> Leaf:
    aval = getattr(x, "aval", x)
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        if not isinstance(x, (bool, int, float, complex)):
            return Leaf(path, (), type(x).__name__, 0)
        x = np.asarray(x)
        shape, dtype = x.shape, x.dtype
    count = 1
    for n in shape:
        count = count * n
    nbytes = count * dtype.itemsize if isinstance(count, int) else 0
    low, high, nans = _range(x, dtype)
    return Leaf(path, tuple(shape), dtypes.short_name(dtype), nbytes, low, high, nans)


def _range(x: Any, dtype: Any) -> tuple[float | int | None, float | int | None, int | None]:
    """The least and the largest number that is not NaN, and how many are."""
    kind = dtypes.kind(dtype)
    if kind not in ("f", "i", "u", "b") or isinstance(x, Tracer) or not hasattr(x, "__array__"):
        return None, None, None
    values = np.asarray(x)
    if kind == "f":
        values = values.astype(np.float32) if values.dtype.itemsize < 4 else values
        is_nan = np.isnan(values)
        nans = int(is_nan.sum())
        values = values[~is_nan] if nans else values
        return (*((float(values.min()), float(values.max())) if values.size else (None, None)),
                nans)
    if not values.size:
        return None, None, 0
    return int(values.min()), int(values.max()), 0
