"""One example in a process of its own: `worker.py example.py` prints what came out as JSON.

It runs with JAX, and with functrans by `python -m functrans.as_jax`. An example has `results()`, a
dict of numbers or arrays by name, and `program()`, a function and its arguments, which is timed.
"""

import json
import runpy
import statistics
import sys
import time

import jax
import numpy as np


def seconds(fun, args, block):
    start = time.perf_counter()
    block(fun(*args))
    return time.perf_counter() - start


def main(path):
    start = time.perf_counter()
    example = runpy.run_path(path)
    imported = time.perf_counter() - start
    fun, args = example["program"]()
    first = seconds(fun, args, jax.block_until_ready)
    often = max(5, min(200, int(1.0 / max(seconds(fun, args, jax.block_until_ready), 1e-6))))
    steady = statistics.median(seconds(fun, args, jax.block_until_ready) for _ in range(often))
    results = {name: np.asarray(value).astype(float).tolist()
               for name, value in example["results"]().items()}
    json.dump({"imports": imported, "first": first, "steady": steady, "results": results,
               "missing": example.get("MISSING", ""), "libraries": example["LIBRARIES"],
               "what": example["__doc__"]}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
