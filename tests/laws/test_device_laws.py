"""Every primitive on a GPU: `pytest -m gpu tests/laws` (values take 24 s on 16 cores).

Most of the time kernels are compiled. Samples of a primitive are one program, and programs are made
side by side.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import functrans as ft
from tests.laws.primitives import all_cases, differentiable_cases, groups
from tests.laws.programs import derivatives_of, values_of
from tests.laws.test_primitive_laws import assert_same

pytestmark = pytest.mark.gpu

CASES = all_cases()
SMOOTH = differentiable_cases()
FREE_SIGNS = ("eigh", "svd")  # of vectors: the libraries' choice
ON_HOST = ("eig", "hessenberg", "reflected_qr", "schur", "sylvester", "triangular_root",
           "triangular_sylvester", "tridiagonal")  # no library for GPUs computes them


def on_device(make, cases):
    """The results of samples, or why they have none."""
    made = [make(case) for case in cases]

    def everything(*args):
        return [fun(*a) for (fun, _), a in zip(made, args, strict=True)]

    hosted = any(case.primitive.name in ON_HOST for case in cases)
    steps = {"host_steps": "allow"} if hosted else {}
    try:
        with ft.config.scope(backend="auto", matmul_precision="highest", autotune="off",
                             progress=False, **steps):
            outs = ft.jit(everything)(*[args for _, args in made])
            return ft.device_get(ft.block_until_ready(outs))
    except Exception as error:  # of any kind: it is what the test shows
        if len(cases) == 1:
            return [error]
        return [found for case in cases for found in on_device(make, [case])]


def computed(make, request, test):
    """For each sample that is tested, what gives its results once they are there."""
    cases = [item.callspec.params["case"] for item in request.session.items
             if item.path == request.path and item.originalname == test]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {}
        for group in groups(cases):
            result = pool.submit(on_device, make, group)
            found |= {str(case): (result, k) for k, case in enumerate(group)}
        yield found
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def values(request):
    yield from computed(values_of, request, "test_values_on_the_device")


@pytest.fixture(scope="module")
def derivatives(request):
    yield from computed(partial(derivatives_of, twice=False), request,
                        "test_derivatives_on_the_device")


def check(found, case, program, tolerances):
    result, k = found[str(case)]
    actual = result.result()[k]
    if isinstance(actual, Exception):
        raise actual
    fun, args = program
    with ft.config.default_device("cpu"):
        expected = fun(*args)
    for a, e, tolerance in zip(actual, expected, tolerances, strict=True):
        if case.primitive.name in FREE_SIGNS:
            a, e = ([np.abs(x) for x in outs] for outs in (a, e))
        assert_same(a, e, tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_on_the_device(values, case):
    check(values, case, values_of(case), (2e-5, 1e-4))


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_derivatives_on_the_device(derivatives, case):
    check(derivatives, case, derivatives_of(case, twice=False), (1e-8, 1e-8, 1e-8))
