"""The intermediate representation: a jaxpr is a typed, first-order list of equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from functrans._runtime import wrap
from functrans.core.avals import ShapedArray
from functrans.core.axes import axis_names
from functrans.core.dims import Dim
from functrans.core.mesh import Mesh
from functrans.core.record import Record
from functrans.core.sharding import NamedSharding
from functrans.core.source import Source

if TYPE_CHECKING:
    from functrans.core.primitive import Primitive

__all__ = ["Atom", "ClosedJaxpr", "Equation", "Jaxpr", "Literal", "ParamDict", "Value", "Var",
           "decided_names", "equation_text", "jaxpr_parts", "letters", "literal_text",
           "param_text", "size_names", "subjaxprs"]


class Var:
    """A value in a jaxpr; its identity is its name, and printers choose letters.

    >>> x, = ft.make_jaxpr(jnp.sin)(1.0).jaxpr.invars
    >>> x.aval
    ShapedArray(f32[], weak_type=True)
    """

    __slots__ = ("__weakref__", "aval")

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


@final
class Literal:
    """A scalar constant written into an equation.

    >>> eqn = ft.make_jaxpr(lambda x: x * 2)(1.0).eqns[-1]
    >>> [type(v).__name__ for v in eqn.invars], eqn.invars[1].val
    (['Var', 'Literal'], np.float32(2.0))
    """

    __slots__ = ("_operand", "aval", "value")

    def __init__(self, value: Any, aval: ShapedArray) -> None:
        self.value = value
        self.aval = aval
        self._operand = None if aval.weak_type else value

    @property
    def val(self) -> Any:
        return self.value

    @property
    def operand(self) -> Any:
        """The value where an operation is applied to it: an array of a weak type if this is one."""
        if self._operand is None:
            self._operand = wrap(np.asarray(self.value, self.aval.dtype), True)
        return self._operand

    def __repr__(self) -> str:
        return f"Literal({self.value}:{self.aval})"


Atom = Var | Literal
ParamDict = dict[str, Any]
Value = Any


class Equation:
    """`outvars = primitive[params] invars`, with the user's line that asked for it.

    >>> sin = ft.make_jaxpr(jnp.sin)(1.0).eqns[0]
    >>> sin.primitive, [v.aval for v in sin.invars], sin.params
    (sin, [ShapedArray(f32[], weak_type=True)], {})
    >>> sin.replace(params={"accuracy": None}).params
    {'accuracy': None}
    """

    __slots__ = ("invars", "outvars", "params", "primitive", "source")

    def __init__(self, primitive: Primitive, invars: tuple[Atom, ...], outvars: tuple[Var, ...],
                 params: Mapping[str, Any], source: Source | None = None) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.source = source

    def replace(self, **changes: Any) -> Equation:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return Equation(**{**fields, **changes})

    def __repr__(self) -> str:
        return _equation_text(self, _Names(), 0)


class Jaxpr(Record, eq=False):
    """`{ lambda constvars ; invars. let eqns in outvars }`; compared by identity.

    >>> jaxpr = ft.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0).jaxpr
    >>> [eqn.primitive.name for eqn in jaxpr.eqns]
    ['sin', 'mul']
    """

    constvars: tuple[Var, ...]
    invars: tuple[Var, ...]
    eqns: tuple[Equation, ...]
    outvars: tuple[Atom, ...]
    name: str = field(default="fn", kw_only=True)

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return tuple(v.aval for v in self.invars)

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return tuple(v.aval for v in self.outvars)

    def replace(self, **changes: Any) -> Jaxpr:
        return replace(self, **changes)

    def hoist_consts(self) -> Jaxpr:
        """The same program with its constants as leading inputs."""
        if not self.constvars:
            return self
        return Jaxpr((), self.constvars + self.invars, self.eqns, self.outvars, name=self.name)

    @cached_property
    def size_names(self) -> frozenset[str]:
        """The names of the symbolic sizes in its types and parameters, bodies included."""
        shapes = {var.aval.shape for eqn in self.eqns for var in eqn.outvars}
        shapes.update([var.aval.shape for var in (*self.constvars, *self.invars)])
        names: set[str] = set().union(*map(size_names, shapes))
        for eqn in self.eqns:
            if eqn.params:
                names |= size_names(tuple(eqn.params.values()))
        return frozenset(names)

    @cached_property
    def primitives(self) -> frozenset[Primitive]:
        """The primitives of its equations, those of bodies not included: a pass that looks for some
        of them asks here first, as walking a long program for each pass takes longer than most."""
        return frozenset({eqn.primitive for eqn in self.eqns})

    @cached_property
    def calls(self) -> tuple[Equation, ...]:
        """Its equations that have bodies."""
        if not any(p.higher_order for p in self.primitives):
            return ()
        return tuple([eqn for eqn in self.eqns if any(True for _ in subjaxprs(eqn))])

    @cached_property
    def dtypes(self) -> frozenset[np.dtype[Any]]:
        """The dtypes of its values, those of bodies not included."""
        made = {v.aval.dtype for eqn in self.eqns for v in eqn.outvars}
        literals = {v.aval.dtype for eqn in self.eqns for v in eqn.invars if type(v) is Literal}
        return frozenset(made | literals | {
            v.aval.dtype for v in (*self.constvars, *self.invars, *self.outvars)})

    @cached_property
    def axis_names(self) -> frozenset[Any]:
        """The named axes that its collectives refer to, bodies included."""
        names: set[Any] = set()
        for eqn in self.eqns:
            if eqn.primitive.collective:
                names.update(axis_names(eqn.params["axis_name"]))
            for body in subjaxprs(eqn):
                names |= body.axis_names
        return frozenset(names)

    @cached_property
    def meshes(self) -> frozenset[Mesh]:
        """The meshes of devices that its operations name, bodies included."""
        found: set[Mesh] = set()
        for eqn in self.eqns:
            for value in eqn.params.values():
                if isinstance(value, Mesh):
                    found.add(value)
                elif isinstance(value, NamedSharding):
                    found.add(value.mesh)
            for body in subjaxprs(eqn):
                found |= body.meshes
        return frozenset(found)

    @cached_property
    def decided_names(self) -> frozenset[str]:
        """The names of the sizes that its operations decide as they run, bodies included."""
        return frozenset().union(*map(decided_names, self.calls))

    def __str__(self) -> str:
        return jaxpr_text(self)

    def __repr__(self) -> str:
        return str(self)

    _repr_html_: ClassVar[Callable[[Any], str]] = str
    """What a notebook shows; `functrans.program_views` sets it to a view with colours."""


class ClosedJaxpr(Record, eq=False):
    """A jaxpr together with the values of its constants.

    >>> closed = ft.make_jaxpr(lambda x: x + jnp.arange(2.0))(1.0)
    >>> type(closed).__name__, len(closed.consts)
    ('ClosedJaxpr', 1)
    """

    jaxpr: Jaxpr
    consts: tuple[Any, ...]

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> tuple[Equation, ...]:
        return self.jaxpr.eqns

    @property
    def literals(self) -> tuple[Any, ...]:
        return self.consts

    def replace(self, **changes: Any) -> ClosedJaxpr:
        return replace(self, **changes)

    def __str__(self) -> str:
        return jaxpr_text(self.jaxpr)

    def __repr__(self) -> str:
        return str(self)

    _repr_html_: ClassVar[Callable[[Any], str]] = str


def size_names(value: Any) -> frozenset[str]:
    """The names of the symbolic sizes in a shape or a parameter."""
    if isinstance(value, Dim):
        return value.names()
    if isinstance(value, ShapedArray):
        return size_names(value.shape)
    if isinstance(value, Jaxpr):
        return value.size_names
    if type(value) is tuple:
        return frozenset().union(*map(size_names, value))
    return frozenset()


def decided_names(eqn: Equation) -> frozenset[str]:
    """The names of the sizes that an equation decides as it runs, those of its bodies included."""
    if not eqn.primitive.higher_order:
        return frozenset()
    decided = eqn.primitive.decided_sizes(eqn.params)
    return decided.union(*[body.decided_names for body in subjaxprs(eqn)])


def subjaxprs(eqn: Equation) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters (the bodies of higher-order primitives)."""
    return jaxprs_in(eqn.params)


def jaxprs_in(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an operation.

    >>> eqn = ft.make_jaxpr(ft.jit(jnp.sin))(1.0).eqns[0]
    >>> len(list(ft.extend.core.jaxprs_in_params(eqn.params)))
    1
    """
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


def with_bodies(eqn: Equation, change: Callable[[Jaxpr], Jaxpr]) -> Equation:
    """An equation whose bodies are changed; the equation itself where none of them is."""
    def changed(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            inner = change(value.jaxpr)
            return value if inner is value.jaxpr else value.replace(jaxpr=inner)
        if isinstance(value, Jaxpr):
            return change(value)
        if isinstance(value, tuple):
            new = tuple([changed(v) for v in value])
            return value if all(a is b for a, b in zip(new, value, strict=True)) else new
        return value

    params = {k: changed(v) for k, v in eqn.params.items()}
    same = all(params[k] is v for k, v in eqn.params.items())
    return eqn if same else eqn.replace(params=params)


class _Names:
    """Letters for variables in the order in which they are met: a, b, ..., z, ba, bb, ..."""

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}

    def __call__(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return f"{literal_text(atom.value)}:{atom.aval}"
        name = self._names.get(atom)
        if name is None:
            name = self._names[atom] = letters(len(self._names))
        return name

    def typed(self, atom: Atom) -> str:
        return f"{self(atom)}:{atom.aval}"


def letters(n: int) -> str:
    n, last = divmod(n, 26)
    return (letters(n) if n else "") + chr(ord("a") + last)


def literal_text(value: Any) -> str:
    """The shortest number that is the value in its dtype: `1e-05` of a float32, not 9.99e-06."""
    if hasattr(value, "dtype") and value.dtype.kind in "fcV":
        return str(value)
    return repr(value.item()) if hasattr(value, "item") else repr(value)


def jaxpr_text(jaxpr: Jaxpr, indent: int = 0) -> str:
    """The program as text, `{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }`."""
    pad = "\n" + " " * (indent + 4)
    head, lines, outs = jaxpr_parts(jaxpr, indent)
    body = "".join(pad + line for line in lines)
    flat = f"{head}{' ' if lines else ''}{'; '.join(lines)} in ({outs}) }}"
    if len(lines) <= 1 and len(flat) + indent <= 100 and "\n" not in flat:
        return flat
    return f"{head}{body}\n{' ' * (indent + 2)}in ({outs}) }}"


def jaxpr_parts(jaxpr: Jaxpr, indent: int = 0) -> tuple[str, list[str], str]:
    """The texts of the inputs, of each equation and of the outputs of a program."""
    names = _Names()
    head = (f"{{ lambda {' '.join(map(names.typed, jaxpr.constvars))}; "
            f"{' '.join(map(names.typed, jaxpr.invars))}. let")
    lines = [_equation_text(eqn, names, indent + 4) for eqn in jaxpr.eqns]
    outs = ", ".join(map(names, jaxpr.outvars)) + ("," if len(jaxpr.outvars) == 1 else "")
    return head, lines, outs


def equation_text(jaxpr: Jaxpr, eqn: Equation) -> tuple[str, list[str]]:
    """An equation of a program as it is printed there, and the names of its operands."""
    names = _Names()
    for var in (*jaxpr.constvars, *jaxpr.invars):
        names(var)
    for other in jaxpr.eqns:
        if other is eqn:
            break
        for atom in (*other.invars, *other.outvars):
            names(atom)
    return _equation_text(eqn, names, 4), [names(a) for a in eqn.invars]


def _equation_text(eqn: Equation, names: _Names, indent: int) -> str:
    ins = " ".join(map(names, eqn.invars))
    outs = " ".join(map(names.typed, eqn.outvars))
    params = _params_text(eqn.params, indent + 2)
    return f"{outs} = {eqn.primitive.name}{params} {ins}".rstrip()


def _params_text(params: Mapping[str, Any], indent: int) -> str:
    if not params:
        return ""
    items = [f"{key}={param_text(value, indent + 2)}" for key, value in sorted(params.items())]
    flat = f"[{' '.join(items)}]"
    if len(flat) <= 72 and "\n" not in flat:
        return flat
    pad = "\n" + " " * (indent + 2)
    return "[" + "".join(pad + item for item in items) + "\n" + " " * indent + "]"


def param_text(value: Any, indent: int) -> str:
    if isinstance(value, ClosedJaxpr):
        value = value.jaxpr
    if isinstance(value, Jaxpr):
        return jaxpr_text(value, indent)
    if isinstance(value, tuple) and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        pad = "\n" + " " * indent
        return "(" + "".join(pad + param_text(v, indent) for v in value) + ")"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)
