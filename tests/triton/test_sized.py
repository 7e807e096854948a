"""Programs of named sizes: written once, right at every size."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim, substitute_shape
from functrans.core.errors import FunctransError, ShapeError
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.staging import stage
from functrans.lowering.backend import get_backend
from functrans.lowering.triton import sized as sized_programs
from functrans.lowering.triton.sized import SizedExecutable
from tests.laws.primitives import Case, all_cases
from tests.laws.test_primitive_laws import assert_same
from tests.lowering.test_symbolic_programs import PROGRAMS, values

B = Dim("B")
F32 = np.dtype(np.float32)


def sized(fun, *avals):
    closed = stage(lambda *xs: ft.tree.leaves(fun(*xs)), avals)
    executable = get_backend("triton").compile(closed.jaxpr)
    assert isinstance(executable, SizedExecutable)
    return executable


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_for_all_sizes(name):
    fun, avals = PROGRAMS[name]
    executable = sized(fun, *[ShapedArray(*a) for a in avals])
    rng = np.random.default_rng(0)
    for size in (0, 1, 7, 40):
        known = {"B": size, "N": 6}
        arrays = [values(substitute_shape(s, known), d, rng) for s, d in avals]
        expected = ft.tree.leaves(fun(*map(jnp.asarray, arrays)))
        for a, e in zip(executable.run(arrays), map(np.asarray, expected), strict=True):
            assert (a.dtype, a.shape) == (e.dtype, e.shape)
            np.testing.assert_allclose(a, e, rtol=4e-4, atol=4e-4)


def typed(case: Case, names: dict[int, Dim]):
    """The types of a sample, and of what it gives, with names for some sizes; None if refused."""
    avals = [ShapedArray(tuple(names.get(n, n) for n in a.shape), a.dtype) for a in case.args]
    try:
        outs = case.primitive.type(*avals, **case.params)
    except (FunctransError, ValueError, TypeError):
        return None
    return avals, outs if case.primitive.multiple_results else [outs]


def named(case: Case):
    """A program of one primitive in which all sizes have names that its type rule lets have one."""
    names: dict[int, Dim] = {}
    for n in sorted({n for a in case.args for n in a.shape if n > 1}):
        if typed(case, more := {**names, n: Dim(f"n{n}")}):
            names = more
    avals, outs = typed(case, names)
    invars = tuple(map(Var, avals))
    outvars = tuple(map(Var, outs))
    eqn = Equation(case.primitive, invars, outvars, case.params)
    return names, Jaxpr((), invars, (eqn,), outvars)


@pytest.mark.one_in(6)
@pytest.mark.one_sample_in(5)
@pytest.mark.parametrize("case", [c for c in all_cases() if named(c)[0]], ids=str)
def test_every_primitive(case: Case):
    """At the sizes of its sample, and at others where these make sense."""
    names, jaxpr = named(case)
    run = get_backend("triton").compile(jaxpr).run
    # other sizes repeat indices: which of several values stays is not said
    for more in (0,) if "unique_indices" in case.params else (0, 1):
        args = [np.resize(a, [n + more * (n in names) for n in a.shape]) for a in case.args]
        try:
            case.primitive.type(*[ShapedArray(a.shape, a.dtype) for a in args], **case.params)
            expected = case.outs(*args)
        except (FunctransError, ValueError, IndexError):
            assert more
            continue
        assert_same(run(args), expected)


def test_text_is_shared_and_programs_are_kept(monkeypatch):
    monkeypatch.setattr(sized_programs, "KEPT", 4)
    executable = sized(lambda x: jnp.exp(x).sum(1), ShapedArray((B, 300), F32))
    for n in range(2, 9):
        x = np.ones((n, 300), "f")
        np.testing.assert_allclose(executable.run([x])[0], np.exp(x).sum(1), 1e-5)
    known = executable.run.known
    assert len(known) == 4
    assert len({tuple(e.program.sources) for e in known}) == 1
    assert known[-1] is executable.run.at([(8, 300)])


def test_sizes_of_one_name_must_agree():
    executable = sized(lambda x, y: x + y, ShapedArray((B,), F32), ShapedArray((B,), F32))
    with pytest.raises(ShapeError, match=r"input 1 .* shape \(4,\)") as error:
        executable.run([np.ones(3, "f"), np.ones(4, "f")])
    assert "B is 3" in str(error.value)


def test_what_is_known_of_a_program_has_names():
    executable = sized(lambda x: x * 2, ShapedArray((B, 8), F32))
    assert str(executable.memory_analysis()["outputs"]) == "32*B"
    assert str(executable.cost_analysis()["flops"]) == "8*B"
    executable.run([np.ones((3, 8), "f")])
    assert "@triton.jit" in executable.as_text()


def test_a_gradient_has_the_same_kernels_at_many_sizes():
    """Also where a constant of the program comes from a size, as that of a mean does."""
    def loss(w, x, y):
        return -(ft.nn.log_softmax(jnp.tanh(x @ w)) * y).sum(1).mean()

    executable = sized(lambda *a: [ft.grad(loss)(*a)], ShapedArray((70, 10), F32),
                       ShapedArray((B, 70), F32), ShapedArray((B, 10), F32))
    texts = set()
    for n in (97, 112, 131, 199):
        found = executable.run.at([(70, 10), (n, 70), (n, 10)])
        texts.add(tuple(found.program.sources))
    assert len(texts) == 1
