"""The workload for functrans and JAX, whose programs have one text: `python -m ... functrans`.

Writes a line of JSON for each figure.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import sys
import time
from typing import Any

import numpy as np

from devices_workloads.sizes import FULL, RATE, SMALL, Sizes, median_seconds, parameters, tokens


class Library:
    """functrans or JAX, by the names that both have."""

    def __init__(self, name: str, on_cpus: bool = False) -> None:
        self.name = name
        def module(*names: str) -> Any:
            return importlib.import_module(".".join([name, *names]))

        top, sharding = module(), module("sharding")
        self.tree, self.nn = top.tree, top.nn
        self.top, self.lax, self.xp = top, module("lax"), module("numpy")
        self.sharding, self.spec = sharding.NamedSharding, sharding.PartitionSpec
        if on_cpus and name == "functrans":
            top.config.cpu_devices(2)
        self.on_cpus = on_cpus
        self.gpus = top.devices("cpu" if on_cpus else "gpu")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        if self.name == "jax":
            return self.nn.dot_product_attention(
                q, k, v, is_causal=True, implementation="xla" if self.on_cpus else "cudnn")
        return self.nn.dot_product_attention(q, k, v, is_causal=True)

    def bytes_in_use(self) -> list[int]:
        return [(d.memory_stats() or {}).get("bytes_in_use", 0) for d in self.gpus[:2]]


def norm(lib: Library, x: Any, scale: Any) -> Any:
    xp = lib.xp
    wide = x.astype(xp.float32)
    wide = wide * lib.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(xp.bfloat16)


def forward(lib: Library, sizes: Sizes, params: Any, x: Any, weight: Any) -> Any:
    """`weight` makes a float32 parameter what a product takes."""
    xp, heads = lib.xp, sizes.heads
    x = x.astype(xp.bfloat16)
    batch, length, width = x.shape
    for p in params:
        h = norm(lib, x, p["first"])
        qkv = (h @ weight(p["qkv"])).reshape(batch, length, 3, heads, width // heads)
        mixed = lib.attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
        x = x + mixed.reshape(batch, length, width) @ weight(p["out"])
        h = norm(lib, x, p["second"])
        x = x + lib.nn.gelu(h @ weight(p["up"])) @ weight(p["down"])
    return x


def loss(lib: Library, sizes: Sizes, params: Any, x: Any, y: Any, weight: Any) -> Any:
    out = forward(lib, sizes, params, x, weight).astype(lib.xp.float32)
    return ((out - y) ** 2).mean()


def update(lib: Library, params: Any, gradients: Any) -> Any:
    return lib.tree.map(lambda p, g: p - RATE * g, params, gradients)


def cast(lib: Library) -> Any:
    return lambda w: w.astype(lib.xp.bfloat16)


def one_gpu(lib: Library, sizes: Sizes) -> Any:
    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradients = lib.top.value_and_grad(
            lambda p: loss(lib, sizes, p, x, y, cast(lib)))(params)
        return update(lib, params, gradients), value

    place = functools.partial(lib.top.device_put, device=lib.gpus[0])
    return lib.top.jit(step, donate_argnums=(0,)), place, place, 1


def data_parallel(lib: Library, sizes: Sizes, sums: bool = True) -> Any:
    mesh = lib.top.make_mesh((2,), ("data",), devices=lib.gpus[:2])
    spec = lib.spec

    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradients = lib.top.value_and_grad(
            lambda p: loss(lib, sizes, p, x, y, cast(lib)))(params)
        if sums:
            gradients = lib.tree.map(lambda g: lib.lax.pmean(g, "data"), gradients)
            value = lib.lax.pmean(value, "data")
        return update(lib, params, gradients), value

    run = lib.top.shard_map(step, mesh=mesh, in_specs=(spec(), spec("data"), spec("data")),
                            out_specs=(spec(), spec()), check_vma=False)
    return (lib.top.jit(run, donate_argnums=(0,)),
            lambda x: lib.top.device_put(x, lib.sharding(mesh, spec())),
            lambda x: lib.top.device_put(x, lib.sharding(mesh, spec("data"))), 2)


def fully_sharded(lib: Library, sizes: Sizes) -> Any:
    mesh = lib.top.make_mesh((2,), ("data",), devices=lib.gpus[:2])
    spec = lib.spec

    def gathered(w: Any) -> Any:
        return lib.lax.all_gather(w.astype(lib.xp.bfloat16), "data", axis=0, tiled=True)

    def local(params: Any, x: Any, y: Any) -> Any:
        whole = [{**p, **{k: lib.lax.all_gather(p[k], "data", axis=0, tiled=True)
                          for k in ("first", "second")}} for p in params]
        return loss(lib, sizes, whole, x, y, gathered) / 2

    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradients = lib.top.value_and_grad(local)(params, x, y)
        return update(lib, params, gradients), lib.lax.psum(value, "data")

    run = lib.top.shard_map(step, mesh=mesh, in_specs=(spec("data"),) * 3,
                            out_specs=(spec("data"), spec()), check_vma=False)
    return (lib.top.jit(run, donate_argnums=(0,)),
            lambda x: lib.top.device_put(x, lib.sharding(mesh, spec("data"))),
            lambda x: lib.top.device_put(x, lib.sharding(mesh, spec("data"))), 2)


def trained(lib: Library, sizes: Sizes, made: Any) -> dict[str, Any]:
    """Milliseconds of a step, what it needs, and the loss after the first steps."""
    step, place_params, place_data, devices = made
    before = lib.bytes_in_use()
    params = place_params(parameters(sizes))
    lib.top.block_until_ready(params)
    held = [b - a for a, b in zip(before, lib.bytes_in_use(), strict=True)]
    x, y = map(place_data, tokens(sizes, devices))
    start = time.perf_counter()
    losses = []
    for _ in range(4):
        params, value = step(params, x, y)
        losses.append(float(np.asarray(value)))
    first = time.perf_counter() - start
    state = [params]

    def call() -> Any:
        state[0], value = step(state[0], x, y)
        return value

    seconds = median_seconds(call, lambda v: lib.top.block_until_ready((v, state[0])),
                             sizes.steps, sizes.rounds, time.perf_counter)
    return {"ms": 1e3 * seconds, "losses": losses, "first_s": first, "parameter_bytes": held}


def sums(lib: Library, sizes: Sizes) -> dict[str, Any]:
    """Microseconds of sums over two GPUs, of calls in a row and of one that is waited for."""
    mesh = lib.top.make_mesh((2,), ("data",), devices=lib.gpus[:2])
    spec, found = lib.spec, {}
    run = lib.top.jit(lib.top.shard_map(lambda x: lib.lax.psum(x, "data"), mesh=mesh,
                                        in_specs=spec("data"), out_specs=spec()))
    for megabytes in sizes.sums:
        n = megabytes << 18
        x = lib.top.device_put(np.ones(2 * n, np.float32), lib.sharding(mesh, spec("data")))
        for _ in range(8):
            y = run(x)
        assert float(np.asarray(y)[-1]) == 2
        for name, count, rounds in (("row", 50, 5), ("alone", 1, 60)):
            found[f"{megabytes} MB {name}"] = 1e6 * median_seconds(
                lambda x=x: run(x), lib.top.block_until_ready, count, rounds, time.perf_counter)
        del x, y
    return found


ROWS = {
    "one": lambda lib, s: trained(lib, s, one_gpu(lib, s)),
    "data": lambda lib, s: trained(lib, s, data_parallel(lib, s)),
    "sharded": lambda lib, s: trained(lib, s, fully_sharded(lib, s)),
    "apart": lambda lib, s: trained(lib, s, data_parallel(lib, s, sums=False)),
    "sums": sums,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--dry", action="store_true", help="on virtual devices of the CPU")
    parser.add_argument("--rows", default="sums,one,data,sharded")
    args = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if args.dry:
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    lib = Library(args.library, args.dry)
    for row in args.rows.split(","):
        try:
            found = ROWS[row](lib, SMALL if args.small or args.dry else FULL)
        except Exception as error:  # the other rows are measured all the same
            found = {"error": f"{type(error).__name__}: {error}"[:600]}
        print(json.dumps({"row": row, **found}), flush=True)
    print(json.dumps({"row": "version", "version": getattr(lib.top, "__version__", ""),
                      "gpu": lib.gpus[0].device_kind}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
