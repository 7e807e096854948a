"""The matrix over which a root is computed: which of its dimensions are rows, and which the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from functrans.core.dims import Size
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index, LoopVar
from functrans.lowering.loops.tensor import AnyFlag, Reduce, ScatterTensor, Tensor
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.kernel import Domain, Member, accesses

__all__ = ["PreferredLoopNest", "preferred_loop_nest", "roles_in"]


@dataclass
class PreferredLoopNest:
    """What a root is by itself: the domain that suits it, its role there, and what it reads."""

    domain: Domain
    role: str
    reads: frozenset[Tensor]


def preferred_loop_nest(root: Tensor, is_stored: Callable[[Tensor], bool]) -> PreferredLoopNest:
    """The domain in which a root reads memory in order."""
    s = ExprBuilder(is_stored)
    kept = [LoopVar(f"k{d}", n) for d, n in enumerate(_shape(root))]
    folded = [LoopVar(f"r{d}", n) for d, n in enumerate(root.sizes)] \
        if isinstance(root, Reduce) else []
    index = tuple([Index.of(v) if not _is_one(v.high) else ZERO for v in (*kept, *folded)])
    exprs: list[Expr] = []
    if isinstance(root, Reduce):
        exprs.append(root.element(s, index))
    elif isinstance(root, ScatterTensor):
        exprs.append(root.element(s, index))
        places, condition = root.place(s, index)
        exprs.extend(s.index(k, "i64") for k in places)
        exprs.extend([condition] if condition is not None else [])
    else:
        exprs.append(root.define(s, index))
    found = accesses(exprs)
    reads = frozenset(t for t, _ in found if t is not None)
    if isinstance(root, ScatterTensor):
        reads |= {root.base}
    indices = [i for _, i in found]
    kept_runs = _merged([v for v in kept if not _is_one(v.high)], indices)
    folded_runs = _merged([v for v in folded if not _is_one(v.high)], indices)
    if isinstance(root, Reduce) and not _is_mark(root):
        domain, role = _of_reduction(kept_runs, folded_runs, indices)
    else:
        role = "any_flag" if _is_mark(root) else "scatter" if isinstance(root,
                                                                         ScatterTensor) else "full"
        runs = folded_runs if role == "any_flag" else kept_runs
        rows = _product([_run_size(r) for r in runs[:-1]])
        row = _run_size(runs[-1]) if runs else 1
        domain = Domain(rows, row)
        if role != "scatter":
            domain = split_long_row(domain)
    return PreferredLoopNest(domain, role, reads)


def split_long_row(domain: Domain) -> Domain:
    """One long line as rows of `SERVER.chunk` elements."""
    if not _is_one(domain.rows) or (isinstance(domain.row, int) and domain.row <= SERVER.chunk):
        return domain
    return Domain((domain.row + (SERVER.chunk - 1)) // SERVER.chunk, SERVER.chunk, 1, domain.row)


def _of_reduction(kept: list[list[LoopVar]], folded: list[list[LoopVar]],
                  indices: Sequence[Index]) -> tuple[Domain, str]:
    keep = _product([_run_size(r) for r in kept])
    fold = _product([_run_size(r) for r in folded])
    # what is the same along the reduction is read once for all of it
    both = [i for i in indices if any(i.depends_on(v) for run in folded for v in run)]
    indices = both or indices
    along_fold = sum(_is_one(i.coefficient(folded[-1][-1])) for i in indices) if folded else 1
    along_kept = sum(_is_one(i.coefficient(kept[-1][-1])) for i in indices) if kept else 0
    if along_kept > along_fold or (along_kept == along_fold and kept and folded
                                  and _smaller(_run_size(folded[-1]), _run_size(kept[-1]))):
        row = _run_size(kept[-1])
        parts = _product([_run_size(r) for r in kept[:-1]])
        return Domain(parts * fold, row, parts), "reduce_column"
    row = _run_size(folded[-1]) if folded else 1
    lead = _product([_run_size(r) for r in folded[:-1]])
    if not _is_one(lead):
        return Domain(keep * lead, row, keep), "reduce_all"
    if isinstance(keep, int) and keep < SERVER.few_rows \
            and (not isinstance(row, int) or row >= SERVER.long_row):
        if keep == 1:
            chunk = SERVER.chunk
            return Domain((row + (chunk - 1)) // chunk, chunk, 1, row), "reduce_all"
        piece = _divisor(row)
        if piece is not None:
            return Domain(keep * (row // piece), piece, keep), "reduce_all"
    return Domain(keep, row), "reduce_row"


def _divisor(n: Size) -> int | None:
    """A divisor of n near `SERVER.chunk`, if there is one."""
    if not isinstance(n, int):
        return None
    for piece in range(2 * SERVER.chunk, SERVER.chunk // 8, -1):
        if n % piece == 0 and piece % 16 == 0:
            return piece
    return None


def roles_in(root: Tensor, domain: Domain) -> list[Member]:
    """The roles that a root can have in a domain, by its sizes."""
    found = []
    if isinstance(root, ScatterTensor):
        return []
    if isinstance(root, Reduce):
        if _is_mark(root):
            return _of_elements(_product(root.sizes), root, domain, "any_flag", "any_flag_row")
        keep, fold = root.size, _product(root.sizes)
        if domain.total is None:
            if keep == domain.rows and fold == domain.row:
                found.append(Member(root, "reduce_row"))
            per_part = domain.rows // domain.parts
            if keep == domain.parts * domain.row and fold == per_part:
                found.append(Member(root, "reduce_column"))
            if keep == domain.parts and fold == per_part * domain.row:
                found.append(Member(root, "reduce_all"))
        elif _is_one(keep) and fold == domain.total:
            found.append(Member(root, "reduce_all"))
        return found
    return _of_elements(root.size, root, domain, "full", "row")


def _is_mark(root: Tensor) -> bool:
    return isinstance(root, AnyFlag) and not root.is_few


def _of_elements(size: Size, root: Tensor, domain: Domain, each: str, of_rows: str
                 ) -> list[Member]:
    """The roles of what has `size` elements: each by itself, or one for every row."""
    found = []
    if size == domain.size:
        found.append(Member(root, each))
    if size == domain.rows and domain.total is None and not _is_one(domain.row):
        found.append(Member(root, of_rows))
    return found


def _shape(root: Tensor) -> tuple[Size, ...]:
    return root.sizes if isinstance(root, ScatterTensor) else root.shape


def _merged(variables: list[LoopVar], indices: Sequence[Index]) -> list[list[LoopVar]]:
    """Runs of neighbouring dimensions that every access walks as one."""
    runs: list[list[LoopVar]] = []
    for v in variables:
        if runs and all(_as_one(runs[-1][-1], v, i) for i in indices):
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs


def _as_one(outer: LoopVar, inner: LoopVar, index: Index) -> bool:
    a, b = index.coefficient(outer), index.coefficient(inner)
    if a != b * inner.high:
        return False
    return not any(not isinstance(atom, LoopVar) and _inside(atom, outer, inner)
                   for atom in index.terms)


def _inside(atom: object, *variables: LoopVar) -> bool:
    index = Index({atom: 1})  # type: ignore[dict-item]
    return any(index.depends_on(v) for v in variables)


def _run_size(run: list[LoopVar]) -> Size:
    return _product([v.high for v in run])


def _product(sizes: Sequence[Size]) -> Size:
    total: Size = 1
    for n in sizes:
        total = total * n
    return total


def _smaller(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a < b


def _is_one(n: Size) -> bool:
    return isinstance(n, int) and n == 1
