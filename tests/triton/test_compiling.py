"""Kernels on their way to machine code: cache, workers, failures and what is shown meanwhile."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from queue import Queue

import numpy as np
import pytest
from triton import knobs

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import BackendError
from functrans.lowering.schedule.target import cuda_target, target_named
from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.kernels.source import TritonModule, alone, module_of
from functrans.lowering.triton.machine import compile, workers
from functrans.lowering.triton.machine.compile import TritonStages, compile_unit
from functrans.lowering.triton.machine.elf import resources
from functrans.lowering.triton.machine.kernel_cache import RecentKernels, compiled_units, kept
from functrans.lowering.triton.machine.late_inlining import keep_functions
from functrans.lowering.triton.machine.pool import compile_all, split_work
from functrans.lowering.triton.machine.unit import Binary, Unit
from functrans.lowering.triton.machine.workers import Pool

SCALE = """\
import triton
import triton.language as tl


@triton.jit
def scale(x, y, factor):
    at = tl.arange(0, 128)
    tl.store(y + at, tl.load(x + at) * factor)
"""


def unit(source=SCALE, **changes):
    return replace(Unit(source, "scale", ("*fp32", "*fp32", "fp32"), (True, True, False), 4, 3,
                        False, 90, 227 << 10), **changes)


def units(count):
    return [unit(SCALE.replace("* factor", f"* factor + {k}")) for k in range(count)]


def run(code, **options):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], text=True, check=True,
                          capture_output=True, timeout=120, **options)
    return done.stdout.strip()


def test_binaries_and_units_as_bytes():
    binary = compile_unit(unit())
    assert Binary.decode(binary.encode()) == binary and Unit.decode(unit().encode()) == unit()
    assert binary.cubin.startswith(b"\x7fELF") and ".entry scale" in binary.ptx
    assert binary.kinds == "ppf" and binary.warps == 4 and binary.shared == 0
    for data in (b"", b"{}", b"no\n", binary.encode()[:-len(binary.cubin)],
                 binary.encode().replace(b"'warps': 4", b"'warps': '4'")):
        assert Binary.decode(data) is None


PARTS = """\
import triton
import triton.language as tl


@triton.jit
def read(x, k):
    return tl.load(x + k)


@triton.jit
def shifted(program, x, y):
    at = program * 512 + tl.arange(0, 512)
    tl.store(y + at, tl.load(x + at) * 2 + tl.load(x + at + 1) + read(x, 3))


@triton.jit
def turned(program, x, y):
    a, b = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    tl.store(y + a * 64 + b, tl.load(x + b * 64 + a) + read(x, 5))


@triton.jit
def again(program, x, y):
    at = program * 512 + tl.arange(0, 512)
    tl.store(y + at, tl.load(x + at) * 2)


@triton.jit
def taken(x, y, z):
    pid = tl.program_id(0)
    if pid < 4:
        shifted(pid, x, y)
    if (pid >= 4) & (pid < 6):
        turned(pid - 4, x, z)
    if pid >= 6:
        again(pid - 6, x, z + 4096)
        again(pid - 6, x, z + 8191)
"""


def instructions(binary):
    """Those of a kernel, without the lines that they come from."""
    return [line for line in binary.ptx.split("\n") if line.endswith(";")]


def test_functions_that_are_inlined_late_have_the_same_instructions(monkeypatch):
    u = unit(PARTS, name="taken", types=("*fp32",) * 3, divisible=(True,) * 3)
    seen = []

    def keep(module):
        seen.append(keep_functions(module))
        return seen[-1]

    monkeypatch.setattr(compile, "keep_functions", keep)
    late = TritonStages(u, 3).binary()
    # what gives a number, and what is called twice, is inlined before
    assert sorted(name.split(".")[1].split("_")[0] for name in seen[0]) == ["shifted", "turned"]
    monkeypatch.setattr(compile, "keep_functions", lambda module: [])
    early = compile_unit(u)
    assert (late.registers, late.shared) == (early.registers, early.shared)
    assert instructions(late) == instructions(early)


def test_keys_tell_units_apart():
    different = [unit(), unit(warps=8), unit(stages=2), unit(fuses=True), unit(capability=80),
                 unit(shared=1 << 10), unit(divisible=(True, False, False)),
                 unit(types=("*fp32", "*fp32", "i32")), unit(SCALE + "\n"), unit(name="other")]
    assert len({u.key for u in different}) == len(different)
    assert unit().key == unit().key


def test_registers_and_stack_are_read_from_machine_code(tmp_path):
    """As NVIDIA's tool prints them."""
    source = SCALE.replace("0, 128", "0, 65536").replace(
        "    tl.store", "    z = tl.load(x + at)\n    factor += tl.sum(z)\n    tl.store").replace(
        "tl.load(x + at) *", "z *")
    for u in (unit(), unit(source)):
        binary = compile_unit(u)
        (tmp_path / "k.cubin").write_bytes(binary.cubin)
        said = subprocess.run([knobs.nvidia.cuobjdump.path, "--dump-resource-usage", "k.cubin"],
                              cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert f"REG:{binary.registers} STACK:{4 * binary.spills} " in said
    assert binary.spills > 0 and resources(binary.cubin)[1] == 4 * binary.spills


def test_threads_that_spill_with_few_registers_may_have_all(monkeypatch):
    """ptxas keeps some kernels to 32 registers, and hundreds of numbers in memory."""
    plain = compile_unit(unit())
    roomy = compile.with_all_registers(plain.ptx, 4)
    assert ".reqntid 128\n.maxnreg 255\n" in roomy and roomy.count(".maxnreg") == 1
    for said, kept_registers in (((32, 4000), (40, 16)), 40), (((32, 4000), (32, 4000)), 32):
        answers = iter((*said, said[1]))
        monkeypatch.setattr(compile, "resources", lambda _, answers=answers: next(answers))
        assert compile_unit(unit()).registers == kept_registers


def test_a_kernel_is_kept_on_disk(tmp_path):
    cache = Cache(tmp_path / "kernels")
    assert kept(unit(), cache) is None
    (first,) = compiled_units([unit()], cache)
    assert kept(unit(), cache) == first
    assert compiled_units([unit(), unit()], cache) == [first, first]
    (entry,) = (tmp_path / "kernels").glob("*.kernel")
    whole = entry.read_bytes()
    for damaged in (b"", whole[:-40], whole[:100] + b"x" + whole[101:]):
        entry.write_bytes(damaged)
        assert kept(unit(), cache) is None
        assert compiled_units([unit()], cache) == [first] and entry.read_bytes() == whole


def test_kernels_that_were_used_last_are_read_once(tmp_path, monkeypatch):
    cache, recent = Cache(tmp_path / "kernels"), RecentKernels()
    (first,) = recent.compiled([unit()], cache)
    (entry,) = (tmp_path / "kernels").glob("*.kernel")
    entry.unlink()
    assert recent.compiled([unit(), unit()], cache) == [first, first] and not entry.exists()
    monkeypatch.setattr("functrans.lowering.triton.machine.kernel_cache.MOST_RECENT", 1)
    (other,) = recent.compiled(units(1), cache)
    assert recent.compiled([*units(1), unit()], cache) == [other, first] and entry.exists()


def test_nothing_of_triton_is_imported_where_the_disk_has_all(tmp_path):
    code = """
        import sys
        import numpy as np
        import functrans as ft
        def f(x):
            return ft.numpy.tanh(x @ x).sum(0)
        shape = ft.ShapeDtypeStruct((64, 64), "float32")
        text = ft.jit(f).lower(shape, target="cuda:90").compile().kernels[0].ptx
        print("triton" in sys.modules, len(text) > 100)
        """
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    assert run(code, env=environment) == "True True"
    assert run(code, env=environment) == "False True"


def test_workers_compile_and_stay():
    pool, found = Pool(), {}
    compile_all(units(9), found.__setitem__, pool, (1, 1))
    assert [found[k].name for k in range(9)] == ["scale"] * 9
    assert len({found[k].ptx for k in range(9)}) == 9
    worker = pool.take()
    worker.wait_until_ready()
    assert worker.compile(unit()).cubin == compile_unit(unit()).cubin
    pool.give(worker)
    assert pool.take() is worker
    pool.give(worker)
    pool.close()
    assert not worker.is_alive


def test_a_worker_that_dies_leaves_its_work_to_threads():
    pool, found = Pool(), {}
    worker = pool.take()
    worker.wait_until_ready()
    pool.give(worker)
    os.kill(worker.pid, signal.SIGSTOP)  # it takes a kernel and does not answer
    threading.Timer(0.5, os.kill, (worker.pid, signal.SIGKILL)).start()
    compile_all(units(9), found.__setitem__, pool, (1, 1))
    assert sorted(found) == list(range(9))
    assert not worker.is_alive
    other = pool.take()
    assert other is not worker
    pool.give(other)
    pool.close()


def test_without_processes_threads_compile(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    pool, found = Pool(), {}
    compile_all(units(6), found.__setitem__, pool, (1, 2))
    assert sorted(found) == list(range(6))


@pytest.mark.parametrize("count", [1, 9])
def test_a_kernel_that_does_not_compile(count):
    pool = Pool()
    wrong = unit(SCALE.replace("* factor", "@ factor"))
    with pytest.raises(BackendError, match="cannot compile a kernel") as error:
        compile_all([*units(count - 1), wrong], lambda k, binary: None, pool, (1, 1))
    assert "@ factor" in str(error.value) and "use_backend" in str(error.value)
    worker = pool.take()
    worker.wait_until_ready()
    with pytest.raises(BackendError, match="capability 90"):
        worker.compile(wrong)
    assert worker.compile(unit()).name == "scale"  # it goes on
    pool.give(worker)
    pool.close()


def test_ctrl_c_ends_a_compilation(tmp_path):
    code = textwrap.dedent(f"""
        import signal
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from functrans.lowering.triton.machine.pool import compile_all
        from functrans.lowering.triton.machine.workers import Pool
        from test_compiling import units
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pool = Pool()
        try:
            compile_all(units(400), lambda k, binary: print("one", flush=True), pool,
                        (1, 1))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        found = []
        compile_all(units(7), lambda k, binary: found.append(k), pool, (1, 1))
        print(len(found))
        """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with process.stdout as lines:
        assert "one\n" in lines  # it is in the midst of it
        process.send_signal(signal.SIGINT)
        assert [line for line in lines if line != "one\n"] == ["interrupted\n", "7\n"]
    assert process.wait(60) == 0


def test_two_compilations_at_once():
    pool, found = Pool(), [{}, {}]
    both = units(12)
    threads = [threading.Thread(target=compile_all, args=(
        both[6 * k:6 * k + 6], found[k].__setitem__, pool, (1, 1))) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found[0]) == sorted(found[1]) == list(range(6))
    assert len({b.ptx for f in found for b in f.values()}) == 12
    pool.close()


def test_a_fork_has_workers_of_its_own():
    said = run(f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from functrans.lowering.triton.machine.pool import compile_all
        from functrans.lowering.triton.machine.workers import Pool
        from test_compiling import units
        pool, found = Pool(), dict()
        compile_all(units(6), found.__setitem__, pool, (1, 1))
        while not pool.idle:
            pass
        child = os.fork()
        if child == 0:
            assert pool.idle == 0
            again = dict()
            compile_all(units(6), again.__setitem__, pool, (1, 1))
            os._exit(0 if again == found else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), pool.idle)
        """)
    assert said == "0 1"


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "kernels")
    with pytest.warns(RuntimeWarning, match="cannot keep compiled programs"):
        (first,) = compiled_units([unit()], cache)
    assert compiled_units([unit()], cache) == [first]


def test_workers_end_with_their_process():
    pid = int(run("""
        from functrans.lowering.triton.machine.workers import Pool
        worker = Pool().take()
        worker.wait_until_ready()
        print(worker.pid)
        """))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    pid = int(run("""
        import os
        from functrans.lowering.triton.machine.workers import Pool
        worker = Pool().take()
        worker.wait_until_ready()
        print(worker.pid, flush=True)
        os._exit(0)  # no exit functions: the closed pipe tells it
        """))
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("a worker outlived its process")


def test_how_many_threads_and_workers():
    assert split_work(1, 2, 0) == (1, 0) and split_work(26, 16, 0) == (8, 0)
    assert split_work(104, 16, 0) == (4, 12) and split_work(26, 16, 12) == (4, 12)
    assert split_work(100, 2, 0) == (2, 0) and split_work(100, 1, 0) == (1, 0)
    assert split_work(100, 4, 0) == (1, 3) and split_work(12, 4, 3) == (1, 3)
    assert split_work(7, 16, 12) == (4, 6) and split_work(7, 16, 12, ready=2) == (4, 2)
    assert split_work(100, 8, 0) == (2, 6) and split_work(12, 16, 8, ready=0) == (8, 4)
    for count in range(1, 60):
        for cores in range(1, 65):
            for idle in (0, 1, 12):
                here, beside = split_work(count, cores, idle)
                assert 1 <= here <= cores and here + beside <= cores and beside <= count


def test_workers_start_while_a_long_program_is_lowered(monkeypatch):
    started = Queue()
    monkeypatch.setattr(workers.POOL, "start", started.put)
    few = workers.MANY_EQUATIONS - 1
    for cores, equations, runs in ((16, few, False), (16, 200, False), (16, 9000, True),
                                   (4, 9000, False), (2, 9000, True), (16, 1, True)):
        monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _, n=cores: range(n))
        workers.start_workers(equations, runs)
    assert sorted(started.get(timeout=9) for _ in range(4)) == [3, 4, 10, 12] and started.empty()


def test_workers_that_were_started_come_after_those_that_are_ready():
    pool = Pool()
    first = pool.take()
    pool.give(first)
    pool.start(2)
    pool.start(2)
    first.wait_until_ready()
    assert pool.idle == 2 and 1 <= pool.ready <= 2 and pool.take() is first
    second = pool.take()
    second.wait_until_ready()
    assert second.is_ready and pool.ready == 0
    assert second.compile(unit()).cubin == compile_unit(unit()).cubin
    for worker in (first, second):
        pool.end(worker)
    pool.close()
    pool.start(3)
    assert not second.is_alive and pool.idle == 0


def test_a_kernel_alone_has_what_it_calls():
    module = TritonModule()
    one = module.name("@triton.jit\ndef NAME(x):\n    return tl.reduce(x, 0, combine_max)\n")
    two = module.name("@triton.jit\ndef NAME(x):\n    return fm.exp(x)\n")
    text = module.text()
    assert "combine_max" in alone(text, one) and two not in alone(text, one)
    assert "combine_max" not in alone(text, two) and two in alone(text, two)
    assert hasattr(module_of(alone(text, two)), two)
    other = TritonModule()
    other.name("@triton.jit\ndef NAME(x, y):\n    return x + y\n")
    assert other.name("@triton.jit\ndef NAME(x):\n    return fm.exp(x)\n") == two
    assert alone(other.text(), two) == alone(text, two)


def test_targets():
    assert cuda_target(80).shared == 163 << 10 and not cuda_target(80).has_copy_engine
    assert cuda_target(90).multiprocessors == 132 and target_named("cuda:90") == cuda_target(90)
    assert target_named("cuda:120").shared == 99 << 10
    assert cuda_target(90, 114).multiprocessors == 114
    for wrong in ("cuda:75", "cuda:", "cuda:sm", "rocm:90"):
        with pytest.raises(BackendError):
            target_named(wrong)


def test_no_addition_of_two_halves_of_a_register():
    """ptxas forgets their constants: the last element of a repeated diagonal was another one."""
    compiled = ft.lower(lambda d: jnp.broadcast_to(jnp.diag(d), (16, 6, 6)),
                        np.ones(6, "f"), target="cuda:90").compile()
    (kernel,) = compiled.kernels
    assert "16x2" not in kernel.ptx and "VIADD.16x2" not in kernel.sass


@pytest.mark.parametrize("warps, most", [(4, 255), (8, 255), (16, 128), (32, 64)])
def test_no_program_has_more_registers_than_a_multiprocessor(warps, most):
    """With 255 each, 16 warps were refused by the driver when they were launched."""
    ptx = compile.with_all_registers(".visible .entry k()\n.reqntid 128\n{", warps)
    assert f".maxnreg {most}\n" in ptx
    assert 32 * warps * most <= compile.REGISTERS
