"""Ctrl-C in programs that run for minutes: heard soon, whatever they are doing, and nothing is lost."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import functrans as ft

HEAD = textwrap.dedent("""
    import _thread, gc, os, signal, sys, threading, time
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
    "kernel": "lambda x: n.sin(n.arange(2**31 - 2)[:, None] * x).max(0)",
    "product": "lambda x: (n.broadcast_to(x[0], (12000, 12000)) * x[1] @ "
               "n.broadcast_to(x[2], (12000, 12000))).sum()",
}


def child(code):
    done = subprocess.run([sys.executable, "-c", HEAD + textwrap.dedent(code)], timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_programs_of_minutes_end_soon():
    told = child(f"""
        late = []
        for name, text in {PROGRAMS!r}.items():
            f, x = ft.jit(eval(text)), np.linspace(0.5, 1.5, 64, dtype="f")
            compiled = f.lower(x).compile()
            before = ft._runtime.memory_stats()
            seconds = waited(compiled, x)
            gc.collect()
            lost = (ft._runtime.memory_stats()["in_use"] if isinstance(before, dict)
                    else ft._runtime.memory_stats().in_use)
            print(name, round(seconds, 2), flush=True)
            late += [name] * (seconds > 5)
            usable()
        print("late:", late)
    """)
    assert told.endswith("late: []\n"), told
