"""jit: what counts as one program, how functions and arguments may be given, compiled programs."""

import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, StaticArgumentError


def counting(fun):
    """`fun`, and a list that grows each time Python runs it."""
    runs = []

    @functools.wraps(fun)
    def counted(*args, **kwargs):
        runs.append(1)
        return fun(*args, **kwargs)

    return counted, runs


def test_traces_once_per_type_of_the_arguments():
    fun, runs = counting(lambda x: x * 2)
    jitted = ft.jit(fun)
    for x in (np.ones(3), np.zeros(3), jnp.ones(3, "float64")):
        jitted(x)
    assert len(runs) == 1
    for x, total in ((np.ones(4), 2), (np.ones(3, np.float32), 3), (1.0, 4), (2.0, 4), (1, 5),
                     (np.float32(1), 6), (True, 7)):
        jitted(x)
        assert len(runs) == total


def test_structure_and_keywords_are_part_of_the_type():
    fun, runs = counting(lambda *args, **kwargs: ft.tree.leaves((args, kwargs))[0])
    jitted = ft.jit(fun)
    calls = [lambda: jitted([1.0, 2.0]), lambda: jitted((1.0, 2.0)), lambda: jitted(1.0, 2.0),
             lambda: jitted(1.0, b=2.0), lambda: jitted(a=1.0, b=2.0), lambda: jitted([1.0, None])]
    for i, call in enumerate(calls):
        call()
        call()
        assert len(runs) == i + 1
    jitted(b=2.0, a=1.0)
    assert len(runs) == len(calls)


def test_keyword_order_does_not_mix_values():
    jitted = ft.jit(lambda *, a, b: a - b)
    assert float(jitted(a=5.0, b=2.0)) == float(jitted(b=2.0, a=5.0)) == 3.0


def test_weak_types_survive():
    jitted = ft.jit(lambda x: x + 1)
    assert jitted(2.0).weak_type
    assert not jitted(np.float32(2.0)).weak_type
    assert (jitted(2.0) * np.ones(2, np.float16)).dtype == np.float16
    assert ft.jit(lambda: 3)().weak_type


def test_default_dtypes_are_part_of_the_key():
    fun, runs = counting(lambda: jnp.zeros(2))
    jitted = ft.jit(fun)
    assert jitted().dtype == np.float32
    with ft.default_dtypes("float64", "int64"):
        assert jitted().dtype == np.float64
        assert jitted().dtype == np.float64
    assert jitted().dtype == np.float32
    assert len(runs) == 2


def test_static_arguments():
    fun, runs = counting(lambda x, n, *, flag="a": x ** n if flag == "a" else x)
    jitted = ft.jit(fun, static_argnums=1, static_argnames="flag")
    assert float(jitted(2.0, 3)) == 8.0
    assert float(jitted(2.0, n=3)) == 8.0
    assert float(jitted(2.0, 3, flag="b")) == 2.0
    runs.clear()
    for n in (2, 2, 2.0, True, 2):
        jitted(3.0, n)
    assert len(runs) == 3


def test_static_negative_and_several():
    jitted = ft.jit(lambda x, mode, n: x * n if mode == "mul" else x + n, static_argnums=(-1, 1))
    assert float(jitted(3.0, "mul", 4)) == 12.0
    assert float(jitted(3.0, "add", 4)) == 7.0


def test_unhashable_static_argument():
    with pytest.raises(StaticArgumentError, match=r"argument 1.*not hashable.*list"):
        ft.jit(lambda x, n: x, static_argnums=1)(1.0, [1])


def test_methods_callables_and_partials():
    class Model:
        def __init__(self, w):
            self.w = w

        def bound(self, x):
            return self.w * x

        @functools.partial(ft.jit, static_argnums=0)
        def decorated(self, x):
            return self.w * x + 1

        def __call__(self, x):
            return self.w - x

    model = Model(3.0)
    assert float(ft.jit(model.bound)(2.0)) == 6.0
    assert float(model.decorated(2.0)) == 7.0
    assert float(Model(5.0).decorated(2.0)) == 11.0
    assert float(ft.jit(model)(2.0)) == 1.0
    assert float(ft.jit(functools.partial(lambda a, b, *, c: a - b * c, 10.0, c=2.0))(3.0)) == 4.0
    assert ft.jit(functools.partial(model.bound)).__name__ == "bound"
    assert ft.jit(model.bound).__wrapped__ == model.bound


def test_closures_over_arrays_are_constants_and_over_tracers_are_not():
    y = jnp.arange(3.0)
    fun, runs = counting(lambda x: x * y)
    jitted = ft.jit(fun)
    np.testing.assert_allclose(jitted(2.0), [0, 2, 4])
    np.testing.assert_allclose(jitted(3.0), [0, 3, 6])
    assert len(runs) == 1

    def outer(z):
        return ft.jit(lambda x: x * z)(2.0)

    for wrap in (lambda f: f, ft.jit):
        assert float(ft.grad(wrap(outer))(5.0)) == 2.0
        np.testing.assert_allclose(ft.vmap(wrap(outer))(jnp.arange(3.0)), [0, 2, 4])


def test_one_jitted_function_under_different_tracers_of_its_closure():
    held = {}
    inner = ft.jit(lambda x: x * held["z"])

    def outer(z):
        held["z"] = z
        return inner(3.0)

    assert [float(ft.grad(outer)(v)) for v in (1.0, 2.0)] == [3.0, 3.0]
    held["z"] = 2.0
    assert float(ft.jit(lambda x: x * held["z"])(3.0)) == 6.0


def test_exceptions_pass_and_leave_no_trace_behind():
    def fun(x):
        if x.shape == (2,):
            raise KeyError("shape")
        return x * 2

    jitted = ft.jit(fun)
    for _ in range(2):
        with pytest.raises(KeyError, match="shape"):
            jitted(np.ones(2))
        np.testing.assert_allclose(jitted(np.ones(3)), 2.0)
        assert float(ft.grad(lambda x: x * x)(3.0)) == 6.0


def test_recursion():
    @functools.partial(ft.jit, static_argnums=1)
    def power(x, n):
        return x * power(x, n - 1) if n else jnp.ones_like(x)

    assert float(power(2.0, 10)) == 1024.0
    assert float(ft.grad(power)(2.0, 3)) == 12.0


def test_threads_share_a_function():
    jitted = ft.jit(lambda x: jnp.sin(x).sum() * x.shape[0])
    results = {}

    def work(n):
        for size in range(1, 12):
            results[n, size] = float(jitted(np.full(size, n / 10)))
            results[n, -size] = float(ft.grad(lambda x: jitted(x))(np.full(size, n / 10))[0])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 * 22
    for (n, size), value in results.items():
        expected = np.sin(n / 10) * size ** 2 if size > 0 else np.cos(n / 10) * -size
        np.testing.assert_allclose(value, expected)


def test_numpy_inputs_are_not_aliased():
    x = np.arange(3.0)
    for fun in (lambda a: a, lambda a: a[:2], lambda a: {"a": a, "b": a.reshape(3, 1)}):
        outs = [np.asarray(leaf).copy() for leaf in ft.tree.leaves(ft.jit(fun)(x))]
        kept = ft.tree.leaves(ft.jit(fun)(x))
        x[:] = -1.0
        for a, b in zip(outs, kept, strict=True):
            np.testing.assert_array_equal(a, b)
        x[:] = np.arange(3.0)


def test_outputs_of_one_input_twice_and_constants():
    a, b, c, d = ft.jit(lambda x: (x, x, 2.0, np.arange(2)))(np.ones(2))
    np.testing.assert_array_equal(a, b)
    assert float(c) == 2.0
    assert d.dtype == np.int64
    assert ft.jit(lambda: None)() is None
    assert ft.jit(lambda x: ())(1.0) == ()


def test_inline_leaves_no_call():
    inner = lambda x: jnp.sin(x) * 2.0
    text = str(ft.make_jaxpr(ft.jit(inner, inline=True))(1.0))
    assert "jit" not in text and "sin" in text
    assert "jit[" in str(ft.make_jaxpr(ft.jit(inner))(1.0))


def test_disable_jit():
    fun, runs = counting(lambda x: x + 1 if x > 0 else x - 1)
    jitted = ft.jit(fun)
    with ft.disable_jit():
        assert float(jitted(1.0)) == 2.0
        assert float(jitted(-1.0)) == -2.0
        assert float(jitted(-1.0)) == -2.0
    assert len(runs) == 3
    with pytest.raises(TypeError, match=r"bool|if"):
        jitted(1.0)


def test_clear_caches():
    fun, runs = counting(lambda x: x + 1)
    jitted = ft.jit(fun)
    jitted(1.0)
    jitted(1.0)
    ft.clear_caches()
    jitted(1.0)
    assert len(runs) == 2
    jitted.clear_cache()
    jitted(1.0)
    assert len(runs) == 3


def test_donation_takes_the_argument_and_gives_the_value():
    jitted = ft.jit(lambda x, y: x + y, donate_argnums=0)
    np.testing.assert_allclose(jitted(jnp.ones(3), 2.0), 3.0)
    np.testing.assert_allclose(ft.jit(lambda x: x * 2, donate_argnames="x")(jnp.ones(3)), 2.0)
    with pytest.raises(StaticArgumentError, match="both static and"):
        ft.jit(lambda x: x, static_argnums=0, donate_argnums=0)


def test_lower_and_compile():
    jitted = ft.jit(lambda x, n: {"out": x @ x.T * n}, static_argnums=1)
    lowered = jitted.lower(ft.ShapeDtypeStruct((2, 3), "float32"), 3)
    assert "dot_general" in lowered.as_text()
    compiled = lowered.compile()
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(compiled(x, 3)["out"], 9.0)
    assert "dot_general" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] >= 2 * 2 * 3 * 2
    assert lowered.cost_analysis() == compiled.cost_analysis()
    assert lowered.memory_analysis() == compiled.memory_analysis()
    memory = compiled.memory_analysis()
    assert min(memory.values()) >= 0 < max(memory.values())
    with pytest.raises(ArgumentError, match=r"f32\[2,3\].*f32\[3,3\]"):
        compiled(np.ones((3, 3), np.float32), 3)
    with pytest.raises(ArgumentError, match="structure"):
        compiled([x], 3)
    gradient = ft.grad(lambda v: compiled(v, 3)["out"].sum())(x)
    np.testing.assert_allclose(gradient, ft.grad(lambda v: jitted(v, 3)["out"].sum())(x))


def test_custom_nodes_and_eval_shape():
    @ft.tree_util.register_pytree_node_class
    class Box:
        def __init__(self, value, tag):
            self.value, self.tag = value, tag

        def tree_flatten(self):
            return (self.value,), self.tag

        @classmethod
        def tree_unflatten(cls, tag, children):
            return cls(children[0], tag)

    fun, runs = counting(lambda box: Box(box.value * 2, box.tag + "!"))
    jitted = ft.jit(fun)
    out = jitted(Box(np.ones(2), "a"))
    assert isinstance(out, Box) and out.tag == "a!"
    jitted(Box(np.ones(2), "a"))
    assert len(runs) == 1
    jitted(Box(np.ones(2), "b"))
    assert len(runs) == 2
    assert jitted.eval_shape(Box(np.ones(2), "a")).value.shape == (2,)


def test_decorator_with_arguments_keeps_name_and_doc():
    @ft.jit(static_argnames=("n",))
    def scaled(x, n):
        """Scale."""
        return x * n

    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    assert float(scaled(2.0, n=4)) == 8.0


def test_tangents_of_integers_leave_and_enter_programs():
    def both(x):
        return ft.jvp(lambda y: (jnp.sin(y), y.argmax()), (x,), (x,))

    x = np.arange(3.0)
    for _ in range(2):
        (sines, place), (slopes, nothing) = ft.jit(both)(x)
        assert nothing.dtype == ft.float0
        assert nothing.shape == place.shape == ()
        np.testing.assert_allclose(slopes, x * np.cos(x))
        np.testing.assert_allclose(sines, np.sin(x))
    batched = ft.vmap(ft.jit(both))(np.stack([x, x]))[1][1]
    assert batched.shape == (2,)
    assert repr(batched).endswith("dtype=void)")
    pushed = ft.jit(lambda n, t: ft.jvp(lambda k: k * 2.0, (n,), (t,)))(
        3, np.zeros((), ft.float0))
    np.testing.assert_allclose(pushed[0], 6.0)
    np.testing.assert_allclose(pushed[1], 0.0)


@pytest.mark.parametrize("backend", ["c", "triton", "reference"])
def test_programs_go_with_their_function(backend):
    with ft.config.use_backend(backend):
        fun = ft.jit(lambda x: x * 2 + 1)
        fun(np.ones(3, np.float32))
        program = weakref.ref(fun.lower(np.ones(3, np.float32)).jaxpr)
        assert program() is not None
        del fun
        gc.collect()
    assert program() is None


def test_attributes_of_the_function_are_those_of_what_jit_returns():
    def f(x):
        """Doubles."""
        return 2 * x

    f.tag, f.lower = {"a": 1}, "hidden"
    for made in (ft.jit(f), ft.jit(static_argnums=())(f), ft.jit(ft.jit(f))):
        assert made.tag is f.tag and made.__name__ == "f" and made.__doc__ == "Doubles."
        assert callable(made.lower) and float(made(1.0)) == 2.0
    assert ft.jit(f).__wrapped__ is f
    for transform in (ft.grad, ft.vmap, ft.checkpoint, ft.value_and_grad, ft.jacfwd):
        made = transform(ft.jit(f))
        assert made.tag is f.tag and not hasattr(made, "clear_cache")
    assert ft.custom_jvp(f).tag is f.tag and ft.custom_vjp(f).tag is f.tag
