"""jit(f).trace(x).lower().compile(), and what each stage tells."""

import numpy as np
import pytest

import functrans as ft
from functrans import stages
from functrans.errors import ArgumentError, BackendError

X = ft.ShapeDtypeStruct((2, 3), "float32")


def scaled(params, x, n, *, shift=0.0):
    return {"out": params["w"] * x * n + shift}


@pytest.fixture(scope="module")
def traced():
    jitted = ft.jit(scaled, static_argnums=2, donate_argnums=1)
    return jitted.trace({"w": X}, X, 3, shift=1.5)


def test_a_trace_tells_its_program_and_types(traced):
    assert isinstance(ft.jit(scaled, static_argnums=2), stages.Wrapped)
    assert not isinstance(scaled, stages.Wrapped)
    assert isinstance(traced, stages.Traced) and traced.fun_name == "scaled"
    assert [str(a) for a in traced.jaxpr.in_avals] == ["f32[2,3]", "f32[2,3]", "f32[]"]
    assert traced.out_info == {"out": X}
    assert traced.out_avals["out"] == X.aval
    assert traced.in_tree == ft.tree.structure((({"w": 0}, 0), {"shift": 0}))


def test_a_trace_keeps_constants_apart():
    table = ft.numpy.arange(1000.0)
    closed = ft.jit(lambda x: x + table).trace(table).jaxpr
    assert len(closed.consts) == len(closed.jaxpr.constvars) == 1
    np.testing.assert_array_equal(closed.consts[0], table)
    np.testing.assert_array_equal(
        ft.core.eval_jaxpr(closed.jaxpr, closed.consts, table)[0], 2 * table)


def test_every_stage_tells_arguments_and_results(traced):
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage in (traced, lowered, compiled):
        (params, x), keywords = stage.args_info
        assert (params["w"].donated, x.donated, keywords["shift"].donated) == (False, True, False)
        assert params["w"].shape == (2, 3) and keywords["shift"].dtype == np.float32
        assert stage.donate_argnums == (1,)
        assert stage.in_tree == traced.in_tree
        assert stage.out_tree == ft.tree.structure({"out": 0})
        assert stage.out_info == {"out": X}
    out = compiled({"w": np.ones((2, 3), np.float32)}, np.ones((2, 3), np.float32), 3, shift=1.5)
    np.testing.assert_array_equal(out["out"], 4.5)


def test_memory_analysis_has_jaxs_attributes_beside_its_keys(traced):
    memory = traced.lower().compile().memory_analysis()
    assert memory["arguments"] == memory.argument_size_in_bytes == 2 * 24 + 4
    assert memory["outputs"] == memory.output_size_in_bytes == 24
    assert memory.alias_size_in_bytes == 24
    assert memory.temp_size_in_bytes == memory["temporaries"] >= 0
    assert memory.peak_memory_in_bytes >= 24 and memory.generated_code_size_in_bytes == 0


def test_code_of_kernels_is_counted():
    compiled = ft.jit(ft.numpy.sin).trace(X, target="cuda:90").lower().compile()
    assert compiled.memory_analysis().generated_code_size_in_bytes == \
        sum(len(k.cubin) for k in compiled.kernels) > 0


def test_options_and_platforms_of_a_compilation(traced):
    compiled = traced.lower(lowering_platforms=("cpu",)).compile({"algebra": "off"})
    assert compiled.runtime_executable() is compiled.executable
    with pytest.raises(ArgumentError, match="xla_cpu_enable_fast_math"):
        traced.lower().compile({"xla_cpu_enable_fast_math": True})
    with pytest.raises(BackendError, match="tpu"):
        traced.lower(lowering_platforms=("tpu",))
    with pytest.raises(ArgumentError, match="one platform"):
        traced.lower(lowering_platforms=("cpu", "cuda"))


def test_other_compilers_texts_are_refused(traced):
    lowered = traced.lower()
    assert lowered.as_text() == lowered.as_text("jaxpr")
    for refused in (lambda: lowered.compiler_ir(), lambda: lowered.compiler_ir("hlo"),
                    lambda: lowered.as_text("stablehlo")):
        with pytest.raises(ArgumentError, match="not MLIR"):
            refused()
