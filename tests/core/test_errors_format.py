"""The format of messages, built-in base classes, pickling, and hidden internal frames."""

import builtins
import pickle
import traceback
from types import ModuleType

import pytest

from functrans.core import config, errors
from functrans.core.errors import FunctransError, ShapeError, hide_internal_frames

ALL = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]


class LazyPlace:
    """Stands for a source position: formatted only when the message is read."""

    def __init__(self) -> None:
        self.formatted = 0

    def __str__(self) -> str:
        self.formatted += 1
        return "train.py:12, in loss\n    y = x @ w"


def test_message_has_its_parts_in_order_and_indented() -> None:
    error = ShapeError(
        "matmul of (3, 4) and (5, 6).",
        where=LazyPlace(),
        why="4 is not 5.",
        fix="y = x @ w.T\nz = y",
    )
    assert str(error) == (
        "matmul of (3, 4) and (5, 6).\n"
        "  Where: train.py:12, in loss\n"
        "        y = x @ w\n"
        "  Why: 4 is not 5.\n"
        "  Fix: y = x @ w.T\n"
        "    z = y"
    )
    assert str(FunctransError("only what", where=None)) == "only what"


def test_the_place_is_formatted_when_read_only() -> None:
    place = LazyPlace()
    error = ShapeError("x", where=place)
    assert place.formatted == 0
    assert "train.py" in str(error)
    assert place.formatted == 1


@pytest.mark.parametrize("cls", ALL)
def test_every_error_is_a_built_in_too_and_says_why_it_exists(cls: type[FunctransError]) -> None:
    assert issubclass(cls, FunctransError)
    sentences = (cls.__doc__ or "").strip().split("\n\n")[0]  # then an example
    assert sentences.endswith(".") or cls is FunctransError
    standard = [b for b in cls.__mro__ if vars(builtins).get(b.__name__) is b]
    assert len(standard) > 3 or cls is FunctransError  # more than Exception and its bases


@pytest.mark.parametrize("cls", ALL)
def test_errors_pickle_with_their_parts(cls: type[FunctransError]) -> None:
    error = cls("what", where=LazyPlace(), why="why", fix="fix")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert str(copy) == str(error)


INTERNAL = """
def boundary(f):
    try:
        return inner(f)
    except Exception as exc:
        hide(exc)
        raise

def inner(f):
    return f()

def fail():
    raise ValueError("from inside")
"""


def internal_module(name: str) -> ModuleType:
    """A module that the package would own by its name."""
    module = ModuleType(name)
    vars(module)["hide"] = hide_internal_frames
    exec(compile(INTERNAL, f"<{name}>", "exec"), vars(module))
    return module


def frames_of(module: ModuleType) -> list[str]:
    def user() -> None:
        module.fail()

    with pytest.raises(ValueError) as caught:
        module.boundary(user)
    return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_internal_frames_are_hidden_and_user_frames_kept() -> None:
    assert frames_of(internal_module("functrans.fake")) == ["frames_of", "user"]
    assert frames_of(internal_module("functransish")) == [
        "frames_of",
        "boundary",
        "inner",
        "user",
        "fail",
    ]


def test_internal_frames_are_kept_for_debugging() -> None:
    with config.debug_internal_frames():
        names = frames_of(internal_module("functrans.fake"))
    assert names == ["frames_of", "boundary", "inner", "user", "fail"]


def test_frames_of_chained_errors_are_hidden_too() -> None:
    module = internal_module("functrans.fake")
    try:
        try:
            module.fail()
        except ValueError as cause:
            raise KeyError("outer") from cause
    except KeyError as exc:
        hide_internal_frames(exc)
        assert exc.__cause__ is not None
        names = [frame.name for frame in traceback.extract_tb(exc.__cause__.__traceback__)]
        assert names == ["test_frames_of_chained_errors_are_hidden_too"]


def test_debug_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, expected in (("", False), ("0", False), ("1", True)):
        monkeypatch.setenv(config.DEBUG_VARIABLE, value)
        assert config.debug_from_environment() is expected


def test_config_scopes_nest_and_refuse_unknown_names() -> None:
    assert not config.current().disable_jit
    with config.disable_jit():
        with config.disable_jit(False):
            assert not config.current().disable_jit
        assert config.current().disable_jit
        assert hash(config.current()) != hash(config.Config())
    with pytest.raises(TypeError), config.scope(no_such_field=1):
        pass


def test_the_source_line_of_a_place_is_shown() -> None:
    class Here:
        text = "y = x @ w"

        def __str__(self) -> str:
            return "train.py:12 (loss)"

    expected = "x\n  Where: train.py:12 (loss)\n    y = x @ w"
    assert str(FunctransError("x", where=Here())) == expected
    assert str(pickle.loads(pickle.dumps(FunctransError("x", where=LazyPlace())))) == (
        "x\n  Where: train.py:12, in loss\n        y = x @ w"
    )
