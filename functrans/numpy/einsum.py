"""einsum: subscripts, an order of pairwise contractions, and these as dot_general."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dims import cached_by_sizes
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    cast,
    operand,
    promote_dtypes,
    refuse_out,
)
from functrans.numpy.products import diagonal
from functrans.numpy.ufuncs import multiply
from functrans.typing import Array, ArrayLike, DTypeLike, PrecisionLike

Path = list[tuple[int, ...]]
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The exact search looks at every order of up to this many operands (3^n subsets), beyond it the
# greedy one decides: 9 operands take 15 ms.
_EXACT_LIMIT = 8


def _wrong(text: str) -> ArgumentError:
    return ArgumentError(f"functrans.numpy.einsum: {text}.", where=user_source())


# subscripts ----------------------------------------------------------------------------------


def _from_sublists(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """The form einsum(x, [0, 1], y, [1, 2], [0, 2]) as subscripts and operands."""
    operands, lists = list(args[: len(args) - len(args) % 2: 2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None
    labels = sorted({i for sub in lists for i in sub if i is not Ellipsis})
    if len(labels) > len(_LETTERS):
        raise _wrong(f"{len(labels)} different labels are more than {len(_LETTERS)}")
    letter = {label: _LETTERS[n] for n, label in enumerate(labels)}

    def text(sub: Any) -> str:
        return "".join("..." if i is Ellipsis else letter[i] for i in sub)

    subscripts = ",".join(map(text, lists))
    return (subscripts if output is None else f"{subscripts}->{text(output)}"), operands


@lru_cache(maxsize=512)
def _parse(subscripts: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Plain subscripts of every operand and of the output, ellipses replaced by letters."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise _wrong(f"{subscripts!r} names {len(terms)} operands, and {len(ranks)} are given")
    wrong = set(inputs.replace("...", "") + output.replace("...", "")) - set(_LETTERS + ",")
    if wrong:
        raise _wrong(f"{subscripts!r} contains {''.join(sorted(wrong))!r}; axes are letters")
    free = [c for c in _LETTERS if c not in text]
    hidden = [rank - len(t.replace("...", "")) if "..." in t else 0
              for t, rank in zip(terms, ranks, strict=True)]
    longest = max(hidden, default=0)
    dots = "".join(free[:max(longest, 0)])
    plain = []
    for term, rank, count in zip(terms, ranks, hidden, strict=True):
        full = term.replace("...", dots[len(dots) - count:] if count > 0 else "")
        if count < 0 or len(full) != rank:
            raise _wrong(f"the term {term!r} of {subscripts!r} does not fit an operand of {rank} "
                         "dimensions")
        plain.append(full)
    if arrow:
        result = output.replace("...", dots)
        unknown = set(result) - set("".join(plain))
        if unknown or len(set(result)) != len(result):
            raise _wrong(f"the output {output!r} of {subscripts!r} must name axes of the operands, "
                         "each once")
    else:
        counts = Counter(c for c in "".join(terms) if c in _LETTERS)
        result = dots + "".join(sorted(c for c, n in counts.items() if n == 1))
    return tuple(plain), result


def _sizes(terms: Sequence[str], shapes: Sequence[tuple[Any, ...]], subscripts: str
           ) -> dict[str, Any]:
    """The size of every axis; 1 broadcasts."""
    sizes: dict[str, Any] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for c, size in zip(term, shape, strict=True):
            known = sizes.get(c, 1)
            if isinstance(known, int) and known == 1:
                sizes[c] = size
            elif size != known and not (isinstance(size, int) and size == 1):
                raise ShapeError(
                    f"functrans.numpy.einsum: the axis {c!r} of {subscripts!r} has sizes {known} "
                    f"and {size}.", where=user_source(),
                    why=f"the shapes are {', '.join(map(str, shapes))}.")
    return sizes


# paths ---------------------------------------------------------------------------------------


def _volume(axes: frozenset[str], sizes: dict[str, Any]) -> float:
    """The number of index combinations; a symbolic size counts as 64."""
    return math.prod(float(sizes[c]) if isinstance(sizes[c], int) else 64.0 for c in axes)


def _kept(taken: frozenset[str], others: frozenset[str], output: frozenset[str]) -> frozenset[str]:
    return taken & (others | output)


def _exact_path(terms: list[frozenset[str]], output: frozenset[str], sizes: dict[str, Any]
                ) -> Path:
    """The order of pairwise contractions with the fewest multiplications, by subsets."""
    n = len(terms)
    everything = (1 << n) - 1
    axes_in = [frozenset().union(*(terms[i] for i in range(n) if s >> i & 1))
               for s in range(1 << n)]
    result_axes = [_kept(axes_in[s], axes_in[everything ^ s], output) for s in range(1 << n)]
    cost = [math.inf] * (1 << n)
    choice = [0] * (1 << n)
    for i in range(n):
        cost[1 << i] = 0.0
        result_axes[1 << i] = terms[i]
    for s in range(1, 1 << n):
        part = (s - 1) & s
        while part > s ^ part:  # every split in two, once
            rest = s ^ part
            work = _volume(result_axes[part] | result_axes[rest], sizes)
            total = cost[part] + cost[rest] + work
            if total < cost[s]:
                cost[s], choice[s] = total, part
            part = (part - 1) & s
    path: Path = []
    positions = [1 << i for i in range(n)]

    def contract(s: int) -> None:
        if s & (s - 1) == 0:
            return
        contract(choice[s])
        contract(s ^ choice[s])
        i, j = sorted((positions.index(choice[s]), positions.index(s ^ choice[s])))
        positions.pop(j)
        positions.pop(i)
        positions.append(s)
        path.append((i, j))

    contract(everything)
    return path


def _greedy_path(terms: list[frozenset[str]], output: frozenset[str], sizes: dict[str, Any]
                 ) -> Path:
    """Always the pair whose contraction shrinks the operands most; ties by less work."""
    terms = list(terms)
    path: Path = []
    while len(terms) > 1:
        best: tuple[float, float, int, int] | None = None
        for i, j in itertools.combinations(range(len(terms)), 2):
            others = frozenset().union(*(t for k, t in enumerate(terms) if k not in (i, j)))
            joined = terms[i] | terms[j]
            growth = (_volume(_kept(joined, others, output), sizes) - _volume(terms[i], sizes)
                      - _volume(terms[j], sizes))
            key = (growth, _volume(joined, sizes), i, j)
            best = key if best is None or key < best else best
        assert best is not None
        i, j = best[2:]
        others = frozenset().union(*(t for k, t in enumerate(terms) if k not in (i, j)))
        made = _kept(terms[i] | terms[j], others, output)
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [made]
        path.append((i, j))
    return path


def _choose_path(terms: Sequence[str], output: str, sizes: dict[str, Any], optimize: Any) -> Path:
    n = len(terms)
    if isinstance(optimize, (list, tuple)) and not isinstance(optimize, str):
        path = [tuple(step) for step in optimize if not isinstance(step, str)]
        return _pairs(path, n)
    if n <= 2:
        return [(0, 1)] if n == 2 else []
    if optimize is False:
        return [(0, 1), *((0, n - k - 1) for k in range(1, n - 1))]
    if optimize not in (True, "optimal", "greedy", "auto"):
        raise _wrong(f"optimize={optimize!r} is no strategy; take 'optimal', 'greedy' or 'auto'")
    sets = [frozenset(t) for t in terms]
    if optimize == "greedy" or n > _EXACT_LIMIT:
        return _greedy_path(sets, frozenset(output), sizes)
    return _exact_path(sets, frozenset(output), sizes)


def _pairs(path: list[tuple[int, ...]], n: int) -> Path:
    """A given path with its steps of more than two operands broken into pairs."""
    result: Path = []
    for given in path:
        step = sorted(given)
        while len(step) > 2:
            i, j = step[0], step[1]
            result.append((i, j))
            # the product goes to the end; those behind i and j move up
            step = sorted([k - (k > i) - (k > j) for k in step[2:]] + [n - 2])
            n -= 1
        if len(step) == 2:
            result.append((step[0], step[1]))
            n -= 1
    return result


@cached_by_sizes(maxsize=512)
def _plan(text: str, shapes: tuple[tuple[Any, ...], ...], optimize: Any
          ) -> tuple[tuple[str, ...], str, dict[str, Any], Path]:
    """Everything that follows from subscripts and shapes: terms, output, sizes and the path."""
    terms, output = _parse(text, tuple(len(s) for s in shapes))
    sizes = _sizes(terms, shapes, text)
    # As they will be contracted: diagonals taken, broadcast axes of size 1 gone.
    plain = ["".join(c for c in dict.fromkeys(term)
                     if not (isinstance(shape[term.index(c)], int) and shape[term.index(c)] == 1
                             and sizes[c] != 1))
             for term, shape in zip(terms, shapes, strict=True)]
    return terms, output, sizes, _choose_path(plain, output, sizes, optimize)


# contractions --------------------------------------------------------------------------------


def _diagonals(x: Array, term: str) -> tuple[Array, str]:
    """Axes that a term names twice, reduced to their diagonal."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise _wrong(f"the axis {c!r} has sizes {x.shape[i]} and {x.shape[j]}")
            x = diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1: j] + term[j + 1:] + c
    return x, term


def _sum_out(x: Array, term: str, keep: set[str]) -> tuple[Array, str]:
    """x summed over the axes that nothing else names."""
    axes = tuple(i for i, c in enumerate(term) if c not in keep)
    if not axes:
        return x, term
    return lax.reduce_sum(x, axes), "".join(c for c in term if c in keep)


def _arrange(x: Array, term: str, output: str) -> Array:
    order = tuple(term.index(c) for c in output)
    return lax.transpose(x, order) if order != tuple(range(len(order))) else x


def _squeeze_ones(x: Array, term: str, sizes: dict[str, Any]) -> tuple[Array, str]:
    """x without axes of size 1 that broadcast against another operand's."""
    axes = tuple(i for i, c in enumerate(term)
                 if isinstance(x.shape[i], int) and x.shape[i] == 1 and sizes[c] != 1)
    if not axes:
        return x, term
    return lax.squeeze(x, axes), "".join(c for i, c in enumerate(term) if i not in axes)


def _contract_pair(
    x: Array, first: str, y: Array, second: str, keep: set[str], wanted: str | None,
    precision: Any, preferred: Any, dot_general: Callable[..., Array],
) -> tuple[Array, str]:
    """The product of two operands, summed over what is not to keep."""
    x, first = _sum_out(x, first, keep | set(second))
    y, second = _sum_out(y, second, keep | set(first))
    batch = [c for c in first if c in second and c in keep]
    contracted = [c for c in first if c in second and c not in keep]
    made = "".join([*batch, *(c for c in first if c not in second),
                    *(c for c in second if c not in first)])
    if not contracted and preferred is None and dot_general is lax.dot_general:
        target = wanted if wanted is not None and set(wanted) == set(made) else made
        return _product(x, first, y, second, target), target
    if wanted is not None and set(wanted) == set(made) and wanted != made:
        # the operands exchanged may give the wanted order without a transposition
        swapped = "".join([*batch, *(c for c in second if c not in first),
                           *(c for c in first if c not in second)])
        if swapped == wanted:
            x, y, first, second, made = y, x, second, first, swapped
    dims = (
        (tuple(first.index(c) for c in contracted), tuple(second.index(c) for c in contracted)),
        (tuple(first.index(c) for c in batch), tuple(second.index(c) for c in batch)),
    )
    return dot_general(x, y, dims, precision=precision, preferred_element_type=preferred), made


def _product(x: Array, first: str, y: Array, second: str, target: str) -> Array:
    """An elementwise product, each operand put in place by a transposition and new axes."""
    placed = []
    for v, term in ((x, first), (y, second)):
        order = "".join(c for c in target if c in term)
        v = _arrange(v, term, order)
        placed.append(lax.expand_dims(v, tuple(i for i, c in enumerate(target) if c not in term)))
    return multiply(*placed)


def _prepare(args: Sequence[Any]) -> tuple[str, list[Array]]:
    if args and isinstance(args[0], str):
        subscripts, given = args[0], list(args[1:])
    else:
        subscripts, given = _from_sublists(args)
    if not given:
        raise _wrong("there is no operand")
    return subscripts, [operand("einsum", np.asarray(x) if isinstance(x, (list, tuple)) else x)
                        for x in given]


def einsum(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[object],
           out: None = None, optimize: bool | str | Sequence[object] = "auto",
           precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
           _dot_general: Callable[..., Array] = lax.dot_general) -> Array:
    """Sum of products over named axes, in the cheapest order of pairwise contractions.

    optimize: 'optimal', 'greedy', 'auto' (optimal for up to 8 operands), False (from the left) or
    a path as einsum_path returns it. _dot_general contracts the pairs, in place of
    lax.dot_general and with its arguments: of quantized operands, say.

    >>> import functrans.numpy as jnp
    >>> jnp.einsum("ij,j->i", jnp.ones((2, 3)), jnp.ones(3)).tolist()
    [3.0, 3.0]
    """
    refuse_out("einsum", out)
    text, given = _prepare((subscripts, *operands))
    xs = given
    if any(x.dtype is not xs[0].dtype for x in xs):
        xs = [operand("einsum", x) for x in promote_dtypes("einsum", *given)]
    preferred = None if preferred_element_type is None else as_dtype(preferred_element_type)
    shapes = tuple(x.shape for x in xs)
    if isinstance(optimize, list):
        optimize = tuple(optimize)
    terms, output, sizes, path = _plan(text, shapes, optimize)
    work = []
    for x, term in zip(xs, terms, strict=True):
        x, term = _diagonals(x, term)
        work.append(_squeeze_ones(x, term, sizes))
    for n, (i, j) in enumerate(path):
        y, second = work.pop(max(i, j))
        x, first = work.pop(min(i, j))
        keep = set(output).union(*(t for _, t in work))
        wanted = output if n == len(path) - 1 else None
        work.append(_contract_pair(x, first, y, second, keep, wanted, precision, preferred,
                                   _dot_general))
    (x, term), = work
    x, term = _sum_out(x, term, set(output))
    x = _arrange(x, term, output)
    return x if preferred is None else cast(x, preferred)


def einsum_path(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[object],
                optimize: bool | str | Sequence[object] = "auto"
                ) -> tuple[list[str | tuple[int, ...]], str]:
    """The order of contractions that einsum takes, as NumPy writes it, and a report about it.

    >>> matrices = jnp.ones((2, 50)), jnp.ones((50, 3)), jnp.ones((3, 4))
    >>> path, report = jnp.einsum_path("ij,jk,kl->il", *matrices)
    >>> path
    ['einsum_path', (0, 1), (0, 1)]
    """
    if isinstance(optimize, tuple) and optimize and isinstance(optimize[0], str):
        optimize = optimize[0]  # a memory limit, as in ('greedy', n), is not observed
    text, xs = _prepare((subscripts, *operands))
    terms, output = _parse(text, tuple(x.ndim for x in xs))
    sizes = _sizes(terms, [x.shape for x in xs], text)
    path = _choose_path(terms, output, sizes, optimize)
    work = list(terms)
    naive = _volume(frozenset("".join(terms)), sizes) * max(len(terms), 1)
    total, largest, lines = 0.0, _volume(frozenset(output), sizes), []
    for i, j in path:
        second, first = work.pop(max(i, j)), work.pop(min(i, j))
        keep = set(output).union(*work)
        made = "".join(c for c in dict.fromkeys(first + second) if c in keep)
        flops = 2 * _volume(frozenset(first + second), sizes)
        total += flops
        largest = max(largest, _volume(frozenset(made), sizes))
        lines.append(f"  {first},{second}->{made}: {flops:.3g} operations")
        work.append(made)
    report = "\n".join([
        f"contraction: {','.join(terms)}->{output}",
        f"operations: {total:.3g} in this order, {naive:.3g} in one loop nest",
        f"largest intermediate: {largest:.3g} elements", *lines])
    return ["einsum_path", *path], report
