"""functrans on two GPUs beside JAX and PyTorch: steps of a transformer, and sums over devices.

    python benchmarks/devices.py [--only LIBRARIES] [--rows ROWS] [--small] [--limit SECONDS]
                                 [--no-write]

A transformer of 12 layers, width 1,024, 8 x 1,024 tokens a GPU, in bfloat16 with float32 parameters
and SGD: on one GPU, on two with the parameters on both, on two with the parameters in halves. The
efficiency is the time of a step on one GPU by that on two, which have twice the tokens. Sums over
two GPUs of 1, 16 and 256 MB on each are a jitted call: one in a row of 50, and one that is waited
for. Row `apart` is the step on two GPUs without its sums: what they cost.

Each library is measured in processes of its own, one after the other, on the same inputs: the
losses of the first steps are compared. Writes benchmarks/results/devices-<gpu>.json.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from harness import results_path

HERE = Path(__file__).parent
LIBRARIES = {"functrans": ["devices_workloads.arrays", "functrans"],
             "jax": ["devices_workloads.arrays", "jax"],
             "torch": ["devices_workloads.torch_worker"]}
REACH = {"one": 18.0, "data efficiency": 0.97, "sharded efficiency": 0.95,
         "1 MB": 30.0, "16 MB": 100.0, "256 MB": 980.0}
TITLES = {"one": "one GPU, ms a step", "data": "two GPUs, data parallel, ms a step",
          "sharded": "two GPUs, fully sharded, ms a step",
          "apart": "two GPUs, without sums, ms a step"}
CLOSE = 0.02


def measured(library: str, args: argparse.Namespace) -> dict[str, Any]:
    """The rows of a library by name."""
    command = [sys.executable, "-m", *LIBRARIES[library], "--rows", args.rows,
               *["--small"] * args.small]
    found: dict[str, Any] = {}
    process = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    assert process.stdout is not None

    def end() -> None:  # with the processes that it started
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(args.limit, end)
    timer.start()
    try:
        for line in process.stdout:
            if line.startswith("{"):
                row = json.loads(line)
                found[row.pop("row")] = row
    finally:
        timer.cancel()
        end()
        process.wait()
    return found


def figures(rows: dict[str, Any]) -> dict[str, float]:
    """What of the rows of a library is compared."""
    found = {name: rows[name]["ms"] for name in TITLES if "ms" in rows.get(name, {})}
    if "one" in found:
        found |= {f"{name} efficiency": found["one"] / found[name] for name in TITLES
                  if name in found and name not in ("one", "apart")}
    return found | {name: value for name, value in rows.get("sums", {}).items()
                    if name != "error"}


def disagreements(found: dict[str, dict[str, Any]]) -> list[str]:
    """Where the losses of the first steps are not those of functrans."""
    said = []
    for library, rows in found.items():
        for name, row in rows.items():
            ours = found.get("functrans", {}).get(name, {}).get("losses")
            if ours and "losses" in row and any(
                    abs(a - b) > CLOSE * abs(b) for a, b in zip(ours, row["losses"], strict=True)):
                said.append(f"{name}: functrans has losses {ours}, {library} {row['losses']}")
    return said


def show(found: dict[str, dict[str, Any]]) -> None:
    columns = {library: figures(rows) for library, rows in found.items()}
    names = dict.fromkeys(name for column in columns.values() for name in column)
    print(f"{'':44}" + "".join(f"{library:>12}" for library in columns) + f"{'reach':>12}")
    for name in names:
        title = TITLES.get(name, f"sum of {name}, us" if "MB" in name else name)
        reach = REACH.get(name.removesuffix(" row").removesuffix(" alone"))
        values = "".join(f"{column.get(name, float('nan')):12.2f}" for column in columns.values())
        print(f"{title:44}{values}" + (f"{reach:12.2f}" if reach else ""))
    for library, rows in found.items():
        for name, row in rows.items():
            if "error" in row:
                print(f"{library}, {name}: {row['error']}")
            if "parameter_bytes" in row:
                print(f"{library}, {name}: parameters take {row['parameter_bytes']} bytes, first "
                      f"4 steps {row['first_s']:.1f} s, losses {row['losses']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="functrans,jax,torch")
    parser.add_argument("--rows", default="sums,one,data,sharded,apart")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--no-write", action="store_true")
    args = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for library in args.only.split(","):  # what is measured is kept, whatever comes then
        found[library] = measured(library, args)
        if not (args.no_write or args.small):
            write(found)
    show(found)
    wrong = disagreements(found)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def write(found: dict[str, dict[str, Any]]) -> None:
    gpu = next((rows["version"]["gpu"] for rows in found.values() if "version" in rows), "")
    if gpu:
        record = {"date": datetime.date.today().isoformat(), "gpus": [gpu] * 2, "rows": found,
                  "figures": {library: figures(rows) for library, rows in found.items()},
                  "reach": REACH}
        results_path("devices", gpu).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
