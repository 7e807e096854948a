"""Products of float32 at the default precision are of operands that are rounded to TensorFloat-32.

Tensor cores would cut bits off: sums of positive products were 7e-4 too small, and what is computed
in many steps went wrong by several percent. The law is one of the mean error: it is a tenth of the
largest error that the precision allows, or less.
"""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.compile import rounded_copies
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from tests.triton.tensor_cores import nearest, tensor_cores

LARGEST = {"default": 2**-10, "high": 2**-18, "highest": 2**-20}
"""Relative errors of a product of two numbers; of the exact ones, what sums of float32 have.

Tensor cores drop what does not fit into the sums of the three products of "high": on an H200 their
mean error is 1e-7 to 2.6e-7, whatever operands are rounded to.
"""


def attend(q, k, v):
    return ft.nn.dot_product_attention(q, k, v)


def attention_gradient(q, k, v):
    """Those of keys have both signs: the gradient of values is positive."""
    return ft.grad(lambda v: attend(q, k, v).sum())(v)


def convolution(layout, stride=1, groups=1):
    return lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                                 dimension_numbers=layout,
                                                 feature_group_count=groups)


def gradients(fun):
    return lambda x, w: ft.grad(lambda x, w: (fun(x, w) ** 2).sum(), (0, 1))(x, w)


def loop(h, w):
    return lax.scan(lambda h, _: ((h @ w) * 0.05, None), h, None, length=3)[0]


def of_complex(x, y):
    return (lax.complex(x, 0 * x) @ lax.complex(y, 0 * y)).real


LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
PROGRAMS = {
    "even": (lambda x, y: x @ y, (64, 96), (96, 80)),
    "both along": (lambda x, y: x @ y.T, (64, 96), (80, 96)),
    "both across": (lambda x, y: x.T @ y, (96, 64), (96, 80)),
    "odd": (lambda x, y: x @ y, (37, 75), (75, 41)),
    "batch": (lambda x, y: x @ y, (3, 33, 68), (3, 68, 47)),
    "small matrices": (lambda x, y: x @ y, (256, 5, 9), (256, 9, 7)),
    "split": (lambda x, y: x @ y, (16, 2100), (2100, 16)),
    "epilogue": (lambda x, y: jnp.exp(x @ y * 1e-2) + 1, (64, 96), (96, 80)),
    "complex": (of_complex, (40, 48), (48, 36)),
    "loop": (loop, (6, 20), (20, 20)),
    "loop of many rows": (loop, (40, 72), (72, 72)),
    "convolution": (convolution(LAST), (2, 6, 5, 20), (3, 2, 20, 24)),
    "convolution, features first": (convolution(FIRST), (2, 20, 6, 5), (24, 20, 3, 2)),
    "convolution in groups": (convolution(LAST, 2, 2), (2, 6, 5, 8), (3, 2, 4, 12)),
    "gradients of convolution": (gradients(convolution(LAST)), (2, 6, 5, 20), (3, 3, 20, 24)),
    "of features first": (gradients(convolution(FIRST, 2)), (2, 6, 7, 5), (8, 6, 3, 3)),
    "of strides": (gradients(convolution(LAST, 2)), (4, 6, 8, 20), (3, 3, 20, 24)),
    "of one place and strides": (gradients(convolution(LAST, 2)), (4, 6, 8, 20), (1, 1, 20, 24)),
    "of few features": (gradients(convolution(LAST)), (4, 5, 4, 3), (3, 3, 3, 24)),
    "to few features": (gradients(convolution(LAST)), (4, 5, 4, 24), (3, 3, 24, 3)),
    "attention": (attend, (1, 24, 2, 16), (1, 40, 2, 16), (1, 40, 2, 16)),
    "attention of odd sizes": (attend, (1, 21, 2, 9), (1, 33, 2, 9), (1, 33, 2, 7)),
    "gradient of attention": (attention_gradient, (1, 24, 2, 16), (1, 40, 2, 16), (1, 40, 2, 16)),
}

LARGE = {
    "large convolution": (gradients(convolution(LAST)), (8, 32, 32, 64), (3, 3, 64, 64)),
    "of few features": (gradients(convolution(LAST)), (8, 32, 32, 3), (3, 3, 3, 64)),
    "to few features": (gradients(convolution(LAST)), (8, 32, 32, 64), (3, 3, 64, 3)),
    "of strides": (gradients(convolution(LAST, 2)), (8, 32, 32, 64), (3, 3, 64, 128)),
    "of one place": (gradients(convolution(LAST)), (8, 32, 32, 64), (1, 1, 64, 128)),
    "of one place and strides": (gradients(convolution(LAST, 2)), (8, 32, 32, 64), (1, 1, 64, 128)),
    "features first": (gradients(convolution(FIRST)), (8, 64, 16, 16), (128, 64, 3, 3)),
    "large product": (lambda x, y: x @ y, (1024, 1024), (1024, 1024)),
    "large attention": (attend, (2, 512, 4, 64), (2, 512, 4, 64), (2, 512, 4, 64)),
}
"""For a GPU: in tiles and with split sums that small ones do not have."""


class Nth(Chooser):
    """Takes one of the configurations, whatever a model says."""

    def __init__(self, number):
        super().__init__()
        self.number, self.most = number, 0

    def __call__(self, title, problem, configs, launches, nanoseconds):
        self.most = max(self.most, len(configs))
        return configs[self.number % len(configs)]


def arguments(shapes):
    rng = np.random.default_rng(len(shapes[0]))
    return [rng.uniform(0.1, 1, s).astype("f") for s in shapes]


def interpreted(fun, args, choose):
    jaxpr = simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts())
    return InterpretedProgram(write_program(jaxpr, choose=choose))(args)


def mean_errors(found, expected):
    return [abs(float(np.mean(a.astype("d") - e) / np.mean(np.abs(e))))
            for a, e in zip(found, expected, strict=True)]


def exact(fun, args):
    with ft.config.matmul_precision("highest"):
        return [np.asarray(e) for e in ft.tree.leaves(fun(*[a.astype("d") for a in args]))]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operands_are_rounded_in_every_configuration(name):
    fun, *shapes = PROGRAMS[name]
    args, number, most = arguments(shapes), 0, 1
    expected = exact(fun, args)
    while number < min(most, 2 if name == "small matrices" else 8):
        choose = Nth(number)
        with tensor_cores() as counts:
            found = interpreted(fun, args, choose)
        assert counts["whole"] and not counts["cut off"]
        assert max(mean_errors(found, expected)) <= LARGEST["default"] / 10
        number, most = number + 1, choose.most


def test_the_law_finds_operands_that_are_not_rounded():
    fun, *shapes = PROGRAMS["even"]
    args = arguments(shapes)
    with tensor_cores(rounding=False) as counts:
        found = interpreted(fun, args, Nth(0))
    assert counts["cut off"]
    assert max(mean_errors(found, exact(fun, args))) > LARGEST["default"] / 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize("precision", ["high", "highest"])
@pytest.mark.parametrize("name", ["even", "odd", "small matrices", "convolution", "attention",
                                  "gradient of attention"])
def test_exact_products_are_not_rounded(name, precision):
    fun, *shapes = PROGRAMS[name]
    args = arguments(shapes)
    with ft.config.matmul_precision(precision), tensor_cores() as counts:
        found = interpreted(fun, args, Nth(0))
    assert not counts["whole"] and not counts["cut off"]
    assert max(mean_errors(found, exact(fun, args))) <= LARGEST[precision] / 10


def compiled(fun, *shapes):
    args = [ft.ShapeDtypeStruct(s, "float32") for s in shapes]
    kernels = ft.lower(fun, *args, target="cuda:90").compile().kernels
    return [k for k in kernels if re.search(r"wgmma\.mma_async|mma\.sync", k.ptx)]


def descriptors(ptx):
    return [int(n, 0) for n in re.findall(r"tensormap\.replace\.tile\.elemtype.*, (\w+);", ptx)]


@pytest.mark.parametrize(("precision", "rounded"), [("default", True), ("high", False)])
def test_descriptors_of_operands_round_and_those_of_results_do_not(precision, rounded):
    with ft.config.matmul_precision(precision):
        for kernel in compiled(lambda x, y: x @ y.T, (1024, 1024), (1024, 1024)):
            types = descriptors(kernel.ptx)
            assert types[:2] == [11 if rounded else 7] * 2 and set(types[2:]) <= {7}


@pytest.mark.parametrize("shapes", [((300, 9, 17), (300, 17, 5)), ((37, 75), (75, 41))])
def test_what_comes_by_pointers_is_rounded_in_registers(shapes):
    for kernel in compiled(lambda x, y: x @ y, *shapes):
        assert not descriptors(kernel.ptx)
        assert kernel.ptx.count("cvt.rna.tf32.f32") >= 2


@pytest.mark.parametrize("shapes", [((8192, 256), (8192, 256)), ((8192, 319), (8192, 256))])
def test_operands_across_the_sum_are_multiplied_by_warps(shapes):
    """Those of four warps would read them along the sum, after a copy."""
    operands = [ft.ShapeDtypeStruct(s, np.float32) for s in shapes]
    kernels = ft.jit(lambda a, b: a.T @ b).lower(*operands, target="cuda:90").compile().kernels
    ptx = kernels[0].ptx
    assert kernels[0].name == "matmul" and {k.name for k in kernels[1:]} <= {"matmul_combine"}
    assert "mma.sync" in ptx and "cp.async" in ptx and "cvt.rna.tf32" in ptx
    assert "wgmma" not in ptx and kernels[0].spills == 0


def test_a_packed_convolution_reads_what_the_copy_engine_rounds():
    """Through registers it takes five times as long."""
    (kernel,) = compiled(convolution(LAST), (64, 28, 28, 128), (3, 3, 128, 128))
    assert descriptors(kernel.ptx)[:2] == [11, 11] and "cvt.rna" not in kernel.ptx


def test_a_descriptor_that_cannot_round_is_an_error():
    mark, line = "// the next descriptor rounds\n", "tensormap.replace.tile.elemtype.x [%r], {};\n"
    other = line.format("0x7")
    text = other + mark + line.format("0x7") + other
    assert rounded_copies(text) == other + mark + line.format("11") + other
    assert rounded_copies(other) == other
    with pytest.raises(AssertionError):
        rounded_copies(mark + line.format("0x1"))


def test_what_is_not_finite_stays():
    x = np.array([np.inf, -np.inf, np.nan, 1 + 2**-11, 1 + 2**-12, -1.0], "f")
    np.testing.assert_array_equal(nearest(x), np.array(
        [np.inf, -np.inf, np.nan, 1 + 2**-10, 1, -1], "f"))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", LARGEST)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_mean_error_of_positive_operands(name, precision):
    assert_mean_errors(PROGRAMS[name], precision)


@pytest.mark.gpu
@pytest.mark.parametrize("name", LARGE)
def test_the_mean_error_of_large_calls(name):
    assert_mean_errors(LARGE[name], "default")


def assert_mean_errors(program, precision):
    fun, *shapes = program
    args = arguments(shapes)
    expected = exact(fun, args)
    with ft.config.matmul_precision(precision):
        found = ft.jit(lambda *a: fun(*a))(*[ft.device_put(a, "gpu") for a in args])
    errors = mean_errors([np.asarray(a) for a in ft.tree.leaves(found)], expected)
    assert max(errors) <= LARGEST[precision] / 10


@pytest.mark.gpu
@pytest.mark.parametrize("size", [512, 511])
def test_products_keep_what_is_not_finite(size):
    """The largest numbers are infinite, rounded to 10 bits: as in other libraries."""
    top = np.finfo("f").max
    for value, expected in ((np.inf, np.inf), (-np.inf, -np.inf), (np.nan, np.nan), (top, np.inf),
                            (1 + 2**-11 + 2**-20, 1 + 2**-10), (1 + 2**-12, 1), (-3, -3)):
        x = np.zeros((size, size), "f")
        x[3, 5] = value
        found = ft.jit(lambda x, y: x @ y)(ft.device_put(x, "gpu"), np.eye(size, dtype="f"))
        np.testing.assert_array_equal(np.asarray(found)[3, 5], np.float32(expected))
