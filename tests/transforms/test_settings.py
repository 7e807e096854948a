"""JAX's settings by their names, and what asks about devices and processes."""

import logging

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core import config
from functrans.core.errors import ArgumentError, KeyReuseError, MissingNameError, NotFiniteError


@pytest.fixture(autouse=True)
def restored():
    """Changes by `update` last as long as a test."""
    with config.scope():
        yield


def test_64_bits():
    with ft.enable_x64(True):
        assert jnp.ones(2).dtype == np.float64 and jnp.arange(2).dtype == np.int64
        with ft.enable_x64(False):
            assert jnp.ones(2).dtype == np.float32
    ft.config.update("jax_enable_x64", True)
    assert ft.config.jax_enable_x64 is True and ft.config.x64_enabled is True
    assert ft.jit(lambda: jnp.zeros(2))().dtype == np.float64
    ft.config.update("jax_enable_x64", False)
    assert ft.config.read("jax_enable_x64") is False and jnp.ones(2).dtype == np.float32


def test_a_setting_that_is_changed_back_finds_the_programs_from_before():
    tokens = [config.current().token]
    for on in (True, False, True, False):
        ft.config.update("jax_enable_x64", on)
        tokens.append(config.current().token)
    first, second = tokens[:2]
    assert tokens == [first, second, first, second, first] and first != second


def test_settings_that_change_something():
    ft.config.update("jax_disable_jit", True)
    seen = []
    ft.jit(seen.append)(1.0)
    assert isinstance(seen[0], float) and ft.config.jax_disable_jit
    ft.config.update("jax_disable_jit", False)
    ft.config.update("jax_default_matmul_precision", "float32")
    assert ft.config.read("jax_default_matmul_precision") == "highest"
    ft.config.update("jax_default_matmul_precision", None)
    ft.config.update("jax_default_prng_impl", "rbg")
    assert ft.random.key_impl(ft.random.key(0)) == "philox"
    for name in ("jax_platforms", "jax_platform_name", "jax_default_device"):
        ft.config.update(name, "cpu")
        assert ft.default_backend() == "cpu" == ft.config.read("jax_platform_name")
    ft.config.update("jax_traceback_filtering", "off")
    assert config.current().internal_frames
    ft.config.update("jax_compilation_cache_dir", "/tmp/none")
    ft.config.update("jax_check_tracer_leaks", True)


def test_checks_are_switched_on_and_off():
    ft.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(NotFiniteError):
            jnp.log(-1.0)
        assert np.isinf(jnp.exp(1000.0)) and ft.config.jax_debug_nans
        ft.config.update("jax_debug_infs", True)
        with pytest.raises(NotFiniteError):
            jnp.exp(1000.0)
        with pytest.raises(NotFiniteError):
            jnp.log(-1.0)
    finally:
        ft.config.update("jax_debug_nans", False)
        ft.config.update("jax_debug_infs", False)
    assert np.isnan(jnp.log(-1.0)) and not config.current().checks
    with ft.debug_infs(), pytest.raises(NotFiniteError):
        jnp.exp(1000.0)
    with ft.debug_infs(False), ft.debug_nans(False), ft.check_tracer_leaks(), ft.checking_leaks():
        assert np.isinf(jnp.exp(1000.0))
    with ft.debug_nans(True):
        assert np.isinf(jnp.exp(1000.0))
        with pytest.raises(NotFiniteError):
            jnp.log(-1.0)


def test_keys_are_checked():
    ft.config.update("jax_debug_key_reuse", True)
    try:
        key = ft.random.key(0)
        ft.random.normal(key)
        assert ft.config.jax_debug_key_reuse
        with pytest.raises(KeyReuseError):
            ft.random.normal(key)
    finally:
        ft.config.update("jax_debug_key_reuse", False)
    ft.random.normal(key), ft.random.normal(key)


def test_settings_that_cannot_be():
    with pytest.raises(ArgumentError, match="always"):
        ft.config.update("jax_threefry_partitionable", False)
    for name in ("jax_numpy_rank_promotion", "jax_numpy_dtype_promotion"):
        with pytest.raises(ArgumentError, match="one of"):
            ft.config.update(name, "never")
    ft.config.update("jax_threefry_partitionable", True)
    with pytest.raises(ArgumentError, match="no setting 'jax_frobnicate'"):
        ft.config.update("jax_frobnicate", True)
    with pytest.raises(ArgumentError, match="no setting"):
        ft.config.read("jax_compilation_cache_dir")
    with pytest.raises(MissingNameError):
        _ = ft.config.debug_nan


def test_devices_and_processes():
    with ft.default_device("cpu"):
        assert ft.default_backend() == "cpu" and ft.device_count() == ft.local_device_count() == 1
        assert ft.local_devices() == ft.devices("cpu") == ft.local_devices(0, "cpu")
    assert (ft.process_count(), ft.process_index(), ft.process_indices()) == (1, 0, [0])
    assert (ft.host_count(), ft.host_id(), ft.host_ids()) == (1, 0, [0])
    with pytest.raises(ArgumentError, match="no process 1"):
        ft.local_devices(1)
    ft.effects_barrier()
    text = ft.print_environment_info(return_string=True)
    assert np.__version__ in text and "cpu:0" in text


def test_the_environment_is_printed(capsys):
    assert ft.print_environment_info() is None
    assert "functrans" in capsys.readouterr().out


def test_arrays_for_places():
    data = np.arange(6.0).reshape(2, 3)
    x = ft.make_array_from_callback((2, 3), "cpu", lambda index: data[index])
    assert x.tolist() == data.tolist() and x.device == ft.devices("cpu")[0]
    y = ft.make_array_from_single_device_arrays((2, 3), None, [x], dtype="float32")
    assert y.dtype == np.float32
    assert ft.make_array_from_process_local_data(None, data, (2, 3)).shape == (2, 3)
    with pytest.raises(ArgumentError, match=r"of shape \(2, 3\), not \(3, 2\)"):
        ft.make_array_from_callback((3, 2), None, lambda index: data)
    with pytest.raises(ArgumentError, match="2 arrays"):
        ft.make_array_from_single_device_arrays((4, 3), None, [x, x])


def test_errors_have_jax_names():
    errors = ft.errors
    with pytest.raises(errors.TracerBoolConversionError):
        ft.jit(lambda x: 1 if x else 2)(1.0)
    with pytest.raises(errors.TracerArrayConversionError):
        ft.jit(np.asarray)(1.0)
    with pytest.raises(errors.TracerIntegerConversionError):
        ft.jit(lambda x: list(range(10))[x])(1)
    with pytest.raises(errors.ConcretizationTypeError):
        ft.jit(lambda x: jnp.arange(x))(3)
    kept = []
    ft.jit(lambda x: kept.append(x))(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        jnp.sin(kept[0])
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        ft.jit(lambda x: x[x > 0])(jnp.ones(2))
    with pytest.raises(errors.InconclusiveDimensionOperation):
        _ = bool(ft.dim("n") > 3)
    with pytest.raises(errors.JAXIndexError):
        jnp.ones(2)["a"]
    with pytest.raises(ft.dtypes.TypePromotionError):
        jnp.promote_types("float8_e5m2", "float8_e4m3fn")


def test_policies_of_jax():
    policies = ft.checkpoint_policies

    def layer(w, x):
        hidden = ft.checkpoint_name(jnp.sin(x @ w), "hidden")
        return jnp.cos(ft.checkpoint_name(jnp.tanh(hidden), "second")).sum()

    w, x = jnp.full((3, 3), 0.3), jnp.ones((2, 3))
    expected = ft.grad(layer)(w, x)
    every = [policies.checkpoint_dots, policies.checkpoint_dots_with_no_batch_dims,
             policies.save_anything_except_these_names("hidden"),
             policies.save_from_both_policies(policies.dots_saveable,
                                              policies.save_only_these_names("second")),
             policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
             policies.save_and_offload_only_these_names(
                 names_which_can_be_saved=["hidden"], names_which_can_be_offloaded=["second"],
                 offload_src="device", offload_dst="pinned_host")]
    for policy in every:
        found = ft.grad(ft.checkpoint(layer, policy=policy))(w, x)
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def recomputed(policy):
        text = str(ft.make_jaxpr(ft.grad(ft.checkpoint(layer, policy=policy)))(w, x))
        return text.count("dot_general")

    assert recomputed(policies.checkpoint_dots) < recomputed(policies.nothing_saveable)
    both = policies.save_from_both_policies(policies.nothing_saveable, policies.dots_saveable)
    assert recomputed(both) == recomputed(policies.dots_saveable)


def test_logs_and_breakpoints(caplog, monkeypatch):
    with caplog.at_level(logging.INFO, "functrans"):
        ft.jit(lambda x: (ft.debug.log("x = {x}", x=x), x)[1])(1.5)
    assert "x = 1.5" in caplog.text
    with pytest.raises(ArgumentError, match=r"debug\.log: the format"):
        ft.debug.log("{} {}", 1)
    seen = []

    def hook():
        import sys  # noqa: PLC0415
        seen.append(sys._getframe(1).f_locals["values"])

    monkeypatch.setattr("sys.breakpointhook", hook)

    def f(x):
        doubled = x * 2
        ft.debug.breakpoint(more=x + 1)
        return doubled

    assert ft.jit(f)(3.0).item() == 6
    assert {k: float(v) for k, v in seen[0].items()} == {"x": 3, "doubled": 6, "more": 4}


def test_trees_by_levels():
    util = ft.tree_util
    assert util.flatten_one_level([1, (2, 3)]) == ([1, (2, 3)], None)
    keys = [k for k, _ in util.flatten_one_level_with_keys({"b": 1, "a": [2]})[0]]
    assert keys == [util.DictKey("a"), util.DictKey("b")]
    with pytest.raises(ArgumentError, match="int is a leaf"):
        util.flatten_one_level(3)
    assert util.is_tree_node(list) and util.is_tree_node(util.Partial)
    assert not util.is_tree_node(np.ndarray) and not util.is_tree_node(ft.Array)
    order = ft.tree.reduce_associative(lambda a, b: f"({a}{b})", {"x": ["a", "b"], "y": "c"})
    assert order == "((ab)c)"
    assert ft.tree.reduce_associative(lambda a, b: a + b, [], identity=4) == 4
    with pytest.raises(ArgumentError, match="without leaves"):
        util.tree_reduce_associative(lambda a, b: a + b, ())


def test_dtypes_and_dlpack():
    assert ft.dtypes.canonicalize_dtype("int64") == np.int64
    with pytest.raises(TypeError, match="allow_extended_dtype"):
        ft.dtypes.canonicalize_dtype(ft.random.key_dtype())
    assert ft.dtypes.canonicalize_dtype(ft.random.key_dtype(), True) == ft.random.key_dtype()
    assert [ft.dtypes.itemsize_bits(d) for d in ("bool", "int2", "bfloat16", "complex128")] == \
        [8, 2, 16, 128]
    assert [ft.dtypes.scalar_type_of(v) for v in (True, jnp.uint4, jnp.float8_e5m2, 1j)] == \
        [bool, int, float, complex]
    assert ft.dlpack.is_supported_dtype("float8_e5m2")
    assert not ft.dlpack.is_supported_dtype("float4_e2m1fn")
