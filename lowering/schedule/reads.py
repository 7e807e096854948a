"""What each step of a schedule reads from memory, found once."""

from __future__ import annotations

from collections.abc import Callable, KeysView

from functrans.lowering.loops.call import Call
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.kernel import Kernel

__all__ = ["Reads"]


class Reads:
    """The tensors that steps read, in order; expressions are built once for each kernel.

    Built anew for every product, they took two thirds of the time to lower a transformer.
    """

    def __init__(self) -> None:
        # with the steps, so that ids stay
        self._known: dict[int, tuple[Kernel | Call, KeysView[Tensor]]] = {}

    def of(self, step: Kernel | Call, is_stored: Callable[[Tensor], bool]) -> KeysView[Tensor]:
        known = self._known.get(id(step))
        if known is None:
            found = step.operands if isinstance(step, Call) else step.loads(step.shared(is_stored))
            known = self._known[id(step)] = step, dict.fromkeys(found).keys()
        return known[1]
