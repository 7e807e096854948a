"""Ordinary networks at the sizes of research, for an H100 that need not be here: no array is made.

Schedules depend on sizes, so that small tests see little of them. All forms are as planned: where a
kernel falls back is an error. What a launch may be is checked (grids, elements of a tensor,
shared memory), and that no offset of 32 bits wraps.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as n
from functrans.core.errors import FallbackWarning
from functrans.lowering.schedule.target import target_named
from functrans.lowering.triton.lower import lower as lower_to_triton
from functrans.lowering.triton.machine.compile import compile_unit
from functrans.lowering.triton.machine.device import unit_of
from functrans.lowering.triton.steps.spec import HostStep, LibraryStep, launch_key, launches_in
from tests.laws.index_ranges import KernelRanges
from tests.laws.network_checks import to_triton_ir
from tests.laws.network_families import draw_ordinary_shape
from tests.laws.networks import ORDINARY, draw_network

TARGET = target_named("cuda:90")
MOST_ELEMENTS = 1 << 20  # of a tensor in Triton
MOST_PROGRAMS = (2**31 - 1, 65_535, 65_535)


def kernels_of(fun, types):
    """The kernels of a program, each with its largest grid, and the bytes it moves."""
    lowered = ft.lower(fun, *types, target=TARGET.name)
    with warnings.catch_warnings(), ft.config.scope(progress=False):
        warnings.simplefilter("error", FallbackWarning)
        warnings.filterwarnings("ignore", "overflow encountered in cast")  # numbers of float16
        found = lower_to_triton(lowered.jaxpr, lowered.donated, False, False, TARGET, None)
    assert found is not None, "a CPU computes it"
    program = found.program
    assert not [s for s in program.steps if isinstance(s, HostStep)
                and not isinstance(s, LibraryStep)]
    launches = {}
    for step in launches_in(program.steps):
        assert all(0 <= a <= most for a, most in zip(step.grid, MOST_PROGRAMS, strict=True))
        key = launch_key(step)
        grid = max(step.grid, launches.get(key, (step, step.grid))[1])
        launches[key] = step, grid
    return [(unit_of(program, step, TARGET), grid, step.moved)
            for step, grid in launches.values()]


def check(seed, stage="schedule", kind=ORDINARY, least_bytes=0):
    """A network has kernels; `stage` says how far these are compiled."""
    network = draw_network(seed, kind=kind)
    try:
        for unit, grid, moved in kernels_of(network.program, network.types()):
            if stage == "ranges" and moved >= least_bytes:
                assert_in_range(unit, grid)
            elif stage == "machine code":
                assert compile_unit(unit).shared <= TARGET.shared, unit.source
    except Exception as error:
        error.add_note(network.source)
        raise


def assert_in_range(unit, grid):
    ranges = KernelRanges(str(to_triton_ir(unit)), grid)
    assert not ranges.wrapped, f"{ranges.wrapped[:3]} over {grid} of\n{unit.source}"
    assert ranges.largest <= MOST_ELEMENTS, unit.source


@pytest.mark.one_in(8)
@pytest.mark.parametrize("seed", range(40_000, 40_024))
def test_ordinary_networks_have_schedules(seed):
    check(seed)


@pytest.mark.parametrize("seed", [252, 40_824])
def test_networks_whose_kernels_have_failed(seed):
    """252: a tile program with a product over a sum of one term, whose size has no variable.

    40,824: a tile program stored what kernels before it compute for themselves, and read there.
    """
    check(seed)


@pytest.mark.thorough
def test_a_long_epilogue_is_refused_once_for_all_products_that_it_reads():
    """It went from each of 18 products to the next: the program was planned as often, in 51 s."""
    network = draw_network(1570, kind=ORDINARY)
    lowered = ft.lower(network.program, *network.types(), target=TARGET.name)
    found = lower_to_triton(lowered.jaxpr, lowered.donated, False, False, TARGET, None)
    refused = [note for note in found.program.notes if "its epilogue is a kernel" in note]
    assert len(refused) <= 4


@pytest.mark.thorough
@pytest.mark.parametrize("ten", range(4_003, 4_203))
def test_many_ordinary_networks_have_kernels(ten):
    for seed in range(10 * ten, 10 * ten + 10):
        check(seed, "ranges")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(42_100, 42_150))
def test_ordinary_networks_have_machine_code(seed):
    check(seed, "machine code")


# --- arrays of more than 2^31 elements: 50,257 words for 64 texts of 2,048


def huge_shape(rng, per_sample, most):
    shape = draw_ordinary_shape(rng, per_sample, most)
    while np.prod([float(k) for k in shape]) < 2**30.5:
        shape[0] *= 2
    return shape


HUGE = replace(ORDINARY, most_elements=1 << 33, shape=huge_shape, most_layers=4)


@pytest.mark.thorough
@pytest.mark.parametrize("ten", range(4_300, 4_320))
def test_offsets_of_huge_networks_do_not_wrap(ten):
    for seed in range(10 * ten, 10 * ten + 10):
        check(seed, "ranges", HUGE, least_bytes=2**31)


def typed(*shape, dtype="bfloat16"):
    return ft.ShapeDtypeStruct(shape, dtype)


def cross_entropy(w, x, y):
    logits = (x @ w.T).astype(n.float32)
    return n.mean(nn.logsumexp(logits, -1) - n.take_along_axis(logits, y[..., None], -1)[..., 0])


def depthwise(w, x):
    y = lax.conv_general_dilated(nn.gelu(x), w, (1, 1), "SAME", feature_group_count=x.shape[-1],
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return n.sum(n.square(y.astype(n.float32)))


HUGE_PROGRAMS = {
    "cross entropy of 50,257 words": (ft.grad(cross_entropy, (0, 1)), (
        typed(50_257, 64), typed(64, 2048, 64), typed(64, 2048, dtype="int32"))),
    "depthwise convolution": (ft.grad(depthwise, (0, 1)), (
        typed(3, 3, 1, 128), typed(300, 256, 256, 128))),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", HUGE_PROGRAMS)
def test_offsets_of_huge_arrays_do_not_wrap(name):
    fun, types = HUGE_PROGRAMS[name]
    large = [(unit, grid) for unit, grid, moved in kernels_of(fun, types) if moved >= 2**32]
    assert large
    for unit, grid in large:
        assert_in_range(unit, grid)


def test_an_offset_that_wraps_is_found():
    """The same kernels over a grid that is larger than theirs, as if they did not know of it."""
    unit, grid, _ = max(kernels_of(lambda x: x.T + 1, (typed(4096, 4096),)), key=lambda k: k[2])
    assert_in_range(unit, grid)
    assert KernelRanges(str(to_triton_ir(unit)), (2**22, 1, 1)).wrapped
