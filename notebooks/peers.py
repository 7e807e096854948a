"""Times of PyTorch, JAX and CUDA by hand beside those of 03_gpu.ipynb, where they are installed.

Each function returns what it found, {peer: seconds}, and nothing where there is no GPU.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Programs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]
ROUNDS, CALLS = 7, 20
# JAX would take three quarters of the memory of the GPU, in which other arrays are
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def names(device: Any) -> list[str]:
    """The peers that are installed, for arrays of a GPU."""
    found = [name for name in ("torch", "jax", "cupy") if importlib.util.find_spec(name)]
    return found if device.platform == "gpu" else []


def module(name: str, device: Any) -> ModuleType | None:
    """The peer, imported when it is asked for, or None where it is not installed."""
    return importlib.import_module(name) if name in names(device) else None


def median(call: Callable[..., Any], args: Sequence[Any], wait: Callable[[Any], Any]) -> float:
    """Seconds of a call, of many that are given to the device one after the other."""
    wait(call(*args))
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            out = call(*args)
        wait(out)
        times.append((time.perf_counter() - start) / CALLS)
    return sorted(times)[ROUNDS // 2]


def torch_times(torch: Any, programs: Programs) -> list[float]:
    """Seconds of functions of tensors, each compiled by torch.compile."""
    return [median(torch.compile(function), args, lambda _: torch.cuda.synchronize())
            for function, args in programs.values()]


def jax_times(jax: Any, programs: Programs) -> list[float]:
    """Seconds of functions of JAX's arrays, each under jax.jit."""
    return [median(jax.jit(function), args, jax.block_until_ready)
            for function, args in programs.values()]


def memory_bound(device: Any, host: np.ndarray[Any, Any]) -> dict[str, list[float]]:
    """The programs of the notebook that memory limits, in its order."""
    found, torch, jax = {}, module("torch", device), module("jax", device)
    if torch:
        x, y = torch.tensor(host, device="cuda"), torch.tensor(host[::-1].copy(), device="cuda")

        def chain(x: Any, y: Any) -> Any:
            for _ in range(5):
                x = torch.sin(x) * y + 0.5
            return x

        found["torch.compile"] = torch_times(torch, {
            "copy": (lambda x: x + 1, (x,)), "chain": (chain, (x, y)),
            "softmax": (lambda x: torch.softmax(x, -1), (x,)),
            "layer norm": (lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), (x,)),
            "transpose": (lambda x, y: x.T + y, (x, y)),
            "running sum": (lambda x: torch.cumsum(x, 1), (x,)), "sum": (lambda x: x.sum(), (x,))})
    if jax:
        jnp, a, b = jax.numpy, jax.device_put(host), jax.device_put(host[::-1].copy())

        def chain_of_jax(x: Any, y: Any) -> Any:
            for _ in range(5):
                x = jnp.sin(x) * y + 0.5
            return x

        found["jax.jit"] = jax_times(jax, {
            "copy": (lambda x: x + 1, (a,)), "chain": (chain_of_jax, (a, b)),
            "softmax": (lambda x: jax.nn.softmax(x, -1), (a,)),
            "layer norm": (lambda x: jax.nn.standardize(x, -1), (a,)),
            "transpose": (lambda x, y: x.T + y, (a, b)),
            "running sum": (lambda x: jnp.cumsum(x, 1), (a,)), "sum": (lambda x: x.sum(), (a,))})
    return found


def attention(device: Any, *qkv: np.ndarray[Any, Any]) -> dict[str, float]:
    """Attention of q, k, v [batch, heads, length, width] by each peer's own function."""
    found, torch, jax = {}, module("torch", device), module("jax", device)
    if torch:
        tensors = [torch.tensor(a.astype("float32"), device="cuda").bfloat16() for a in qkv]
        function = torch.nn.functional.scaled_dot_product_attention
        found["torch"] = median(function, tensors, lambda _: torch.cuda.synchronize())
    if jax:
        # [batch, length, heads, width]
        arrays = [jax.device_put(np.asarray(a).swapaxes(1, 2)) for a in qkv]
        program = jax.jit(lambda q, k, v: jax.nn.dot_product_attention(
            q, k, v, implementation="cudnn"))
        found["jax, cuDNN"] = median(program, arrays, jax.block_until_ready)
    return found


def per_sample(device: Any, params: Any, images: Any, labels: Any) -> dict[str, dict[str, float]]:
    """The gradient of the mean, and the norms and the clipped mean of all samples' gradients."""
    jax = module("jax", device)
    if jax is None:
        return {}
    jnp = jax.numpy

    def loss(params: Any, image: Any, label: Any) -> Any:
        *hidden, (last, shift) = params
        for weight, bias in hidden:
            image = jnp.maximum(image @ weight + bias, 0)
        return -jax.nn.log_softmax(image @ last + shift)[label]

    def mean_loss(params: Any, images: Any, labels: Any) -> Any:
        return jax.vmap(loss, (None, 0, 0))(params, images, labels).mean()

    def norms(params: Any, images: Any, labels: Any) -> Any:
        every = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
        return jnp.sqrt(sum((g * g).reshape(len(g), -1).sum(1) for g in jax.tree.leaves(every)))

    def clipped(params: Any, images: Any, labels: Any) -> Any:
        every = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
        lengths = jnp.sqrt(sum((g * g).reshape(len(g), -1).sum(1) for g in jax.tree.leaves(every)))
        scale = jnp.minimum(1, 1 / lengths) / len(lengths)
        return jax.tree.map(lambda g: jnp.tensordot(scale, g, 1), every)

    args = jax.tree.map(jax.device_put, (params, images, labels))
    times = jax_times(jax, {name: (f, args) for name, f in (
        ("mean", jax.grad(mean_loss)), ("norms", norms), ("clipped", clipped))})
    titles = "gradient of the mean", "norms of all gradients", "clipped mean"
    return {"jax.jit": dict(zip(titles, times, strict=True))}


def cuda(device: Any, file: str, starts: Any, rhos: Any, steps: int, xs: Any,
         ys: Any) -> dict[str, float]:
    """Both programs over lanes as CUDA, by CuPy: seconds of the fastest of five runs."""
    cupy = module("cupy", device)
    if cupy is None:
        return {}
    kernels = cupy.RawModule(code=Path(file).read_text())

    def launch(name: str, count: int, *args: Any) -> float:
        kernel, grid = kernels.get_function(name), (-(-count // 128),)
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(CALLS):
            kernel(grid, (128,), args)
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / CALLS * 1e-3

    lanes, side = len(starts), len(xs)
    lorenz = (*map(cupy.asarray, (starts, rhos)), cupy.zeros((lanes, 3), "f4"),
              np.int32(lanes), np.int32(steps))
    fractal = (*map(cupy.asarray, (xs, ys)), cupy.zeros((side, side), "i4"), np.int32(side))
    return {"Lorenz": min(launch("lorenz", lanes, *lorenz) for _ in range(5)),
            "Mandelbrot": min(launch("mandelbrot", side**2, *fractal) for _ in range(5))}
