"""Every convolution has kernels: of all layouts, strides, dilations, groups and sizes, forward and
both gradients, in each configuration that a model may choose."""

import ast
import builtins
import warnings
from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.errors import FallbackWarning
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.templates import convolution

LAYOUTS = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("NHWC", "OIHW", "NCHW")


class Every(Chooser):
    """Keeps all configurations, with the kernels of each."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __call__(self, title, problem, configs, launches, nanoseconds):
        if isinstance(problem, tuple):  # with what follows it
            problem = problem[0]
        if isinstance(problem, convolution.ConvolutionProblem):
            self.found += [(problem, c, launches(c).kernels, nanoseconds(c)) for c in configs]
        return configs[0]


def random_convolution(seed, most=1):
    """A convolution, and shapes of an image and a filter; sizes are up to some times `most`."""
    rng = np.random.default_rng(seed)

    def pick(*values):
        return values[rng.integers(len(values))]

    layout = LAYOUTS[rng.integers(len(LAYOUTS))]
    size, window = (pick(5, 8, 16), pick(6, 8, 16)), pick((1, 1), (3, 3), (4, 2), (2, 5))
    stride, dilation = pick((1, 1), (2, 2), (2, 1)), pick((1, 1), (1, 1), (2, 1))
    in_dilation = pick((1, 1), (1, 1), (2, 2))
    groups = pick(1, 1, 1, 2)
    features, outs = pick(3, 4, 20, 32, 64), pick(3, 4, 24, 32, 64)
    if groups == 2:
        features, outs = max(features, 20), max(outs, 24)  # of fewer taps are added up
    batch = int(pick(2, 3, 16)) * most
    padding = pick("SAME", "VALID", ((1, 2), (0, 1)))
    if in_dilation != (1, 1):
        padding = (1, 2), (0, 1)
    if padding != "SAME":
        size = tuple(max(n, 2 * k) for n, k in zip(size, window))

    def run(x, w):
        return lax.conv_general_dilated(
            x, w, stride, padding, lhs_dilation=in_dilation, rhs_dilation=dilation,
            dimension_numbers=layout, feature_group_count=groups)

    sizes = {"N": batch, "C": features, "O": outs, "I": features // groups}
    x = tuple(sizes.get(axis) or size["HW".index(axis)] for axis in layout[0])
    w = tuple(sizes.get(axis) or window["HW".index(axis)] for axis in layout[1])
    return run, x, w


def strided(x, w):
    """The gradient of the image sums along an axis of the filter that is not the last one."""
    return lax.conv_general_dilated(x, w, (2, 2), "SAME",
                                    dimension_numbers=("NHWC", "OIHW", "NHWC"))


def both(run):
    """The convolution and both gradients."""
    def all_of(x, w):
        out, pullback = ft.vjp(run, x, w)
        return out, *pullback(out)
    return all_of


def unknown_names(text):
    """Names that a module reads and nothing in it defines."""
    tree = ast.parse(text)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    known = {a.asname or a.name for n in imports for a in n.names} | set(dir(builtins))
    known |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in n.args}
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    known |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names if isinstance(n.ctx, ast.Load)} - known


def problems(fun, *shapes):
    """The convolutions of a function of float32 arrays, and all their configurations."""
    choose = Every()
    args = [ft.ShapeDtypeStruct(s, "float32") for s in shapes]
    write_program(simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts()), choose=choose)
    return {p: convolution.configs(p, count=1000) for p, *_ in choose.found}


def assert_kernels_read_their_arguments(found):
    assert found
    for problem, configs in found.items():
        kinds = {(c.packed, c.descriptors, c.flat, c.persistent, c.splits > 1): c for c in configs}
        for config in kinds.values():
            for kernel in convolution.kernels(problem, config):
                assert not unknown_names(kernel.text), (problem, config)
                names = [a.name for a in kernel.arguments]
                assert len(set(names)) == len(names)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_kernels_of_random_convolutions_read_their_arguments_alone(seed):
    run, *shapes = random_convolution(seed, most=8)
    assert_kernels_read_their_arguments(problems(both(run), *shapes))


@pytest.mark.parametrize("window", [1, 3])
def test_kernels_of_phases_without_terms_read_their_arguments_alone(window):
    """Three of four places of the image have no terms in the gradient of a 1 x 1 convolution."""
    found = problems(both(strided), (128, 16, 16, 64), (128, 64, window, window))
    assert any(c.packed for p, configs in found.items() for c in configs if p.in_dilation[0] > 1)
    assert_kernels_read_their_arguments(found)


def test_the_law_finds_a_name_that_nothing_defines():
    text = "import triton.language as tl\n\n\ndef f(x):\n    y = x + {}\n    tl.store(x, y)\n"
    assert not unknown_names(text.format("1"))
    assert unknown_names(text.format("workspace")) == {"workspace"}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(12))
def test_random_convolutions_compile_as_planned(seed):
    run, *shapes = random_convolution(100 + seed, most=16)
    args = [ft.ShapeDtypeStruct(s, "float32") for s in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        kernels = ft.lower(both(run), *args, target="cuda:90").compile().kernels
    assert any(k.name.startswith("convolution") for k in kernels)


@pytest.mark.parametrize("window", [1, 3])
def test_operands_of_a_strided_gradient_are_packed_once(window):
    shapes = (128, 16, 16, 64), (128, 64, window, window)
    args = [ft.ShapeDtypeStruct(s, "float32") for s in shapes]
    choose = Every()
    write_program(simplify(ft.make_jaxpr(both(strided))(*args).jaxpr.hoist_consts()),
                  choose=choose)
    dilated = [f for f in choose.found if f[0].in_dilation == (2, 2)]
    assert dilated
    for problem, config, kernels, nanoseconds in dilated:
        names = [k.name for k in kernels]
        assert names.count("convolution") == 4
        texts = {k.text for k in kernels if k.name == "convolution"}
        assert len(texts) == (1 if window == 3 else 2)  # phases without terms have their own
        assert max(map(names.count, {n for n in names if "_packed_" in n}), default=1) == 1
        whole = replace(problem, in_dilation=(1, 1))  # as many places, with four times the terms
        assert nanoseconds < 1.5 * convolution.estimate(whole, config)


def test_divisions_of_a_step_are_by_numbers():
    """Four divisions by arguments took as long as a step's product."""
    args = [ft.ShapeDtypeStruct(s, "float32") for s in ((32, 16, 16, 128), (128, 128, 3, 3))]
    choose = Every()
    write_program(simplify(ft.make_jaxpr(both(strided))(*args).jaxpr.hoist_consts()),
                  choose=choose)
    for problem, _, kernels, _ in choose.found:
        windows = {"window0", "window1"} if problem.in_dilation != (1, 1) else set()
        for kernel in kernels:
            if kernel.name != "convolution":
                continue
            loops = [n for n in ast.walk(ast.parse(kernel.text)) if isinstance(n, ast.For)
                     and ast.unparse(n.target) == "step"]
            assert loops
            for node in [n for loop in loops for n in ast.walk(loop)]:
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
                    by = node.right
                    assert isinstance(by, ast.Constant) or ast.unparse(by) in windows
