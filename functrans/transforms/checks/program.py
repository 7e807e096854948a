"""A compiled program that looks for errors while it runs, and finds out which one it was."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.core.errors import CheckError, FailedCheckError, NotFiniteError
from functrans.core.jaxpr import Equation, Jaxpr, equation_text
from functrans.core.prune import has_effects
from functrans.lowering.backend import Executable, WrapperExecutable
from functrans.primitives.callback import HostFunction
from functrans.primitives.check import check_p
from functrans.transforms.checks.checked_run import CheckedRun
from functrans.transforms.checks.exact import EagerReplay, located
from functrans.transforms.checks.flags import NONE, with_flags
from functrans.transforms.checks.nonfinite_propagation import NOTHING, bits_of
from functrans.transforms.checks.plan import Site, plan_of, searched

__all__ = ["CheckedExecutable", "checked_executable"]


Compile = Callable[[Jaxpr], Executable]
"""A backend: from a jaxpr to an executable."""


class CheckedProgram:
    """A jaxpr compiled to look for `checks`; raises the CheckError of the first that it finds.

    A program that found something runs once more, exactly. Where that finds nothing to report, it
    was infinities, or NaN, that the arguments brought and the program handles (a mask of -inf): it
    is compiled again to expect them there.
    """

    def __init__(self, jaxpr: Jaxpr, checks: frozenset[str],
                 compile_: Compile) -> None:
        self._jaxpr = jaxpr
        self._checks = checks
        self._compile = compile_
        self._log: defaultdict[int, deque[Any]] = defaultdict(deque)
        # what callbacks return is kept for the exact run, of one run at a time
        self._alone = threading.RLock() if any(map(has_effects, jaxpr.eqns)) else None
        self._look([NOTHING] * len(jaxpr.invars))

    def _look(self, expected: Sequence[int]) -> None:
        self._expected = list(expected)
        self._sites: list[Site] = []
        plan = plan_of(self._jaxpr, self._checks, expected, self._sites)
        self.compiled = self._compile(with_flags(plan, self._sites, self._recorder))

    def _recorder(self, eqn: Equation) -> Any:
        """The callback of an equation; what it returns is kept where it has side effects."""
        callback: HostFunction = eqn.params["callback"]
        if not eqn.primitive.has_effect:
            return callback

        def call(*arrays: Any) -> Sequence[Any]:
            results = callback(*arrays)
            self._log[id(callback)].append(results)
            return results

        return replace(callback, fun=call)

    def run(self, execute: Any, args: Sequence[Any]) -> list[Any]:
        """The results for the inputs of the jaxpr, by what runs the compiled program."""
        if self._alone is None:
            return self._run(execute, args)
        with self._alone:
            self._log.clear()
            return self._run(execute, args)

    def _run(self, execute: Any, args: Sequence[Any]) -> list[Any]:
        outs: list[Any] = execute(args)
        number = int(np.asarray(outs.pop()))
        if number != NONE:
            self._report(number, [np.asarray(a, getattr(a, "dtype", None)) for a in args])
        return outs

    def _report(self, number: int, args: Sequence[Any]) -> None:
        """Raise the error that a run met, unless it was what the arguments brought."""
        try:
            EagerReplay(self._log).run(self._jaxpr, args, [False] * len(args),
                                       searched(self._checks))
        except CheckError:
            raise
        except IndexError:  # a callback was called less often than in the exact run
            raise self._unrepeatable(self._sites[number]) from None
        expected = [a | bits_of(x) for a, x in zip(self._expected, args, strict=True)]
        if expected == self._expected:
            raise self._unrepeatable(self._sites[number])
        self._look(expected)

    def _unrepeatable(self, site: Site) -> CheckError:
        """The error of a program whose exact run did not meet what the compiled one met."""
        text, _ = equation_text(site.jaxpr, site.eqn)
        is_check = site.eqn.primitive is check_p
        error = (FailedCheckError if is_check else NotFiniteError)(
            f"{site.eqn.primitive.name} failed a check: {' '.join(text.split())}.",
            where=site.eqn.source,
            why="the program met it while it ran, and not when it ran again one operation after "
                "the other: sums in another order, or a callback, gave other numbers.",
            fix="numbers are close to the largest of their dtype: scale them, or use a wider one")
        return located(error, site.eqn.source, ())


class CheckedExecutable(WrapperExecutable):
    """The executable of a checked program, for all sizes and devices or for one of them."""

    def __init__(self, program: CheckedProgram,
                 choose: Callable[[Executable], Executable]) -> None:
        self.program = program
        self._choose = choose
        self._chosen = program.compiled, choose(program.compiled)
        self.run: Any = CheckedRun(self)

    @property
    def inner(self) -> Executable:
        """What the backend made of the program that looks, as it is now."""
        compiled, chosen = self._chosen
        if compiled is not self.program.compiled:
            chosen = self._choose(self.program.compiled)
            self._chosen = (self.program.compiled, chosen)
        return chosen

    def at(self, shapes: Sequence[tuple[int, ...]]) -> CheckedExecutable:
        if self.inner.at(shapes) is self.inner:
            return self
        return CheckedExecutable(self.program, lambda made: self._choose(made).at(shapes))

    def on(self, gpu: int) -> CheckedExecutable:
        return CheckedExecutable(self.program, lambda made: self._choose(made).on(gpu))


def checked_executable(jaxpr: Jaxpr, checks: frozenset[str],
                       compile_: Compile) -> CheckedExecutable:
    """A jaxpr compiled by a backend to look for `checks`, and for what its own checks say."""
    return CheckedExecutable(CheckedProgram(jaxpr, checks, compile_), lambda made: made)
