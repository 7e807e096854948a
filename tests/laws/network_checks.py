"""What is asked of random networks: that they compile, and how far results are from others."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by it
import numpy as np

import functrans as ft
from functrans.lowering.c.lower import lower as lower_to_c
from functrans.lowering.schedule.target import target_named
from functrans.lowering.triton.kernels.source import module_of
from functrans.lowering.triton.lower import lower as lower_to_triton
from functrans.lowering.triton.machine.device import unit_of
from functrans.lowering.triton.steps.spec import launch_key, launches_in
from tests.laws.networks import Network

__all__ = ["assert_near", "c_program", "cuda_units", "program_units", "results", "to_triton_ir"]

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 4e-2}
"""How far a result may be from that of float64, in its norm."""
NOISE = {"float64": 1e-15, "float32": 1e-7, "bfloat16": 4e-3}
"""By how much rounding changes an argument."""


def traced(network: Network, target: str) -> Any:
    return ft.lower(network.program, *network.types(), target=target)


def c_program(network: Network) -> str:
    """The C text of a network; no compiler has seen it."""
    lowered = traced(network, "cpu")
    with ft.config.scope(progress=False):
        program = lower_to_c(lowered.jaxpr, lowered.donated)
    assert program is not None, "NumPy evaluates it"
    return program.text.text


def cuda_units(network: Network, target: str = "cuda:90") -> list[Any]:
    """The kernels of a network as Triton gets them, each once."""
    units = program_units(traced(network, target), target)
    assert units, "a CPU computes it"
    return units


def program_units(lowered: Any, target: str) -> list[Any]:
    """The kernels of a lowered program, each once; none where a CPU computes all of it."""
    machine = target_named(target)
    with ft.config.scope(progress=False):
        found = lower_to_triton(lowered.jaxpr, lowered.donated, False, False, machine, None)
    if found is None:
        return []
    launches = {launch_key(step): step for step in launches_in(found.program.steps)}
    return [unit_of(found.program, step, machine) for step in launches.values()]


def to_triton_ir(unit: Any) -> Any:
    """What the first stage of Triton makes of a kernel: types and shapes are checked there."""
    # later: the interpreter that other tests use is chosen when Triton is first imported
    from triton._C.libtriton import ir  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler import ASTSource  # noqa: PLC0415
    from triton.compiler.compiler import make_backend  # noqa: PLC0415

    function = getattr(module_of(unit.source), unit.name)
    source = ASTSource(function, dict(zip(function.arg_names, unit.types, strict=True)), {}, {})
    target = GPUTarget("cuda", unit.capability, 32)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": unit.warps, "num_stages": unit.stages,
                                     "enable_fp_fusion": unit.fuses})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return source.make_ir(target, options, backend.get_codegen_implementation(options),
                          backend.get_module_map(), context)


def results(network: Network, backend: str, dtype: str | None = None,
            noise: float = 0.0, seed: int = 0) -> list[np.ndarray]:
    """The results of a network as arrays of float64, computed in `dtype` (its own).

    Its floating arguments are changed by so much `noise`, relative to them.
    """
    arguments: Any = network.arguments(dtype)
    if noise:
        rng = np.random.default_rng(seed)
        arguments = ft.tree.map(
            lambda x: x * (1 + noise * rng.uniform(-1, 1, x.shape)).astype(x.dtype)
            if x.dtype.kind not in "ib" else x, arguments)
    with ft.config.scope(backend=backend, progress=False):
        found = ft.jit(network.program)(*arguments)
        return [np.asarray(x).astype(np.float64) for x in ft.tree.leaves(ft.device_get(found))]


def distances(actual: list[np.ndarray], expected: list[np.ndarray]) -> list[float]:
    """How far each result is, in its norm."""
    found = []
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        far = np.linalg.norm(a - e)
        found.append(float(far / max(np.linalg.norm(e), 1e-3 * np.sqrt(e.size), 1e-30)))
    return found


def assert_near(network: Network, actual: list[np.ndarray], tolerance: float | None = None,
                noise: float | None = None) -> None:
    """The results are those of float64: as near as those of NumPy in the same dtype, or as those
    for arguments that are rounded otherwise, by so much `noise`.

    Sorts, maxima and activations with kinks choose by their operands, and may choose otherwise.
    """
    expected = results(network, "reference", "float64")
    finite = [np.isfinite(e).all() for e in expected]
    assert all(np.isfinite(a).all() for a, ok in zip(actual, finite, strict=True) if ok), \
        f"not finite:\n{network.source}"
    most = TOLERANCES[network.dtype] if tolerance is None else tolerance
    found = distances(actual, expected)
    if all(x <= most for x, ok in zip(found, finite, strict=True) if ok):
        return
    others = [results(network, "reference")]
    noise = NOISE[network.dtype] if noise is None else noise
    others += [results(network, "reference", "float64", noise, seed)
               for seed in range(3)]
    known = np.max([distances(other, expected) for other in others], axis=0)
    worse = {k: (x, known[k]) for k, x in enumerate(found)
             if finite[k] and not x <= 4 * known[k] + most}
    assert not worse, f"results {worse} (and others) are far from float64:\n{network.source}"
