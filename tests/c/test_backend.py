"""The C backend as users meet it: without a compiler, in place, with analyses of its programs."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import BackendError


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, env={"PATH": "/nonexistent", **environment}, check=False)


def test_without_a_compiler_numpy_evaluates_after_one_warning(tmp_path):
    done = run_python("""
        import warnings
        import numpy as np
        import functrans as ft
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            double = ft.jit(lambda x: 2 * x)
            print(double(np.float32(3)), ft.jit(ft.numpy.sin)(np.float32(0)))
        for w in caught:
            print(w.category.__name__, w.message)
    """, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6.0 0.0")
    assert done.stdout.count("RuntimeWarning") == 1
    assert "apt-get install gcc" in done.stdout


def set_row(x, i, y):
    return x.at[i].set(y)


def test_an_update_of_a_donated_argument_makes_no_copy():
    update = ft.jit(set_row, donate_argnums=0, require_inplace=True)
    x = jnp.zeros((64, 64)) + 1
    address = np.asarray(x).__array_interface__["data"][0]
    y = update(x, 3, jnp.full(64, 7.0))
    assert np.asarray(y).__array_interface__["data"][0] == address
    expected = np.ones((64, 64), np.float32)
    expected[3] = 7
    np.testing.assert_array_equal(np.asarray(y), expected)
    with pytest.raises(RuntimeError, match="donated"):
        np.asarray(x)


def test_a_required_update_in_place_says_why_it_needs_a_copy():
    with pytest.raises(BackendError, match="needs a copy") as caught:
        ft.jit(set_row, require_inplace=True)(jnp.zeros((4, 4)), 1, jnp.ones(4))
    assert "belongs to the caller" in str(caught.value)
    assert "test_backend.py" in str(caught.value)
    assert "donate_argnums" in str(caught.value)


def test_a_value_that_is_read_after_its_update_is_copied():
    def both(x):
        y = x * 2
        return y.at[0].set(0.0), y

    with pytest.raises(BackendError, match="read afterwards"):
        ft.jit(both, require_inplace=True)(jnp.ones(8))
    zeroed, y = ft.jit(both)(jnp.ones(8))
    np.testing.assert_array_equal(np.asarray(y), np.full(8, 2, np.float32))
    assert float(zeroed[0]) == 0 and float(zeroed[1]) == 2


def test_memory_analysis_counts_what_lives_at_the_peak():
    compiled = ft.jit(lambda x: jnp.sort(x * 2)).lower(jnp.ones(1024)).compile()
    memory = compiled.memory_analysis()
    assert memory["arguments"] == memory["outputs"] == memory["temporaries"] == 4096
    assert memory["peak"] == 3 * 4096


def test_the_text_of_a_program_has_its_jaxpr_and_its_c():
    text = ft.jit(lambda x: jnp.sin(x) + 1).lower(jnp.ones(8)).compile().as_text()
    assert "sin" in text and "ft_program" in text


def test_sums_over_the_rows_of_one_kernel_keep_apart():
    """Several reductions over rows in many chunks: each has partial results of its own."""
    x = np.random.default_rng(0).standard_normal((5000, 40)).astype(np.float32)
    sums = ft.jit(lambda x: (x.sum(0), (x * x).sum(0), x.max(0), x.sum()))(x)
    wide = x.astype(np.float64)
    for actual, expected in zip(sums, (wide.sum(0), (wide**2).sum(0), wide.max(0), wide.sum()),
                                strict=True):
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-4, atol=1e-3)


def test_reversed_reads_of_reshaped_values_divide_no_negative_numbers():
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    flipped = ft.jit(lambda x: jnp.transpose(x, (1, 0, 2)).reshape(3, 8)[:, ::-1] * 1)(x)
    np.testing.assert_array_equal(np.asarray(flipped),
                                  x.transpose(1, 0, 2).reshape(3, 8)[:, ::-1])
