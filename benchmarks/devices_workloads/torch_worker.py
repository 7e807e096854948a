"""The workload for PyTorch: a process for each GPU, which torch.distributed connects by NCCL."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from devices_workloads.sizes import FULL, RATE, SMALL, Sizes, median_seconds, parameters, tokens


class Layer(nn.Module):
    def __init__(self, weights: dict[str, Any], heads: int) -> None:
        super().__init__()
        self.heads = heads
        for name, w in weights.items():
            setattr(self, name, nn.Parameter(torch.from_numpy(w.T.copy() if w.ndim == 2 else w)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        h = norm(x, self.first)
        qkv = F.linear(h, self.qkv.to(torch.bfloat16))
        q, k, v = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(mixed.transpose(1, 2).reshape(batch, length, width),
                         self.out.to(torch.bfloat16))
        h = norm(x, self.second)
        h = F.gelu(F.linear(h, self.up.to(torch.bfloat16)), approximate="tanh")
        return x + F.linear(h, self.down.to(torch.bfloat16))


def norm(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    wide = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)
    return (wide * scale).to(torch.bfloat16)


class Model(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(w, sizes.heads) for w in parameters(sizes)])

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.to(torch.bfloat16)
        for layer in self.layers:
            x = layer(x)
        return ((x.float() - y) ** 2).mean()


def trained(sizes: Sizes, rank: int, devices: int) -> dict[str, Any]:
    model: Any = Model(sizes).cuda()
    if devices > 1:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    x, y = (torch.from_numpy(a[rank * sizes.batch:(rank + 1) * sizes.batch]).cuda()
            for a in tokens(sizes, devices))

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        value = compiled(x, y)
        value.backward()
        optimizer.step()
        return value

    start = time.perf_counter()
    losses = [float(step()) for _ in range(4)]
    first = time.perf_counter() - start
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    seconds = median_seconds(step, lambda _: torch.cuda.synchronize(), sizes.steps, sizes.rounds,
                             time.perf_counter)
    return {"ms": 1e3 * seconds, "losses": losses, "first_s": first}


def sums(sizes: Sizes) -> dict[str, Any]:
    found = {}
    for megabytes in sizes.sums:
        x = torch.zeros(megabytes << 18, device="cuda")
        for _ in range(8):
            dist.all_reduce(x)
        for name, count, rounds in (("row", 50, 5), ("alone", 1, 60)):
            found[f"{megabytes} MB {name}"] = 1e6 * median_seconds(
                lambda x=x: dist.all_reduce(x), lambda _: torch.cuda.synchronize(), count, rounds,
                time.perf_counter)
    return found


def work(rank: int, rows: list[str], sizes: Sizes) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    run = {"one": lambda: trained(sizes, rank, 1) if rank == 0 else {},
           "data": lambda: trained(sizes, rank, 2), "sums": lambda: sums(sizes)}
    for row in rows:
        if row not in run:
            continue
        try:
            found = run[row]()
        except Exception as error:  # the other rows are measured all the same
            found = {"error": f"{type(error).__name__}: {error}"[:600]}
        torch.cuda.synchronize()
        dist.barrier()
        if rank == 0:
            print(json.dumps({"row": row, **found}), flush=True)
    if rank == 0:
        print(json.dumps({"row": "version", "version": torch.__version__,
                          "gpu": torch.cuda.get_device_name(0)}), flush=True)
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rows", default="sums,one,data")
    parser.add_argument("--rank", type=int)
    args = parser.parse_args()
    if args.rank is not None:
        work(args.rank, args.rows.split(","), SMALL if args.small else FULL)
        return 0
    env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    command = [sys.executable, "-m", "devices_workloads.torch_worker", *sys.argv[1:], "--rank"]
    ranks = [subprocess.Popen([*command, str(k)], env=env) for k in range(2)]
    return max(p.wait() for p in ranks)


if __name__ == "__main__":
    sys.exit(main())
