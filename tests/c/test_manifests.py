"""Programs on disk: a process runs what another one compiled, without lowering it again."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from functrans.lowering.store.cache import Cache, digest, find_manifest, store_manifest

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
KEY, OTHER = "a" * 64, "b" * 64
MANIFEST = {"outputs": [["float32", [8, None]]], "arena": 64, "libs": []}
SCHEMA = {"outputs": [[(str, [(int, None)])]], "arena": int, "libs": [str]}


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


@pytest.fixture
def shared(cache):
    return cache.add(KEY, lambda path: path.write_bytes(b"program"))


def reopened(cache):
    """The same folder as another process sees it."""
    return Cache(cache.folder, cache.limit_bytes)


def test_a_manifest_leads_to_its_program(cache, shared):
    store_manifest(cache, OTHER, MANIFEST, shared)
    assert find_manifest(reopened(cache), OTHER, SCHEMA) == (MANIFEST, shared)
    assert find_manifest(cache, "c" * 64, SCHEMA) is None
    shared.unlink()
    assert find_manifest(cache, OTHER, SCHEMA) is None


@pytest.mark.parametrize("change", [
    {"arena": 64.0}, {"arena": True}, {"arena": None}, {"libs": "x"}, {"libs": [1]}, {"extra": 1},
    {"outputs": [["float32", [8, "n"]]]}, {"outputs": {}}, {"outputs": [("float32", [8])]},
])
def test_an_unexpected_manifest_is_a_miss(cache, shared, change):
    store_manifest(cache, OTHER, {**MANIFEST, **change}, shared)
    assert find_manifest(cache, OTHER, SCHEMA) is None


@pytest.mark.parametrize("text", [
    b"", b"{", b"None", b"[]", b"{'format':'0'}", b"[" * 100_000, b"\xff\x00", b"print(1)",
    b"{[]: 1}", b"{'format':'0','object':'" + KEY.encode() + b"','program':{}}",
    b"{'format':'2','object':'../../evil','program':{}}",
])
def test_sealed_nonsense_is_a_miss(cache, shared, text):
    cache.write(f"{OTHER}.manifest", text)
    assert find_manifest(cache, OTHER, {}) is None


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1], lambda data: b"", lambda data: data.replace(b"64", b"65"),
    lambda data: data + b" ",
])
def test_a_damaged_manifest_is_a_miss(cache, shared, damage):
    store_manifest(cache, OTHER, MANIFEST, shared)
    file = cache.folder / f"{OTHER}.manifest"
    file.write_bytes(damage(file.read_bytes()))
    assert find_manifest(reopened(cache), OTHER, SCHEMA) is None


# --- whole programs, each process a fresh one

MODEL = """
    import sys
    import numpy as np
    import functrans as ft
    import functrans.numpy as jnp

    table = np.arange(12, dtype=np.float32).reshape(3, 4)

    @ft.custom_jvp
    def looked_up(x):
        return x @ jnp.array(table)

    looked_up.defjvp(lambda primals, tangents: (looked_up(*primals), looked_up(*tangents)))

    def loss(w, x, i):
        h = jnp.tanh(looked_up(x @ w))
        h = jnp.where(h > 0.5, h, 0.25 * h)
        return (ft.lax.fori_loop(0, 3, lambda k, h: h * 1.5 + k, h)[i] ** 2).sum()

    w, x = np.eye(5, 3, dtype=np.float32), np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
    value, gradient = ft.jit(ft.value_and_grad(loss))(w, x, np.int32(2))
    print(float(value), np.asarray(gradient).ravel().tolist())
    print("functrans.lowering.c.lower" in sys.modules, file=sys.stderr)
"""


def run(code, folder, *, compiler=True):
    variables = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    if not compiler:
        variables["PATH"] = "/nonexistent"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.strip()


def manifests_in(folder):
    return sorted((folder / "functrans").glob("*.manifest"))


@needs_compiler
def test_a_second_process_finds_the_program_without_a_compiler(tmp_path):
    expected, lowered = run(MODEL, tmp_path)
    assert lowered == "True"
    assert len(manifests_in(tmp_path)) == 1
    assert run(MODEL, tmp_path, compiler=False) == (expected, "False")


@needs_compiler
@pytest.mark.parametrize("name, damage", [
    ("*.manifest", lambda data: data[: len(data) // 2]),
    ("*.so", lambda data: data[:-1]),
])
def test_a_damaged_entry_is_made_again(tmp_path, name, damage):
    expected, _ = run(MODEL, tmp_path)
    for file in (tmp_path / "functrans").glob(name):
        file.write_bytes(damage(file.read_bytes()))
    assert run(MODEL, tmp_path) == (expected, "True")
    assert run(MODEL, tmp_path, compiler=False) == (expected, "False")


@needs_compiler
def test_a_manifest_of_another_program_is_a_miss(tmp_path):
    """Whole and ours, but it does not fit the jaxpr: as many results, inputs and constants."""
    expected, _ = run(MODEL, tmp_path)
    (file,) = manifests_in(tmp_path)
    cache = Cache(tmp_path / "functrans")
    text = cache.read(file.name).replace(b"'aliases': [-1, -1]", b"'aliases': [-1]")
    cache.write(file.name, text)
    assert run(MODEL, tmp_path) == (expected, "True")


@needs_compiler
def test_analyses_of_a_program_from_the_disk_are_made_when_asked_for(tmp_path):
    code = """
        import sys
        import numpy as np
        import functrans as ft
        compiled = ft.jit(lambda x: ft.numpy.sort(x * 2)).lower(np.ones(64, "f")).compile()
        print("functrans.lowering.c.lower" in sys.modules, file=sys.stderr)
        print(compiled.memory_analysis(), compiled.cost_analysis(), compiled.as_text())
    """
    first, lowered = run(code, tmp_path)
    assert lowered == "True"
    assert "ft_program" in first
    assert run(code, tmp_path) == (first, "False")


@needs_compiler
def test_calls_of_python_are_lowered_in_every_process(tmp_path):
    code = """
        import sys
        import numpy as np
        import functrans as ft
        def doubled(x):
            shape = ft.ShapeDtypeStruct(x.shape, x.dtype)
            return ft.pure_callback(lambda x: x * 2, shape, x)
        print(np.asarray(ft.jit(doubled)(np.ones(3, "f"))).tolist())
    """
    assert run(code, tmp_path) == run(code, tmp_path) == ("[2.0, 2.0, 2.0]\n", "")
    assert manifests_in(tmp_path) == []


@needs_compiler
def test_processes_write_the_same_program(tmp_path):
    """No order of a set of objects shows: chains of products and their operands, say."""
    code = """
        import sys
        import functrans as ft
        def loss(q, k, v):
            scores = ft.nn.softmax(ft.numpy.einsum("bqd,bkd->bqk", q, k) * 0.125)
            return (ft.numpy.einsum("bqk,bkd->bqd", scores, v) ** 2).sum()
        x = ft.ShapeDtypeStruct((64, 64, 32), "float32")
        print(ft.jit(ft.grad(loss, argnums=(0, 1, 2))).lower(x, x, x).compile().as_text())
    """
    texts = {run(code, tmp_path / str(k))[0] for k in range(3)}
    assert len(texts) == 1


def test_bytes_and_text_have_keys():
    assert digest(b"ab") == digest("ab")
    assert digest(b"a", b"b") != digest(b"ab")
