"""What a primitive is: one class with all its rules.

`bind` is the hot path of every traced operation; it knows tracing and nothing else.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans._runtime import ArrayBase, wrap
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, operand_avals
from functrans.core.cost import Cost, jaxpr_cost
from functrans.core.dims import Size
from functrans.core.eager import evaluate
from functrans.core.errors import MissingRuleError
from functrans.core.record import Record
from functrans.core.trace import Tracer, get_trace, leaked
from functrans.core.varying import aligned

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["Cost", "HigherOrder", "Linear", "Primitive", "Sample"]


class Sample(Record):
    """Arguments on which the tests check every law of a primitive."""

    args: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)


class Linear:
    """The place of an operand in which an operation is transposed: a type without a value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval


class Primitive:
    """An operation of the language with all its rules; subclasses are abstract or final.

    See `docs/internals/architecture.md` for the rules. A class is final when it is not declared
    with `abstract=True`, and then has every rule: a missing one is an error when the class is made.
    """

    name: ClassVar[str]
    multiple_results: ClassVar[bool] = False
    higher_order: ClassVar[bool] = False
    # floats of 16 bits and fewer are widened to float32 for evaluation, integers of 4 and 2 bits to
    # 8, and results narrowed
    widens_halves: ClassVar[bool] = True
    # evaluation never overflows, divides or meets NaN: NumPy need not be told to keep quiet
    is_quiet: ClassVar[bool] = False
    # reads or writes something outside the program: never removed, never reordered
    has_effect: ClassVar[bool] = False
    # it is done where it is bound: no interpreter and no compiler meets it
    is_interpreted: ClassVar[bool] = True
    # over a named axis: the vmap that owns `axis_name` interprets it
    collective: ClassVar[bool] = False
    # the types of results say along which axes of a mesh they vary; else they do as operands do
    says_varying: ClassVar[bool] = False
    # evaluation compiles, for the device of the operands
    compiles: ClassVar[bool] = False
    # evaluation is told the line of its equation, as the parameter `source`
    tells_source: ClassVar[bool] = False
    # calls a function that has derivative rules of its own
    has_rules: ClassVar[bool] = False
    # of floats of one type the result has that type, where there are no parameters
    keeps_type: bool = False
    # a scalar stands for an array of any shape
    scalars_fit: ClassVar[bool] = False
    # makes an array of the parameter `shape` from no operand
    creates: ClassVar[bool] = False
    # a vmap maps it where no operand is mapped, too
    always_mapped: ClassVar[bool] = False
    # the derivative is zero because the operation says so, whatever its values do
    stops_derivatives: ClassVar[bool] = False
    # the laws compare its derivative with finite differences: not where it has none and says so,
    # nor where results have free phases
    finite_differences: ClassVar[bool] = True
    required_rules: ClassVar[tuple[str, ...]] = ("type", "evaluate", "jvp", "batch", "samples")

    def __reduce__(self) -> Any:
        """By its name in its module, where it is there: rules and names are of one object."""
        name = f"{self.name}_p"
        module = sys.modules.get(type(self).__module__)
        return name if getattr(module, name, None) is self else super().__reduce_ex__(4)

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        for rule in cls.required_rules:
            if getattr(cls, rule, None) is getattr(Primitive, rule, None):
                raise _missing_rule(cls, rule)

    # The rules. Signatures are loose on purpose: each primitive names its own operands and params.
    type: Any = None
    evaluate: Any = None
    jvp: Any = None
    transpose: Any = None
    batch: Any = None
    # of a collective one: (operands, axes, *, axis, **params), where its axis is that of the vmap
    batch_collective: Any = None
    samples: Any = None
    # (equation, which results are used) -> an equation that may leave out the others
    prune: Any = None

    def cost(self, *avals: Any, **params: Any) -> Cost:
        """One operation per element of the output and every operand read once, unless refined."""
        outs = self.type(*avals, **params)
        outs = outs if self.multiple_results else [outs]
        moved = sum((a.nbytes for a in (*avals, *outs)), start=0)
        return Cost(sum((a.size for a in outs), start=0), moved)

    def decided_sizes(self, params: Mapping[str, Any]) -> frozenset[str]:
        """Names of the symbolic sizes of the results that running the operation decides.

        Of higher-order operations: what others compute has sizes that their operands tell.
        """
        return frozenset()

    def bind(self, *args: Any, **params: Any) -> Array:
        """Apply the primitive to arrays, tracers or Python scalars in the current trace.

        With `multiple_results` the result is a list of arrays, which unpacks as an array does.
        """
        trace = get_trace()
        if trace is not None and trace.is_manual:
            args = aligned(self, args)
        out: Array = evaluate(self, args, params) if trace is None else \
            trace.process(self, args, params)
        return out

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Evaluate on concrete values and wrap the results as arrays.

        The type rule is asked first: an eager operation refuses what a staged one refuses, and its
        results are as weak (1 to 2 us; the loops of ufuncs in the runtime know these rules).
        """
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x, self.name)
        avals = operand_avals(args, self.name)
        outs = self.type(*avals, **params)
        result = self.run(*[x._np if isinstance(x, ArrayBase) else np.asarray(x, a.dtype)
                            for x, a in zip(args, avals, strict=True)], **params)
        if self.multiple_results:
            return [wrap(np.asarray(r), a.weak_type) for r, a in zip(result, outs, strict=True)]
        return wrap(np.asarray(result), outs.weak_type)

    def run(self, *arrays: Any, **params: Any) -> Any:
        """Evaluate on NumPy arrays, silently, with narrow numbers computed in wider ones."""
        if self.is_quiet:
            return self.evaluate(*arrays, **params)
        with np.errstate(all="ignore"):
            if self.widens_halves:
                narrow = next((x.dtype for x in arrays
                               if isinstance(x, np.ndarray) and dtypes.is_narrow(x.dtype)), None)
                if narrow is not None:
                    return self._run_widened(narrow, arrays, params)
            return self.evaluate(*arrays, **params)

    def _run_widened(self, narrow: np.dtype[Any], arrays: Sequence[Any],
                     params: Mapping[str, Any]) -> Any:
        wide = dtypes.wide_dtype(narrow)
        result = self.evaluate(*[x.astype(wide) if isinstance(x, np.ndarray) and x.dtype == narrow
                                 else x for x in arrays], **params)
        if self.multiple_results:
            return [_narrowed(r, wide, narrow) for r in result]
        return _narrowed(result, wide, narrow)

    def __repr__(self) -> str:
        return self.name


def _narrowed(x: Any, wide: np.dtype[Any], narrow: np.dtype[Any]) -> Any:
    x = np.asarray(x)
    if x.dtype == wide:
        return x.astype(narrow)
    # the real part of complex32, and its absolute value
    return x.astype(dtypes.float16) if wide == dtypes.complex64 and x.dtype == dtypes.float32 else x


def _missing_rule(cls: type, rule: str) -> MissingRuleError:
    return MissingRuleError(
        f"the primitive {cls.__name__} has no rule {rule!r}.",
        why="every transform asks every primitive for its rule.",
        fix=f"define {rule} in the class body (docs/internals/architecture.md, "
            "'Adding a primitive'), or derive from a base that has it: Elementwise, "
            "LinearPrimitive; "
            "class X(Primitive, abstract=True) for another base")


class HigherOrder(Primitive, abstract=True):
    """A primitive whose parameters hold jaxprs.

    Its rules `jvp`, `linearize`, `transpose` and `batch` take a keyword `transforms`, the
    jaxpr-to-jaxpr interpreters, so that this layer need not know the transforms.
    """

    higher_order = True
    says_varying = True
    multiple_results = True
    widens_halves = False
    linearize: Any = None
    # (operands, **params) -> (jaxpr, its operands), where running that is all the operation does
    called: Any = None
    required_rules = (*Primitive.required_rules, "linearize")

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract, **kwargs)
        if not abstract and cls.called is None and cls.cost is HigherOrder.cost:
            raise _missing_rule(cls, "cost")

    def batch_over(self, mapped: Any, batch_jaxpr: Any, operands: Any, axes: Any, /,
                   **params: Any) -> Any:
        """The rule `batch`, told the mapped axis: here, where a parameter may be called `axis`."""
        return self.batch(operands, axes, axis=mapped, batch_jaxpr=batch_jaxpr, **params)

    def cost(self, *avals: Any, **params: Any) -> Cost:
        """A call costs what the program costs that it runs; loops and branches say theirs."""
        return jaxpr_cost(self.called(avals, **params)[0])

    if TYPE_CHECKING:
        def bind(self, *args: Any, **params: Any) -> Any: ...

    def samples(self) -> Iterator[Sample]:
        """None: bodies are programs, and the tests of control flow and composition draw them."""
        return iter(())


def size_of(shape: Sequence[Size]) -> Size:
    return math.prod(shape)
