"""Static arguments, custom rules, callbacks, arrays, numbers and memory, by the messages."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.check import check_jaxpr
from functrans.core.errors import (
    ArgumentError,
    BranchTypeError,
    CallbackError,
    CarryTypeError,
    CustomRuleError,
    DTypeError,
    ImmutableArrayError,
    IndexingError,
    IntegerOverflowError,
    JaxprError,
    KeyTypeError,
    MissingRuleError,
    NonArrayError,
    NotDifferentiableError,
    OutOfMemoryError,
    ShapeError,
    StaticArgumentError,
)
from functrans.core.jaxpr import ClosedJaxpr, Equation, Jaxpr
from functrans.core.primitive import Primitive
from tests.errors.expect import caught

Case = tuple[str, type, Callable[[], Any], list[str]]
x, ints, m = jnp.arange(3.0), jnp.arange(3), jnp.ones((3, 4))
Spec = ft.ShapeDtypeStruct


@dataclasses.dataclass(frozen=True)
class Layer:
    sizes: Any
    inner: Any = None


@dataclasses.dataclass
class Unfrozen:
    size: int = 3


class Pair(NamedTuple):
    a: Any
    b: Any


def static(value: Any) -> Any:
    return ft.jit(lambda a, options: a, static_argnums=1)(x, value)


STATIC: list[Case] = [
    ("list", StaticArgumentError, lambda: static([1]), ["argument 1 ('options')", "a list",
                                                         "a tuple instead of the list"]),
    ("by name", StaticArgumentError,
     lambda: ft.jit(lambda a, k: a, static_argnames="k")(x, k={"a": 1}), ["'k'", "a dict"]),
    ("field", StaticArgumentError, lambda: static(Layer([1])),
     ["a Layer, whose part .sizes is a list"]),
    ("field in a field", StaticArgumentError, lambda: static(Layer((1,), Layer((2, {})))),
     [".inner.sizes[1] is a dict"]),
    ("field of a namedtuple", StaticArgumentError, lambda: static(Pair(1, {1})),
     [".b is a set", "frozenset"]),
    ("unfrozen", StaticArgumentError, lambda: static(Unfrozen()),
     ["@dataclass(frozen=True) for Unfrozen"]),
    ("array", StaticArgumentError, lambda: static(x), ["Array", "dynamic argument"]),
    ("out of range", StaticArgumentError, lambda: ft.jit(lambda a: a, static_argnums=5),
     ["static_argnums=5 is out of range", "1 positional parameters"]),
    ("unknown name", StaticArgumentError, lambda: ft.jit(lambda a: a, static_argnames="b"),
     ["'b'", "one of a"]),
    ("name as number", StaticArgumentError, lambda: ft.jit(lambda a: a, static_argnums="a"),
     ["takes positions, got 'a'", "static_argnames='a'"]),
    ("donated and static", StaticArgumentError,
     lambda: ft.jit(lambda a: a, static_argnums=0, donate_argnums=0),
     ["both static and in donate_argnums", "only arrays can be donated"]),
    ("donated out of range", StaticArgumentError, lambda: ft.jit(lambda a: a, donate_argnums=4),
     ["donate_argnums=4 is out of range"]),
    ("no function", ArgumentError, lambda: ft.jit(3), ["jit takes a function, got 3 of type int"]),
    ("text", NonArrayError, lambda: ft.jit(lambda a: a)("s"),
     ["argument 0 is 's', of type str", "static_argnums"]),
    ("text by keyword", NonArrayError, lambda: ft.jit(lambda a: a)(a={"w": "s"}),
     ["keyword argument a at ['w'] is 's'"]),
    ("text returned", NonArrayError, lambda: ft.jit(lambda a: {"k": "s"})(x),
     ["returned 's', of type str, at ['k']"]),
    ("compiled", ArgumentError, lambda: ft.jit(jnp.sin).lower(x).compile()(m),
     ["compiled for a f32[3]", "f32[3,4]"]),
]

LOOPS: list[Case] = [
    ("scan", CarryTypeError,
     lambda: lax.scan(lambda c, a: ({"h": c["h"][None]}, a), {"h": x}, x),
     ["scan", "at ['h'] is f32[3] before and f32[1,3] after"]),
    ("scan structure", CarryTypeError, lambda: lax.scan(lambda c, a: ((c, c), a), 0.0, x),
     ["another structure", "tuple of 2"]),
    ("scan no pair", ArgumentError, lambda: lax.scan(lambda c, a: c, 0.0, x),
     ["(carry, y)", "return carry, None"]),
    ("while", CarryTypeError,
     lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0], c[1].astype(int)), (0, x)),
     ["while_loop", "at [1] is f32[3] before and i32[3] after", "astype"]),
    ("while predicate", ShapeError, lambda: lax.while_loop(lambda c: c > 0, lambda c: c, x),
     ["boolean scalar, got bool[3]", ".any()"]),
    ("fori", CarryTypeError, lambda: lax.fori_loop(0, 3, lambda i, c: c[None], x),
     ["fori_loop", "f32[3] before and f32[1,3] after"]),
    ("fori traced", CarryTypeError,
     lambda: ft.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c[None], x))(3), ["fori_loop"]),
    ("fori bounds", DTypeError, lambda: lax.fori_loop(0, 3.5, lambda i, c: c, x),
     ["one bound is i32[], the other f32[]", "int(n)"]),
    ("fori bound", DTypeError, lambda: lax.fori_loop(0, 3j, lambda i, c: c, x),
     ["upper bound is c64[]"]),
    ("cond", BranchTypeError, lambda: lax.cond(True, lambda a: a, lambda a: a.astype(int), x),
     ["i32[3]", "f32[3]"]),
    ("cond structure", BranchTypeError,
     lambda: lax.cond(True, lambda a: {"a": a}, lambda a: {"b": a}, x), ["'a'", "'b'"]),
    ("cond predicate", ShapeError, lambda: lax.cond(x, jnp.sin, jnp.cos, x),
     ["predicate is f32[3]", "functrans.numpy.where"]),
    ("switch of nothing", ArgumentError, lambda: lax.switch(1, [], x), ["no branches"]),
]


def jvp_rule(rule: Callable[..., Any]) -> Any:
    @ft.custom_jvp
    def f(a: Any) -> Any:
        return a * 2
    f.defjvp(rule)
    return f


def vjp_rules(fwd: Callable[..., Any], bwd: Callable[..., Any]) -> Any:
    @ft.custom_vjp
    def f(a: Any, b: Any) -> Any:
        return a * b
    f.defvjp(fwd, bwd)
    return lambda a: f(a, a).sum()


def fwd(a: Any, b: Any) -> Any:
    return a * b, (a, b)


def push(rule: Callable[..., Any]) -> Any:
    return ft.jvp(jvp_rule(rule), (x,), (x,))


def pull(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    return ft.grad(vjp_rules(forward, backward))(x)


RULES: list[tuple[str, Callable[[], Any], list[str]]] = [
    ("no rule", lambda: ft.custom_jvp(jnp.sin)(x), ["sin has no rule", "defjvp"]),
    ("no rules", lambda: ft.grad(ft.custom_vjp(jnp.sin))(1.0), ["sin has no rules", "defvjp"]),
    ("jvp count", lambda: push(lambda p, t: None), ["NoneType, not a pair"]),
    ("jvp structure", lambda: push(lambda p, t: (p[0], (t[0],))),
     ["another structure than its output", "tuple of 1"]),
    ("jvp shape", lambda: push(lambda p, t: (p[0], t[0].sum())), ["f32[]", "f32[3]"]),
    ("jvp dtype", lambda: push(lambda p, t: (p[0], t[0].astype("float64"))),
     ["f64[3]", ".astype('float32')"]),
    ("forward no pair", lambda: pull(lambda a, b: a * b, lambda r, g: (g, g)),
     ["forward rule", "not a pair", "return out, residuals"]),
    ("backward count", lambda: pull(fwd, lambda r, g: (g,)),
     ["1 entries", "2 differentiable arguments"]),
    ("backward no tuple", lambda: pull(fwd, lambda r, g: g), ["returned Array", "a tuple"]),
    ("backward shape", lambda: pull(fwd, lambda r, g: (g, g.sum())),
     ["argument 1", "f32[]", "f32[3]"]),
    ("backward dtype", lambda: pull(fwd, lambda r, g: (g.astype("float64"), g)),
     ["argument 0", "f64[3]"]),
    ("backward structure", lambda: pull(fwd, lambda r, g: (g, (g, g))),
     ["argument 1", "tuple of 2"]),
    ("forward mode", lambda: ft.jvp(vjp_rules(fwd, lambda r, g: (g, g)), (x,), (x,)),
     ["forward-mode", "custom_vjp function f", "custom_jvp"]),
]

ARRAYS: list[Case] = [
    ("assignment", ImmutableArrayError, lambda: set_item(),
     ["x = x.at[0].set(1)", "immutable"]),
    ("traced assignment", ImmutableArrayError, lambda: ft.jit(assign)(x), ["x.at[0].set"]),
    ("axis", ArgumentError, lambda: x.sum(axis=2), ["axis 2", "1 dimension", "-1 to 0"]),
    ("axis in jit", ArgumentError, lambda: ft.jit(lambda a: a.sum(axis=2))(x), ["axis 2"]),
    ("axis of text", ArgumentError, lambda: x.sum(axis="rows"), ["must be an int, got 'rows'"]),
    ("axis nan", ArgumentError, lambda: x.sum(axis=float("nan")), ["got nan"]),
    ("dtype", DTypeError, lambda: x.astype("flaot32"), ["'flaot32'"]),
    ("dtype object", DTypeError, lambda: jnp.asarray(np.array([None])), ["object"]),
    ("ragged", ArgumentError, lambda: jnp.array([[1, 2], [3]]), ["inhomogeneous", "one shape"]),
    ("in itself", ArgumentError, lambda: jnp.array(CYCLE), ["64 deep", "contain itself"]),
    ("generator", NonArrayError, lambda: jnp.array(i for i in range(3)), ["list(x)"]),
    ("text in a list", NonArrayError, lambda: jnp.array([1, [2.0, "a"]][1]), ["of type str"]),
    ("list", NonArrayError, lambda: jnp.sin([1.0]), ["sin", "a list", "asarray"]),
    ("None", NonArrayError, lambda: jnp.sin(None), ["sin", "None"]),
    ("negative size", ArgumentError, lambda: jnp.zeros((2, -3)), ["-3 is negative"]),
    ("negative sample", ArgumentError, lambda: ft.random.normal(ft.random.key(0), (-2,)),
     ["ft.random.normal", "-2 is negative"]),
    ("seed as key", KeyTypeError, lambda: ft.random.normal(3, (2,)), ["ft.random.key(0)"]),
    ("index out of range", IndexingError, lambda: x[10], ["10", "axis 0 of size 3"]),
    ("too many indices", IndexingError, lambda: x[0, 0], ["2 axes", "(3,)"]),
    ("empty maximum", ArgumentError, lambda: jnp.max(jnp.zeros(0)), ["no elements", "initial="]),
    ("callback shape", CallbackError, lambda: host(lambda a: np.ones(4, "f4")),
     ["float32 of shape (4,)", "float32 of shape (3,)"]),
    ("callback dtype", CallbackError, lambda: host(lambda a: np.ones(3, "c8")), ["complex64"]),
    ("callback structure", CallbackError, lambda: host(lambda a: (a, a)), ["tuple of 2"]),
    ("callback in vmap", CallbackError,
     lambda: ft.vmap(lambda a: ft.pure_callback(np.sin, Spec((), "float32"), a))(x),
     ['vmap_method="sequential"']),
    ("callback in grad", NotDifferentiableError,
     lambda: ft.grad(lambda a: ft.pure_callback(np.sum, Spec((), "float32"), a))(x),
     ["no derivative", "custom_jvp"]),
]
NUMBERS: list[tuple[str, Callable[[], Any], list[str]]] = [
    ("beside int32", lambda: ints + 2**40, ["1099511627776", "int32", "np.int64(1099511627776)"]),
    ("alone", lambda: jnp.array(2**40), ["int32", 'default_dtypes(int_dtype="int64")']),
    ("in a list", lambda: jnp.array([1, 2**40]), ["int32"]),
    ("beyond 64 bits", lambda: jnp.array([2**100]), ["1267650600228229401496703205376"]),
    ("beyond text", lambda: jnp.array(10**5000), ["a very large int"]),
    ("uint8", lambda: jnp.array([1], dtype="uint8") + 300, ["300", "uint8, which holds 0 to 255"]),
    ("negative", lambda: jnp.array([1], dtype="uint8") - -1, ["-1", "uint8"]),
    ("jit", lambda: ft.jit(lambda a: a + 2**40)(ints), ["int32"]),
    ("argument of jit", lambda: ft.jit(lambda a: a)(2**40), ["int32"]),
    ("vmap", lambda: ft.vmap(lambda a: a * 2**40)(ints), ["int32"]),
    ("where", lambda: jnp.where(ints > 1, ints, 2**40), ["int32"]),
    ("at", lambda: ints.at[0].set(2**40), ["int32"]),
    ("full", lambda: jnp.full((2,), 2**40), ["int32"]),
    ("arange", lambda: jnp.arange(2**40, 2**40 + 3), ["int32"]),
    ("arange in jit", lambda: ft.jit(lambda: jnp.arange(2**40, 2**40 + 3))(), ["int32"]),
    ("beside floats", lambda: x + 10**400, ["401 digits", "float32"]),
]
MEMORY: list[tuple[str, Callable[[], Any], list[str]]] = [
    ("zeros", lambda: jnp.zeros((2**20, 2**20, 2**10)), ["4.00 PiB", "(1048576, 1048576, 1024)"]),
    ("broadcast", lambda: jnp.ones((2**22, 1)) + jnp.ones((1, 2**22)),
     ["70368744177664 bytes", "(4194304, 4194304)", "chunk_size"]),
    ("product", lambda: jnp.ones((2**22, 1)) @ jnp.ones((1, 2**22)), ["70368744177664 bytes"]),
    ("outer", lambda: jnp.outer(jnp.ones(2**22), jnp.ones(2**22)), ["70368744177664 bytes"]),
    ("jit", lambda: ft.jit(lambda a: a[:, None] + a[None, :])(jnp.ones(2**22)), ["64.0 TiB"]),
    ("samples", lambda: ft.random.normal(ft.random.key(0), (2**44,)), ["128. TiB"]),
]
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def set_item() -> None:
    x[0] = 1


def assign(a: Any) -> Any:
    a[0] = 1.0
    return a


def host(callback: Callable[..., Any]) -> Any:
    return ft.jit(lambda a: ft.pure_callback(callback, Spec((3,), "float32"), a))(x)


ALL: list[Case] = [
    *STATIC, *LOOPS, *ARRAYS,
    *((name, CustomRuleError, call, texts) for name, call, texts in RULES),
    *((name, IntegerOverflowError, call, texts) for name, call, texts in NUMBERS),
    *((name, OutOfMemoryError, call, texts) for name, call, texts in MEMORY)]


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case[1].__name__}-{case[0]}")
def test_message(case: Case) -> None:
    _, cls, call, texts = case
    caught(call, cls, *texts)


def test_a_primitive_without_a_rule_is_refused_when_its_class_is_made() -> None:
    def declare() -> None:
        class Half(Primitive):
            """x / 2."""

    caught(declare, MissingRuleError, "Half has no rule 'type'", "docs/internals/architecture.md")


def test_check_jaxpr() -> None:
    closed = ft.make_jaxpr(lambda a: jnp.cos(jnp.sin(a)))(x)
    jaxpr = closed.jaxpr
    first, second = jaxpr.eqns
    caught(lambda: check_jaxpr(3), JaxprError, "takes a jaxpr, got 3")  # type: ignore[arg-type]
    made = ft.make_jaxpr(jnp.sin)(m).jaxpr.eqns[0].outvars
    broken = {
        "reads a variable": (second,), "defined twice": (first, first, second),
        "gives f32[3], the equation says f32[3,4]": (
            Equation(first.primitive, first.invars, made, first.params, first.source),),
        "is not defined": ()}
    for text, eqns in broken.items():
        with pytest.raises(JaxprError, match=text.replace("[", r"\[").replace("]", r"\]")):
            check_jaxpr(Jaxpr((), jaxpr.invars, eqns, jaxpr.outvars))
    with pytest.raises(JaxprError, match="0 constant variables, but 1 constants"):
        check_jaxpr(ClosedJaxpr(jaxpr, (x,)))
