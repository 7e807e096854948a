"""What a program for a GPU leaves to the host is told of once, or refused, or let pass."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import BackendError, FallbackWarning, HostStepError, HostStepWarning
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.triton import host_steps, program

X = np.eye(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(host_steps, "_told", set())


def eigenvalues(x):
    return jnp.linalg.eigvals(x * 2)  # the line


def looped(x):
    return lax.fori_loop(0, 30, lambda i, x: jnp.sin(x + jnp.linalg.eigvals(x).real), x)


def compiled(fun, *args):
    return ft.lower(fun, *args, target="cuda:90").compile()


def test_the_line_and_the_reason_are_told_once():
    with pytest.warns(HostStepWarning) as told:
        compiled(eigenvalues, X)
    (warning,) = told
    assert "eig runs on the host, between copies: no library for GPUs" in str(warning.message)
    assert warning.filename == __file__
    assert warning.lineno == eigenvalues.__code__.co_firstlineno + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(eigenvalues, X[:3, :3])


@pytest.mark.parametrize("fun", [eigenvalues, looped])
def test_host_steps_are_refused(fun):
    with ft.config.host_steps("error"), pytest.raises(HostStepError) as refused:
        compiled(fun, X)
    assert isinstance(refused.value, BackendError)
    text = str(refused.value)
    assert "eig has to run on the host" in text and "eigenvalues of general matrices" in text
    assert f"{__file__}:{fun.__code__.co_firstlineno + 1}" in text
    assert 'ft.config.host_steps("allow")' in text


def test_interpreted_programs_are_refused_too():
    with ft.config.use_backend("triton"), ft.config.host_steps("error"), \
            pytest.raises(HostStepError):
        ft.jit(eigenvalues)(X)


def test_nothing_is_told_where_host_steps_are_allowed():
    with ft.config.host_steps("allow"):
        compiled(eigenvalues, X)
        assert "eig on the host: no library" in str(ft.explain(eigenvalues, X, target="cuda:90"))


def test_a_program_that_was_allowed_is_refused_later():
    fun = ft.jit(eigenvalues)
    with ft.config.use_backend("triton"):
        fun(X)
        with ft.config.host_steps("error"), pytest.raises(HostStepError):
            fun(X)


def test_the_explanation_has_the_line():
    with ft.config.host_steps("allow"):
        (step,) = [k for k in ft.explain(looped, X, target="cuda:90").kernels
                   if k.name == "eig on the host"]
    (line,) = step.lines
    assert "jnp.linalg.eigvals(x).real" in line.text
    assert "no library for GPUs" in step.about


def test_python_is_what_the_user_asked_for():
    def fun(x):
        ft.debug.print("{}", x.sum())
        y = ft.pure_callback(lambda v: v, ft.ShapeDtypeStruct(x.shape, x.dtype), x + 1)
        return lax.while_loop(lambda v: v.sum() < 10, lambda v: ft.pure_callback(
            lambda v: v + 1, ft.ShapeDtypeStruct(v.shape, v.dtype), v), y)

    with ft.config.host_steps("error"):
        text = str(ft.explain(fun, X, target="cuda:90"))
    assert "pure_callback on the host" in text


def test_a_whole_program_is_refused():
    def loud(x):
        def body(v):
            ft.debug.print("{}", v)
            return v * 2
        return lax.while_loop(lambda v: v < 4, body, x)

    with ft.config.host_steps("error"), pytest.raises(HostStepError, match="the whole program"):
        compiled(ft.grad(loud), np.float32(1))


def test_a_kernel_that_cannot_be_written_is_refused(monkeypatch):
    def failing(*args):
        raise UnsupportedKernel("a line that is not read as one")

    monkeypatch.setattr(program, "write_kernel", failing)
    with ft.config.host_steps("error"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        with pytest.raises(HostStepError, match="a line that is not read as one"):
            compiled(jnp.sin, X)


def test_another_word():
    with pytest.raises(ValueError, match="'warn', 'error' or 'allow', not 'never'"):
        ft.config.host_steps("never")
