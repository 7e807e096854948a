"""Ctrl-C in programs that run for minutes: heard soon, and nothing is lost."""

import subprocess
import sys
import textwrap

import numpy as np

import functrans as ft

HEAD = textwrap.dedent("""
    import gc, os, signal, sys, threading, time
    import numpy as np
    import functrans as ft
    import functrans.numpy as n
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the caller ignores it

    def forever(step):
        return lambda x: ft.lax.while_loop(lambda c: (c >= 0).all(), step, x)

    def waited(f, *args, signals=1):
        "How long after the signal the call of a compiled function ends."
        sent = []
        def send():
            time.sleep(0.3)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        sender = threading.Thread(target=send)
        try:
            sender.start()
            f(*args)
        except KeyboardInterrupt:
            return time.monotonic() - sent[0]
        finally:
            sender.join()
        raise AssertionError("it was not interrupted")

    def usable():
        x = np.arange(12., dtype="f").reshape(3, 4)
        assert np.allclose(ft.jit(lambda x: n.sin(x) @ x.T)(x), np.sin(x) @ x.T, atol=1e-4)
""")

PROGRAMS = {
    "fori_loop": "lambda x: ft.lax.fori_loop(0, 2**31 - 2, lambda i, c: n.sin(c) + 0.1, x)",
    "scan with results": "lambda x: ft.lax.scan(lambda c, t: (ft.lax.fori_loop(0, 2**27, "
                         "lambda i, c: n.cos(c), c), c.sum()), x, n.arange(100.))[0]",
    "while_loop": "forever(lambda c: c * 0.5 + 1.0)",
    "while_loop of long steps": "lambda x: forever(lambda c: n.abs(n.sin(c @ c)))("
                                "n.broadcast_to(x[:1], (600, 600)) * 1e-3)",
    "lanes": "lambda x: ft.vmap(forever(lambda c: c * 0.5 + 1.0))(x)",
    "map on the threads": "lambda x: ft.lax.map(forever(lambda c: c * 0.5 + 1.0), x)",
    "loop in a branch": "lambda x: ft.lax.cond(x[0] > 0, forever(lambda c: c * 0.5 + 1.0), "
                        "lambda x: x, x)",
    "gradient": "ft.grad(lambda x: ft.lax.fori_loop(0, 2**27, lambda i, c: n.sin(c), x[0]))",
    "kernel": "lambda x: n.sin(x[:, None, None] * n.arange(40000.)[:, None] "
              "+ n.arange(40000.)).max((1, 2))",
    "product": "lambda x: (lambda a: a @ a)(n.sin(x[0] * n.arange(8000.)[:, None] "
               "* n.arange(8000.)))",
}


def child(code):
    done = subprocess.run([sys.executable, "-c", HEAD + textwrap.dedent(code)], timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


LATEST = 5
"""Seconds: it is a tenth of one on a quiet machine."""


def test_programs_of_minutes_end_soon_and_lose_nothing():
    told = child(f"""
        failed = []
        for name, text in {PROGRAMS!r}.items():
            f, x = ft.jit(eval(text)), np.linspace(0.5, 1.5, 64, dtype="f")
            compiled = f.lower(x).compile()
            in_use = []
            for _ in range(2):
                seconds = waited(compiled, x)
                gc.collect()
                in_use.append(ft._runtime.memory_stats()["in_use"])
            if seconds > {LATEST} or in_use[0] != in_use[1]:
                failed.append((name, seconds, in_use))
            usable()
        print("failed:", failed)
    """)
    assert told == "failed: []\n"


def test_other_threads_go_on():
    """A program of another thread runs to its end, and is not what Ctrl-C ends."""
    told = child(f"""
        steps = ft.jit(lambda x: ft.lax.fori_loop(0, 20_000_000, lambda i, c: c + 1, x))
        steps.lower(0).compile()
        found = []
        other = threading.Thread(target=lambda: found.extend(int(steps(k)) for k in range(9)))
        endless = ft.jit(eval({PROGRAMS['map on the threads']!r}))
        x = np.ones(64, "f")
        endless.lower(x).compile()
        other.start()
        assert waited(endless, x) < {LATEST}
        other.join()
        assert found == [20_000_000 + k for k in range(9)], found
        usable()
    """)
    assert told == ""


def test_handlers_of_other_signals_run_meanwhile():
    """A handler may compute, too; without an exception the program goes on to its end."""
    told = child("""
        seen = []
        def handler(number, frame):
            usable()
            seen.append(time.monotonic())
        signal.signal(signal.SIGALRM, handler)
        steps = ft.jit(lambda x: ft.lax.while_loop(lambda c: c < 10**9, lambda c: c + 1, x))
        steps.lower(0).compile()
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.2)
        assert int(steps(0)) == 10**9
        ended = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert seen and seen[0] < ended
    """)
    assert told == ""


def test_loops_look_seldom_enough():
    """A loop of short steps asks each time its estimate says 0.4 ms are over: it costs nothing."""
    text = ft.jit(lambda x: ft.lax.while_loop(lambda c: c < 9, lambda c: c + 1, x)).lower(
        np.float32(0)).compile().as_text()
    asked = int(text.split("if ((n & ")[1].split(")")[0])
    assert 1000 < asked < 10**6 and asked & (asked + 1) == 0
