"""What GPUs do in a step, kernel by kernel, and a picture of it: by PyTorch's profiler (CUPTI).

    python -m devices_workloads.timeline ROW OUT.json      # as rows of devices_workloads.arrays
    python -m devices_workloads.timeline OUT.json OUT.svg

The file has a list for each kernel: the GPU, whether it is a collective, its name, and when it
begins and how long it takes in microseconds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 1600, 26
COLORS = {True: "#c0392b", False: "#2c7fb8"}


def recorded(step: Callable[[], Any], wait: Callable[[Any], None]) -> list[list[Any]]:
    """The kernels of a step on all GPUs."""
    import torch  # noqa: PLC0415  only who draws a timeline needs it

    wait(step())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        wait(step())
        wait(step())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    found = [[e["args"]["device"], "nccl" in e["name"].lower(), e["name"][:40], e["ts"], e["dur"]]
             for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    found.sort(key=lambda e: e[3])
    middle = (found[0][3] + found[-1][3] + found[-1][4]) / 2
    second = [e for e in found if e[3] >= middle]
    first = second[0][3]
    return [[*e[:3], round(e[3] - first, 2), e[4]] for e in second]


def union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for a, b in sorted(spans):
        if found and a <= found[-1][1]:
            found[-1] = (found[-1][0], max(b, found[-1][1]))
        else:
            found.append((a, b))
    return found


def length(spans: list[tuple[float, float]]) -> float:
    return sum(b - a for a, b in spans)


def summary(events: list[list[Any]]) -> dict[str, float]:
    """Of the first GPU, in microseconds: how long it computes, exchanges, does both, does nothing.
    """
    own = [e for e in events if e[0] == 0]
    computing = union([(e[3], e[3] + e[4]) for e in own if not e[1]])
    exchanging = union([(e[3], e[3] + e[4]) for e in own if e[1]])
    either = union([*computing, *exchanging])
    return {"all": either[-1][1] - either[0][0], "computing": length(computing),
            "exchanging": length(exchanging),
            "both": length(computing) + length(exchanging) - length(either),
            "nothing": either[-1][1] - either[0][0] - length(either),
            "kernels": sum(e[4] for e in own if not e[1])}


def beside(events: list[list[Any]]) -> dict[str, list[float]]:
    """By kernel: launches and mean microseconds alone, launches and mean beside collectives."""
    own = [e for e in events if e[0] == 0]
    links = union([(e[3], e[3] + e[4]) for e in own if e[1]])
    found: dict[str, list[float]] = {}
    for e in own:
        if not e[1]:
            at = 2 * any(a < e[3] + e[4] and e[3] < b for a, b in links)
            row = found.setdefault(e[2], [0, 0.0, 0, 0.0])
            row[at] += 1
            row[at + 1] += e[4]
    return {name: [a, round(b / max(a, 1), 1), c, round(d / max(c, 1), 1)]
            for name, (a, b, c, d) in found.items()}


def drawn(events: list[list[Any]]) -> str:
    """The kernels of each GPU, above them its collectives, as SVG."""
    end = max(e[3] + e[4] for e in events)
    gpus = sorted({e[0] for e in events})
    rows = []
    for gpu, is_collective, name, start, duration in events:
        y = HEIGHT * (2 * gpus.index(gpu) + (not is_collective)) + 4
        x, w = WIDTH * start / end, max(0.3, WIDTH * duration / end)
        rows.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.2f}" height="{HEIGHT - 6}" '
                    f'fill="{COLORS[is_collective]}"><title>{name} {duration} us</title></rect>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{2 * HEIGHT * len(gpus) + 8}">{"".join(rows)}</svg>\n')


def main() -> None:
    source, target = sys.argv[1:3]
    if source.endswith(".json"):
        Path(target).write_text(drawn(json.loads(Path(source).read_text())))
        return
    from devices_workloads import arrays, sizes  # noqa: PLC0415  who draws needs no library

    lib = arrays.Library("functrans")
    makers = {"one": arrays.one_gpu, "data": arrays.data_parallel,
              "sharded": arrays.fully_sharded,
              "apart": lambda lib, s: arrays.data_parallel(lib, s, False)}
    step, place_params, place_data, devices = makers[source](lib, sizes.FULL)
    state = [place_params(sizes.parameters(sizes.FULL))]
    x, y = map(place_data, sizes.tokens(sizes.FULL, devices))

    def call() -> Any:
        state[0], value = step(state[0], x, y)
        return value

    for _ in range(4):
        call()
    events = recorded(call, lambda v: lib.top.block_until_ready((v, state[0])))
    Path(target).write_text(json.dumps(events).replace("], [", "],\n["))
    print(json.dumps({"row": source, **summary(events)}))
    for name, row in sorted(beside(events).items(), key=lambda r: -r[1][0] * r[1][1]
                            - r[1][2] * r[1][3])[:14]:
        print(f"  {name:40} {row}")


if __name__ == "__main__":
    main()
