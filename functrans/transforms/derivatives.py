"""Gradients, Jacobians, Hessians: each a few lines over jvp, linearize and vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.errors import (
    ArgumentError,
    DTypeError,
    IntegerGradError,
    NonScalarGradError,
)
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from functrans.primitives.base import full, zeros
from functrans.primitives.convert import convert_element_type
from functrans.transforms.flat import (
    check_callable,
    flatten_args,
    name_of,
    normalize_argnums,
    wraps,
)
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import float0_zeros, linearization, vjp
from functrans.transforms.vmap import vmap

if TYPE_CHECKING:
    from functrans._array_types import Decorator, Derivative, OfOneArray, ValueDecorator
    from functrans.typing import Array, ArrayLike, PyTree

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Any)  # of the first argument, and so of the gradient in it
B = TypeVar("B", bound=Any)  # of the second one
Aux = TypeVar("Aux")

__all__ = ["grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

ArgNums = int | Sequence[int]


# the first is what mypy takes for functools.partial(value_and_grad, ...)
@overload
def value_and_grad(fun: Callable[P, R], argnums: Sequence[int], has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False
                   ) -> Callable[P, tuple[R, PyTree]]: ...


@overload
def value_and_grad(  # type: ignore[overload-overlap]
        fun: OfOneArray, argnums: Literal[0] = 0, has_aux: Literal[False] = False,
        holomorphic: bool = False, allow_int: bool = False
        ) -> Callable[[ArrayLike], tuple[Array, Array]]: ...


@overload
def value_and_grad(  # type: ignore[overload-overlap]
        fun: Callable[Concatenate[A, P], R], argnums: Literal[0] = 0, has_aux: bool = False,
        holomorphic: bool = False, allow_int: bool = False
        ) -> Callable[Concatenate[A, P], tuple[R, A]]: ...


@overload
def value_and_grad(  # type: ignore[overload-overlap]
        fun: Callable[Concatenate[A, B, P], R], argnums: Literal[1],
        has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
        ) -> Callable[Concatenate[A, B, P], tuple[R, B]]: ...


@overload
def value_and_grad(fun: Callable[P, R], argnums: int, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False
                   ) -> Callable[P, tuple[R, PyTree]]: ...


@overload
def value_and_grad(fun: None = None, *, argnums: ArgNums = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False) -> ValueDecorator: ...


def value_and_grad(fun: Callable[..., Any] | None = None, argnums: ArgNums = 0,
                   has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False,
                   reduce_axes: Sequence[Hashable] = ()) -> Callable[..., Any]:
    """The function that returns `fun`'s value and its gradient in the arguments `argnums`.

    `fun` returns one real scalar (or a pair of it and anything, with `has_aux`). The gradient has
    the structure, shapes and dtypes of the argument, or is a tuple of such for a tuple `argnums`.
    For complex arguments it is the conjugate of the steepest-ascent direction, as in JAX;
    `holomorphic` asks for the complex derivative. With `allow_int` integer leaves get float0 zeros.
    `reduce_axes` is of JAX's, and has to be empty, as there. Without `fun`, returns a decorator.
    Raises NonScalarGradError, IntegerGradError or NonArrayError.

    >>> import functrans as ft
    >>> value, gradient = ft.value_and_grad(lambda x: (x ** 2).sum())(ft.numpy.array([1.0, 3.0]))
    >>> float(value), gradient.tolist()
    (10.0, [2.0, 6.0])
    """
    _check_reduce_axes(reduce_axes, "value_and_grad")
    if fun is None:
        return functools.partial(value_and_grad, argnums=argnums, has_aux=has_aux,
                                 holomorphic=holomorphic, allow_int=allow_int)
    check_callable(fun, "value_and_grad")

    @wraps(fun, "value_and_grad")
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, aux, gradient = _value_and_grad(
            fun, args, kwargs, argnums, has_aux, holomorphic, allow_int)
        return ((value, aux) if has_aux else value), gradient

    return value_and_grad_fun


# the order is that of value_and_grad
@overload
def grad(fun: Callable[P, Any], argnums: Sequence[int], has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False) -> Callable[P, PyTree]: ...


@overload
def grad(fun: OfOneArray, argnums: Literal[0] = 0, has_aux: Literal[False] = False,
         holomorphic: bool = False, allow_int: bool = False) -> Callable[[ArrayLike], Array]: ...


@overload
def grad(fun: Callable[Concatenate[A, P], Any], argnums: Literal[0] = 0,
         has_aux: Literal[False] = False, holomorphic: bool = False, allow_int: bool = False
         ) -> Callable[Concatenate[A, P], A]: ...


@overload
def grad(fun: Callable[Concatenate[A, P], tuple[Any, Aux]], argnums: Literal[0] = 0, *,
         has_aux: Literal[True], holomorphic: bool = False, allow_int: bool = False
         ) -> Callable[Concatenate[A, P], tuple[A, Aux]]: ...


@overload
def grad(fun: Callable[Concatenate[A, B, P], Any], argnums: Literal[1],
         has_aux: Literal[False] = False, holomorphic: bool = False, allow_int: bool = False
         ) -> Callable[Concatenate[A, B, P], B]: ...


@overload
def grad(fun: Callable[P, Any], argnums: int, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False) -> Callable[P, PyTree]: ...


@overload
def grad(fun: None = None, *, argnums: ArgNums = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False) -> Decorator: ...


def grad(fun: Callable[..., Any] | None = None, argnums: ArgNums = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False,
         reduce_axes: Sequence[Hashable] = ()) -> Callable[..., PyTree]:
    """The function that returns the gradient of `fun` in the arguments `argnums`.

    Arguments and errors as in `value_and_grad`; with `has_aux` it returns (gradient, aux).

    >>> import functrans as ft
    >>> float(ft.grad(ft.grad(ft.numpy.sin))(0.0))
    -0.0
    """
    _check_reduce_axes(reduce_axes, "grad")
    if fun is None:
        return functools.partial(grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic,
                                 allow_int=allow_int)
    check_callable(fun, "grad")

    @wraps(fun, "grad")
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        _, aux, gradient = _value_and_grad(
            fun, args, kwargs, argnums, has_aux, holomorphic, allow_int)
        return (gradient, aux) if has_aux else gradient

    return grad_fun


def _check_reduce_axes(axes: Sequence[Hashable], what: str) -> None:
    if axes:
        raise ArgumentError(f"{what}: reduce_axes={axes!r} is not there.", where=user_source(),
                            why="JAX has taken it away, and takes an empty one only.",
                            fix=f"ft.lax.psum(gradient, {axes!r})")


def _value_and_grad(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                    argnums: ArgNums, has_aux: bool, holomorphic: bool,
                    allow_int: bool) -> tuple[Any, Any, Any]:
    positions = normalize_argnums(argnums, len(args), "grad")
    given = tuple([args[i] for i in positions])

    def call(*selected: Any) -> Any:
        if len(positions) == len(args) == 1:
            return fun(*selected, **kwargs)
        full_args = list(args)
        for i, x in zip(positions, selected, strict=True):
            full_args[i] = x
        return fun(*full_args, **kwargs)

    found = linearization(call, given, "grad", has_aux,
                          lambda x: _is_active(x, "grad", holomorphic, allow_int))
    _check_scalar(fun, found.outs, found.out_tree, holomorphic)
    found.write()
    value = found.outs[0]
    cotangents = iter(found.derivative.backwards(
        [full((), 1, value.dtype), *[None] * len(found.last)]))
    gradients = [_gradient(x, next(cotangents)) if a else float0_zeros(x)
                 for x, a in zip(found.primals, found.active, strict=True)]
    result = tree_unflatten(found.in_tree, gradients)
    return value, found.aux, result if isinstance(argnums, (tuple, list)) else result[0]


def _gradient(x: Any, cotangent: Any) -> Any:
    """A gradient is as weak as what it is with respect to."""
    aval = get_aval(x)
    if cotangent is None:
        cotangent = zeros(aval.strong())
    return convert_element_type(cotangent, cotangent.dtype, True) if aval.weak_type else cotangent


def _is_active(x: Any, what: str, holomorphic: bool, allow_int: bool) -> bool:
    dtype = get_aval(x).dtype
    letter = dtypes.kind(dtype)
    if holomorphic and letter != "c":
        raise IntegerGradError(f"{what}(holomorphic=True) needs complex arguments, got {dtype}.",
                               where=user_source(), fix='x.astype("complex64")')
    if letter in "fc":
        return True
    if allow_int:
        return False
    others = ", or set allow_int=True" if what in ("grad", "jacrev") else ""
    raise IntegerGradError(f"{what} of an argument of dtype {dtype}.", where=user_source(),
                           why="derivatives are defined for floating and complex arguments.",
                           fix="pass a float (1.0 instead of 1, x.astype('float32')), choose "
                               f"another argument by argnums{others}")


def _check_scalar(fun: Any, outs: Sequence[Any], tree: Any, holomorphic: bool) -> None:
    if len(outs) != 1 or tree != tree_structure(0):
        raise NonScalarGradError(
            f"grad needs a function that returns one scalar; {name_of(fun)} returned "
            f"{_tree_text(tree)}.", where=user_source(),
            fix="use has_aux=True for further outputs, jacrev for several, or vjp")
    aval = get_aval(outs[0])
    if aval.shape != ():
        raise NonScalarGradError(
            f"grad needs a function that returns one scalar; {name_of(fun)} returned {aval}.",
            where=user_source(), why="the gradient of an array is a Jacobian.",
            fix="reduce it, fun(x).sum() or .mean(), or use jacrev, jacfwd or vmap(grad(fun))")
    letter = dtypes.kind(aval.dtype)
    if holomorphic and letter != "c":
        raise _not_holomorphic("grad", aval)
    if letter == "c" and not holomorphic:
        raise NonScalarGradError(f"grad needs a real scalar; {name_of(fun)} returned {aval}.",
                                 where=user_source(),
                                 fix="return its real part or absolute value, or set "
                                     "holomorphic=True")
    if letter not in "fc":
        raise NonScalarGradError(f"grad needs a floating scalar; {name_of(fun)} returned {aval}.",
                                 where=user_source(), why="integers and booleans are piecewise "
                                                          "constant.",
                                 fix="compute the value in floating point")


def _not_holomorphic(what: str, aval: Any) -> DTypeError:
    return DTypeError(f"{what}(holomorphic=True) needs a complex result, got {aval}.",
                      where=user_source(),
                      why="a real function of complex arguments has no complex derivative.",
                      fix="grad(fun) and jacrev(fun), without holomorphic=True, give gradients of "
                          "real functions of complex arguments")


def _tree_text(tree: Any) -> str:
    text = str(tree).removeprefix("PyTreeSpec(").split(", namespace=")[0]
    return text.removesuffix(")") if text.count(")") > text.count("(") else text


@overload
def jacfwd(fun: Callable[Concatenate[A, P], Array], argnums: Literal[0] = 0,
           has_aux: Literal[False] = False, holomorphic: bool = False
           ) -> Derivative[Concatenate[A, P], A]: ...


@overload
def jacfwd(fun: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Derivative[P, PyTree]: ...


@overload
def jacfwd(fun: None = None, *, argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Decorator: ...


def jacfwd(fun: Callable[..., Any] | None = None, argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[..., PyTree]:
    """The Jacobian of `fun` by forward mode, one pass per input element, all at once by vmap.

    The result has the structure of the output; each leaf holds the structure of the argument with
    shapes output.shape + argument.shape. Use it for fewer inputs than outputs.

    >>> import functrans as ft
    >>> ft.jacfwd(lambda x: x ** 2)(ft.numpy.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if fun is None:
        return functools.partial(jacfwd, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic)
    check_callable(fun, "jacfwd")

    @wraps(fun, "jacfwd")
    def jacfwd_fun(*args: Any, **kwargs: Any) -> Any:
        selected, call, single = _select(fun, args, kwargs, argnums, "jacfwd")
        leaves, tree = flatten_args(selected, "jacfwd")
        for x in leaves:
            _is_active(x, "jacfwd", holomorphic, False)
            if not holomorphic and dtypes.kind(x.dtype) == "c":
                raise DTypeError(
                    f"jacfwd needs real arguments, got {get_aval(x)}.", where=user_source(),
                    why="forward mode pushes one tangent for each element; a function of complex "
                        "elements that is not holomorphic changes along two.",
                    fix="holomorphic=True for a holomorphic function, jvp for one direction, or "
                        "real and imaginary parts as two real arguments")
        primals = tree_unflatten(tree, leaves)
        basis = _basis(leaves, tree)

        def push(tangents: Any) -> Any:
            if has_aux:
                return jvp(call, primals, tangents, has_aux=True)[1:]
            return jvp(call, primals, tangents)[1], None

        columns, aux = vmap(push, out_axes=(-1, None))(basis)
        for y in tree_leaves(columns) if holomorphic else ():
            if dtypes.kind(y.dtype) != "c":
                raise _not_holomorphic("jacfwd", get_aval(y).with_shape(y.shape[:-1]))
        jacobian = tree_map(lambda y: _split_last(y, leaves, tree, single), columns)
        return (jacobian, aux) if has_aux else jacobian

    return jacfwd_fun


@overload
def jacrev(fun: Callable[Concatenate[A, P], Array], argnums: Literal[0] = 0,
           has_aux: Literal[False] = False, holomorphic: bool = False, allow_int: bool = False
           ) -> Derivative[Concatenate[A, P], A]: ...


@overload
def jacrev(fun: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Derivative[P, PyTree]: ...


@overload
def jacrev(fun: None = None, *, argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Decorator: ...


def jacrev(fun: Callable[..., Any] | None = None, argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable[..., PyTree]:
    """The Jacobian of `fun` by reverse mode, one pass per output element, all at once by vmap.

    Structure and shapes as in `jacfwd`. Use it for fewer outputs than inputs.

    >>> import functrans as ft
    >>> ft.jacrev(lambda x: x[0] * x)(ft.numpy.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [2.0, 1.0]]
    """
    if fun is None:
        return functools.partial(jacrev, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic,
                                 allow_int=allow_int)
    check_callable(fun, "jacrev")

    @wraps(fun, "jacrev")
    def jacrev_fun(*args: Any, **kwargs: Any) -> Any:
        selected, call, single = _select(fun, args, kwargs, argnums, "jacrev")
        leaves, _ = flatten_args(selected, "jacrev")
        for x in leaves:
            _is_active(x, "jacrev", holomorphic, allow_int)
        aux = None
        if has_aux:
            out, pull, aux = vjp(call, *selected, has_aux=True)
        else:
            out, pull = vjp(call, *selected)
        out_leaves, out_tree = tree_flatten(out)
        for y in out_leaves:
            _check_row(get_aval(y), holomorphic)
        rows = vmap(pull)(_basis(out_leaves, out_tree))
        rows = rows[0] if single else rows
        row_leaves, row_tree = tree_flatten(rows)
        row_leaves = [_gradient(x, r) if dtypes.kind(r.dtype) in "fc" else r
                      for x, r in zip(leaves, row_leaves, strict=True)]
        parts = [_split_first(r, out_leaves) for r in row_leaves]
        jacobian = tree_unflatten(out_tree, [
            tree_unflatten(row_tree, [p[i] for p in parts]) for i in range(len(out_leaves))])
        return (jacobian, aux) if has_aux else jacobian

    return jacrev_fun


def _check_row(aval: Any, holomorphic: bool) -> None:
    letter = dtypes.kind(aval.dtype)
    if holomorphic and letter != "c":
        raise _not_holomorphic("jacrev", aval)
    if letter == "c" and not holomorphic:
        raise DTypeError(f"jacrev needs real results, got {aval}.", where=user_source(),
                         why="reverse mode pulls one cotangent back for each element; a complex "
                             "element has two.",
                         fix="holomorphic=True for a holomorphic function of complex arguments, "
                             "jacfwd for one of real arguments, or vjp")
    if letter not in "fc":
        raise DTypeError(f"jacrev needs floating results, got {aval}.", where=user_source(),
                         why="integers and booleans are piecewise constant.",
                         fix="compute the value in floating point, or use vjp")


jacobian = jacrev


@overload
def hessian(fun: Callable[Concatenate[Array, P], Array], argnums: Literal[0] = 0,
            has_aux: Literal[False] = False, holomorphic: bool = False
            ) -> Derivative[Concatenate[Array, P], Array]: ...


@overload
def hessian(fun: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[P, PyTree]: ...


@overload
def hessian(fun: None = None, *, argnums: ArgNums = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Decorator: ...


def hessian(fun: Callable[..., Any] | None = None, argnums: ArgNums = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[..., PyTree]:
    """The matrix of second derivatives of `fun`: forward over reverse mode.

    >>> import functrans as ft
    >>> ft.hessian(lambda x: x[0] ** 2 * x[1])(ft.numpy.array([1.0, 2.0])).tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    if fun is None:
        return functools.partial(hessian, argnums=argnums, has_aux=has_aux,
                                 holomorphic=holomorphic)
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic), argnums,
                  has_aux=has_aux, holomorphic=holomorphic)


@overload
def hvp(fun: Callable[..., Any], primals: tuple[A], tangents: Sequence[PyTree]) -> A: ...


@overload
def hvp(fun: Callable[..., Any], primals: Sequence[PyTree], tangents: Sequence[PyTree]
        ) -> PyTree: ...


def hvp(fun: Callable[..., Any], primals: Sequence[PyTree], tangents: Sequence[PyTree]) -> PyTree:
    """The Hessian of a scalar function times a vector, without the matrix: a jvp of the gradient.

    `primals` and `tangents` are tuples of one length; the result has the structure of the first
    primal, or is a tuple when there are several.

    >>> import functrans as ft
    >>> x, v = ft.numpy.array([1.0, 2.0]), ft.numpy.array([1.0, 0.0])
    >>> ft.hvp(lambda x: (x ** 3).sum(), (x,), (v,)).tolist()
    [6.0, 0.0]
    """
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(fun, argnums), tuple(primals), tuple(tangents))[1]


def _select(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
            argnums: ArgNums, what: str) -> tuple[tuple[Any, ...], Any, bool]:
    """The arguments at argnums, the function of these alone, and whether it is one."""
    positions = normalize_argnums(argnums, len(args), what)

    def call(*selected: Any) -> Any:
        full_args = list(args)
        for i, x in zip(positions, selected, strict=True):
            full_args[i] = x
        return fun(*full_args, **kwargs)

    selected = tuple(args[i] for i in positions)
    return selected, call, not isinstance(argnums, (tuple, list))


def _basis(leaves: Sequence[Any], tree: Any) -> Any:
    """The unit vectors of a tree of arrays, stacked along a new leading axis of each leaf."""
    sizes = [int(x.size) for x in leaves]
    total = sum(sizes)
    start = 0
    units = []
    for x, n in zip(leaves, sizes, strict=True):
        unit = np.zeros((total, n), x.dtype if dtypes.kind(x.dtype) in "fc" else np.float32)
        unit[start:start + n] = np.eye(n)
        units.append(unit.reshape(total, *x.shape))
        start += n
    return tree_unflatten(tree, units)


def _split_last(y: Any, leaves: Sequence[Any], tree: Any, single: bool) -> Any:
    start = 0
    parts = []
    for x in leaves:
        n = int(x.size)
        parts.append(y[..., start:start + n].reshape(y.shape[:-1] + x.shape))
        start += n
    result = tree_unflatten(tree, parts)
    return result[0] if single else result


def _split_first(y: Any, outs: Sequence[Any]) -> list[Any]:
    start = 0
    parts = []
    for x in outs:
        n = int(x.size)
        parts.append(y[start:start + n].reshape(x.shape + y.shape[1:]))
        start += n
    return parts
