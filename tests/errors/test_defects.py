"""What users see where a compiler of the package fails: a defect, with the program to report."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as n
from functrans.core.errors import BackendError, DefectError
from functrans.lowering import backend as registry
from functrans.lowering.c.backend import CBackend
from functrans.lowering.defects import is_defect
from tests.errors.expect import caught, internal_frames

X = np.ones((3, 4), np.float32)


class Failing:
    """A backend whose compiler fails in a given way."""

    name = "c"

    def __init__(self, error):
        self.error = error

    def compile(self, jaxpr, donated=frozenset(), require_inplace=False):
        raise self.error


@pytest.fixture
def failing(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def use(error):
        monkeypatch.setitem(registry._backends, "c", Failing(error))

    return use


@pytest.mark.parametrize("error", [KeyError("f32[3]"), AssertionError(), IndexError("a\nb"),
                                   TypeError("no"), NotImplementedError(), ZeroDivisionError()],
                         ids=repr)
def test_a_failure_of_the_compiler_is_a_defect(failing, error):
    failing(error)
    message = caught(lambda: ft.jit(lambda x: n.sin(x) * 2)(X), DefectError,
                     "a defect of functrans", type(error).__name__, "report the program", "sin a",
                     "f32[3,4]")
    assert "functrans 0." in message and "Python 3." in message


def test_the_report_has_the_whole_program(failing):
    failing(KeyError("some tensor"))

    def long(x):
        for k in range(50):
            x = n.sin(x) * k
        return x

    with pytest.raises(DefectError) as info:
        ft.jit(long)(X)
    error = info.value
    assert str(error).count(" = sin ") < 40 and error.report.count(" = sin ") == 49 + 1
    assert "some tensor" in error.report and "Traceback" in error.report
    assert "matmul_precision" in error.report  # the settings
    file = Path(str(error).split("the report is in ")[1].split(")")[0])
    assert file.read_text() == error.report
    assert file.stat().st_mode & 0o77 == 0
    assert not internal_frames(error.__traceback__)


def test_a_program_that_is_lowered_by_hand_is_reported_too(failing):
    failing(KeyError("some tensor"))
    lowered = ft.lower(lambda x: n.sin(x), X)
    with pytest.raises(DefectError, match="some tensor"):
        lowered.compile()


@pytest.mark.parametrize("error", [BackendError("no device."), MemoryError(), OSError(28, "full"),
                                   RecursionError("deep"), UserWarning("told"),
                                   ModuleNotFoundError("triton")], ids=repr)
def test_what_is_said_to_users_is_no_defect(failing, error):
    assert not is_defect(error)
    failing(error)
    with pytest.raises(type(error)) as info:
        ft.jit(lambda x: n.sin(x) * 3)(X)
    assert not isinstance(info.value, DefectError)


def test_the_compiler_works_again(failing, monkeypatch):
    failing(KeyError("once"))
    fun = ft.jit(lambda x: n.sin(x) * 4)
    with pytest.raises(DefectError):
        fun(X)
    monkeypatch.setitem(registry._backends, "c", CBackend())
    np.testing.assert_allclose(fun(X), np.sin(X) * 4, rtol=1e-6)
