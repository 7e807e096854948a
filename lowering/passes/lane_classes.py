"""Classes of axes that are proved to be of lanes, which walk loops and branches of their own.

Besides what `separable` knows, lanes leave loops at different times. A loop over a batch of lanes
goes on while any of them does; a lane that is done keeps its state. That the test is one of all
lanes does not mix them if it can be shown that the body leaves such a lane alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.lowering.passes.lane_axes import RULES as RULES_OF_AXES
from functrans.lowering.passes.separable import RULES, AxisClasses, Tie
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import and_p, gt_p, lt_p, select_n_p
from functrans.primitives.control_flow.bodies import counted
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p
from functrans.primitives.shape import reshape_p

__all__ = ["RULES_OF_LANES", "SCATTERS", "classes_of_lanes", "learn_makers", "rules_of_lanes",
           "running_of"]

Key = tuple[Any, ...]
NOTHING: Final[Mapping[Atom, Key]] = MappingProxyType({})
SCATTERS: Final = (scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p)


def classes_of_lanes(program: Jaxpr, believes_masks: bool = False) -> AxisClasses:
    """The classes of axes of a program, in which loops end for each lane by itself.

    See `running_of` for masks.
    """
    classes = AxisClasses(rules_of_lanes(program, believes_masks))
    classes.join(program)
    return classes


def rules_of_lanes(program: Jaxpr, believes_masks: bool = False) -> dict[Primitive, Tie]:
    """The rules of `classes_of_lanes` for a program."""
    known: dict[Atom, Equation] = {}
    readers: dict[Atom, list[Equation | None]] = {}
    learn_makers(program, known)
    _learn_readers(program, readers)
    return {**RULES_OF_LANES,
            while_p: lambda c, eqn: _while(c, eqn, known, believes_masks),
            reduce_or_p: lambda c, eqn: _any(c, eqn, known, readers)}


def learn_makers(program: Jaxpr, known: dict[Atom, Equation]) -> None:
    """What makes each value, in bodies too."""
    for eqn in program.eqns:
        known.update(dict.fromkeys(eqn.outvars, eqn))
        if eqn.primitive is scan_p and not eqn.params["num_carry"]:  # operands of an iteration
            first = eqn.params["num_consts"]
            for x, v in zip(eqn.invars, eqn.params["jaxpr"].invars, strict=True):
                which = {"shape": "one iteration"} if first <= 0 else {"shape": "all iterations"}
                known[v] = Equation(reshape_p, (x,), (v,), which, eqn.source)
                first -= 1
        for value in eqn.params.values():
            for body in value if isinstance(value, tuple) else (value,):
                if isinstance(body, Jaxpr):
                    learn_makers(body, known)


def _learn_readers(program: Jaxpr, readers: dict[Atom, list[Equation | None]]) -> None:
    """What reads each value: equations, and None for the results of a body."""
    for a in program.outvars:
        readers.setdefault(a, []).append(None)
    for eqn in program.eqns:
        for a in eqn.invars:
            readers.setdefault(a, []).append(eqn)
        for body in subjaxprs(eqn):
            _learn_readers(body, readers)


# ------------------------------------------------------------------------------- scatters


def _scatter(c: AxisClasses, eqn: Equation) -> None:
    """A scatter: each of a batch writes to a part of its own, all others to the same one."""
    RULES_OF_AXES[scatter_p](c, eqn)
    indices = eqn.invars[1]
    for k in range(indices.aval.ndim):
        if k not in eqn.params["dimension_numbers"].scatter_indices_batching_dims:
            c.mix(indices, k)


def _gather(c: AxisClasses, eqn: Equation) -> None:
    RULES_OF_AXES[gather_p](c, eqn)
    c.mix(eqn.invars[1], eqn.invars[1].aval.ndim - 1)


# ------------------------------------------------------------------------------- loops


def _same(c: AxisClasses, x: Atom, y: Atom) -> None:
    """Ties values that are the same; literals have no axes."""
    if isinstance(x, Var) and isinstance(y, Var):
        c.same(x, y)


def _any(c: AxisClasses, eqn: Equation, known: Mapping[Atom, Equation],
         readers: Mapping[Atom, Sequence[Equation | None]]) -> None:
    """Whether any lane takes a branch: lanes that do not are to ignore what it gives."""
    if not all(reader is not None and reader.primitive is cond_p and all(
            reader.invars[0] is eqn.outvars[0] and _is_ignored(v, eqn.invars[0], known, readers)
            for v in reader.outvars) for reader in readers.get(eqn.outvars[0], [None])):
        RULES[reduce_or_p](c, eqn)


def _is_ignored(value: Atom, taken: Atom, known: Mapping[Atom, Equation],
                readers: Mapping[Atom, Sequence[Equation | None]]) -> bool:
    """Whether a value is selected only where `taken` holds."""
    for reader in readers.get(value, ()):
        if reader is None or reader.primitive is not select_n_p or reader.invars[0] is value:
            return False
        which = reader.invars[0]
        while (made := known.get(which)) is not None and made.primitive in (
                broadcast_in_dim_p, reshape_p):
            which = made.invars[0]
        for k, case in enumerate(reader.invars[1:]):
            if case is value:
                given = {which: _literal(np.asarray(k, which.aval.dtype))}
                if _key_of(taken, known, given) != _literal(True):
                    return False
    return True


def _scan(c: AxisClasses, eqn: Equation) -> None:
    """A scan; of one without a carry the iterations are lanes, too."""
    body, first = eqn.params["jaxpr"], eqn.params["num_consts"]
    stacked = [*eqn.invars[first:], *eqn.outvars]
    if eqn.params["num_carry"] or not all(isinstance(v, Var) for v in (*stacked, *body.outvars)):
        RULES[scan_p](c, eqn)
        return
    c.join(body)
    for outer, inner in zip(eqn.invars[:first], body.invars, strict=False):
        _same(c, outer, inner)
    for outer, inner in zip(stacked, (*body.invars[first:], *body.outvars), strict=True):
        c.tie(outer, 0, stacked[0], 0)
        for k in range(inner.aval.ndim):
            c.tie(outer, k + 1, inner, k)


def _while(c: AxisClasses, eqn: Equation, known: Mapping[Atom, Equation],
           believes_masks: bool) -> None:
    p = eqn.params
    test, body = p["cond_jaxpr"], p["body_jaxpr"]
    tests, consts, carry = counted(eqn.invars, p["cond_nconsts"], p["body_nconsts"])
    c.join(body)
    if running_of(eqn, known, believes_masks) is None:
        c.join(test)
    for outer, inner in (*zip((*tests, *carry), test.invars, strict=True),
                         *zip((*consts, *carry), body.invars, strict=True),
                         *zip(body.outvars, body.invars[len(consts):], strict=False),
                         *zip(eqn.outvars, body.outvars, strict=True)):
        if inner.aval.shape == outer.aval.shape:
            _same(c, outer, inner)
        elif isinstance(outer, Var) and isinstance(inner, Var):  # a record of each iteration
            c.mix(outer, 0)
            for k in range(inner.aval.ndim):
                c.tie(outer, k + 1, inner, k)


def running_of(eqn: Equation, known: Mapping[Atom, Equation],
               believes_masks: bool = False) -> int | None:
    """Which carry of a loop says of each lane whether it goes on, if the test asks for any.

    None where the test is another, or where lanes that are done are not shown to stay as they are.
    That it says so of the initial state, too, is believed of loops that `vmap` has `masked`.
    """
    p = eqn.params
    test, body = p["cond_jaxpr"], p["body_jaxpr"]
    if p.get("record") is not None or len(test.eqns) != 1 or test.eqns[0].primitive \
            is not reduce_or_p or test.outvars[0] is not test.eqns[0].outvars[0]:
        return None
    asked = test.eqns[0].invars[0]
    if asked not in test.invars[p["cond_nconsts"]:]:
        return None
    k = test.invars.index(asked) - p["cond_nconsts"]
    given = eqn.invars[p["cond_nconsts"]:]
    known_first = believes_masks and p.get("masked", False)
    return k if _stays(body, p["body_nconsts"], k, given, known, known_first) else None


def _stays(body: Jaxpr, nc: int, running: int, given: Sequence[Atom],
           known: Mapping[Atom, Equation], known_first: bool) -> bool:
    """Whether a lane that is done keeps its state, and stays done.

    `running` is what the state after an iteration says: where that is false nothing changes, so it
    says the same again. It says so of the initial state, too, or all lanes run at first.
    """
    state = body.invars[nc:]
    done = {state[running]: _literal(False)}
    outs = _keys(body, done)
    if any(key != ("var", v) for k, (key, v) in enumerate(zip(outs, state, strict=True))
           if k != running):
        return False
    if not _reads_only(body, body.outvars[running], running, nc):
        return False
    first = _key_of(given[nc + running], known)
    if known_first or first == _literal(True):
        return True
    begin = {v: _key_of(x, known) for v, x in zip(body.invars, given, strict=True)} | done
    return _keys(body, begin)[running] == first


def _reads_only(body: Jaxpr, out: Atom, running: int, nc: int) -> bool:
    """Whether a result is computed from the next state alone, and constants."""
    after = {v for k, v in enumerate(body.outvars) if k != running}
    makers = {v: e for e in body.eqns for v in e.outvars}
    waiting, seen = [out], set()
    while waiting:
        v = waiting.pop()
        if isinstance(v, Literal) or v in after or v in seen:
            continue
        seen.add(v)
        if v in makers:
            waiting += makers[v].invars
        elif v not in body.invars[:nc]:
            return False
    return True


# --- values by what makes them: equal keys are equal values


def _literal(value: Any) -> Key:
    value = np.asarray(value)
    return ("literal", value.dtype.str, value.tobytes())


def _of_literal(x: Literal) -> Key:
    dtype = x.aval.dtype
    return _literal(np.asarray(x.value).astype(dtype)) if dtype.kind in "biuf" else ("var", x)


def _value(key: Key) -> Any:
    return np.frombuffer(key[2], key[1])[0]


def _keys(body: Jaxpr, given: Mapping[Any, Key]) -> list[Key]:
    """What the results of a body are, by the keys of some of its inputs."""
    env: dict[Any, Key] = dict(given)

    def read(a: Atom) -> Key:
        return _of_literal(a) if isinstance(a, Literal) else env.get(a, ("var", a))

    for eqn in body.eqns:
        keys = [read(a) for a in eqn.invars]
        for k, v in enumerate(eqn.outvars):
            env[v] = _applied(eqn, keys, k)
    return [read(a) for a in body.outvars]


def _key_of(x: Atom, known: Mapping[Atom, Equation], given: Mapping[Atom, Key] = NOTHING,
            depth: int = 12) -> Key:
    found: dict[tuple[Atom, int], Key] = {}

    def key_of(x: Atom, depth: int) -> Key:
        if isinstance(x, Literal):
            return _of_literal(x)
        if x in given:
            return given[x]
        eqn = known.get(x)
        if eqn is None or depth == 0 or len(eqn.outvars) > 1:
            return ("var", x)
        key = found.get((x, depth))
        if key is None:
            key = found[x, depth] = _applied(eqn, [key_of(a, depth - 1) for a in eqn.invars], 0)
        return key

    return key_of(x, depth)


def _has_body(value: Any) -> bool:
    return isinstance(value, Jaxpr) or (isinstance(value, tuple)
                                        and any(isinstance(v, Jaxpr) for v in value))


def _applied(eqn: Equation, keys: list[Key], k: int) -> Key:
    """The key of a result, with what constants decide decided."""
    p = eqn.primitive
    if p is broadcast_in_dim_p and keys[0][0] == "literal":
        return keys[0]
    if p in (reshape_p, transpose_p) and keys[0][0] == "literal":
        return keys[0]
    if p in (broadcast_in_dim_p, reshape_p) and keys[0][0] == "op" and isinstance(
            keys[0][1], Elementwise) and all(isinstance(key, tuple) and key and key[0] in (
                "op", "var", "literal") for key in keys[0][2:]):  # an operation of what is moved
        return ("op", keys[0][1], *(_applied(eqn, [key], k) for key in keys[0][2:]))
    if p is select_n_p and keys[0][0] == "literal":
        return keys[1 + int(_value(keys[0]))]
    if p is and_p:
        for x, y in (keys, keys[::-1]):
            if x == _literal(True):
                return y
            if x == _literal(False):
                return x
    if keys and len(eqn.outvars) == 1 and all(key[0] == "literal" for key in keys) and (
            isinstance(p, Elementwise) or p is convert_element_type_p) and (
            eqn.outvars[0].aval.dtype.kind in "biuf"):
        with np.errstate(all="ignore"):
            found = np.asarray(p.evaluate(*[_value(key) for key in keys], **eqn.params))
        return _literal(found.astype(eqn.outvars[0].aval.dtype))
    if p is gt_p:
        return ("op", lt_p, keys[1], keys[0])
    if not eqn.params and not k:
        return ("op", p, *keys)
    if any(map(_has_body, eqn.params.values())):
        return ("var", eqn.outvars[k])
    return ("op", p, *keys, tuple(sorted((n, str(v)) for n, v in eqn.params.items())), k)


RULES_OF_LANES: Final[dict[Primitive, Tie]] = {
    **RULES_OF_AXES, scan_p: _scan, gather_p: _gather,
    **dict.fromkeys(SCATTERS, _scatter)}
