"""The pool of threads: every index once, from any number of threads, after forks, and asleep."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from program_helpers import make_parallel, make_program

from functrans import _runtime as rt


@pytest.fixture
def threads():
    """Sets how many threads the pool uses; the default comes back afterwards."""
    yield rt.set_num_threads
    rt.set_num_threads(None)


def test_the_number_of_threads(threads):
    assert 1 <= rt.get_num_threads() <= len(os.sched_getaffinity(0))
    threads(7)
    assert rt.get_num_threads() == 7
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            threads(wrong)
    with pytest.raises(TypeError):
        threads(1.5)
    threads(None)
    assert rt.get_num_threads() <= len(os.sched_getaffinity(0))


def test_library_functions_are_found_by_name(tmp_path, threads):
    threads(3)
    source = "PROGRAM { *(i64 *)b[0] = ((i64 (*)(void))api->lib[0])(); return 0; }"
    out = [(np.int64, (), -1)]
    assert make_program(tmp_path, source, [], out, libs=["thread_count"])([])[0] == 3
    with pytest.raises(LookupError, match="no library function 'nothing'"):
        make_program(tmp_path, source, [], out, libs=["nothing"])


@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_pieces_cover_the_range_once(tmp_path, threads, count):
    threads(count)
    source = """
    static i64 grain, n; static int wrong;
    static void body(void *a, i64 i, i64 end) {
      if (i >= end || i % grain || (end != n && end % grain)) wrong = 1;
      for (; i < end; i++) __atomic_fetch_add((int *)a + i, 1, __ATOMIC_RELAXED);
    }
    PROGRAM {
      n = ((i64 *)b[0])[0], grain = ((i64 *)b[0])[1], wrong = 0;
      for (int i = 0; i < 5000; i++) ((int *)b[1])[i] = 0;
      api->parallel(ctx, body, b[1], n, grain);
      return wrong;
    }
    """
    run = make_program(tmp_path, source, [(np.int64, (2,))], [(np.int32, (5000,), -1)])
    for n in (0, 1, 2, 63, 64, 65, 1000, 4999, 5000):
        for grain in (1, 7, 64, 1000, 10000):
            (counts,) = run([np.array([n, grain])])
            assert np.array_equal(counts, np.arange(5000) < n)


def test_a_negative_grain_asks_for_the_fewest_pieces(tmp_path, threads):
    threads(3)
    source = """
    static int calls;
    static void body(void *a, i64 i, i64 end) {
      __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
      for (; i < end; i++) __atomic_fetch_add((int *)a + i, 1, __ATOMIC_RELAXED);
    }
    PROGRAM {
      calls = 0;
      for (int i = 0; i < 64; i++) ((int *)b[0])[i] = 0;
      const int error = api->parallel(ctx, body, b[0], 64, -1);
      *(int *)b[1] = calls;
      return error;
    }
    """
    run = make_program(tmp_path, source, [], [(np.int32, (64,), -1), (np.int32, (), -1)])
    for _ in range(70):
        counts, calls = run([])
        assert np.all(np.asarray(counts) == 1) and 1 <= int(calls) <= 3


BUSY = """
static void body(void *a, i64 i, i64 end) {
  for (; i < end; i++) for (int k = 0; k < ((int *)a)[1]; k++) ((volatile int *)a)[0] += k;
}
PROGRAM {
  int *a = (int *)b[1];
  a[0] = 0, a[1] = ((int *)b[0])[0];
  return api->parallel(ctx, body, a, 64, 1);
}
"""


def test_short_loops_start_no_threads(tmp_path):
    """Their first run is on one thread, and what it took decides about the next ones."""
    code = f"""
    from program_helpers import make_program
    run = make_program(pathlib.Path({str(tmp_path)!r}), {BUSY!r}, [(np.int32, (1,))],
                       [(np.int32, (2,), -1)], heavy=True)
    def threads():
        return len(os.listdir("/proc/self/task"))
    before = threads()
    for _ in range(100):
        run([np.array([1], np.int32)])
    assert threads() == before, "64 additions are not worth a thread"
    for _ in range(1000):  # what is remembered of a loop grows by an eighth a run
        run([np.array([200000], np.int32)])
        if threads() > before:
            break
    assert threads() > before, "milliseconds are worth one"
    """
    run_script(tmp_path, code)


def test_loops_inside_loops(tmp_path, threads):
    threads(4)
    source = """
    typedef struct { const ft_api *api; void *ctx; float *y; } job;
    static void inner(void *a, i64 i, i64 n) { for (; i < n; i++) ((float *)a)[i] += 1; }
    static void outer(void *a, i64 i, i64 n) {
      job *j = a;
      for (; i < n; i++) j->api->parallel(j->ctx, inner, j->y + 100 * i, 100, 1);
    }
    PROGRAM {
      job j = {api, ctx, F32(0)};
      for (int i = 0; i < 10000; i++) F32(0)[i] = i;
      api->parallel(ctx, outer, &j, 100, 1);
      return 0;
    }
    """
    run = make_program(tmp_path, source, [], [(np.float32, (10000,), -1)])
    for _ in range(50):
        assert np.array_equal(run([])[0], np.arange(1, 10001))


def test_eight_python_threads_share_the_pool(tmp_path, threads):
    threads(4)
    run = make_parallel(tmp_path)
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            x = rng.random(int(rng.integers(1, 20000)), np.float32)
            if not np.array_equal(run([x])[0], 2 * x + 1):
                failures.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert not worker.is_alive()
    assert not failures


LONG = 4_000_000  # loops that are worth threads on any machine, however busy


def run_script(tmp_path, code, timeout=120, length=100_000):
    """Run code in a fresh process that has `make_parallel` and `run`, a program on the pool."""
    head = f"""
    import os, pathlib, signal, sys, threading, time
    sys.path.insert(0, {os.path.dirname(__file__)!r})
    import numpy as np
    from program_helpers import make_parallel
    from functrans import _runtime as rt
    rt.set_num_threads(4)
    run = make_parallel(pathlib.Path({str(tmp_path)!r}))
    x = np.arange(LENGTH, dtype=np.float32)
    def check():
        assert np.array_equal(run([x])[0], 2 * x + 1)
    """
    script = textwrap.dedent(head).replace("LENGTH", str(length)) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_forked_child_starts_its_own_threads(tmp_path):
    code = """
    def threads():
        return len(os.listdir("/proc/self/task"))
    before = threads()
    check()
    assert threads() == before + 3, threads()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            assert threads() == 1
            check()
            assert threads() == 4
            grandchild = os.fork()
            if grandchild == 0:
                check()
                os._exit(0)
            os._exit(0 if os.waitpid(grandchild, 0)[1] == 0 else 1)
        check()
        assert os.waitpid(child, 0)[1] == 0
    """
    run_script(tmp_path, code, length=LONG)


def test_forking_while_another_thread_has_the_pool(tmp_path):
    code = """
    stop = False
    def busy():
        while not stop:
            check()
    workers = [threading.Thread(target=busy) for _ in range(2)]
    for w in workers:
        w.start()
    for _ in range(12):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            check()
            check()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stop = True
    for w in workers:
        w.join()
    check()
    """
    run_script(tmp_path, code)


def test_the_process_ends_while_threads_work(tmp_path):
    code = """
    def busy():
        while True:
            check()
    threading.Thread(target=busy, daemon=True).start()
    time.sleep(0.2)
    print("ends")
    """
    assert run_script(tmp_path, code, timeout=60) == "ends"


def test_idle_threads_sleep(tmp_path):
    code = """
    check()
    time.sleep(0.05)
    begin = time.process_time()
    time.sleep(0.5)
    print(time.process_time() - begin)
    """
    assert float(run_script(tmp_path, code)) < 0.02


def test_signals_go_to_the_threads_of_python(tmp_path, threads):
    threads(4)
    run = make_parallel(tmp_path)
    x = np.ones(10000, np.float32)
    seen = []
    previous = signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.current_thread()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert np.all(run([x])[0] == 3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(seen) > 10
    assert set(seen) == {threading.main_thread()}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="all threads share the only CPU")
def test_threads_leave_a_shared_cpu_and_stay_free(tmp_path):
    """One that was woken on the CPU of another moves, for a while, and where it may run."""
    code = """
    def helpers():
        tasks = [f"/proc/self/task/{t}" for t in os.listdir("/proc/self/task")]
        return [int(t.split("/")[-1]) for t in tasks if open(f"{t}/comm").read() == "functrans\\n"]
    def work():
        for _ in range(10):
            check()
    allowed = os.sched_getaffinity(0)
    one, other, *_ = sorted(allowed)
    work()
    os.sched_setaffinity(0, {one})
    for thread in helpers():
        os.sched_setaffinity(thread, {one})
        os.sched_setaffinity(thread, allowed)
    work()
    assert all(os.sched_getaffinity(t) <= allowed for t in helpers())
    os.sched_setaffinity(0, allowed)
    end = time.monotonic() + 60  # other processes may have the CPUs, and helpers come late
    while any(os.sched_getaffinity(t) != allowed for t in helpers()):
        assert time.monotonic() < end, "a thread is bound for good"
        time.sleep(0.05)
        work()
    os.sched_setaffinity(0, {other})
    for thread in helpers():
        os.sched_setaffinity(thread, {other})
    work()
    assert all(os.sched_getaffinity(t) == {other} for t in helpers())
    print("free")
    """
    assert run_script(tmp_path, code, length=LONG) == "free"
