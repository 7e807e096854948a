"""Values of traced arrays that Python asks for, and traced arrays that escape."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
    ImmutableArrayError,
    LeakedTracerError,
    NotCoveredError,
    ShapeError,
)
from tests.errors.expect import caught

x = jnp.arange(3.0)
ASKED: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "if": (lambda a: 1.0 if a > 0 else a,
           ["bool()", "functrans.numpy.where", "functrans.lax.cond"]),
    "while": (lambda a: [a for _ in iter(lambda: bool(a > 9), False)],
              ["functrans.lax.while_loop"]),
    "and": (lambda a: (a > 0) and (a < 1), ["& | ~ for and, or, not"]),
    "int": (lambda a: int(a), ["int()", "x.astype(int)", "fori_loop"]),
    "float": (lambda a: float(a), ["float()", "x.astype(float)"]),
    "complex": (lambda a: complex(a), ["complex()", "x.astype(complex)"]),
    "range": (lambda a: range(a.astype(int)), ["range()", "functrans.lax.fori_loop(0, n, f, x)"]),
    "list index": (lambda a: [1, 2][a.astype(int)], ["a list index", "takes a traced i"]),
    "asarray": (lambda a: np.asarray(a), ["np.asarray", "functrans.pure_callback"]),
    "format": (lambda a: f"{a:.2f}", ["formatted", "functrans.debug.print"]),
    "item": (lambda a: a.item(), ["item()", "functrans.debug.print"]),
    "tolist": (lambda a: a.tolist(), ["tolist()", "return it from the function"]),
}


@pytest.mark.parametrize("name", ASKED)
def test_jit_says_what_to_use_and_that_arguments_can_be_static(name: str) -> None:
    ask, texts = ASKED[name]
    text = caught(lambda: ft.jit(ask)(1.0), ConcretizationError, "f32[]" if "f32[]" in texts else
                  "needs its value", "stand-ins for its arguments", *texts)
    static = name in ("if", "while", "and", "int", "float", "complex", "range", "list index")
    assert ("static_argnums" in text) == static
    assert f":{ask.__code__.co_firstlineno}, in " in text


@pytest.mark.parametrize("name", ASKED)
def test_vmap_says_that_lanes_differ(name: str) -> None:
    ask, texts = ASKED[name]
    text = caught(lambda: ft.vmap(ask)(x), ConcretizationError, "vmap", "lanes", *texts)
    assert "static_argnums" not in text


@pytest.mark.parametrize("name", sorted(set(ASKED) - {"asarray", "complex", "float", "tolist"}))
def test_under_grad_and_jvp_scalars_are_known(name: str) -> None:
    ask, _ = ASKED[name]
    ft.jvp(lambda a: (ask(a), a)[1], (0.5,), (1.0,))
    ft.grad(lambda a: (ask(a), a)[1])(0.5)
    caught(lambda: ft.jit(ft.grad(lambda a: (ask(a), a)[1]))(0.5), ConcretizationError)


def test_an_array_as_a_condition_under_grad() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\).*any\(\) or .all\(\)"):
        ft.grad(lambda a: a.sum() if a > 0 else 0.0)(x)
    caught(lambda: ft.jit(lambda a: a if a > 0 else -a)(x), ConcretizationError,
           "x.any() or x.all() first")


def test_sizes_that_depend_on_values() -> None:
    caught(lambda: ft.jit(lambda a: a[a > 0])(x), ConcretizationError, "boolean index", "where")
    caught(lambda: ft.jit(lambda n: jnp.zeros(n))(3), ConcretizationError, "zeros", "shape")
    caught(lambda: ft.jit(lambda n: jnp.arange(n))(3), ConcretizationError, "arange", "static")
    caught(lambda: ft.jit(lambda a, i: a[:i])(x, 1), ConcretizationError, "dynamic_slice_in_dim")
    caught(lambda: ft.jit(jnp.nonzero)(x), ConcretizationError, "size=n")
    caught(lambda: ft.jit(jnp.unique)(x), ConcretizationError, "size=n")


def test_iteration_and_length_of_a_scalar() -> None:
    caught(lambda: ft.jit(lambda a: list(a))(1.0), ShapeError, "iteration", "fori_loop")
    caught(lambda: ft.vmap(lambda a: list(a))(x), ShapeError, "iteration", "no axis")
    caught(lambda: ft.jit(lambda a: len(a))(1.0), ShapeError, "len()", "x.size")


def test_numpy_functions_that_are_not_covered_are_named() -> None:
    caught(lambda: ft.jit(lambda a: np.busday_count(a, a))(x), NotCoveredError, "np.busday_count",
           "functrans.pure_callback")
    caught(lambda: np.add.at(x, 0, 1), ImmutableArrayError, "np.add.at", "x.at[index].add(y)")
    caught(lambda: np.sum(x, out=jnp.zeros(())), ArgumentError, "np.sum with out=")


KEPT: list[Any] = []


def keep(a: Any) -> Any:
    b = a * 2.0
    KEPT.append(b)
    return b.sum()


MAKERS: dict[str, tuple[Callable[[], Any], str]] = {
    "jit": (lambda: ft.jit(keep)(x), "staging of keep"),
    "make_jaxpr": (lambda: ft.make_jaxpr(keep)(x), "staging of keep"),
    "scan": (lambda: lax.scan(lambda c, a: (c, keep(a)), 0.0, jnp.ones((2, 3))), "staging"),
    "cond": (lambda: lax.cond(True, keep, keep, x), "staging of keep"),
    "grad": (lambda: ft.grad(keep)(x), "grad"),
    "jvp": (lambda: ft.jvp(keep, (x,), (x,)), "jvp"),
    "vmap": (lambda: ft.vmap(keep)(x), "vmap"),
    "checkpoint": (lambda: ft.checkpoint(keep)(x), "staging of keep"),
}
USES: dict[str, Callable[[Any], Any]] = {
    "+": lambda a: a + 1,
    "sin": lambda a: jnp.sin(a),
    "np.sin": lambda a: np.sin(a),
    "method": lambda a: a.astype("float64"),
    "bool": lambda a: bool(a),
    "in jit": lambda a: ft.jit(lambda v: v + a)(1.0),
    "in grad": lambda a: ft.grad(lambda v: (v * a).sum())(1.0),
    "in vmap": lambda a: ft.vmap(lambda v: v + a)(x),
    "returned from jit": lambda a: ft.jit(lambda v: a)(1.0),
    "argument of jit": lambda a: ft.jit(lambda v: v)(a),
    "argument of scan": lambda a: lax.scan(lambda c, v: (c, v), a, x),
    "argument of cond": lambda a: lax.cond(True, lambda v: v, lambda v: v, a),
    "predicate": lambda a: lax.cond(a.sum() > 0, lambda v: v, lambda v: v, 1.0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_leaked_tracer_says_where_it_was_made(maker: str, use: str) -> None:
    make, kind = MAKERS[maker]
    KEPT.clear()
    make()
    tracer = KEPT[-1]
    if use == "bool" and maker in ("grad", "jvp"):
        return  # of these the value is known
    text = caught(lambda: USES[use](tracer), LeakedTracerError, "escaped", kind,
                  "return the value from that function")
    assert f"called at {__file__}:" in text
    if kind.startswith("staging"):
        assert f"made at {__file__}:{keep.__code__.co_firstlineno + 1} (b = a * 2.0)" in text
    assert "is over" in text


@pytest.mark.parametrize("transform", [ft.grad, ft.jit, lambda f: lambda v: ft.jvp(f, (v,), (v,))],
                         ids=["grad", "jit", "jvp"])
@pytest.mark.parametrize("dtype", [float, int, complex])
def test_an_element_of_a_numpy_array_is_no_constant(transform: Any, dtype: type) -> None:
    def f(v: Any) -> Any:
        out = np.zeros(2, dtype)
        out[0] = v
        return out.sum() * v

    with pytest.raises((TypeError, ValueError)) as raised:  # NumPy says it in its own words
        transform(f)(2.0)
    reasons = [raised.value, raised.value.__cause__]
    assert any("an element of a NumPy array" in str(r) or "of a traced" in str(r) for r in reasons)
    assert ft.grad(lambda v: v.item() * v)(2.0) == 2.0  # a number that is asked for is one
