"""Imports go one way, between layers and between modules; importing the package is cheap."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_LINES = 650

# Each layer may import those before it (docs/internals/architecture.md, "The rooms"). A module of
# functrans/ that is no package is a layer of its own.
LAYERS = [
    "_runtime",
    "version",
    "core",
    "distributed",
    "primitives",
    "lowering",
    "transforms",
    "errors", "stages", "tree", "tree_util", "device", "settings", "config", "array", "dlpack",
    "dtypes", "typing",
    "callbacks", "debug", "checkpoint_policies", "test_util",
    "lax",
    "sharding",
    "extend", "interpreters",
    "numpy",
    "at", "concretize", "foreign", "operators", "numpy_alternatives", "protocol", "methods",
    "third_parties", "program_views", "placement", "environment", "jax_switches",
    "flatten_util", "ops", "profiler",
    "mutable", "ref",
    "random",
    "nn", "optim",
    "image",
    "sparse",
    "scipy",
    "per_sample",
    "custom_batching", "custom_derivatives", "example_libraries", "experimental",
    "mixed_precision", "quantize",
    "weights",
    "export",
    "inspect",
    "ad", "ad_checkpoint",
    "",  # functrans/__init__.py itself
    "as_jax",
]
# Names of types, which say nothing about what runs: annotations in every layer take them, under
# TYPE_CHECKING alone.
TYPES = "functrans.typing"
# The rooms of the lowering in order: each may import those before it. Modules beside the folders
# are rooms of their own; a folder stands for those in it that are not listed.
ROOMS = [
    "", "analysis", "defect_report", "defects", "garbage", "progress", "portable", "report",
    "timing", "keys", "host_driven", "loops", "passes", "rules", "passes.attention", "schedule",
    "memory", "store", "equation_places", "report_parts", "executable", "float0", "reference",
    "c.isa", "c.vectors", "c",
    *[f"triton.{room}" for room in ("templates", "steps", "kernels", "products", "libraries",
                                    "sort_scan", "loops", "emulator", "machine")],
    "triton", "spmd", "backend",
]
# what a layer knows of an earlier one, where that is less than everything
NARROW = {
    ("transforms", "lowering"): {(f"functrans.transforms.{m}", "functrans.lowering.backend")
                                 for m in ("jit.api", "jit.executables", "jit.fitting",
                                           "jit.stages", "checks.program")},
    # what explains, draws, times and exports asks the interface of backends
    ("inspect", "lowering"): {
        ("functrans.inspect.explain.explanation", "functrans.lowering.backend"),
        *[(f"functrans.inspect.profile.{m}", "functrans.lowering.backend")
          for m in ("devices", "run")],
        ("functrans.inspect.profile.devices", "functrans.lowering.timing"),
        ("functrans.inspect.profile.run", "functrans.lowering.progress"),
        ("functrans.inspect.profile.run", "functrans.lowering.report_parts"),
        *[(f"functrans.inspect.{m}", "functrans.lowering.report")
          for m in ("costs", "draw.graph", "draw.lines", "explain.code", "explain.explanation",
                    "explain.naming", "explain.page", "explain.stepping", "explain.text",
                    "profile.compare", "profile.devices", "profile.page", "profile.profiles",
                    "profile.run", "regions", "timeline", "utilisation")]},
    ("export", "lowering"): {
        *[(f"functrans.export.{m}", "functrans.lowering.backend")
          for m in ("c_program", "kernels", "ready")],
        *[(f"functrans.export.{m}", "functrans.lowering.portable")
          for m in ("c_files", "c_program", "kernels")]},
}

# imported where they are needed, because they are slow (sympy, importlib.metadata) or may be
# absent (triton, scipy)
LAZY = {"sympy", "triton", "importlib.metadata", "scipy.optimize", "scipy.sparse.linalg", "mpi4py",
        "mpi4py.MPI", "matplotlib.pyplot"}
# what `import functrans`, or a program from the disk cache, does without: 20 ms of the import, and
# 30 of the first result
DEFERRED = {
    ("functrans.array", "html"),
    ("functrans.debug", "functrans.core.array_picture"),
    ("functrans.program_views", "functrans.core.jaxpr_html"),
    ("functrans.settings", "functrans.transforms.checks.api"),
    ("functrans.transforms.jit.executables", "functrans.transforms.checks.program"),
    ("functrans.transforms.jit.shown", "logging"),
    ("functrans.tree", "functrans.core.tree_summary"),
    ("functrans.inspect.names", "functrans.export.exported"),
    ("functrans.lowering.backend", "functrans.lowering.c.backend"),
    ("functrans.lowering.backend", "functrans.lowering.float0"),
    ("functrans.lowering.backend", "functrans.lowering.spmd.executable"),
    ("functrans.lowering.backend", "functrans.lowering.spmd.partition"),
    ("functrans.lowering.backend", "functrans.lowering.reference"),
    ("functrans.lowering.backend", "functrans.lowering.triton.backend"),
    ("functrans.lowering.backend", "functrans.lowering.schedule.target"),
    ("functrans.lowering.c.backend", "functrans.lowering.c.inspected"),
    ("functrans.lowering.c.backend", "functrans.lowering.c.lower"),
    ("functrans.lowering.c.backend", "functrans.lowering.c.portable"),
    ("functrans.lowering.c.backend", "functrans.lowering.c.baseline"),
    ("functrans.lowering.c.backend", "functrans.lowering.c.standalone"),
    ("functrans.lowering.c.executable", "functrans.lowering.c.lower"),
    ("functrans.lowering.c.executable", "functrans.lowering.c.report"),
    ("functrans.lowering.c.executable", "functrans.lowering.c.timed"),
    ("functrans.lowering.c.executable", "functrans.lowering.passes.pass_log"),
    ("functrans.lowering.defects", "functrans.lowering.defect_report"),
    ("functrans.lowering.executable", "functrans.lowering.portable"),
    ("functrans.lowering.executable", "functrans.lowering.report_parts"),
    ("functrans.lowering.executable", "functrans.lowering.timing"),
    ("functrans.lowering.progress", "html"),
    ("functrans.lowering.reference", "functrans.lowering.passes.pipeline"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.emulator.interpret"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.lower"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.capacity_retry"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.portable"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.report"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.sized"),
    ("functrans.lowering.triton.backend", "functrans.lowering.triton.step_times"),
    ("functrans.lowering.triton.machine.kernel_cache", "functrans.lowering.triton.machine.pool"),
}
# tests that hand arrays to SciPy, as to other third parties, or compare with it (as those of
# tests/scipy do); and the sparse solver that is SciPy's
SCIPY_USERS = {
    "array_api_programs.py",
    "direct.py",
    "integer.py",
    "scipy_programs.py",
    "test_arguments.py",
    "test_at_once.py",
    "test_beside_scipy.py",
    "test_composed.py",
    "test_linalg_beside_scipy.py",
    "test_numpy_calls.py",
    "test_sums.py", "test_long_arrays.py",
    "test_third_parties.py",
}
# where `jax` is functrans, which answers for it
ANSWERED = ("tests/as_jax", "tests/ecosystem", "examples/jax_libraries")
PEERS = {"jax", "jaxlib", "torch", "scipy", "tensorflow"}
PEER_IMPORT = re.compile(rf"^\s*(import|from)\b.*\b({'|'.join(PEERS)})\b", re.MULTILINE)
ALLOWED_PACKAGES = {"numpy", "ml_dtypes", "optree", "sympy", "triton", "safetensors",
                    "scipy", "mpi4py", "matplotlib", "functrans"}


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    line: int
    in_function: bool
    types_only: bool

    def __str__(self):
        return f"{self.importer}:{self.line} imports {self.imported}"


def modules():
    found = {}
    for folder, package in (("functrans", "functrans"), ("primitives", "functrans.primitives"),
                            ("lowering", "functrans.lowering")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *(p for p in parts if p != "__init__")))] = path
    return found


MODULES = modules()
KNOWN = {*MODULES, "functrans._runtime"}


def imports_of(module, path):
    def visit(node, in_function, types_only):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: a relative import"
            inner = [f"{node.module}.{a.name}" for a in node.names]
            names = [n if n in KNOWN else node.module for n in inner]
        else:
            names = []
        for name in names:
            yield Import(module, name, node.lineno, in_function, types_only)
        in_function |= isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        types_only |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, in_function, types_only)

    return list(visit(ast.parse(path.read_text()), False, False))


@cache
def imports():
    return [i for module, path in MODULES.items() for i in imports_of(module, path)]


def layer_of(module):
    return module.partition("functrans.")[2].partition(".")[0]


def is_back_edge(importer, imported):
    above, below = layer_of(importer), layer_of(imported)
    if above == below:
        return False
    if (above, below) in NARROW:
        return (importer, imported) not in NARROW[above, below]
    return LAYERS.index(below) > LAYERS.index(above)


def test_every_module_has_a_layer():
    assert {layer_of(m) for m in MODULES} <= set(LAYERS)


def test_no_back_edge_between_layers():
    wrong = [str(i) for i in imports()
             if i.imported in KNOWN and is_back_edge(i.importer, i.imported)
             and not (i.types_only and i.imported == TYPES)]
    assert not wrong, "\n".join(wrong)


def room_of(module):
    name = module.removeprefix("functrans.lowering").removeprefix(".")
    folders = [name, *[name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]]
    return next(f for f in folders if f in ROOMS)


def enters_a_later_room(importer, imported):
    """Whether a module of the lowering imports from a room after its own, or of another backend."""
    here, there = room_of(importer), room_of(imported)
    backends = {here.partition(".")[0], there.partition(".")[0]}
    return ROOMS.index(there) > ROOMS.index(here) or backends == {"c", "triton"}


def test_rooms_of_the_lowering_are_in_order():
    wrong = [str(i) for i in imports() if not i.types_only
             and i.importer.startswith("functrans.lowering.")
             and i.imported.startswith("functrans.lowering.")
             and enters_a_later_room(i.importer, i.imported)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("importer, imported", [
    ("functrans.lowering.rules.graph", "functrans.lowering.schedule.group"),
    ("functrans.lowering.triton.program", "functrans.lowering.c.program"),
    ("functrans.lowering.c.program", "functrans.lowering.triton.program"),
    ("functrans.lowering.triton.kernels.writer", "functrans.lowering.triton.products.calls"),
    ("functrans.lowering.schedule.group", "functrans.lowering.backend"),
])
def test_later_rooms_are_recognised(importer, imported):
    assert enters_a_later_room(importer, imported)
    assert not enters_a_later_room(imported, imported)


@pytest.mark.parametrize("importer, imported", [
    ("functrans.core.trace", "functrans.primitives.base"),
    ("functrans.core.trace", "functrans"),
    ("functrans.primitives.dot", "functrans.transforms.vmap"),
    ("functrans.primitives.dot", "functrans.lowering.backend"),
    ("functrans.transforms.jit.api", "functrans.lowering.reference"),
    ("functrans.inspect.explain.explanation", "functrans.lowering.c.lower"),
    ("functrans.inspect.profile.run", "functrans.lowering.triton.backend"),
    ("functrans.export.ready", "functrans.lowering.c.portable"),
    ("functrans.export.c_program", "functrans.lowering.c.standalone"),
    ("functrans.transforms.vmap", "functrans.lowering.backend"),
    ("functrans.transforms.vmap", "functrans.lax"),
    ("functrans.lax.loops", "functrans.numpy.creation"),
    ("functrans.numpy.linalg.norms", "functrans.nn.functions"),
    ("functrans.random.keys", "functrans.scipy.stats.norm"),
])
def test_back_edges_are_recognised(importer, imported):
    assert is_back_edge(importer, imported)
    assert not is_back_edge(imported, imported)


def test_no_import_cycle():
    graph = {m: {i.imported for i in imports()
                 if i.importer == m and i.imported in MODULES and not i.types_only}
             for m in MODULES}
    assert find_cycle(graph) is None
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def find_cycle(graph):
    """The modules along a cycle, the first one twice; None when there is none."""
    done = set()

    def search(module, path):
        if module in path:
            return [*path[path.index(module):], module]
        if module not in done:
            for other in sorted(graph[module]):
                if cycle := search(other, [*path, module]):
                    return cycle
            done.add(module)
        return None

    return next((c for m in sorted(graph) if (c := search(m, []))), None)


def test_imports_stand_at_the_top():
    hidden = [str(i) for i in imports() if i.in_function and i.imported not in LAZY
              and (i.importer, i.imported) not in DEFERRED]
    assert not hidden, "\n".join(hidden)
    deferred = {i.imported for i in imports() if (i.importer, i.imported) in DEFERRED
                and not i.types_only}
    assert deferred == {imported for _, imported in DEFERRED}
    eager = [str(i) for i in imports()
             if i.imported in LAZY and not (i.in_function or i.types_only)
             and not i.importer.startswith(("functrans.lowering.triton.", "functrans.as_jax."))]
    assert not eager, "\n".join(eager)
    # namespaces whose parts are imported when they are first used; and one that gives the user's
    # functions an import of their own; and the table from JAX's names; and names of jax.lax that
    # are composed above it
    by_name = [m for m, path in MODULES.items()
               if m not in ("functrans", "functrans.scipy", "functrans.mutable.rebinding",
                            "functrans.lax.deferred",
                            "functrans.scipy.spatial.plots")  # matplotlib, where it is
               and not m.startswith("functrans.as_jax.")
               and any(word in path.read_text() for word in ("import_module", "__import__"))]
    assert not by_name


def test_import_loads_no_library_that_few_programs_need():
    code = ("import sys, numpy, ml_dtypes, optree; before = set(sys.modules); import functrans\n"
            "print(*sorted(set(sys.modules) - before))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"base64", "hashlib", "html", "logging", "numpy.random", "scipy", "secrets",
                         "sympy", "triton"}
    own = {m for m in loaded if m.startswith("functrans.")}
    assert not {m for m in own if m.startswith(("functrans.lowering.c", "functrans.inspect"))}
    assert len(own) < 260  # 0.3 ms each


def test_dependencies():
    outside = [str(i) for i in imports()
               if (top := i.imported.partition(".")[0]) not in sys.stdlib_module_names
               and top not in ALLOWED_PACKAGES]
    assert not outside, "\n".join(outside)


def test_peers_are_imported_by_benchmarks_only():
    for path in sources():
        if path.is_relative_to(ROOT / "benchmarks") or not PEER_IMPORT.search(path.read_text()):
            continue
        if any(path.is_relative_to(ROOT / folder) for folder in ANSWERED):
            continue
        tops = {i.imported.partition(".")[0] for i in imports_of(path.name, path)}
        compares = path.is_relative_to(ROOT / "tests" / "scipy")
        allowed = {"scipy"} if compares or path.name in SCIPY_USERS else set()
        assert not tops & PEERS - allowed, path


def test_modules_are_short():
    long = {str(path.relative_to(ROOT)): n for path in sources()
            if (n := len(path.read_text().splitlines())) > MAX_LINES}
    assert not long


def sources():
    return [path for folder in ("functrans", "primitives", "lowering", "tests", "examples",
                                "benchmarks", "notebooks")
            for path in sorted((ROOT / folder).rglob("*.py"))]


def run(code, *options):
    # bytecode is written in this process's way, so that a second run does not compile again
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, *options, "-c", code], check=True, text=True,
                          capture_output=True, env=environment).stdout


def test_importing_is_lean():
    loaded = set(run("import sys, functrans; print(*sys.modules)").split())
    assert "functrans.numpy" in loaded
    unwanted = {"sympy", "triton", "scipy", "importlib.metadata", "email", "jax", "torch",
                "functrans.random", "functrans.nn", "functrans.scipy", "functrans.test_util",
                "functrans.mutable"}
    assert not loaded & unwanted


def test_symbolic_sizes_load_sympy_when_they_compute():
    code = ("import sys, functrans as ft; b = ft.Dim('b'); assert 'sympy' not in sys.modules; "
            "b + 1; print('sympy' in sys.modules)")
    assert run(code).strip() == "True"


def test_files_of_tests_have_names_of_their_own():
    """pytest imports a file of a folder that is no package by its name alone."""
    def module_of(path):
        parts, folder = [path.stem], path.parent
        while (folder / "__init__.py").exists():
            parts, folder = [folder.name, *parts], folder.parent
        return ".".join(parts)

    names = Counter(map(module_of, Path(__file__).parent.rglob("test_*.py")))
    assert [name for name, count in names.items() if count > 1] == []
