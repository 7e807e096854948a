"""Writes docs/benchmarks.md and its picture from benchmarks/results/.

    python benchmarks/page.py

The page has the tables as they were measured. A test fails where it is not what the results say.
The picture, light and dark, needs matplotlib; the figures that it shows are in its description.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bounds import LIMITS, SUBJECT, UNITS, duration
from page_figure import PICTURES, figures, picture

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
STATIC = ROOT / "docs" / "static"
LIBRARIES = ("jax", "torch", "torch.func", "torch.compile", "numpy", "scipy", "cusparse")
"""Other libraries: what is left are other ways of functrans, and limits of the machine."""
NAMES = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy", "scipy": "SciPy",
         "cusparse": "cuSPARSE"}

HEAD = """\
# Benchmarks

For those who want figures, also the bad ones. `python benchmarks/page.py` writes this page from
`benchmarks/results/`; a test fails where it is not what was measured.

```{image} static/benchmarks-light.svg
:alt: Per-sample gradients and whole programs, beside JAX and PyTorch
:class: only-light
```

```{image} static/benchmarks-dark.svg
:alt: Per-sample gradients and whole programs, beside JAX and PyTorch
:class: only-dark
```

The left half is in times of a plain batch gradient: less is better, and 1 means that the gradient
of every sample costs nothing. The right half has a dot for each program: its time over that of JAX.

Libraries take turns in one process or in processes side by side, and figures are medians, unless a
table says otherwise. `by JAX` and `by PyTorch` are functrans' time divided by theirs: below 1
functrans is faster, and what is **bold** is slower. `make bench` measures the tables of CPUs,
`make gpu` those of GPUs. Programs that the compiler was not tuned for are those measured *first*:
on the day that they were written.
"""


@dataclass(frozen=True)
class Section:
    """A table of the page: a results file, a heading, what it shows, and who writes its rows."""

    file: str
    title: str
    text: str
    rows: Callable[[Mapping[str, Any]], Iterator[str]]


def cells(*values: str) -> str:
    return "| " + " | ".join(values) + " |"


def header(*names: str) -> list[str]:
    return [cells(*names), cells(*["---"] * len(names))]


def name_of(library: str) -> str:
    return NAMES.get(library, library)


def ratio(subject: float | None, other: float | None) -> str:
    """One time by another; bold where functrans takes 5 % more or worse."""
    if subject is None or other is None:
        return ""
    value = subject / other
    text = f"{value:.2g}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if value > 1.05 else text


def shown(row: Mapping[str, Any], library: str) -> str:
    """A figure in the unit of its row."""
    seconds = row["seconds"].get(library)
    if seconds is None:
        return ""
    unit = row.get("unit", "")
    if unit == "x":
        return f"{seconds:.3g} times"
    if unit == "MB" or "peak memory" in row["title"]:
        return f"{seconds:.3g} MB"
    if unit and library not in LIMITS:
        rate = row["amount"] / seconds / UNITS[unit]
        return f"{rate:,.0f} {unit}" if rate >= 1000 else f"{rate:.3g} {unit}"
    return duration(seconds)


def timed(results: Mapping[str, Any]) -> Iterator[str]:
    """A row for each workload, a column for each library that has figures."""
    rows = results["rows"]
    present = {library for row in rows for library in row["seconds"]}
    others = [library for library in LIBRARIES if library in present]
    more = sorted(present - {SUBJECT, *others, *LIMITS})
    compared = others[:2] if "x" not in {row.get("unit") for row in rows} else []
    yield from header("", "functrans", *map(name_of, others), *more,
                      *(f"by {name_of(library)}" for library in compared))
    for row in rows:
        times = row["seconds"]
        yield cells(row["title"], *(shown(row, library) for library in (SUBJECT, *others, *more)),
                    *(ratio(times.get(SUBJECT), times.get(library)) for library in compared))


def programs(results: Mapping[str, Any]) -> Iterator[str]:
    """First calls and calls of whole programs."""
    by_hand = any("by hand" in row["seconds"] for row in results["rows"])
    others = ["by hand", "jax"] if by_hand else ["jax"]
    yield from header("program", "a call", *(f"{name_of(o)}" for o in others),
                      *(f"by {name_of(o).removeprefix('by ')}" for o in others),
                      "first call", "JAX", "by JAX")
    for row in results["rows"]:
        call, first = row["seconds"], row["first"]
        yield cells(
            row["title"].replace("_", " "), optional(call.get(SUBJECT)),
            *(optional(call.get(o)) for o in others),
            *(ratio(call.get(SUBJECT), call.get(o)) for o in others),
            optional(first.get(SUBJECT)), optional(first.get("jax")),
            ratio(first.get(SUBJECT), first.get("jax")))


def optional(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def cpu_rows(results: Mapping[str, Any]) -> Iterator[str]:
    libraries = (SUBJECT, "jax", "torch", "numpy")
    yield from header("program", *map(name_of, libraries))
    for row in results["rows"]:
        yield cells(row["title"], *(
            f"{duration(row['fastest'][x])}, {row['errors'][x]:.1e}" if x in row["fastest"] else ""
            for x in libraries))


def memory(results: Mapping[str, Any]) -> Iterator[str]:
    """Bytes of temporaries with seconds of a call, by what was done to save them."""
    names = sorted({name for row in results["rows"] for name in row["libraries"]})
    yield from header("", *map(name_of, names))
    for row in results["rows"]:
        found = (row["libraries"].get(name) for name in names)
        yield cells(row["title"], *(
            f"{of['temporaries'] / 1e6:.0f} MB, {duration(of['seconds'])}" if of else ""
            for of in found))


def scaling(results: Mapping[str, Any]) -> Iterator[str]:
    """How many times as fast as on one thread."""
    threads = [str(count) for count in results["threads"]]
    yield from header("program", "size", "1 thread", *(f"{count} threads" for count in threads[1:]))
    for row in results["rows"]:
        one = row["seconds"].get("1")
        yield cells(row["title"].replace("_", " "), row["size"], optional(one),
                    *(speedup(one, row["seconds"].get(count)) for count in threads[1:]))


def speedup(one: float | None, several: float | None) -> str:
    if one is None or several is None:
        return ""
    return f"{one / several:.2g}" if one >= several else f"**{one / several:.2g}**"


def micro(results: Mapping[str, Any]) -> Iterator[str]:
    """Sparse arrays: the times of two libraries, where the second has the operation."""
    of, unit = next((of, unit) for of, unit in (("microseconds", "us"), ("milliseconds", "ms"))
                    if of in results["rows"][0])
    other = next(name for name in results["rows"][0][of] if name != SUBJECT)
    yield from header("", "functrans", name_of(other), f"by {name_of(other)}")
    for row in results["rows"]:
        times = row[of]
        if other not in times:
            continue
        yield cells(row["title"], *(f"{times[n]:g} {unit}" if n in times else ""
                                    for n in (SUBJECT, other)),
                    ratio(times.get(SUBJECT), times.get(other)))


def special(results: Mapping[str, Any]) -> Iterator[str]:
    yield from header("", "functrans", "JAX", "by JAX", "largest difference")
    for row in results["rows"]:
        yield cells(row["function"], f"{row['functrans']:.3g} ms", f"{row['jax']:.3g} ms",
                    ratio(row["functrans"], row["jax"]), f"{row['difference']:.1e}")


def devices(results: Mapping[str, Any]) -> Iterator[str]:
    """Milliseconds of steps and microseconds of sums over two GPUs, of each library."""
    found = results["figures"]
    yield from header("", *[NAMES.get(library, library) for library in found])
    units = {"efficiency": "", "MB row": " us, calls in a row", "MB alone": " us, each waited for"}
    for row in found[SUBJECT]:
        unit = next((text for key, text in units.items() if key in row), " ms a step")
        title = row.replace(" row", "").replace(" alone", "") + unit
        yield cells(title, *[f"{found[library][row]:.3g}" if row in found[library] else ""
                             for library in found])


def processes(results: Mapping[str, Any]) -> Iterator[str]:
    """Microseconds of collectives of processes, and of the same calls of mpi4py."""
    ways = ("mpi4py", "from Python", "in a program")
    yield from header("collective", *ways, "worst, by mpi4py")
    for title, times in results["microseconds"].items():
        yield cells(title, *[f"{times[way]:.3g} us" if way in times else "" for way in ways],
                    f"**{times['worst']:.2f}**" if times["worst"] > 1.05
                    else f"{times['worst']:.2f}")


def first_calls(results: Mapping[str, Any]) -> Iterator[str]:
    """Seconds of first calls and of JAX's; and those of gcc, and of all its processors."""
    yield from header("program", "functrans", "of which gcc", "on all cores", "JAX", "by JAX")
    for row in results["rows"]:
        if not {SUBJECT, "jax"} <= row.keys():
            continue
        own, jax = (row[key]["wall"] for key in (SUBJECT, "jax"))
        yield cells(row["title"], f"{own:.2f} s", f"{row[SUBJECT]['compiler']:.2f} s",
                    f"{row[SUBJECT]['processors']:.2f} s", f"{jax:.2f} s", ratio(own, jax))


SECTIONS = (
    Section("per-sample-amd-epyc", "Reductions of per-sample gradients, CPU",
            "`benchmarks/per_sample.py`. `batch gradient` is the plain gradient of the mean loss, "
            "`materialised` the same program without the algebra, `jax by hand` norms from "
            "activations and cotangents, `ghost clipping` hooks of PyTorch as Opacus has them.",
            timed),
    Section("programs-amd-epyc", "43 research programs, four cores of a CPU",
            "`benchmarks/programs.py`: whole programs, one source for both libraries.", programs),
    Section("programs-intel-xeon", "The same, sixteen cores",
            "`benchmarks/programs.py`, before first calls were made faster; the next table has "
            "these.", programs),
    Section("programs-intel-xeon-first-calls", "First calls, sixteen cores",
            "31 of the programs, measured again.", programs),
    Section("programs-h100", "The same programs, one H100",
            "`benchmarks/programs.py --gpu`.", programs),
    Section("more-programs-intel-xeon-first-calls", "23 more programs, sixteen cores",
            "`benchmarks/programs.py --folder benchmarks/more_programs`: programs that the "
            "compiler was not tuned for; 19 of them, with the first calls of now.", programs),
    Section("held-programs-amd-epyc", "24 held programs, one core",
            "`benchmarks/programs.py --folder benchmarks/held_programs`: programs that were "
            "written before they were compiled; what was slow in 16 of them was mended.",
            programs),
    Section("more-programs-h100-first", "23 more programs, one H100, measured first",
            "The same on a GPU.", programs),
    Section("ordinary-programs-h100-first", "8 ordinary networks, one H100, measured first",
            "`benchmarks/programs.py --gpu --folder benchmarks/ordinary_programs`: networks as "
            "many write them, before anything was changed for them.", programs),
    Section("ordinary-programs-h100", "16 ordinary networks, one H100",
            "All of the first sixteen, after five of the eight that nobody had looked at before "
            "were looked at. Where both libraries are further from each other than is allowed, "
            "they are compared with products of float32, which the remarks say.", programs),
    Section("ordinary-programs-h100-newest-first", "6 newer ones, one H100, measured first",
            "Networks at whose times nobody had looked. Two were further from JAX's results than "
            "was allowed: one in bfloat16, where both libraries round differently, and one that "
            "takes the sign of small slopes.", programs),
    Section("cpu-amd-epyc", "Workloads, two cores of a CPU", "`benchmarks/cpu.py`.", timed),
    Section("gemm-intel-xeon", "Products of bfloat16, a CPU with AMX",
            "`benchmarks/gemm.py`.", timed),
    Section("gpu-h100", "Workloads, one H100", "`benchmarks/gpu.py`.", timed),
    Section("lanes-h100", "Programs over lanes, one H100",
            "`benchmarks/lanes.py --gpu`: `vmap` of a loop, beside CUDA written by hand.",
            programs),
    Section("lanes-amd-epyc", "Programs over lanes, four cores of a CPU",
            "`benchmarks/lanes.py`, beside C++ written by hand with vectors and threads.",
            programs),
    Section("overheads-amd-epyc", "Small calls, tracing, import",
            "`benchmarks/overheads.py`.", timed),
    Section("cpu-rows-amd-epyc", "Lanes of a loop, and sums",
            "`benchmarks/cpu_rows.py`: the fastest call, and how far it is off.", cpu_rows),
    Section("dynamic-amd-epyc", "Sizes that change, CPU", "`benchmarks/dynamic.py`.", timed),
    Section("dynamic-h100", "Sizes that change, one H100", "`benchmarks/dynamic.py --gpu`.", timed),
    Section("memory-amd-epyc", "What a gradient keeps",
            "`benchmarks/memory.py`: temporaries and the least time of a call; `kept` keeps all "
            "that the backward pass reads, `half` is `jit(memory_limit=)` at half of it.", memory),
    Section("checks-amd-epyc", "Checked programs, CPU",
            "`benchmarks/checks.py`: times of the program without checks.", timed),
    Section("checks-h100", "Checked programs, one H100", "`benchmarks/checks.py --gpu`.", timed),
    Section("scaling-intel-xeon", "On 1 to 16 threads",
            "`benchmarks/scaling.py`: how many times as fast as on one thread; **bold** is slower.",
            scaling),
    Section("scaling-held-out-intel-xeon", "On 1 to 16 threads, programs that were kept apart",
            "`benchmarks/scaling.py --folder thread_programs`: no choice of threads was made with "
            "them.", scaling),
    Section("first-calls-intel-xeon", "First calls of 24 smaller programs, sixteen cores",
            "`benchmarks/first_calls.py`: eight programs over lanes, four older ones, and twelve "
            "of common kinds. A baseline build runs first, and the full one is made in the "
            "background. One round.", first_calls),
    Section("first-programs-intel-xeon", "First calls of 20 programs of common kinds since then",
            "`benchmarks/first_calls.py --folder first_programs`, in builds that are divided by "
            "work. One round.", first_calls),
    Section("devices-h100", "Two H100, NVLink",
            "`benchmarks/devices.py`: a transformer of 12 layers, and sums of all GPUs' arrays "
            "from a jitted call. Efficiency is the time on one GPU by that on two.", devices),
    Section("devices_mpi_2", "Two processes on two cores", "`benchmarks/devices_mpi.py`.",
            processes),
    Section("devices_mpi_4", "Four processes on two cores", "`benchmarks/devices_mpi.py`.",
            processes),
    Section("sparse-amd-epyc", "Sparse arrays, one thread", "`benchmarks/sparse.py`.", micro),
    Section("sparse_programs-amd-epyc", "Programs on sparse arrays, one thread",
            "`benchmarks/sparse_programs.py --busy`: ranking of pages, smoothing of a graph, "
            "finite elements, a graph network, Newton's method, beside NumPy and SciPy.", micro),
    Section("sparse-h100", "Sparse arrays, one H100", "`benchmarks/sparse.py --gpu`.", micro),
    Section("special_functions-amd-epyc", "Special functions, 2^18 numbers",
            "`benchmarks/special_functions.py`.", special),
    Section("explanations-amd-epyc", "Time that explanations take",
            "`benchmarks/explanations.py`.", timed),
)

# Suites of programs as they were measured first, and since: one line each on the page.
SUITES = (
    ("programs-amd-epyc", "43 programs, four cores of a CPU"),
    ("programs-intel-xeon", "43 programs, sixteen cores"),
    ("programs-intel-xeon-first-calls", "31 of them, first calls again"),
    ("programs-h200-first", "20 programs, one H200, measured first"),
    ("programs-h200", "the same, one H200, since"),
    ("programs-h100-first", "20 programs, one H100, measured first"),
    ("programs-h100", "43 programs, one H100, since"),
    ("more-programs-intel-xeon-first", "23 more, sixteen cores, measured first"),
    ("more-programs-intel-xeon-first-calls", "19 of them, first calls again"),
    ("held-programs-amd-epyc", "24 held programs, one core of a CPU"),
    ("more-programs-h100-first", "23 more, one H100, measured first"),
    ("ordinary-programs-h100-first", "8 ordinary networks, one H100, measured first"),
    ("ordinary-programs-h100", "16 ordinary networks, one H100"),
    ("ordinary-programs-h100-newest-first", "6 newer ones, one H100, measured first"),
)


def read(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results


def suites() -> Iterator[str]:
    """Geometric means over the programs that both libraries ran."""
    yield from header("suite", "date", "programs", "slower", "a call, by JAX", "first call, by JAX")
    for name, title in SUITES:
        results = read(name)
        calls, firsts = (ratios(results["rows"], key) for key in ("seconds", "first"))
        slower = sum(value > 1.05 for value in calls)
        yield cells(title, results["date"][:10], str(len(results["rows"])), str(slower),
                    f"{geometric_mean(calls):.2f} ({min(calls):.2g} to {max(calls):.2g})",
                    f"{geometric_mean(firsts):.2f}")


def ratios(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [row[key][SUBJECT] / row[key]["jax"] for row in rows
            if SUBJECT in row[key] and "jax" in row[key]]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def machine(results: Mapping[str, Any]) -> str:
    """Where, when, and with which versions."""
    device = results.get("device", {})
    parts = [device.get("name", ""), device.get("processor", "")]
    if "cores" in device:
        parts.append(f"{device['cores']} cores")
    parts.append(results.get("date", "")[:10])
    versions = results.get("versions", {})
    flat = {library: number for value in versions.values() if isinstance(value, dict)
            for library, number in value.items()} or versions
    wanted = ("python", "numpy", "jax", "torch", "triton")
    parts += [f"{name_of(v) if v != 'python' else 'Python'} {flat[v]}"
              for v in wanted if v in flat]
    return ", ".join(part for part in parts if part)


def page() -> str:
    blocks = [HEAD, "## Suites of programs\n\nGeometric means over the programs of "
              "`benchmarks/programs/`, `benchmarks/more_programs/` and "
              "`benchmarks/ordinary_programs/`.\n", "\n".join(suites())]
    for section in SECTIONS:
        results = read(section.file)
        where = machine(results)
        text = " ".join(part for part in (section.text, where and f"{where}.",
                                          results.get("note")) if part)
        blocks += [f"\n## {section.title}\n\n{text}\n", "\n".join(section.rows(results))]
    return "\n".join(blocks) + "\n"


def main() -> None:
    PAGE.write_text(page())
    shown_figures = figures(read("per-sample-amd-epyc"), read("programs-amd-epyc"),
                            read("programs-h100"))
    for theme in PICTURES:
        (STATIC / f"benchmarks-{theme}.svg").write_text(picture(shown_figures, theme))
    print(f"{PAGE.relative_to(ROOT)}: {len(SECTIONS)} tables")


if __name__ == "__main__":
    main()
