"""Programs exported as C are built by CMake, run without Python, and compute the same."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ExportError
from functrans.experimental import sparse
from functrans.export import to_c
from functrans.export.c_files import runtime_file
from functrans.lowering.backend import get_backend
from functrans.lowering.c.isa import COMMON_FLAGS, GENERIC, host_isa
from functrans.lowering.c.standalone import HEADERS, INSTRUCTION_SETS
from tests.export.c_programs import PROGRAMS, array

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

def shared(folder, isa=GENERIC):
    """The program as a library that Python can open; the flags are those of its CMake file."""
    sources = [f.name for f in folder.iterdir() if f.suffix in (".c", ".S")]
    subprocess.run(["cc", *COMMON_FLAGS, *isa.flags, "-Werror=incompatible-pointer-types",
                    "-shared", "-fopenmp", "-o", "shared.so", *sources, "-lm"], cwd=folder,
                   check=True)
    return ctypes.CDLL(str(folder / "shared.so"))


def pointer(x):
    return x.ctypes.data_as(ctypes.c_void_p)


def run(function, sizes, inputs, outputs):
    """Call the C function; the outputs are filled in."""
    pointers = [pointer(np.ascontiguousarray(x)) for x in inputs]
    return function(*map(ctypes.c_int64, sizes), *pointers, *map(pointer, outputs))


def computed(tmp_path, fun, *args, isa="generic"):
    """What the C program of `fun` gives for these arguments."""
    to_c(fun, args, tmp_path, name="f", isa=isa)
    outs = [np.empty(x.shape, x.dtype) for x in ft.tree.leaves(ft.eval_shape(fun, *args))]
    inputs = [np.asarray(x) for x in ft.tree.leaves(args)]
    library = shared(tmp_path, host_isa() if isa == "host" else GENERIC)
    assert run(library.f, [], inputs, outs) == 0
    return outs


MAIN = """\
#include <stdio.h>
#include "cnn.h"
#include "mlp.h"

int main(int argc, char **argv) {
  static float images[360 * 64], scores[2][360 * 10];
  static int32_t labels[2][360];
  FILE *file = fopen(argv[argc - 1], "rb");
  if (!file || fread(images, sizeof images, 1, file) != 1) return 3;
  if (mlp(0, images, labels[0], scores[0]) != 1) return 4;
  if (mlp(360, images, labels[0], scores[0]) || cnn(360, images, labels[1], scores[1])) return 5;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 360; i++) printf("%d %.6f\\n", labels[k][i], scores[k][10 * i]);
  return 0;
}
"""
MAIN_CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(classifier C)
add_subdirectory(mlp)
add_subdirectory(cnn)
add_executable(classifier main.c)
target_link_libraries(classifier mlp cnn)
"""


def trained(network, images, labels):
    def loss(params):
        scores = ft.vmap(network.apply, (None, 0))(params, images)
        return -jnp.take_along_axis(ft.nn.log_softmax(scores), labels[:, None], 1).mean()

    @ft.jit
    def step(params):
        return ft.tree.map(lambda p, g: p - 0.4 * g, params, ft.grad(loss)(params))

    params = network.init(ft.random.key(0))
    for _ in range(60):
        params = step(params)
    return params


def test_trained_classifiers_of_digits(tmp_path):
    import digits  # noqa: PLC0415  an example, not a package

    data = digits.load()
    images = data.test_images.reshape(360, 64)
    expected = []
    for network in (digits.MLP, digits.CNN):
        params = trained(network, data.train_images, data.train_labels)

        @ft.jit
        def classify(images, network=network, params=params):
            scores = ft.vmap(network.apply, (None, 0))(params, images.reshape(-1, 8, 8))
            return {"label": jnp.argmax(scores, -1), "scores": ft.nn.softmax(scores)}

        name = network.name.lower()
        count = ft.dim("count", min=1)
        to_c(classify, [ft.ShapeDtypeStruct((count, 64), "float32")], tmp_path / name, name=name)
        expected.append(classify(images))
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(MAIN_CMAKE)
    images.tofile(tmp_path / "images")
    for command in (["cmake", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "build" / "classifier", tmp_path / "images"], check=True,
                          env={"OMP_NUM_THREADS": "2"}, capture_output=True, text=True)
    results = np.loadtxt(done.stdout.splitlines()).reshape(2, 360, 2)
    for (labels, scores), right in zip(results.transpose(0, 2, 1), expected, strict=True):
        np.testing.assert_array_equal(labels, right["label"])
        np.testing.assert_allclose(scores, np.asarray(right["scores"])[:, 0], atol=2e-5)
        assert (labels == data.test_labels).mean() > 0.85


FOR_THIS_MACHINE = [p for p in PROGRAMS if p.name in ("library", "lanes")]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_programs(tmp_path, program):
    program.check(computed(tmp_path, program.fun, *program.args), program.expected())


@pytest.mark.parametrize("program", FOR_THIS_MACHINE, ids=str)
def test_programs_for_this_machine(tmp_path, program):
    program.check(computed(tmp_path, program.fun, *program.args, isa="host"), program.expected())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_sparse_matrices(tmp_path, dtype):
    m = sparse.BCSR.fromdense(np.where(array(9, 7) > 0.3, array(9, 7), 0).astype(dtype))

    def fun(data, w, v):
        n = m.with_data(data)
        return [n @ w, v @ n, sparse.grad(lambda n: ((n @ w) ** 2).sum())(n).data]

    values = [np.asarray(m.data), array(7, 2).astype(dtype), array(9).astype(dtype)]
    outs, expected = computed(tmp_path, fun, *values), fun(*values)
    for out, right in zip(outs, expected, strict=True):
        np.testing.assert_allclose(out, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_sparse_arrays(tmp_path, dtype):
    m = sparse.BCSR.fromdense(np.where(array(9, 7) > 0.3, array(9, 7), 0).astype(dtype))
    rng = np.random.default_rng(0)
    places = rng.integers(-1, 8, (2, 20, 2)).astype(np.int32)

    def fun(data, values, places):
        n = m.with_data(data)
        lanes = ft.vmap(lambda v, p: sparse.BCOO((v, p), shape=(9, 7)).sum_duplicates(nse=12))(
            values, places)
        both = (n.to_bcoo() + n.T.to_bcoo().T).sum_duplicates(30)
        squares = ft.grad(lambda d: ((n + m.with_data(d)).data ** 2).sum())
        return [*ft.tree.leaves((n + 2 * n, both, lanes)), squares(data)]

    values = [np.asarray(m.data), rng.normal(size=(2, 20)).astype(dtype), places]
    outs, expected = computed(tmp_path, fun, *values), fun(*map(jnp.asarray, values))
    jitted = ft.jit(fun)(*values)
    for out, right in zip(outs, jitted, strict=True):
        np.testing.assert_allclose(out, right, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outs[-1], expected[-1], rtol=1e-5)


def test_scatters_have_the_same_bits_with_lists_of_rows(tmp_path):
    """On many threads rows are listed by the slices of the result that they go to."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100_000, 3)).astype(np.float32)
    i = rng.integers(-5, 105, 100_000).astype(np.int32)

    def total(x, i):
        return jnp.zeros((100, 3)).at[i].add(jnp.tanh(x), mode="drop")

    to_c(total, (x, i), tmp_path, name="f")
    library, openmp = shared(tmp_path), ctypes.CDLL("libgomp.so.1")
    threads = openmp.omp_get_max_threads()
    results = []
    try:
        for count in (1, 3, 16):
            openmp.omp_set_num_threads(count)
            results.append(np.empty((100, 3), np.float32))
            assert run(library.f, [], [x, i], results[-1:]) == 0
    finally:
        openmp.omp_set_num_threads(threads)
    assert len({r.tobytes() for r in results}) == 1
    np.testing.assert_allclose(results[0], ft.jit(total)(x, i), 1e-3, 1e-3)


def test_products_with_weights_of_8_bits(tmp_path):
    every = np.r_[0:127, 128:255].astype(np.uint8)  # bytes that are numbers in all formats
    finite = every[(every & 0x7f) < 0x7c]
    kinds = [np.resize(finite, (150, 130)).view(jnp.dtype(kind))
             for kind in ("int8", "float8_e4m3fn", "float8_e5m2")]
    fun = lambda x: [x @ jnp.asarray(w).astype("float32") for w in kinds]
    x = array(3, 150)
    for out, w in zip(computed(tmp_path, fun, x), kinds, strict=True):
        right = x @ w.astype(np.float32)
        np.testing.assert_allclose(out, right, rtol=1e-4, atol=1e-5 * abs(right).max())


def test_linear_algebra_of_complex_numbers_names_the_line(tmp_path):
    with pytest.raises(ExportError, match="cholesky of complex numbers cannot be exported to C"):
        to_c(jnp.linalg.cholesky, [array(3, 3).astype(np.complex64)], tmp_path)


def test_large_constants_are_a_file(tmp_path):
    weights = array(600, 600)
    to_c(lambda x: x @ jnp.asarray(weights), [array(2, 600)], tmp_path, name="f")
    assert (tmp_path / "f_constants.bin").stat().st_size >= weights.nbytes


def test_sizes_and_their_bounds(tmp_path):
    rows, columns = ft.dim("rows", min=2, max=50, multiple_of=2), ft.dim("columns")
    fun = lambda x, w: (x @ w, x.mean(0))
    header = to_c(fun, [ft.ShapeDtypeStruct((rows, columns), "float32"),
                        ft.ShapeDtypeStruct((columns, 3), "float32")], tmp_path, name="f")
    assert "rows: a size, at least 2, at most 50, a multiple of 2" in header.read_text()
    f = shared(tmp_path).f
    for n, k in ((2, 0), (4, 1), (50, 700)):
        x, w = array(n, k), array(k, 3)
        outs = [np.full((n, 3), 9, np.float32), np.empty(k, np.float32)]
        assert run(f, [n, k], [x, w], outs) == 0
        np.testing.assert_allclose(outs[0], x @ w, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(outs[1], x.mean(0), rtol=1e-5, atol=1e-6)
    for n, k in ((0, 3), (3, 3), (52, 3), (2, -1)):
        assert run(f, [n, k], [x, w], outs) == 1


def test_constraints_on_sizes(tmp_path):
    fun = ft.jit(lambda x: x * 2 if x.shape[0] // 2 > 2 else x, dynamic_shapes={"x": {0: "B"}})
    header = to_c(fun, [array(8)], tmp_path, name="f")
    assert "floor(B/2) > 2" in header.read_text()
    f, x, out = shared(tmp_path).f, array(20), np.empty(20, np.float32)
    assert run(f, [6], [x], [out]) == 0 and run(f, [5], [x], [out]) == 1
    np.testing.assert_array_equal(out[:6], 2 * x[:6])


def test_parameters_are_named_as_in_python(tmp_path):
    fun = lambda x, params: {"double": 2 * x["a b"], "int": params[0] + 1}
    fun.__name__ = "for"
    header = to_c(fun, [{"a b": array(2)}, [array(2)]], tmp_path)
    assert header.name == "_for.h"
    assert ("const float *x_a_b,\n    const float *params_0,\n    float *out_double,\n"
            "    float *out_int);") in header.read_text()


RNN_MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rnn.h"

static float *filled(int n, float scale) {
  float *x = malloc(n * sizeof *x);
  for (int i = 0; i < n; i++) x[i] = scale * ((i * 37 % 11) - 5);
  return x;
}

int main(void) {
  float *w = filled(12, 0.1f), *last = filled(3, 0);
  for (int64_t T = -1; T < 70; T += T < 3 ? 1 : 22) {
    float *xs = filled(T > 0 ? T * 4 : 1, 0.3f), *hs = filled(T > 0 ? T * 3 : 1, 0);
    int32_t *order = malloc((T > 0 ? T : 1) * sizeof *order), rounds = -1;
    const int error = rnn(T, w, xs, hs, last, order, &rounds);
    printf("%d %d %.5f %.5f", error, rounds, last[0], last[2]);
    for (int64_t i = 0; !error && i < T; i++) printf(" %d %.5f", order[i], hs[3 * i + 1]);
    printf("\\n");
    free(xs); free(hs); free(order);
  }
  free(w); free(last);
  return 0;
}
"""


def rnn(w, xs):
    """A scan over a symbolic size, sorting, a while loop."""
    last, hs = ft.lax.scan(lambda h, x: (jnp.tanh(w @ x + h[::-1]),) * 2, jnp.zeros(3), xs)
    rounds = ft.lax.while_loop(lambda s: (s[0] ** 2).sum() < 50, lambda s: (1.5 * s[0] + 0.01,
                                                                            s[1] + 1), (last, 0))
    return hs, last, jnp.argsort(hs[:, 1]), rounds[1]


@pytest.mark.parametrize("flags", [[], ["-g", "-fsanitize=address,undefined",
                                        "-fno-sanitize-recover=all"]])
def test_a_program_by_the_commands_of_its_header(tmp_path, flags):
    T = ft.dim("T", min=1, max=60)
    header = to_c(rnn, [array(3, 4), ft.ShapeDtypeStruct((T, 4), "float32")], tmp_path)
    commands = [line[2:].split() for line in header.read_text().splitlines() if "   cc " in line]
    (tmp_path / "yours.c").write_text(RNN_MAIN)
    for command in commands:
        subprocess.run([*command, *flags, "-o", "yours"] if "yours.c" in command
                       else [*command, *flags], cwd=tmp_path, check=True)
    # memory of OpenMP's threads is theirs to the end
    done = subprocess.run([tmp_path / "yours"], check=True, capture_output=True, text=True,
                          env={"OMP_NUM_THREADS": "2", "ASAN_OPTIONS": "detect_leaks=0"})
    filled = lambda n, scale: np.float32(scale) * ((np.arange(n) * 37 % 11) - 5).astype("f")
    w = filled(12, 0.1).reshape(3, 4)
    lines = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    for T, (error, *got) in zip((-1, 0, 1, 2, 3, 25, 47, 69), lines, strict=True):
        assert error == (1 if T < 1 or T > 60 else 0)
        if not error:
            hs, last, order, rounds = rnn(w, filled(4 * T, 0.3).reshape(T, 4))
            paired = np.stack([order, hs[:, 1]], 1).ravel()
            np.testing.assert_allclose(got, [rounds, last[0], last[2], *paired], atol=2e-5)


def test_names_that_c_has_already(tmp_path):
    size = ft.dim("double")
    fun = lambda int64_t, arena: int64_t.astype("bfloat16") * arena
    specs = [ft.ShapeDtypeStruct((size,), "float32"), ft.ShapeDtypeStruct((), "float32")]
    for name in ("bf16", "exp", "i64", "memcpy", "k0", "class", "ft_program"):
        fun.__name__ = name
        header = to_c(fun, specs, tmp_path / name)
        assert header.stem != name
        (tmp_path / name / "yours.cc").write_text(f'#include "{header.name}"\n')
        subprocess.run(["c++", "-Wall", "-Werror", "-fsyntax-only", "yours.cc"],
                       cwd=tmp_path / name, check=True)
        x, out = array(5), np.empty(5, np.float32)
        f = getattr(shared(tmp_path / name), header.stem)
        assert run(f, [5], [x, np.float32(2)], [out]) == 0
        np.testing.assert_allclose(out, 2 * x, rtol=0.01)
    assert "_double: a size, at least 0, double in the types below" in header.read_text()


def test_arguments_that_are_no_list(tmp_path):
    with pytest.raises(ArgumentError, match="the arguments are a ShapeDtypeStruct"):
        to_c(jnp.sin, ft.ShapeDtypeStruct((2,), "float32"), tmp_path)


def test_what_c_does_not_compute_names_the_line(tmp_path):
    def eigenvalues(x):
        return jnp.linalg.eigh(x)

    def calls_back(x):
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3, 3), "float32"), x) + 1

    for fun, what in ((eigenvalues, "eigh"), (calls_back, "pure_callback")):
        with pytest.raises(ExportError, match=f"{what} cannot be exported to C") as error:
            to_c(fun, [array(3, 3)], tmp_path)
        assert f"{fun.__name__}\n" in str(error.value)
    with pytest.raises(ArgumentError, match="instruction set"):
        to_c(jnp.sin, [array(3)], tmp_path, isa="vax")


def test_instruction_sets_are_those_that_programs_are_written_for():
    backend = get_backend("c")
    assert backend.instruction_sets == (*INSTRUCTION_SETS,)
    jaxpr = ft.jit(lambda x: x @ x).lower(array(8, 8)).jaxpr
    programs = [backend.standalone(jaxpr, isa) for isa in backend.instruction_sets]
    assert {tuple(p.isa_flags) for p in programs} >= {(), INSTRUCTION_SETS["avx2"]().flags}
    assert all("-fPIC" not in p.flags and p.product_types == {0: "f32"} for p in programs)


def test_other_backends_write_no_c():
    backend = get_backend("reference")
    assert backend.instruction_sets == ()
    assert backend.standalone(ft.jit(jnp.sin).lower(array(3)).jaxpr, "generic") is None


HALVES = """\
float from_f16(unsigned short h) { return ft_from_f16(h); }
unsigned short to_f16(float x) { return ft_to_f16(x); }
unsigned short to_bf16(float x) { return ft_to_bf16(x); }
"""


@pytest.fixture(scope="module")
def conversions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("halves")
    text = "".join(runtime_file(file, HEADERS) for file in ("core.c", "numbers.c"))
    (folder / "halves.c").write_text(text + HALVES)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", "halves.so", "halves.c"], cwd=folder,
                   check=True)
    library = ctypes.CDLL(str(folder / "halves.so"))
    library.from_f16.restype = ctypes.c_float
    library.to_f16.argtypes = library.to_bf16.argtypes = [ctypes.c_float]
    library.to_f16.restype = library.to_bf16.restype = ctypes.c_ushort
    return library


@given(st.floats(width=32))
@settings(max_examples=400, deadline=None)
def test_conversions_of_halves(conversions, x):
    import ml_dtypes  # noqa: PLC0415

    with np.errstate(all="ignore"):
        half, brain = np.float16(np.float32(x)), ml_dtypes.bfloat16(np.float32(x))
    for dtype, convert, right in ((np.float16, conversions.to_f16, half),
                                  (ml_dtypes.bfloat16, conversions.to_bf16, brain)):
        got = np.uint16(convert(x)).view(dtype)
        assert got == right or (np.isnan(got) and np.isnan(right))
    back = conversions.from_f16(int(half.view(np.uint16)))
    assert back == float(half) or np.isnan(half)


def test_loaded_programs_can_be_written_as_c(tmp_path):
    def halved(x):
        return x / 2

    x = ft.ShapeDtypeStruct((ft.dim("B"), 3), "float32")
    loaded = ft.export.deserialize(ft.export.export(halved)(x).serialize())
    assert "int halved(" in to_c(loaded, [x], tmp_path).read_text()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "why"), [
    ("printf", "C library"), ("exp", "C library"), ("strlcpy_is_not_there\0", "no identifier"),
    ("malloc", "C library"), ("lgamma_r", "C library"), ("errno", "C library"),
    ("for", "word of C"), ("class", "word of C"), ("main", "word of C"), ("int32_t", "word of C"),
    ("a" * 300, "300 characters"), ("my-model", "no identifier"), ("3d", "no identifier"),
    ("größe", "no identifier"), ("", "no identifier"), (3, "no identifier"),
    ("a b", "no identifier"), ("f(void); int g", "no identifier"), ("../f", "no identifier"),
    ("ft_program", "generated program"), ("ft_run", "generated program"),
    ("__f", "belong to the compiler"), ("_F", "belong to the compiler"),
    ("arena", "generated program")])
def test_names_that_a_function_cannot_have(tmp_path, name, why):
    with pytest.raises(ArgumentError, match=why) as error:
        to_c(lambda x: x + 1, [array(3)], tmp_path / "c", name=name)
    assert not (tmp_path / "c").exists()
    suggested = error.value.fix.split('"')[1]
    assert to_c(lambda x: x + 1, [array(3)], tmp_path / "c", name=suggested).exists()


@pytest.mark.parametrize(("name", "found"), [
    ("ft_f", "my_ft_f"), ("FT_F", "my_FT_F"), ("a__b", "a_b"), ("__call__", "call"),
    ("_For", "For"), ("_for", "_for"), ("class", "_class"), ("<lambda>", "lambda"),
    ("exp", "exp_1"), ("größe", "gr_e")])
def test_every_name_of_a_python_function_becomes_one(tmp_path, name, found):
    fun = lambda x: x + 1
    fun.__name__ = name
    assert to_c(fun, [array(3)], tmp_path).stem == found


def test_names_of_python_functions_that_c_cannot_have(tmp_path):
    def printf(x):
        return x + 1
    assert to_c(printf, [array(3)], tmp_path).name == "printf_1.h"
    printf.__name__ = "p" * 300
    with pytest.raises(ArgumentError, match="name of 300 characters"):
        to_c(printf, [array(3)], tmp_path)


@pytest.mark.parametrize("file", ["CMakeLists.txt", "f.c", "f.h", "f_runtime.c", "f_constants.c"])
def test_files_of_others_are_not_replaced(tmp_path, file):
    (tmp_path / file).write_text("project(mine)\n")
    with pytest.raises(ExportError, match=f"{file} in .* would be lost") as error:
        to_c(lambda x: x + 1, [array(3)], tmp_path, name="f")
    assert "overwrite=True" in error.value.fix
    assert [p.name for p in tmp_path.iterdir()] == [file]
    assert (tmp_path / file).read_text() == "project(mine)\n"
    to_c(lambda x: x + 1, [array(3)], tmp_path, name="f", overwrite=True)
    assert "functrans" in (tmp_path / file).read_text()
    to_c(lambda x: x + 2, [array(3)], tmp_path, name="f")  # its own it replaces


def test_own_files_of_large_constants_are_replaced(tmp_path):
    large = array(600, 600)
    for scale in (1, 2):
        to_c(lambda x, scale=scale: large * scale @ x, [array(600)], tmp_path, name="f")
    assert (tmp_path / "f_constants.bin").exists()
    (tmp_path / "f_constants.S").unlink()
    with pytest.raises(ExportError, match=r"f_constants\.bin in"):
        to_c(lambda x: large @ x, [array(600)], tmp_path, name="f")
