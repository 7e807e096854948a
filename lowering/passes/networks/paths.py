"""In which order a network is contracted: the cheapest, by dynamic programming over its subsets.

Pfeifer, Haegeman and Verstraete, Faster identification of optimal contraction sequences for tensor
networks, 2014. Networks here have two to six arrays. Sets of indices and of arrays are bit masks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from functrans.core.record import Record
from functrans.lowering.passes.networks.cost_estimate import FUSED, CostEstimate, magnitude
from functrans.lowering.passes.networks.network import Derived, Group, NetworkArray, NetworkIndex

__all__ = ["Path", "best_path"]

MOST_ARRAYS = 7  # 3^7 splits
FEW = 4  # with so few rows, columns or terms a product is made element by element


class Path(Record):
    """An array of the network (by number), or two paths whose results are multiplied.

    `kept` are the indices of its result; the others are summed. `own` is what the last step costs.
    """

    kept: frozenset[NetworkIndex]
    cost_estimate: CostEstimate
    own: CostEstimate
    leaf: int = -1
    pair: tuple[Path, Path] | None = None

    def leaves(self) -> tuple[int, ...]:
        return (self.leaf,) if self.pair is None else \
            (*self.pair[0].leaves(), *self.pair[1].leaves())

    def steps(self) -> Iterator[Path]:
        """This step and those before it."""
        yield self
        for path in self.pair or ():
            yield from path.steps()


class _Search:
    """The indices of a network as bits, and the sizes of sets of them."""

    def __init__(self, arrays: Sequence[NetworkArray], outputs: Group, itemsize: int) -> None:
        self.arrays, self.itemsize = arrays, itemsize
        sets = [a.indices for a in arrays]
        self.indices = list(dict.fromkeys(i for s in sets for i in s))
        self.place = {i: 1 << k for k, i in enumerate(self.indices)}
        self.sizes = [magnitude((i.size,)) for i in self.indices]
        self.masks = [sum(self.place[i] for i in s) for s in sets]
        self.outputs = sum(self.place.get(i, 0) for i in outputs)
        self._sizes: dict[int, float] = {}

    def size(self, mask: int) -> float:
        found = self._sizes.get(mask)
        if found is None:
            found = 1.0
            for k, n in enumerate(self.sizes):
                if mask >> k & 1:
                    found *= n
            self._sizes[mask] = found
        return found

    def wanted(self, arrays: int) -> int:
        """The indices that the result needs, or an array outside of a set."""
        mask = self.outputs
        for k, m in enumerate(self.masks):
            if not arrays >> k & 1:
                mask |= m
        return mask

    def group(self, mask: int) -> frozenset[NetworkIndex]:
        return frozenset([i for i, bit in self.place.items() if bit & mask])

    def leaf(self, k: int) -> tuple[int, CostEstimate]:
        kept = self.masks[k] & self.wanted(1 << k)
        source = self.arrays[k].source
        cost_estimate = CostEstimate()
        if isinstance(source, Derived):
            moved = source.moved
            cost_estimate = CostEstimate(source.flops, source.elements, moved,
                                         1 if source.flops else FUSED,
                                         float(source.aval.dtype.itemsize)
                                         * magnitude(source.aval.shape))
        if kept != self.masks[k]:
            whole = self.size(self.masks[k])
            cost_estimate = cost_estimate.then(CostEstimate(0.0, whole, self.itemsize * whole,
                                                            FUSED))
        return kept, cost_estimate

    def pair(self, a: int, b: int, kept: int, is_last: bool) -> CostEstimate:
        """What it costs to multiply arrays with indices a and b, and to sum what is not kept."""
        whole = self.size(a | b)
        summed = a & b & ~kept
        sizes = self.size(a) + self.size(b) + self.size(kept)
        moved = self.itemsize * sizes
        memory = 0.0 if is_last else self.itemsize * self.size(kept)
        if summed and min(self.size(summed), self.size(a & ~b), self.size(b & ~a)) >= FEW:
            return CostEstimate(2 * whole, 0.0, moved, 1, memory)
        step = FUSED if self.size(kept) <= max(self.size(a), self.size(b)) else 1.0
        return CostEstimate(0.0, (2 if summed else 1) * whole, moved, step, memory)


def best_path(arrays: Sequence[NetworkArray], outputs: Group, itemsize: int) -> Path | None:
    """The cheapest way to contract a network to `outputs`; None for none or too many arrays."""
    n = len(arrays)
    if not 0 < n <= MOST_ARRAYS:
        return None
    search = _Search(arrays, outputs, itemsize)
    best: dict[int, tuple[int, CostEstimate, Callable[[], Path]]] = {}
    for k in range(n):
        kept, cost_estimate = search.leaf(k)
        best[1 << k] = (kept, cost_estimate, _leaf(search, k, kept, cost_estimate))
    full = (1 << n) - 1
    for subset in range(1, full + 1):
        if subset & (subset - 1) == 0:
            continue
        wanted = search.wanted(subset)
        found: tuple[int, CostEstimate, Callable[[], Path]] | None = None
        left = (subset - 1) & subset
        while left:
            right = subset & ~left
            if left > right:
                ka, fa, pa = best[left]
                kb, fb, pb = best[right]
                kept = (ka | kb) & wanted
                own = search.pair(ka, kb, kept, subset == full)
                cost_estimate = fa.alongside(fb).then(own._replace(
                    memory=fa.memory + fb.memory + own.memory))
                if found is None or cost_estimate.time < found[1].time:
                    found = (kept, cost_estimate, _pair(search, kept, cost_estimate, own, pa, pb))
            left = (left - 1) & subset
        assert found is not None
        best[subset] = found
    return best[full][2]()


def _leaf(search: _Search, k: int, kept: int, cost_estimate: CostEstimate) -> Callable[[], Path]:
    return lambda: Path(search.group(kept), cost_estimate, cost_estimate, leaf=k)


def _pair(search: _Search, kept: int, cost_estimate: CostEstimate, own: CostEstimate,
          a: Callable[[], Path],
          b: Callable[[], Path]) -> Callable[[], Path]:
    return lambda: Path(search.group(kept), cost_estimate, own, pair=(a(), b()))
