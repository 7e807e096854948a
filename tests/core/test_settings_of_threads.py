"""Settings hold for the process, for a scope, and for the tasks and threads that a scope starts."""

import asyncio
import threading

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.core import config


def in_a_thread(f):
    """What f gives in a thread of its own."""
    results = []
    thread = threading.Thread(target=lambda: results.append(f()))
    thread.start()
    thread.join()
    return results[0]


def test_settings_of_the_process_hold_in_threads():
    dtype = ft.jit(lambda x: jnp.ones(2) * x)
    assert in_a_thread(lambda: dtype(2).dtype) == np.float32
    ft.config.update("jax_enable_x64", True)
    try:
        assert dtype(2).dtype == np.float64
        assert in_a_thread(lambda: (dtype(2).dtype, jnp.ones(2).dtype)) == (np.float64, np.float64)
        with ft.enable_x64(False):  # a scope is of its thread
            assert dtype(2).dtype == np.float32
            assert in_a_thread(lambda: dtype(2).dtype) == np.float64
    finally:
        ft.config.update("jax_enable_x64", False)
    assert in_a_thread(lambda: dtype(2).dtype) == dtype(2).dtype == np.float32


def test_running_threads_see_a_change_but_in_scopes():
    steps = threading.Barrier(2, timeout=60)
    seen = []

    def run():
        steps.wait()
        steps.wait()
        seen.append(jnp.ones(1).dtype)
        with ft.enable_x64(False):
            seen.append(jnp.ones(1).dtype)
        seen.append(jnp.ones(1).dtype)

    thread = threading.Thread(target=run)
    thread.start()
    steps.wait()
    ft.config.update("jax_enable_x64", True)
    try:
        steps.wait()
        thread.join()
    finally:
        ft.config.update("jax_enable_x64", False)
    assert seen == [np.float64, np.float32, np.float64]


def test_a_scope_holds_in_threads_of_its_context():
    """`asyncio.to_thread` copies the context: a program of another dtype is another program."""
    dtype = ft.jit(lambda x: jnp.ones(2) * x)

    async def both():
        with ft.enable_x64(True):
            wide = await asyncio.to_thread(lambda: dtype(2).dtype)
        return wide, await asyncio.to_thread(lambda: dtype(2).dtype)

    assert asyncio.run(both()) == (np.float64, np.float32)
    assert dtype(2).dtype == np.float32


def test_tasks_that_take_turns_keep_their_scopes():
    dtype = ft.jit(lambda x: jnp.ones(2) * x)

    async def task(wide):
        found = []
        with ft.enable_x64(wide):
            for _ in range(3):
                await asyncio.sleep(0)
                found.append(dtype(2).dtype)
        return found

    async def both():
        return await asyncio.gather(task(True), task(False))

    assert asyncio.run(both()) == [[np.float64] * 3, [np.float32] * 3]


def test_equal_settings_have_one_token():
    with ft.config.scope(matmul_precision="high") as first:
        pass
    with ft.config.scope(matmul_precision="high") as second:
        pass
    assert first is not second and first.token == second.token != config.current().token
    with ft.config.narrow_64bit() as narrow:
        assert narrow.token < 0 < config.of_process().token
