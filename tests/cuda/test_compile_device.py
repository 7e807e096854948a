"""What is compiled, timed and kept with a real GPU: `pytest -m gpu tests/cuda`."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import BackendError
from functrans.lowering.schedule.target import device_target

pytestmark = pytest.mark.gpu
xp = ft.numpy
X = np.random.default_rng(0).standard_normal((2048, 2048)).astype("f4")


def product(x, y):
    return xp.tanh(x @ y)


def test_a_product_is_timed_and_right():
    x = ft.device_put(np.tile(X, (2, 2)), "gpu").astype("bfloat16")  # worth a measurement
    expected = np.tanh(np.asarray(x).astype("f4") @ np.asarray(x).astype("f4"))
    jitted = ft.jit(product)
    np.testing.assert_allclose(np.asarray(jitted(x, x)).astype("f4"), expected, 0, 2e-2)
    text = jitted.lower(x, x).compile().as_text()
    assert "product 4096 x 4096 x 4096 of bf16" in text and " us, MatmulConfig(" in text
    with ft.config.autotune("off"):
        assert " us, MatmulConfig(" not in ft.jit(product).lower(x, x).compile().as_text()


def test_records_of_kernels_on_the_device():
    (kernel, *_) = ft.jit(product).lower(ft.device_put(X, "gpu"), X).compile().kernels
    target = device_target(0)
    assert kernel.registers > 0 and kernel.shared <= target.shared
    assert f".target sm_{target.capability}" in kernel.ptx


def test_targets_run_on_their_gpus():
    here = device_target(0).name
    shape = ft.ShapeDtypeStruct((4,), "float32")
    compiled = ft.lower(lambda x: x + 1, shape, target=here).compile()
    np.testing.assert_array_equal(compiled(xp.zeros(4)), np.ones(4))
    other = "cuda:80" if here != "cuda:80" else "cuda:90"
    with pytest.raises(BackendError, match=f"there is a {here} here"):
        ft.lower(lambda x: x + 1, shape, target=other).compile()(xp.zeros(4))


def test_a_later_process_does_without_triton(tmp_path):
    code = textwrap.dedent("""
        import sys
        import numpy as np
        import functrans as ft
        @ft.jit
        def total(x):
            x = x.astype("bfloat16")
            return ft.numpy.tanh(x @ x).sum()
        x = ft.device_put(np.ones((2048, 2048), "f4"), "gpu")
        print(float(total(x)), "triton" in sys.modules)
        """)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    said = [subprocess.run([sys.executable, "-c", code], check=True, text=True,
                           capture_output=True, env=environment).stdout.split() for _ in range(2)]
    assert [s[1] for s in said] == ["True", "False"] and said[0][0] == said[1][0]
