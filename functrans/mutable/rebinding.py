"""A function of the user's with another NumPy: its `np` is the namespace of numpy_code.

The function is made again from its code, with globals that look a name up in the module of the
user's and translate what they find: NumPy and its functions, other functions of the user's and
modules with such, arrays. Nothing of the user's is changed, so that threads do not meet.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sysconfig
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from functrans import tree
from functrans.core.convert import to_array
from functrans.core.source import (
    is_internal_module,
)
from functrans.mutable.arrays import new
from functrans.mutable.calls import CAPTURED
from functrans.mutable.namespace import MATH, in_namespace
from functrans.mutable.numbers import PYTHON_NUMBERS, SCALAR_TYPES

__all__ = ["Rebinding"]

_LIBRARIES = tuple({f"{Path(path).resolve()}/" for name, path in sysconfig.get_paths().items()
                    if name in ("stdlib", "platstdlib", "purelib", "platlib")})
_CLASSES = (np.ndarray, np.vectorize, np.ndenumerate, np.nditer, *SCALAR_TYPES)
_KEPT = ("__builtins__", "__name__", "__file__", "__package__", "__spec__", "__loader__", "__doc__")


def _in_numpy(name: Any) -> bool:
    return isinstance(name, str) and (name == "numpy" or name.startswith("numpy."))


class _Globals(dict[str, Any]):
    """The globals of a module, translated as they are read.

    CPython asks a subclass of dict by its own lookup. Assignments (`global n; n = 1`) come into
    the dict itself, and are handed to the module when the call ends.
    """

    def __init__(self, module: dict[str, Any], rebinding: Rebinding) -> None:
        super().__init__({name: module[name] for name in _KEPT if name in module})
        self["__builtins__"] = {**vars(builtins), **PYTHON_NUMBERS,
                                "__import__": rebinding.import_module}
        self._module = module
        self._translate = rebinding.translate
        self._preset: dict[str, Any] = {}

    def __missing__(self, name: str) -> Any:
        return self._translate(self._module[name])

    def preset(self, name: str) -> None:
        """Put a name here at once: the body of a class looks into the dict."""
        if name in self._module and name not in self:
            self._preset[name] = self[name] = self.__missing__(name)

    def hand_back(self) -> None:
        """Assign to the module what the function assigned to its globals."""
        for name, value in self.items():
            if name not in _KEPT and self._preset.get(name, self) is not value:
                self._module[name] = value


class _Module:
    """A module of the user's, translated as it is read."""

    def __init__(self, module: ModuleType, translate: Callable[[Any], Any]) -> None:
        self.__dict__.update(_module=module, _translate=translate)

    def __getattr__(self, name: str) -> Any:
        return self._translate(getattr(self._module, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)


class Rebinding:
    """The functions that one call of numpy_code made anew, each once."""

    def __init__(self, function: Any) -> None:
        module = getattr(inspect.unwrap(function), "__module__", None) or ""
        self._package = module.partition(".")[0]
        self._done: dict[int, tuple[Any, Any]] = {}  # by identity, with the object that has it
        self._globals: dict[int, _Globals] = {}
        self._twins: dict[type, type] = {}

    def root(self, function: Any) -> Any:
        """The function of the call itself, wherever it is from."""
        if isinstance(function, FunctionType):
            return self.function(function)
        if isinstance(function, MethodType):
            return MethodType(self.root(function.__func__), function.__self__)
        if isinstance(function, functools.partial):
            return functools.partial(self.root(function.func),
                                     *map(self.translate, function.args),
                                     **{k: self.translate(v) for k, v in function.keywords.items()})
        return self.translate(function)

    def translate(self, value: Any) -> Any:
        """What the function finds in place of a value."""
        if type(value) in (int, float, str, bool, type(None)):
            return value
        known = self._done.get(id(value))
        if known is None:
            known = (value, self._translated(value))
            self._done.setdefault(id(value), known)
        return known[1]

    def _translated(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            if _in_numpy(value.__name__):
                return in_namespace(value)
            if value is math:
                return MATH
            return _Module(value, self.translate) if self._is_users(
                value.__name__, getattr(value, "__file__", None) or "/") else value
        if isinstance(value, FunctionType):
            if _in_numpy(value.__module__):
                return in_namespace(value)
            if self._is_users(value.__module__ or "", value.__code__.co_filename):
                return self.function(value)
            return value
        if isinstance(value, np.ndarray):
            if type(value) is np.ndarray and value.dtype.kind in "biufc" and value.ndim:
                return new(to_array(value), kind=CAPTURED)
            return value
        if isinstance(value, np.ufunc):
            return in_namespace(value) if getattr(np, value.__name__, None) is value else value
        if isinstance(value, MethodType):
            return MethodType(self.translate(value.__func__), value.__self__)
        if isinstance(value, functools.partial):
            return functools.partial(self.translate(value.func), *map(self.translate, value.args),
                                     **{k: self.translate(v) for k, v in value.keywords.items()})
        if isinstance(value, np.vectorize):
            return in_namespace(np.vectorize)(self.translate(value.pyfunc),
                                              signature=value.signature)
        if isinstance(value, (BuiltinFunctionType, type(np.sum))) or (
                isinstance(value, type) and value in _CLASSES):
            return in_namespace(value) if _in_numpy(getattr(value, "__module__", None)) else \
                self._of_math(value)
        if isinstance(value, type):
            return self._class(value)
        return value

    def _class(self, cls: type) -> type:
        """A subclass of a user's class, whose methods are made anew; the class itself where none
        of its methods and bases finds anything that is translated.

        It comes before the class, and before it the subclasses of the bases: `super()` in a
        method of the class, which looks behind the class, finds those. What is an instance of the
        class is one of the subclass.
        """
        file = getattr(inspect.getmodule(cls), "__file__", None) or "/"
        if not self._is_users(cls.__module__, file) or issubclass(cls, (Enum, BaseException)):
            return cls
        bases = [new for base in cls.__bases__ if (new := self.translate(base)) is not base]
        if id(cls) in self._done:  # a base names its subclass
            return cast(type, self._done[id(cls)][1])
        twin = _subclass(cls, bases)
        self._done[id(cls)] = (cls, twin)  # methods name their own class
        found = {name: self._member(value) for name, value in vars(cls).items()
                 if self._finds_more(value)}
        for name, member in found.items():
            setattr(twin, name, member)
            if isinstance(member, functools.cached_property):
                member.__set_name__(twin, name)
        if not bases and not found:
            self._done[id(cls)] = (cls, cls)
            return cls
        self._twins[twin] = cls
        return twin

    def _finds_more(self, member: Any) -> bool:
        """Whether a member of a class names something that is translated."""
        function = _function_of(member)
        if function is None:
            return False
        names = function.__globals__
        return any(self.translate(names[name]) is not names[name]
                   for name in _names(function.__code__) if name in names) or any(
            self.translate(value) is not value for value in (
                *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))

    def _member(self, member: Any) -> Any:
        if isinstance(member, FunctionType):
            return self.function(member)
        if isinstance(member, property):
            return property(*(part and self._member(part)
                              for part in (member.fget, member.fset, member.fdel)))
        if isinstance(member, functools.cached_property):
            return functools.cached_property(self._member(member.func))
        return type(member)(self._member(member.__func__))

    def _of_math(self, value: Any) -> Any:
        """A function of `math` by its name alone."""
        is_math = getattr(math, value.__name__, None) is value
        return getattr(MATH, value.__name__) if is_math else value

    def _is_users(self, module: str, file: str) -> bool:
        """Whether code is the user's: in the package of the function, or in no library."""
        if is_internal_module(module):
            return False
        if self._package and module.partition(".")[0] == self._package:
            return True
        return not file.startswith(_LIBRARIES) and not file.startswith("<frozen") and \
            file != "/"

    def function(self, function: FunctionType) -> FunctionType:
        """The function with translated globals, defaults and closure."""
        known = self._done.get(id(function))
        if known is not None:
            return known[1]  # type: ignore[no-any-return]
        names = self._globals.get(id(function.__globals__))
        if names is None:
            names = _Globals(function.__globals__, self)
            self._globals[id(function.__globals__)] = names
        for name in _names_of_classes(function.__code__):
            names.preset(name)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        closure = tuple(self._cell(old, new_cell) for old, new_cell in zip(
            function.__closure__ or (), cells, strict=True))
        rebound = FunctionType(function.__code__, names, function.__name__, None, closure)
        self._done[id(function)] = (function, rebound)
        for old, cell in zip(function.__closure__ or (), closure, strict=True):
            if cell is not old:
                cell.cell_contents = self.translate(old.cell_contents)
        rebound.__defaults__ = function.__defaults__ and tuple(
            map(self.translate, function.__defaults__))
        rebound.__kwdefaults__ = {k: self.translate(v) for k, v in (
            function.__kwdefaults__ or {}).items()}
        rebound.__qualname__, rebound.__module__ = function.__qualname__, function.__module__
        rebound.__doc__ = function.__doc__
        rebound.__dict__.update(function.__dict__)
        return rebound

    def _cell(self, old: CellType, new_cell: CellType) -> CellType:
        """The cell itself where its content needs no translation: it stays shared."""
        try:
            content = old.cell_contents
        except ValueError:  # empty
            return old
        if isinstance(content, FunctionType):
            users = self._is_users(content.__module__ or "", content.__code__.co_filename)
            return new_cell if users or _in_numpy(content.__module__) else old
        return old if self.translate(content) is content else new_cell

    def in_own_classes(self, result: Any) -> Any:
        """The result, its objects of the user's own classes again, and trees if those are."""
        while twins := [leaf for leaf in tree.leaves(result) if type(leaf) in self._twins]:
            for leaf in twins:
                leaf.__class__ = self._twins[type(leaf)]
        return result

    def import_module(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """`import name` inside of the function."""
        return self.translate(__import__(name, *args, **kwargs))

    def hand_back(self) -> None:
        """End: global variables that were assigned are the module's."""
        for names in self._globals.values():
            names.hand_back()


_STANDS_FOR = "__functrans_stands_for__"


def _subclass(cls: type, bases: list[type]) -> type:
    """An empty subclass of which every instance of the class is one."""
    return _checking(type(cls))(cls.__name__, (cls, *bases), {
        "__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__, _STANDS_FOR: cls})


@functools.lru_cache(maxsize=256)
def _checking(kind: Any) -> Callable[..., type]:
    """A metaclass under which a class asks for instances of the class that it stands for."""
    def has_instance(cls: type, x: Any) -> bool:
        own = vars(cls).get(_STANDS_FOR)
        return kind.__instancecheck__(cls, x) if own is None else isinstance(x, own)

    def has_subclass(cls: type, other: type) -> bool:
        own = vars(cls).get(_STANDS_FOR)
        return kind.__subclasscheck__(cls, other) if own is None else issubclass(other, own)

    # one of `type` under all of them: a class and its bases may have metaclasses of two kinds
    bases: tuple[Any, ...] = (kind,) if kind is type else (kind, _checking(type))
    return type(kind.__name__, bases, {
        "__instancecheck__": has_instance, "__subclasscheck__": has_subclass})


def _function_of(member: Any) -> FunctionType | None:
    """The Python function of a method, a property, a static or class method."""
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    elif isinstance(member, property):
        member = member.fget
    elif isinstance(member, functools.cached_property):
        member = member.func
    return member if isinstance(member, FunctionType) else None


@functools.lru_cache(maxsize=256)
def _names(code: CodeType) -> frozenset[str]:
    """Names that a function and the functions within it use."""
    return frozenset(code.co_names).union(*(
        _names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


@functools.lru_cache(maxsize=256)
def _names_of_classes(code: CodeType) -> tuple[str, ...]:
    """Global names that bodies of classes within a function use."""
    names: list[str] = []
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if not inner.co_flags & inspect.CO_OPTIMIZED:
                names += inner.co_names
            names += _names_of_classes(inner)
    return tuple(names)
