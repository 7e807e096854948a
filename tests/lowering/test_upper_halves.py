"""Kernels leave the upper halves of vectors clean: code for SSE would wait for them."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.isa import host_isa

X = np.ones((64, 64), np.float32)
PROGRAMS = {
    "elementwise": (lambda x: jnp.exp(x) * 2, X), "reduction": (lambda x: x.sum(1), X),
    "columns": (lambda x: jnp.sin(x).sum(0), X), "rows": (lambda x: x / x.sum(1)[:, None], X),
    "lanes": (ft.vmap(lambda x: ft.lax.fori_loop(0, 9, lambda _, y: jnp.sin(y) + x, x)), X[0]),
}


@pytest.mark.skipif(not host_isa().x86, reason="of the vectors of x86")
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_kernel_returns_with_dirty_upper_halves(name):
    fun, x = PROGRAMS[name]
    explained = ft.explain(ft.jit(fun), x)
    codes = [explained.machine_code(kernel.name) for kernel in explained.kernels]
    assert any(re.search(r"%[yz]mm", code) for code in codes)
    assert [c for c in codes if re.search(r"%[yz]mm", c) and "vzeroupper" not in c] == []
