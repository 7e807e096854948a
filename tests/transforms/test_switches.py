"""JAX's switches that are context managers, and what they refuse or write."""

import logging
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.errors import ArgumentError, BackendError, PromotionError, ShapeError

WIDE, ROW, WHOLE = jnp.ones((2, 3)), jnp.ones(3), jnp.arange(3)
OF_RANKS = (lambda: WIDE + ROW, lambda: jnp.add(WIDE, ROW), lambda: jnp.where(WIDE > 0, ROW, WIDE),
            lambda: ft.jit(lambda x, y: x * y)(WIDE, ROW), lambda: WIDE < ROW,
            lambda: ft.grad(lambda x: (x * ROW).sum())(WIDE),
            lambda: ft.vmap(lambda x: x - WIDE)(jnp.ones((4, 3))))


@pytest.mark.parametrize("call", OF_RANKS)
def test_ranks_that_differ(call):
    with ft.numpy_rank_promotion("raise"), pytest.raises(ShapeError, match="of unlike ranks"):
        call()
    with ft.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="unlike") as found:
        call()
    assert found[0].filename == __file__
    call()


def test_ranks_that_are_meant():
    with ft.numpy_rank_promotion("raise"):
        assert (WIDE + 1.0).shape == (WIDE * jnp.float32(2)).shape == (2, 3)
        # functions of the package broadcast on purpose
        assert jnp.var(WIDE, axis=1).shape == (2,) and jnp.cov(WIDE).shape == (2, 2)
        assert ft.jit(ft.nn.softmax)(WIDE).shape == (2, 3)
        assert ft.lax.fori_loop(0, 3, lambda i, x: x + i, WIDE).shape == (2, 3)


@pytest.mark.parametrize("call", [
    lambda: ROW + WHOLE, lambda: WHOLE + 1.5, lambda: jnp.multiply(ROW, np.float64(2)),
    lambda: ROW > WHOLE, lambda: ft.jit(lambda x, y: x - y)(ROW, WHOLE),
    lambda: jnp.ones(3, bool) + 1])
def test_dtypes_that_differ(call):
    with ft.numpy_dtype_promotion("strict"), pytest.raises(PromotionError, match="of "):
        call()
    call()


def test_dtypes_that_fit():
    with ft.numpy_dtype_promotion("strict"):
        assert (ROW + 1).dtype == (ROW * 2.5).dtype == jnp.sin(WHOLE).dtype == np.float32
        assert (WHOLE * 2).dtype == np.int32 and jnp.mean(WHOLE).dtype == np.float32
        assert (jnp.ones(2, "complex64") + 1j).dtype == np.complex64


def test_settings_hold_until_they_are_changed():
    ft.config.update("jax_numpy_rank_promotion", "raise")
    try:
        ft.config.update("jax_numpy_dtype_promotion", "strict")
        with pytest.raises(ShapeError):
            WIDE + ROW
        ft.config.update("jax_numpy_rank_promotion", "allow")
        with pytest.raises(PromotionError):
            ROW + WHOLE
        assert (WIDE + ROW).shape == (2, 3)
    finally:
        ft.config.update("jax_numpy_rank_promotion", "allow")
        ft.config.update("jax_numpy_dtype_promotion", "standard")
    assert (ROW + WHOLE).dtype == np.float32
    with pytest.raises(ArgumentError, match="'allow', 'warn', 'raise'"):
        ft.numpy_rank_promotion("never")


def test_what_is_compiled_is_written(caplog):
    double = ft.jit(lambda x: x * 2)
    with caplog.at_level(logging.WARNING, "functrans"), ft.log_compiles(), \
            ft.explain_cache_misses():
        double(ROW), double(ROW), double(WHOLE)
    text = "\n".join(r.message for r in caplog.records)
    assert text.count("tracing <lambda> for") == 2 and text.count("compiled <lambda> by") == 2
    assert "argument x is int32, and in program 1 float32" in text and "the first call" in text
    caplog.clear()
    double(jnp.ones((2, 2)))
    assert not caplog.records


def test_programs_that_are_not_to_be_made_or_run():
    double = ft.jit(lambda x: x * 2)
    double(ROW)
    with ft.no_tracing():
        double(ROW)
        with pytest.raises(BackendError, match="would be traced for i32"):
            double(WHOLE)
    double(WHOLE)
    with ft.no_execution():
        for call in (lambda: double(ROW), lambda: ROW + 1, lambda: ft.jit(jnp.sin)(ROW)):
            with pytest.raises(BackendError, match="within no_execution"):
                call()
        assert ft.eval_shape(double, ROW).shape == (3,)
        assert len(ft.make_jaxpr(lambda x: x * 2)(ROW).eqns) == 1
    with ft.enable_checks(), ft.no_execution(False):
        assert ft.jit(lambda x: x + 1)(ROW).tolist() == [2.0] * 3


def test_live_arrays():
    x = jnp.ones(5)
    donated = jnp.ones(7)
    ft.jit(lambda x: x * 2, donate_argnums=0)(donated)
    found = ft.live_arrays("cpu")
    assert any(a is x for a in found) and not any(a is donated for a in found)
    mark = id(x)
    del x, found
    assert not any(id(a) == mark and a.shape == (5,) for a in ft.live_arrays())


def test_switches_with_one_position():
    for name in ("threefry_partitionable", "enable_custom_prng", "softmax_custom_jvp"):
        with getattr(ft, name)(True):
            pass
        with pytest.raises(ArgumentError, match="always True"):
            getattr(ft, name)(False)
    for name in ("allow_f16_reductions", "array_garbage_collection_guard", "legacy_prng_key",
                 "thread_guard", "auto_pcast"):
        with getattr(ft, name)(False):
            pass
    with ft.transfer_guard("disallow"):
        assert ft.config.current().host_steps == "error"
    with pytest.raises(ArgumentError, match="'log_explicit'"):
        ft.transfer_guard("never")
    with warnings.catch_warnings():
        assert ft.copy_to_host_async(ROW) is ROW
