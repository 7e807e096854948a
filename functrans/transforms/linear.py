"""Recording what derivative rules do to tangents, and running it backwards.

A derivative rule is linear in its tangents. With tangents that are tracers of a `LinearTrace`,
operations on them are written on a tape, while everything else is computed by the parent trace at
once: the split into a primal and a linear part needs no partial evaluation. The tape then runs
forwards on tangents, or backwards, by transposition, on cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from functrans._runtime import get_trace, set_tape_types, tape_backwards, tape_process
from functrans.core.avals import ShapedArray, operand_avals
from functrans.core.custom import CustomCall
from functrans.core.eager import evaluate, is_off_host
from functrans.core.errors import NotDifferentiableError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr, Literal
from functrans.core.primitive import HigherOrder, Linear, Primitive
from functrans.core.scope import current_scope
from functrans.core.source import Source, interpreted, user_source
from functrans.core.staging import StageTracer
from functrans.core.trace import Params, Trace, Tracer
from functrans.core.tree import known_leaf
from functrans.core.varying import with_varying
from functrans.primitives.differentiable import add_any
from functrans.primitives.elementwise import fit
from functrans.transforms.closed import stage_closed
from functrans.transforms.masking import PRODUCTS, SELECTIONS, MaskedProduct, Masking, masking_of
from functrans.transforms.tangents import instantiate_aval

__all__ = ["LinearTrace", "LinearTracer", "transpose_flat", "transpose_jaxpr"]


NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


@known_leaf
class LinearTracer(Tracer):
    """A value that depends linearly on its trace's inputs; `index` is its place on the tape."""

    __slots__ = ("_aval", "index")

    def __init__(self, trace: LinearTrace, aval: ShapedArray, index: int) -> None:
        self._trace = trace
        self._aval = aval
        self.index = index

    @property
    def aval(self) -> ShapedArray:
        return self._aval


class LinearEquation(NamedTuple):
    """One operation on the tape; `args` mixes linear tracers and values of the parent trace.

    `source` is the line of the operation whose derivative it is.
    """

    primitive: Primitive
    args: tuple[Any, ...]
    outs: tuple[LinearTracer, ...]
    params: Params
    source: Source | None


class LinearTrace(Trace):
    """Writes operations on linear values on a tape and leaves all others to its parent."""

    __slots__ = ("count", "tape")
    kind = "the linear part of grad"
    passes_others_on = True

    def __init__(self, parent: Trace | None) -> None:
        super().__init__(parent)
        self.tape: list[LinearEquation] = []
        self.count = 0

    def new(self, aval: ShapedArray) -> LinearTracer:
        index = self.count
        self.count = index + 1
        return LinearTracer(self, aval, index)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        return tape_process(self, primitive, args, params)

    def record(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        """Write an operation on linear values on the tape: what the runtime leaves to Python.

        It knows the type of results that have the type of a tangent, as most have.
        """
        in_avals = operand_avals(args, primitive.name)
        avals = primitive.type(*in_avals, **params)
        if self.is_manual:
            avals = with_varying(primitive, in_avals, avals)
        source = interpreted.source
        if source is None:
            source = _line_of_user()
        if primitive.multiple_results:
            outs = [self.new(a) for a in avals]
            self.tape.append(LinearEquation(primitive, args, tuple(outs), params, source))
            return outs
        out = self.new(avals)
        self.tape.append(LinearEquation(primitive, args, (out,), params, source))
        return out

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        """A rule's own calls of functions with rules, on primals, keep these for outer traces."""
        if any(map(self.is_mine, args)) or call.closes_over(self.is_mine):
            return super().process_custom(call, args)
        return call.apply(self.parent, args)

    def is_mine(self, x: Any) -> bool:
        return type(x) is LinearTracer and x._trace is self

    def forwards(self, inputs: Sequence[Any], values: Sequence[Any], outs: Sequence[Any],
                 residuals: Mapping[int, Any] = NOTHING) -> list[Any]:
        """The values of `outs` when `inputs` are `values`, in the current trace; None is zero.

        `residuals` replaces values that were recorded, by their `id`.
        """
        env: list[Any] = [None] * self.count
        for x, value in zip(inputs, values, strict=True):
            env[x.index] = value
        outer = interpreted.source
        try:
            for primitive, args, results, params, interpreted.source in self.tape:
                values_in = [env[a.index] if self.is_mine(a) else residuals.get(id(a), a)
                             for a in args]
                result = primitive.bind(*values_in, **params)
                for r, value in zip(results, result if primitive.multiple_results else (result,),
                                    strict=True):
                    env[r.index] = value
        finally:
            interpreted.source = outer
        return [env[o.index] if self.is_mine(o) else o for o in outs]

    def backwards(self, inputs: Sequence[Any], outs: Sequence[Any],
                  cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of `inputs` for cotangents of `outs`, in the current trace; None is zero."""
        return self.backwards_masked(inputs, outs, cotangents, (False,) * len(outs))[0]

    def backwards_masked(self, inputs: Sequence[Any], outs: Sequence[Any],
                         cotangents: Sequence[Any],
                         masked: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        """`backwards` where some cotangents are `masked`; also, which of the results are.

        A masked cotangent comes from a selection: it is 0 where another case was chosen.
        """
        outer = interpreted.source, interpreted.backward
        interpreted.backward = True
        try:
            return self._backwards(inputs, outs, cotangents, masked)
        finally:
            interpreted.source, interpreted.backward = outer

    def _backwards(self, inputs: Sequence[Any], outs: Sequence[Any], cotangents: Sequence[Any],
                   masked: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        cts: list[Any] = [None] * self.count
        is_masked = [False] * self.count
        for out, ct, mask in zip(outs, cotangents, masked, strict=True):
            if ct is not None and self.is_mine(out):
                _accumulate(cts, is_masked, out.index, ct, mask)
        tape_backwards(self, cts, is_masked)
        return [cts[x.index] for x in inputs], [is_masked[x.index] for x in inputs]

    def step_back(self, equation: LinearEquation, cts: list[Any], is_masked: list[bool]) -> None:
        """One operation backwards: what the runtime leaves to Python.

        It knows operations of one result whose cotangent is not masked.
        """
        primitive, args, results, params, source = equation
        ct: Any = [cts[r.index] for r in results]
        if all(c is None for c in ct):
            return
        masks = [is_masked[r.index] for r in results]
        for r in results:
            cts[r.index] = None
        if not primitive.multiple_results:
            (ct,) = ct
        interpreted.source = source
        operands = [Linear(a._aval) if self.is_mine(a) else a for a in args]
        flags: Iterable[bool]
        if True in masks or primitive.higher_order:
            found, flags = transpose_masked(primitive, ct, operands, params, masks)
        else:
            found = transpose_operation(primitive, ct, operands, params)
            flags = repeat(primitive in SELECTIONS)
        for a, c, mask in zip(args, found, flags):
            if c is not None and self.is_mine(a):
                _accumulate(cts, is_masked, a.index, c, mask)


def _accumulate(cts: list[Any], is_masked: list[bool], index: int, ct: Any, mask: bool) -> None:
    have = cts[index]
    cts[index] = ct if have is None else add_any(have, ct)
    is_masked[index] = mask and (have is None or is_masked[index])


def _line_of_user() -> Source | None:
    return user_source(current_scope())


set_tape_types(LinearTrace, LinearTracer, LinearEquation, Linear, ShapedArray, evaluate,
               interpreted, _line_of_user, SELECTIONS, add_any)


def transpose_masked(primitive: Primitive, ct: Any, operands: Sequence[Any], params: Params,
                     masks: Sequence[bool]) -> tuple[Sequence[Any], Iterable[bool]]:
    """Cotangents of the linear operands for masked ones of the results, and which are masked.

    0 times an infinite derivative is 0 here.
    """
    product = PRODUCTS.get(primitive)
    if product is not None:
        x, y = operands
        linear, other = (x, y) if isinstance(x, Linear) else (y, x)
        if not _is_plain(product, other):
            c = fit(product.operation(ct, other), linear)
            return ((c, None) if linear is x else (None, c)), repeat(True)
    if isinstance(primitive, HigherOrder) and primitive.called is not None:
        inner: list[tuple[bool, ...]] = []

        def transpose_body(jaxpr: Jaxpr, linear: Sequence[bool], nonzero: Sequence[bool]) -> Jaxpr:
            back, found = _transposed(jaxpr, linear, nonzero, masks)
            inner.append(found)
            return back

        results = primitive.transpose(ct, *operands, transpose_jaxpr=transpose_body, **params)
        if not inner:
            return results, repeat(False)
        found = iter(inner[0])
        return results, [isinstance(x, Linear) and next(found) for x in operands]
    return (transpose_operation(primitive, ct, operands, params),
            repeat(masking_of(primitive) is not Masking.LOST))


def _is_plain(product: MaskedProduct, x: Any) -> bool:
    """Whether an operand is a constant with which a product of 0 is 0."""
    if isinstance(x, StageTracer):  # sqrt(64.0), say
        return x.eqn is not None and all(isinstance(a, Literal) for a in x.eqn.invars) \
            and not x.eqn.primitive.higher_order and x.ndim == 0
    if isinstance(x, (Tracer, Linear)) or is_off_host(x):
        return False
    value = np.asarray(x)
    return value.ndim == 0 and product.is_plain(value.item())


def transpose_operation(primitive: Primitive, ct: Any, operands: Sequence[Any],
                        params: Params) -> Sequence[Any]:
    """Cotangents of the linear operands of one operation."""
    if primitive.transpose is None:
        raise NotDifferentiableError(
            f"{primitive.name} is applied to a linear value but is not linear.",
            why="a derivative rule must be linear in its tangents, so that it can be transposed.",
            fix="check the jvp rule that uses it, or write a custom_vjp")
    found: Sequence[Any]
    if primitive.higher_order:
        found = primitive.transpose(ct, *operands, transpose_jaxpr=transpose_jaxpr, **params)
    else:
        found = primitive.transpose(ct, *operands, **params)
    return found


def transpose_flat(fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray],
                   cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the inputs (types `avals`) of a linear flat function; None is zero."""
    return _transpose_flat(fun, avals, cotangents, (False,) * len(cotangents))[0]


def _transpose_flat(fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray],
                    cotangents: Sequence[Any],
                    masked: Sequence[bool]) -> tuple[list[Any], list[bool]]:
    trace = LinearTrace(get_trace())
    try:
        inputs = [trace.new(a) for a in avals]
        outs = trace.run(fun, *inputs)
        return trace.backwards_masked(inputs, outs, cotangents, masked)
    finally:
        trace.alive = False


_Transposed = tuple[Jaxpr, tuple[bool, ...]]
_cache: WeakKeyDictionary[Jaxpr, dict[Any, _Transposed]] = WeakKeyDictionary()


def transpose_jaxpr(jaxpr: Jaxpr, linear: Sequence[bool],
                    nonzero: Sequence[bool] | None = None) -> Jaxpr:
    """The jaxpr (non-linear inputs, cotangents of outputs) -> cotangents of linear inputs.

    All results are arrays. `nonzero` says which output cotangents are given (default: all).
    """
    nonzero = (True,) * len(jaxpr.outvars) if nonzero is None else nonzero
    return _transposed(jaxpr, linear, nonzero, (False,) * len(jaxpr.outvars))[0]


def _transposed(jaxpr: Jaxpr, linear: Sequence[bool], nonzero: Sequence[bool],
                masked: Sequence[bool]) -> _Transposed:
    """`transpose_jaxpr` for cotangents of which some are masked; also, which results are."""
    key = (tuple(linear), tuple(nonzero), tuple(masked))
    known = _cache.setdefault(jaxpr, {})
    if key not in known:
        known[key] = _transpose_jaxpr(jaxpr, *key)
    return known[key]


def _transpose_jaxpr(jaxpr: Jaxpr, linear: tuple[bool, ...], nonzero: tuple[bool, ...],
                     masked: tuple[bool, ...]) -> _Transposed:
    linear_avals = [a for a, is_lin in zip(jaxpr.in_avals, linear, strict=True) if is_lin]
    other_avals = [a for a, is_lin in zip(jaxpr.in_avals, linear, strict=True) if not is_lin]
    ct_avals = [a.strong() for a, nz in zip(jaxpr.out_avals, nonzero, strict=True) if nz]
    found: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        others = args[:len(other_avals)]
        given = iter(args[len(other_avals):])
        cts = [next(given) if nz else None for nz in nonzero]

        def apply(*tangents: Any) -> list[Any]:
            lin, rest = iter(tangents), iter(others)
            return eval_jaxpr(jaxpr, (), *[next(lin) if is_lin else next(rest)
                                           for is_lin in linear])

        results, flags = _transpose_flat(apply, linear_avals, cts, masked)
        found.extend(flags)
        return [instantiate_aval(c, a) for c, a in zip(results, linear_avals, strict=True)]

    staged = stage_closed(fun, [*other_avals, *ct_avals], name=f"transpose_{jaxpr.name}")
    return staged, tuple(found)
