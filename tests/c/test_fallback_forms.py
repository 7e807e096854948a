"""Where a step of a program cannot be written, a plainer form of it computes the same, and says so.

The writers are made to fail here, each for some steps.
"""

import warnings
from zlib import crc32

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as n
from functrans.core.errors import DefectError, FallbackWarning
from functrans.lowering import defects
from functrans.lowering.c import backend, calls, lower, program
from functrans.lowering.c.isa import host_isa
from functrans.lowering.c.toolchain import CompilerError
from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.tensor import HostCall
from functrans.lowering.passes import pipeline
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rewrite import Dispatch, RewriteRule
from functrans.lowering.rules import graph
from functrans.lowering.schedule import plans
from functrans.lowering.schedule.chains import tensors_of
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.store.cache import Cache
from functrans.primitives.transcendental import tanh_p
from tests.laws.networks import draw_network

RNG = np.random.default_rng(0)
X, W, B = (RNG.standard_normal(s).astype(np.float32) for s in ((96, 40), (40, 112), (112,)))
Q = RNG.standard_normal((8, 64, 32)).astype(np.float32)


def layer(x, w, b):
    return ft.value_and_grad(lambda w, b: n.mean(n.square(ft.nn.gelu(x @ w + b))), (0, 1))(w, b)


def attention(q, k, v):
    return ft.nn.softmax(q @ n.swapaxes(k, -1, -2)) @ v


def recurrence(x, w):
    step = lambda h, x: (n.tanh(h @ w[:, :40] * 0.1 + x), n.sum(h))
    return lax.scan(step, n.zeros(40, "float32"), x)


PROGRAMS = {"layer": (layer, (X, W, B)), "attention": (attention, (Q, Q, Q)),
            "recurrence": (recurrence, (X, W)),
            "softmax": (lambda x: ft.nn.softmax(x * 2) + n.sin(x).sum(0), (X,)),
            "cumulative": (lambda x: n.cumsum(n.sort(x, -1), 0).T @ x, (X,))}


def fail_where(monkeypatch, module, name, holds):
    """Make a function fail for the arguments for which something holds; how often it did."""
    inner, failed = getattr(module, name), []

    def failing(*args, **kwargs):
        if holds(*args):
            failed.append(args)
            raise KeyError("a value")
        return inner(*args, **kwargs)

    monkeypatch.setattr(module, name, failing)
    return failed


WAYS = {
    "epilogues": lambda m: fail_where(m, calls, "write_epilogue", lambda *a: True),
    "chains": lambda m: fail_where(m, calls, "write_chain", lambda *a: True),
    "several values": lambda m: fail_where(m, program, "write_kernel",
                                           lambda k, *a: len(k.members) > 1),
    "large expressions": lambda m: fail_where(m, program, "write_kernel", _has_operations(2)),
    "one operation": lambda m: fail_where(m, program, "write_kernel", _computes("tanh")),
    "every operation": lambda m: fail_where(m, program, "write_kernel", _has_operations(0)),
    "plans": lambda m: fail_where(m, plans, "schedule_of", lambda *a: True),
}


def _has_operations(most):
    def holds(kernel, schedule, *rest):
        s = kernel.builder(schedule.is_stored)
        return len([e for e in reachable_expressions(kernel.all_expressions(s)) if e.args]) > most

    return holds


def _computes(op):
    def holds(kernel, schedule, *rest):
        s = kernel.builder(schedule.is_stored)
        return any(e.op == op for e in reachable_expressions(kernel.all_expressions(s)))

    return holds


def run(fun, args, backend="c"):
    with ft.config.use_backend(backend):
        return [np.asarray(x) for x in ft.tree.leaves(ft.jit(fun)(*args))]


@pytest.fixture(autouse=True)
def anew(monkeypatch, tmp_path):
    """Every warning is raised anew, and no program is in the disk cache."""
    monkeypatch.setattr(backend, "program_cache", lambda: Cache(tmp_path / "cache"))
    monkeypatch.setattr(defects, "_told", set())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plainer_form_computes_the_same(name, way, monkeypatch):
    fun, args = PROGRAMS[name]
    expected = run(fun, args, "reference")
    failed = WAYS[way](monkeypatch)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        actual = run(lambda *xs: fun(*xs), args)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5 * max(np.abs(e).max(), 1e-3))
    fallbacks = [w for w in found if w.category is FallbackWarning]
    assert bool(fallbacks) == bool(failed)
    assert all("KeyError: 'a value'" in str(w.message) for w in fallbacks)


def test_the_ways_to_fail_are_met(monkeypatch):
    for way, name in (("epilogues", "layer"), ("chains", "attention"), ("plans", "softmax"),
                      ("several values", "softmax"), ("large expressions", "softmax"),
                      ("one operation", "recurrence"), ("every operation", "softmax")):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            failed = WAYS[way](patch)
            fun, args = PROGRAMS[name]
            run(lambda *xs: fun(*xs), args)  # noqa: B023
            assert failed, way


def test_the_warning_is_at_the_line_and_comes_once(monkeypatch):
    fail_where(monkeypatch, program, "write_kernel", lambda k, *a: len(k.members) > 1)
    fun = lambda x: ft.nn.softmax(x * 3)
    with pytest.warns(FallbackWarning) as found:
        run(fun, (X,))
        run(lambda x: fun(x), (X,))
    (only,) = found
    assert only.filename == __file__ and only.lineno == fun.__code__.co_firstlineno
    assert "its values are computed apart" in str(only.message)
    assert "a defect of functrans" in str(only.message)


def test_explain_says_it(monkeypatch):
    fail_where(monkeypatch, calls, "write_epilogue", lambda *a: True)
    with pytest.warns(FallbackWarning):
        explained = str(ft.explain(layer, X, W, B, target="cpu"))
    assert "since the compiler failed on it (KeyError" in explained


def test_no_other_process_gets_it_without_a_word(monkeypatch):
    """A program with fallbacks is not cached for other processes, which would not warn."""
    fail_where(monkeypatch, calls, "write_epilogue", lambda *a: True)
    for _ in range(2):
        with monkeypatch.context() as patch, pytest.warns(FallbackWarning):
            patch.setattr("functrans.lowering.defects._told", set())
            run(lambda x, w, b: layer(x * 5, w, b), (X, W, B))


def test_only_the_step_that_failed_is_plain(monkeypatch):
    """Of two epilogues one fails; the other one stays."""
    def two(x, w):
        return n.tanh(x @ w), n.exp(-n.abs((x * 2) @ w))

    def once(*args):
        return not failed

    failed = fail_where(monkeypatch, calls, "write_epilogue", once)
    lowered = ft.lower(two, X, W, target="cpu")
    with pytest.warns(FallbackWarning):
        text = program.write_program(graph.graph_of(simplify(lowered.jaxpr)), host_isa(), {})
    assert len(failed) == 1
    assert sum(isinstance(step, FusedGemm) for step in text.main.schedule.steps) == 1


def test_rules_that_fail_leave_the_operation_to_numpy(monkeypatch):
    def failing(eqn, operands):
        raise IndexError("no rule")

    monkeypatch.setattr(graph, "RULES", {**graph.RULES, tanh_p: failing})
    with pytest.warns(FallbackWarning, match="tanh f32.*IndexError: no rule.*NumPy evaluates it"):
        (found,) = run(lambda x: n.tanh(x * 2) + 1, (X,))
    np.testing.assert_allclose(found, np.tanh(X * 2) + 1, rtol=1e-6)


def test_laws_that_fail_are_left_out(monkeypatch):
    from_rules = Dispatch.rules

    def failing(self, primitive, made_by):
        def rule(r, eqn, *operands):
            raise AttributeError("no such thing")

        return [RewriteRule("ours", "a law", (), (), rule), *from_rules(self, primitive, made_by)]

    monkeypatch.setattr(Dispatch, "rules", failing)
    with pytest.warns(FallbackWarning, match="the law 'a law' is not applied"):
        found = run(lambda x: n.tanh(x * 2) + 1, (X,))
    np.testing.assert_allclose(found[0], np.tanh(X * 2) + 1, rtol=1e-6, atol=1e-6)


def test_products_stay_as_they_are_where_their_algebra_fails(monkeypatch):
    fail_where(monkeypatch, pipeline, "contract_networks", lambda *a: True)
    with pytest.warns(FallbackWarning, match="its products and sums stay as they are"):
        found = run(lambda x, w: (x @ w).sum(), (X, W))
    np.testing.assert_allclose(found[0], (X.astype("f8") @ W).sum(), rtol=1e-4)


def test_programs_that_the_c_compiler_refuses_are_written_in_plain_kernels(monkeypatch):
    inner, refused = lower.compiled, []

    def once(lowered, *rest):
        if not refused:
            refused.append(lowered)
            raise CompilerError("the C compiler failed on a generated program.")
        return inner(lowered, *rest)

    monkeypatch.setattr(lower, "compiled", once)
    with pytest.warns(FallbackWarning, match="each of its values has a kernel of its own"):
        found = run(lambda x: ft.nn.softmax(x * 2), (X,))
    exp = np.exp(2 * X)
    np.testing.assert_allclose(found[0], exp / exp.sum(-1, keepdims=True), rtol=1e-5)


def test_a_program_that_it_refuses_in_any_form_is_an_error(monkeypatch):
    def always(lowered, *rest):
        raise CompilerError(f"refused {lowered.text.is_fallback}")

    monkeypatch.setattr(lower, "compiled", always)
    with pytest.raises(CompilerError, match="refused False"):
        run(lambda x: ft.nn.softmax(x * 2), (X,))


def test_what_has_no_form_at_all_is_a_defect(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fail_where(monkeypatch, program, "write_kernel", lambda *a: True)
    fail_where(monkeypatch, program, "write_call", lambda *a: True)
    with warnings.catch_warnings(), pytest.raises(DefectError, match="a defect of functrans"):
        warnings.simplefilter("ignore", FallbackWarning)
        run(lambda x: n.tanh(x) + 2, (X,))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", [3, 17, 23, 41, 58])
def test_networks_of_which_a_fifth_of_the_steps_fails(seed, monkeypatch):
    network = draw_network(seed, 1 << 14)
    expected = run(network.program, network.arguments("float64"), "reference")

    def fails(step, *rest):
        return not isinstance(step, HostCall) and crc32(repr(tensors_of(step)).encode()) % 5 == 0

    for module, name in ((program, "write_kernel"), (calls, "write_epilogue"),
                         (calls, "write_kernel"), (program, "write_call")):
        fail_where(monkeypatch, module, name, fails)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        actual = run(network.program, network.arguments("float64"))
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-7, atol=1e-9)
