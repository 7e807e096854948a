"""Products of small matrices whose batch is last in memory: sums in registers, without copies."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as xp
from functrans.lowering.passes.interleaved_forms import interleave_forms
from functrans.lowering.passes.interleaved_products import interleave_products
from functrans.lowering.passes.pipeline import simplify
from tests.triton.compiled import compile_kernels
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def cplx(*shape):
    return (real(*shape) + 1j * real(*shape)).astype(np.complex64)


def einsum(text, conjugate=-1):
    def product(*xs):
        xs = [x.conj() if k == conjugate else x for k, x in enumerate(xs)]
        return xp.einsum(text, *xs)
    return product


def covariance(mask, x):
    return xp.einsum("tf,ctf,dtf->fcd", mask, x, x.conj())


def of(fun, *args):
    """Whether the products of a function are sums in registers."""
    jaxpr = simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts())
    found = interleave_products(jaxpr, 132)
    return sum(e.primitive.name == "interleaved_product" for e in found.eqns)


CASES = {
    "a symmetric one, weighed": (covariance, real(11, 257), cplx(3, 11, 257)),
    "real": (einsum("ktf,ltf->fkl"), real(3, 20, 260), real(5, 20, 260)),
    "the normal equations": (lambda w, x: xp.einsum("tf,ctf,dtf->fcd", w, x, x), real(24, 256),
                             real(3, 24, 256)),
    "complex": (einsum("ktf,ltf->fkl"), cplx(3, 20, 260), cplx(2, 20, 260)),
    "the first conjugate": (einsum("ktf,ltf->fkl", 0), cplx(3, 20, 260), cplx(2, 20, 260)),
    "the second conjugate": (einsum("tkf,ltf->flk", 1), cplx(20, 3, 260), cplx(2, 20, 260)),
    "in blocks": (einsum("ktf,ltf->fkl"), real(11, 9, 256), real(13, 9, 256)),
    "more axes": (einsum("bkstf,blstf->bfkl"), real(2, 3, 4, 5, 130), real(2, 2, 4, 5, 130)),
    "two rows of each": (einsum("kmtf,ltf->fkml"), real(2, 3, 10, 256), real(2, 10, 256)),
    "a weight of the terms": (lambda w, x, y: xp.einsum("ktf,ltf->fkl", w[:, None] * x, y),
                              real(12), real(3, 12, 256), real(2, 12, 256)),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", CASES)
def test_sums_in_registers(name):
    fun, *args = CASES[name]
    assert of(fun, *args) == 1
    assert "interleaved" in kernels_of(check(fun, *args))


@pytest.mark.parametrize("fun, args", [
    (einsum("ktf,ltf->fkl"), (real(20, 20, 260), real(5, 20, 260))),  # for tensor cores
    (einsum("fkt,flt->fkl"), (real(260, 3, 20), real(260, 5, 20))),  # not interleaved
    (einsum("ktf,lft->fkl"), (real(3, 20, 260), real(5, 260, 20))),
    (einsum("ktf,ltf->fkl"), (real(3, 4, 260), real(5, 4, 260))),  # short sums
    (einsum("ktf,tf->fk"), (real(3, 20, 260), real(20, 260))),  # vectors
    (einsum("ktf,ltf->fkl"), (real(3, 20, 16), real(5, 20, 16))),  # few
])
def test_other_products_are_left_alone(fun, args):
    assert of(fun, *args) == 0


def test_operands_are_read_once_where_they_are():
    """Of a matrix times its conjugate transpose a triangle is computed, from one load of each."""
    program = check(covariance, real(16, 256), cplx(4, 16, 256))
    text = next(s for s in program.sources if "def interleaved(" in s)
    assert len(re.findall(r"tl\.load\(", text)) == 1 + 2 * 4
    assert len(re.findall(r"tl\.zeros\(", text)) == 2 * (4 * 5 // 2)
    assert not any(k.startswith("matmul") for k in kernels_of(program))


def test_gradients_of_a_covariance():
    def loss(mask, x):
        c = covariance(mask, x)
        return xp.sum(xp.abs(c) ** 2)

    check(ft.grad(loss), np.abs(real(10, 256)), cplx(2, 10, 256), tolerance=1e-3)


def forms(*conjugates):
    def function(g, x, y):
        g, x, y = [a.conj() if k in conjugates else a for k, a in enumerate((g, x, y))]
        return xp.einsum("fcd,ctf,dtf->tf", g, x, y)
    return function


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name, fun, args", [
    ("real", forms(), (real(260, 3, 4), real(3, 18, 260), real(4, 18, 260))),
    ("batches", lambda g, x, y: xp.einsum("bfcd,bctf,bdtf->btf", g, x, y),
     (real(2, 130, 3, 2), real(2, 3, 18, 130), real(2, 2, 18, 130))),
    *[(f"conjugates of {which}", forms(*which),
       (cplx(260, 3, 2), cplx(3, 18, 260), cplx(2, 18, 260)))
      for which in ((), (0,), (1,), (2,), (0, 1))],
    ("one vector", lambda g, x: xp.einsum("fcd,ctf,dtf->tf", g, x, x.conj()).real,
     (cplx(260, 3, 3), cplx(3, 18, 260))),
])
def test_bilinear_forms_keep_their_matrix(name, fun, args):
    program = check(fun, *args)
    assert "forms" in kernels_of(program)
    text = next(s for s in program.sources if "def forms(" in s)
    vectors = {x.shape[-3] for x in args[1:]}
    assert len(re.findall(r"(?m)^        .* = tl\.load", text)) == \
        sum(vectors) * (2 if args[0].dtype.kind == "c" else 1)


def test_gradients_of_weights_are_forms():
    def loss(mask, x):
        return xp.sum(xp.abs(covariance(mask, x)) ** 2)

    args = np.abs(real(16, 256)), cplx(3, 16, 256)
    assert "forms" in kernels_of(check(ft.grad(loss), *args, tolerance=1e-3))
    # few vectors for each matrix, and matrices for tensor cores
    for args in ((real(260, 3, 4), real(3, 8, 260), real(4, 8, 260)),
                 (real(260, 20, 4), real(20, 18, 260), real(4, 18, 260))):
        jaxpr = simplify(ft.make_jaxpr(forms())(*args).jaxpr.hoist_consts())
        assert interleave_forms(jaxpr, 132) is jaxpr


COMPILED = [CASES[name] for name in ("a symmetric one, weighed", "in blocks", "more axes")]
COMPILED.append((forms(1), cplx(260, 3, 2), cplx(3, 18, 260), cplx(2, 18, 260)))


@pytest.mark.parametrize("case", COMPILED)
def test_kernels_compile(case):
    compile_kernels(program_of(*case)[1])
