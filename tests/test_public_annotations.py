"""Public functions say what they take and return, for editors and type checkers.

Annotations are read as text, and aliases of `functrans.typing` count as what they are called: `Any`
stands nowhere but in what functions of the user take and return, and `PyTree` only where any
nesting of containers is meant. What a function returns says something, in one of its overloads
where it has some, but for those in `OPEN`.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import get_overloads

import pytest

import functrans as ft
import functrans.scipy.stats
import functrans.typing

SPACES = ["functrans", "functrans.numpy", "functrans.numpy.linalg", "functrans.numpy.fft",
          "functrans.lax", "functrans.lax.linalg", "functrans.nn", "functrans.nn.initializers",
          "functrans.random", "functrans.flatten_util", "functrans.ops", "functrans.scipy.linalg",
          "functrans.scipy.sparse.linalg", "functrans.scipy.special",
          "functrans.tree", "functrans.tree_util", "functrans.debug", "functrans.dlpack",
          *(f"functrans.scipy.stats.{m.name}"
            for m in pkgutil.iter_modules(functrans.scipy.stats.__path__) if m.name != "common")]

# "function: parameter", or "function" for what it returns, where Any is the truth.
ANY = {
    "jit: dynamic_shapes": "names of axes, in the structure of the argument",
    "make_jaxpr: axis_env": "names of axes, which are any hashable values",
    "numpy.apply_along_axis: args": "of the user's function",
    "numpy.apply_along_axis: kwargs": "of the user's function",
    "numpy.finfo": "a class of ml_dtypes, which has no types",
    "numpy.fromfunction: kwargs": "of the user's function",
    "numpy.frompyfunc: identity": "a number of any dtype",
    "numpy.load: args": "of NumPy's function",
    "numpy.load: kwargs": "of NumPy's function",
    "numpy.iinfo": "a class of ml_dtypes, which has no types",
    "numpy.pad: kwargs": "options of the mode, or of the user's function",
    "numpy.piecewise: args": "of the user's functions",
    "numpy.piecewise: kw": "of the user's functions",
}
# Functions of pytrees, besides all of tree and tree_util.
OF_PYTREES = {
    "check_shapes", "closure_convert", "debug.breakpoint", "debug.callback", "debug.log",
    "debug.print", "debug.visualize", "device_get", "device_put", "draw", "eval_shape", "explain",
    "hvp", "io_callback", "jit", "jvp", "lax.cond", "lax.custom_linear_solve", "lax.custom_root",
    "lax.dce_sink", "lax.platform_dependent", "lax.precv", "lax.psend", "lax.reduce",
    "lax.reduce_window", "lax.switch", "lax.with_sharding_constraint", "linear_transpose",
    "linearize", "lower", "pmap", "profile", "pure_callback", "reshard", "shard_map", "smap",
    "vjp", "vmap",
}
# What holds something of unknown type: functions of the user, arrays and dtypes of NumPy.
HOLDERS = re.compile(r"(Callable\[[^\[\]]*(\[[^\[\]]*\])?[^\[\]]*\]|np\.ndarray\[Any, Any\]|"
                     r"np\.dtype\[Any\])")


def functions():
    for space in SPACES:
        module = importlib.import_module(space)
        short = space.removeprefix("functrans").removeprefix(".")
        names = getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")])
        for name in names:
            value = getattr(module, name)
            own = getattr(inspect.unwrap(value), "__module__", None) or ""
            if callable(value) and not isinstance(value, type) and own.startswith("functrans"):
                yield f"{short}.{name}".removeprefix("."), value


FUNCTIONS = dict(functions())


def annotations(function):
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        yield parameter.name, parameter.annotation
    yield None, signature.return_annotation


def mentions(word, annotation):
    return re.search(rf"\b{word}\b", HOLDERS.sub("", str(annotation))) is not None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_annotated(name):
    for parameter, annotation in annotations(FUNCTIONS[name]):
        place = f"{name}: {parameter}" if parameter else name
        assert annotation is not inspect.Parameter.empty, f"{place} has no annotation"
        assert not mentions("Any", annotation) or place in ANY or in_trees(name), \
            f"{place} is {annotation}"
        assert not mentions("PyTree", annotation) or name in OF_PYTREES or in_trees(name), \
            f"{place} is {annotation}"


def in_trees(name):
    return name.startswith(("tree.", "tree_util."))


def test_exceptions_are_needed():
    found = {f"{name}: {parameter}" if parameter else name
             for name, function in FUNCTIONS.items() if not in_trees(name)
             for parameter, annotation in annotations(function) if mentions("Any", annotation)}
    assert found == set(ANY)
    trees = {name for name, function in FUNCTIONS.items() if not in_trees(name)
             for _, annotation in annotations(function) if mentions("PyTree", annotation)}
    assert trees == OF_PYTREES


def test_functions_of_arrays_return_arrays():
    """Most of a namespace of functions on arrays returns an array, or a tuple or list of them."""
    for space in ("numpy", "lax", "nn", "random", "scipy.special", "numpy.linalg", "numpy.fft"):
        results = [str(inspect.signature(f).return_annotation) for name, f in FUNCTIONS.items()
                   if name.rpartition(".")[0] == space]
        arrays = [r for r in results if re.search(r"\bArray\b|Result\b", r)]
        assert len(arrays) > 0.75 * len(results) and results, space


def test_any_is_found():
    def loose(x: "Any", f: "Callable[..., Any]", y: "np.ndarray[Any, Any]") -> "list[Any]":  # noqa: F821
        return [x, f, y]

    assert [mentions("Any", a) for _, a in annotations(loose)] == [True, False, False, True]


# What they return depends on values that no annotation can say.
OPEN = {
    "check_shapes": "the structure that the user's function returns",
    "config.read": "the setting that its name says",
    "custom_derivatives.custom_vjp_primal_tree_values": "a tree without its markers",
    "custom_derivatives.linear_call": "what the user's function returns",
    "custom_derivatives.zero_from_primal": "zeros in the structure of the argument",
    "export.symbolic_args_specs": "ShapeDtypeStructs in the structure of the arguments",
    "lax.precv": "arrays of the types that are asked for",
    "lax.reduce_window": "arrays in the structure of the operands",
    "linear_transpose": "the structure of the arguments",
    "pmap": "what the user's function returns",
    "smap": "what the user's function returns",
    "quantize.quantize_tree": "a tree with other leaves",
    "lax.with_sharding_constraint": "a tree as it is", "reshard": "a tree as it is",
    "shard_map": "what the user's function returns, in whole",
    "sharding.reshard": "a tree as it is",
    "sparse.bcoo_dot_general": "sparse or dense, as the operands are",
    "sparse.bcsr_dot_general": "sparse or dense, as the operands are",
    "sparse.grad": "the structure of the argument",
    "sparse.jacfwd": "the structures of argument and result",
    "sparse.jacobian": "the structures of argument and result",
    "sparse.jacrev": "the structures of argument and result",
    "sparse.sparse_hessian": "sparse matrices in the structure of the result",
    "sparse.sparse_jacobian": "sparse matrices in the structure of the result",
    "sparse.sparsify": "sparse or dense, as the operations are",
    "sparse.value_and_grad": "the structure of the argument",
    "numpy_code": "what the user's function returns, with arrays for NumPy's",
    "tree.broadcast": "a tree", "tree.static": "a field of a dataclass",
    "tree.broadcast_prefix": "leaves of any kind", "tree.flatten": "leaves of any kind",
    "tree.flatten_with_path": "leaves of any kind", "tree.leaves": "leaves of any kind",
    "tree.leaves_with_path": "leaves of any kind", "tree.reduce_associative": "a leaf",
    "tree.transpose": "a tree", "tree.unflatten": "a tree",
    "weights.load": "a tree of the names in a file", "weights.names_of": "what a file holds",
}
# Those for programs that transform programs work on values of any kind.
INNER = ("functrans.core", "functrans.extend", "functrans.interpreters", "functrans.experimental",
         "functrans.tree_util")


def everything():
    """The public functions of all namespaces, by their names without `functrans.`."""
    todo, seen = ["functrans"], {}
    while todo:
        module = importlib.import_module(todo.pop())
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name)
            full = f"{module.__name__}.{name}".removeprefix("functrans.")
            if isinstance(value, ModuleType):
                if value.__name__.startswith("functrans") and not value.__name__.startswith(INNER):
                    todo.append(value.__name__)
            elif callable(value) and not isinstance(value, type) and not name.startswith("_") \
                    and not inspect.isbuiltin(value) \
                    and (getattr(inspect.unwrap(value), "__module__", "") or "").startswith(
                        "functrans"):
                seen[full] = value
    return seen


EVERYTHING = everything()


def results(function):
    """What the overloads of a function return, or the function."""
    inner = inspect.unwrap(function)
    variants = get_overloads(inner) if inspect.isfunction(inner) else []
    return [str(inspect.signature(f).return_annotation) for f in variants or [function]]


def says_something(annotation):
    known = re.sub(r"np\.(dtype|ndarray|finfo|iinfo)\[[^\]]*\]", "numpy", annotation)
    known = known.replace("Callable[[PyTree], tuple[*Primals,]]", "cotangents") \
        .replace("Callable[[PyTree, PyTree], PyTree]", "backward")
    return not re.search(r"\b(Any|PyTree|Decorator|_empty)\b", known) or "tuple[R, " in known


@pytest.mark.parametrize("space", sorted({name.rpartition(".")[0] for name in EVERYTHING}))
def test_results_say_something(space):
    silent = {name for name, function in EVERYTHING.items()
              if name.rpartition(".")[0] == space and not any(map(says_something,
                                                                  results(function)))}
    assert silent == {name for name in OPEN if name.rpartition(".")[0] == space}


def test_silence_is_noticed():
    assert not any(map(says_something, ["Any", "Callable[P, PyTree]", "list[Any]",
                                        "<class 'inspect._empty'>"]))
    assert all(map(says_something, ["Array", "Callable[P, R]", "np.dtype[Any]", "tuple[R, PyTree]",
                                    "Callable[Concatenate[A, P], A]"]))
    assert len(EVERYTHING) > 2000 and {"scipy.stats.norm.pdf", "lax.scan"} <= set(EVERYTHING)


def declared_methods():
    """The methods in the stub of what `methods.py` installs, by their names."""
    text = (Path(ft.__file__).parent / "_array_types.pyi").read_text()
    (methods,) = [node for node in ast.parse(text).body
                  if isinstance(node, ast.ClassDef) and node.name == "ArrayMethods"]
    return {node.name: node for node in methods.body if isinstance(node, ast.FunctionDef)}


def shape_of(arguments):
    """Names, kinds and whether there is a default, without what stands for the array itself."""
    places = [*arguments.posonlyargs, *arguments.args]
    first_default = len(places) - len(arguments.defaults)
    found = [(a.arg, i >= first_default) for i, a in enumerate(places)][1:]
    if arguments.vararg:
        found.append((f"*{arguments.vararg.arg}", False))
    found += [(f"{a.arg}=", d is not None)
              for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [*found, (f"**{arguments.kwarg.arg}", False)] if arguments.kwarg else found


def runtime_shape(function):
    kinds = inspect.Parameter
    found = []
    for p in list(inspect.signature(function).parameters.values())[1:]:
        text = {kinds.VAR_POSITIONAL: f"*{p.name}", kinds.KEYWORD_ONLY: f"{p.name}=",
                kinds.VAR_KEYWORD: f"**{p.name}"}.get(p.kind, p.name)
        found.append((text, p.default is not kinds.empty))
    return found


def test_declared_methods_are_those_that_there_are():
    declared = declared_methods()
    own = {name for name in dir(ft.Array) if not name.startswith("_")}
    known = set(vars(ft.Array)) | {n for base in ft.Array.__mro__ for n in vars(base)}
    assert set(declared) <= known
    from_methods = {name for name in own if getattr(getattr(ft.Array, name, None), "__module__", "")
                    in ("functrans.methods", "functrans.numpy.ufuncs")}
    assert from_methods <= set(declared)
    for name, node in declared.items():
        method = inspect.getattr_static(ft.Array, name)
        if isinstance(method, property):
            assert [d.id for d in node.decorator_list] == ["property"], name
        elif name != "compress":  # its options are those of the function
            assert shape_of(node.args) == runtime_shape(method), name


def test_declared_methods_have_the_documentation_of_the_methods():
    """Editors show what the stub says: the first sentence of what help() does."""
    for name, node in declared_methods().items():
        said = inspect.getdoc(inspect.getattr_static(ft.Array, name)) or ""
        if not name.startswith("__"):
            first = " ".join(said.partition("\n\n")[0].split())
            assert " ".join((ast.get_docstring(node) or "").split()) == first and first, name


def test_aliases_are_types_at_run_time():
    assert isinstance(ft.numpy.ones(2), ft.typing.ArrayLike)
    assert isinstance(2.0, ft.typing.ArrayLike) and not isinstance([2.0], ft.typing.ArrayLike)
    assert set(ft.typing.__all__) <= set(vars(ft.typing))
