"""What follows a convolution element by element is computed of its tiles, in each of its forms."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as xp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.templates.convolution import ConvolutionConfig
from tests.triton.compiled import compile_kernels
from tests.triton.emulated import check, kernels_of
from tests.triton.test_convolution_kernels import Every

NAMES = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def conv(x, w, stride=1, padding="SAME", **options):
    rank = x.ndim - 2
    return lax.conv_general_dilated(x, w, (stride,) * rank, padding, dimension_numbers=NAMES[rank],
                                    **options)


def draw(*shape, dtype="float32"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def convolutions_of(program):
    return [text for text in program.sources if "tl.dot(" in text]


FORMS = {
    "bias and activation": (lambda x, w, b: nn.silu(conv(x, w) + b),
                            draw(2, 5, 6, 8), draw(3, 3, 8, 72), draw(72)),
    "a sum with the image": (lambda x, w, b: x + 0.5 * nn.silu(conv(x, w) + b),
                             draw(2, 5, 6, 64), draw(3, 3, 64, 64), draw(64)),
    "one axis, strided": (lambda x, w, b: xp.tanh(conv(x, w, 2) + b),
                          draw(3, 17, 8), draw(5, 8, 64), draw(64)),
    "three axes": (lambda x, w, b: nn.relu(conv(x, w, padding="VALID") * b),
                   draw(2, 4, 5, 4, 3), draw(2, 2, 2, 3, 8), draw(8)),
    "groups": (lambda x, w, b: nn.relu(conv(x, w, feature_group_count=2) + b),
               draw(2, 6, 6, 16), draw(3, 3, 8, 24), draw(24)),
    "phases": (lambda x, w, b: nn.relu(lax.conv_transpose(
        x, w, (2, 2), "SAME", dimension_numbers=NAMES[2]) + b),
        draw(2, 5, 4, 8), draw(4, 4, 8, 6), draw(6)),
    "one feature": (lambda x, w, b: -conv(x, w) ** 2 + b, draw(2, 6, 7, 32),
                    draw(3, 3, 32, 1), draw(1)),
    "values of rows": (lambda x, w, b: conv(x, w) * xp.sum(x, -1, keepdims=True) + b,
                       draw(2, 6, 7, 8), draw(3, 3, 8, 16), draw(16)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    fun, *args = FORMS[form]
    program = check(fun, *args)
    compile_kernels(program)
    assert all("p0" in text for text in convolutions_of(program))
    expected = {"phases": 4, "values of rows": 2, "one feature": 2, "a sum with the image": 2}
    assert len(kernels_of(program)) == expected.get(form, 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_the_gradient_needs_is_stored_besides(dtype):
    def loss(w, x, b):
        return xp.sum(xp.square(nn.silu(conv(x, w) + b).astype("float32")))

    program = check(ft.value_and_grad(loss, (0, 1, 2)), draw(3, 3, 8, 64, dtype=dtype),
                    draw(2, 8, 8, 8, dtype=dtype), draw(64, dtype=dtype), tolerance=1e-3)
    compile_kernels(program)
    assert any("e1" in text for text in convolutions_of(program))


@pytest.mark.parametrize("config", [
    ConvolutionConfig(64, 64, 64, 4, 3, splits=3),
    ConvolutionConfig(64, 64, 64, 4, 3, splits=3, last_combines=True),
    ConvolutionConfig(64, 64, 64, 4, 3, descriptors=True),
    ConvolutionConfig(128, 64, 64, 4, 3, descriptors=True, persistent=True, parts=2),
], ids=["shared sums", "added by the last", "boxes", "persistent"])
def test_configurations(config):
    """Whoever adds a sum up computes what follows it; boxes have their own order of places."""
    class One(Every):
        def among(self, title, problem, configs, launches, *args, **options):
            launches(config)
            return config

    def fun(x, w, b):
        return x + nn.silu(conv(x, w) + b)

    args = [draw(3, 9, 10, 64, dtype="bfloat16"), draw(3, 3, 64, 64, dtype="bfloat16") / 16,
            draw(64, dtype="bfloat16")]
    closed = ft.make_jaxpr(fun)(*args)
    program = write_program(simplify(closed.jaxpr.hoist_consts()), choose=One())
    compile_kernels(program)
    expected = np.asarray(fun(*args)).astype("float32")
    found = InterpretedProgram(program)([*map(np.asarray, closed.consts), *args])[0]
    np.testing.assert_allclose(found.astype("float32"), expected, 3e-2, 5e-2)


def test_channels_before_places_are_apart():
    """Rows of such a result are not those of a tile."""
    def fun(x, w, b):
        return xp.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None])

    check(fun, draw(2, 8, 5, 6), draw(16, 8, 3, 3), draw(16))


def test_long_epilogues_of_few_features_are_apart():
    """A tile has more columns, of which all would be computed."""
    def fun(x, w, b):
        return xp.tanh(conv(x, w) + b)

    args = draw(2, 6, 6, 16), draw(3, 3, 16, 3), draw(3)
    assert "p0" not in convolutions_of(check(fun, *args))[0]


def test_loops_have_what_follows_the_sum():
    types = [ft.ShapeDtypeStruct(s, "bfloat16") for s in ((2, 8, 8, 64), (3, 3, 64, 64), (64,))]
    explained = ft.explain(lambda x, w, b: nn.relu(conv(x, w) + b), *types, target="cuda:90")
    (kernel,) = explained.kernels
    lines = str(explained.loops(kernel.name)).splitlines()
    last = next(k for k, line in enumerate(lines) if "add into" in line)
    assert any("load b[i]" in line for line in lines[last:])
    assert "store" in lines[-1] and not any("load b" in line for line in lines[:last])
