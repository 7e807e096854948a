"""The names that users of JAX, PyTorch and NumPy type, and what does the same here.

Data alone; `missing_names` looks names up. An entry is what to write instead, as code; text behind
a `#` says why. In code `ft` is functrans, `jnp` functrans.numpy, `x` the array, `key` a random key.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.core.foreign_names_of_jax import LAX, MODULES, TOP_LEVEL

__all__ = ["FUNCTIONS", "KEYWORDS", "METHODS", "MODULE_NAMES"]

FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType({
    # transformations
    "tree_map": "ft.tree.map(fun, tree)", "tree_multimap": "ft.tree.map(fun, tree, other)",
    "tree_leaves": "ft.tree.leaves(tree)", "tree_flatten": "ft.tree.flatten(tree)",
    "tree_unflatten": "ft.tree.unflatten(structure, leaves)",
    "tree_structure": "ft.tree.structure(tree)", "tree_reduce": "ft.tree.reduce(fun, tree)",
    "tree_transpose": "ft.tree.transpose(outer, inner, tree)", "tree_all": "ft.tree.all(tree)",
    "xmap": "ft.vmap(fun, axis_name=...)", "compile": "ft.jit(fun)", "script": "ft.jit(fun)",
    "function": "ft.jit(fun)", "njit": "ft.jit(fun)", "xla_computation": "ft.lower(fun, *args)",
    "record_function": "ft.named_scope(name)",
    "Function": "ft.custom_vjp(fun)",
    "no_grad": "ft.lax.stop_gradient(x)", "inference_mode": "ft.lax.stop_gradient(x)",
    "enable_grad": "ft.grad(fun)", "autograd": "ft.grad(fun), ft.vjp(fun, *args)",
    "backward": "ft.grad(fun)", "elementwise_grad": "ft.vmap(ft.grad(fun))",
    "GradientTape": "ft.grad(fun)", "gradient": "ft.grad(fun)", "grads": "ft.grad(fun)",
    "jacobian_forward": "ft.jacfwd(fun)", "jac": "ft.jacobian(fun)", "hess": "ft.hessian(fun)",
    "derivative": "ft.grad(fun)", "functional_call": "fun(params, x)  # parameters are arguments",
    "make_functional": "fun(params, x)  # parameters are arguments", "func": "ft.grad, ft.vmap",
    "vectorized_map": "ft.vmap(fun)", "batch": "ft.vmap(fun)",
    "set_default_dtype": 'ft.default_dtypes("float64", "int64")',
    "default_dtype": 'ft.default_dtypes("float64", "int64")',
    "set_float32_matmul_precision": 'ft.config.matmul_precision("high")',
    "set_device": 'ft.config.default_device("cuda:0")', "get_device": "x.device",
    "cuda": 'ft.devices("cuda")',
    "synchronize": "ft.block_until_ready(x)",
    "detect_anomaly": "ft.debug_nans()", "seterr": "ft.debug_nans()", "errstate": "ft.debug_nans()",
    "print": "ft.debug.print(text, x)", "pdb": "ft.debug.callback(fun, x)",
    "host_callback": "ft.pure_callback, ft.io_callback, ft.debug.callback",
    "DeviceArray": "ft.Array", "Tensor": "ft.Array", "Tracer": "ft.Array",
    "cond": "ft.lax.cond(pred, true_fun, false_fun, *operands)",
    # making arrays
    "tensor": "jnp.array(values)", "as_tensor": "jnp.asarray(values)",
    "from_numpy": "jnp.asarray(values)", "to_tensor": "jnp.asarray(values)",
    "constant": "jnp.asarray(values)", "Variable": "jnp.array(values)  # arrays are immutable",
    "Parameter": "jnp.array(values)  # parameters are arguments", "asfarray": "jnp.asarray(x)",
    "ascontiguousarray": "jnp.asarray(x)", "asfortranarray": "jnp.asarray(x)",
    "asanyarray": "jnp.asarray(x)", "require": "jnp.asarray(x)", "mat": "jnp.asarray(x)",
    "matrix": "jnp.asarray(x)", "zeros_initializer": "ft.nn.initializers.zeros",
    "loadtxt": "jnp.asarray(np.loadtxt(file))", "genfromtxt": "jnp.asarray(np.genfromtxt(file))",
    "memmap": "jnp.asarray(np.memmap(file))",
    # movement
    "unsqueeze": "jnp.expand_dims(x, axis)", "cat": "jnp.concatenate(arrays)",
     "permute": "jnp.transpose(x, axes)",
    "movedim": "jnp.moveaxis(x, source, destination)", "swapdims": "jnp.swapaxes(x, a, b)",
    "t": "x.T", "view": "jnp.reshape(x, shape)", "expand": "jnp.broadcast_to(x, shape)",
    "chunk": "jnp.array_split(x, n)", "narrow": "ft.lax.dynamic_slice_in_dim(x, start, size, axis)",
    "repeat_interleave": "jnp.repeat(x, n, axis)", "row_stack": "jnp.vstack(arrays)",
    "unbind": "[x[i] for i in range(len(x))]", "numel": "jnp.size(x)",
    "index_select": "jnp.take(x, indices, axis)", "masked_select": "x[mask]",
    "masked_fill": "jnp.where(mask, value, x)", "gather_nd": "x[indices]",
    "index_add": "x.at[indices].add(values)", "scatter_nd": "x.at[indices].add(values)",
    "index_update": "x.at[indices].set(values)", "copyto": "x.at[mask].set(values)",
     "putmask": "jnp.where(mask, values, x)",
    "tensor_scatter_nd_update": "x.at[indices].set(values)", "in1d": "jnp.isin(x, y)",
    # arithmetic
    "mm": "jnp.matmul(x, y)", "bmm": "jnp.matmul(x, y)", "mv": "jnp.matmul(x, y)",
    "addmm": "c + x @ y", "baddbmm": "c + x @ y", "mul": "jnp.multiply(x, y)",
    "sub": "jnp.subtract(x, y)", "div": "jnp.divide(x, y)", "neg": "jnp.negative(x)",
    "eq": "jnp.equal(x, y)", "ne": "jnp.not_equal(x, y)", "lt": "jnp.less(x, y)",
    "le": "jnp.less_equal(x, y)", "gt": "jnp.greater(x, y)", "ge": "jnp.greater_equal(x, y)",
    "clamp": "jnp.clip(x, low, high)", "clip_by_value": "jnp.clip(x, low, high)",
    "lerp": "x + t * (y - x)", "addcmul": "c + x * y", "addcdiv": "c + x / y",
    "mod": "jnp.mod(x, y)", "ln": "jnp.log(x)", "inverse": "jnp.linalg.inv(x)",
    "reduce_sum": "jnp.sum(x, axis)", "reduce_mean": "jnp.mean(x, axis)",
    "reduce_max": "jnp.max(x, axis)", "reduce_min": "jnp.min(x, axis)",
    "var_mean": "jnp.var(x), jnp.mean(x)", "std_mean": "jnp.std(x), jnp.mean(x)",
    "aminmax": "jnp.min(x), jnp.max(x)", "topk": "ft.lax.top_k(x, k)",
    "histc": "jnp.histogram(x, bins)", "unique_consecutive": "jnp.unique(x)",
    "product": "jnp.prod(x)", "cumproduct": "jnp.cumprod(x)", "alltrue": "jnp.all(x)",
    "sometrue": "jnp.any(x)", "trapz": "jnp.trapezoid(y, x)", "msort": "jnp.sort(x, axis=0)",
    "asscalar": "x.item()", "norm": "jnp.linalg.norm(x)",
    "renorm": "x / jnp.linalg.norm(x)", "cdist": "jnp.linalg.norm(x[:, None] - y, axis=-1)",
    "sigmoid": "ft.nn.sigmoid(x)", "expit": "ft.scipy.special.expit(x)",
    "logsumexp": "ft.nn.logsumexp(x)", "cross_entropy": "-(labels * ft.nn.log_softmax(x)).sum(-1)",
    "mse_loss": "jnp.mean((x - y) ** 2)", "linear": "x @ w + b", "dropout":
    "jnp.where(ft.random.bernoulli(key, keep, x.shape), x / keep, 0)",
    "scaled_dot_product_attention": "ft.nn.dot_product_attention(query, key, value)",
    "MultiheadAttention": "ft.nn.dot_product_attention(query, key, value)",
    "embedding": "table[indices]", "Embedding": "table[indices]",
    "conv1d": "ft.lax.conv_general_dilated(x, w, strides, padding)",
    "conv2d": "ft.lax.conv_general_dilated(x, w, strides, padding)",
    "conv3d": "ft.lax.conv_general_dilated(x, w, strides, padding)",
    "max_pool2d": "ft.lax.reduce_window(x, -jnp.inf, ft.lax.max, window, strides, padding)",
    "avg_pool2d": "ft.lax.reduce_window(x, 0.0, ft.lax.add, window, strides, padding)",
    "Module": "fun(params, x)  # a model is a function of its parameters",
    "Linear": "x @ w + b  # a model is a function of its parameters",
    "Sequential": "fun(params, x)  # a model is a function of its parameters",
    "while": "ft.lax.while_loop(test, body, x)",
    "for_loop": "ft.lax.fori_loop(start, stop, body, x)", "if": "ft.lax.cond(pred, f, g, x)",
    "foldl": "ft.lax.scan(body, init, xs)", "map_fn": "ft.lax.map(fun, xs)",
    "tie_in": "x",
    # random numbers
    "manual_seed": "key = ft.random.key(seed)", "seed": "key = ft.random.key(seed)",
    "set_seed": "key = ft.random.key(seed)", "default_rng": "key = ft.random.key(seed)",
    "Generator": "key = ft.random.key(seed)", "RandomState": "key = ft.random.key(seed)",
    "rand": "ft.random.uniform(key, shape)", "random": "ft.random.uniform(key, shape)",
    "random_sample": "ft.random.uniform(key, shape)", "randn": "ft.random.normal(key, shape)",
    "standard_normal": "ft.random.normal(key, shape)",
    "randperm": "ft.random.permutation(key, n)",
    "shuffle": "ft.random.permutation(key, x)",
    "rand_like": "ft.random.uniform(key, x.shape, x.dtype)",
    "randn_like": "ft.random.normal(key, x.shape, x.dtype)",


})
"""What does the same, by a name that other libraries have in one of their modules."""

MODULE_NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({
    **MODULES,
    "functrans": {
        **TOP_LEVEL,
        "random_seed": "key = ft.random.key(seed)",
        "PRNGKey": "ft.random.key(seed)",
        "experimental": "ft.export, ft.checked, ft.pure_callback  # nothing is experimental here",
        "image": "ft.lax, ft.numpy", "monitoring": "ft.explain_retrace",
        "optim": "ft.tree.map(lambda p, g: p - rate * g, params, grads)",
    },
    "functrans.lax": LAX,
    "functrans.scipy": {
        "constants": "scipy.constants  # numbers of Python, which arrays take",
        "io": "jnp.asarray(scipy.io.loadmat(file)[name])",
        "datasets": "jnp.asarray(scipy.datasets.face())",
        "odr": "ft.scipy.optimize.least_squares  # with the distances in both variables",
        "fftpack": "ft.scipy.fft",
    },
    "functrans.scipy.stats": {
        "mstats": 'stats.skew(x, nan_policy="omit"), with NaN for what a mask hides',
    },
    "functrans.scipy.linalg": {
        **dict.fromkeys(("get_blas_funcs", "get_lapack_funcs", "find_best_blas_type", "blas",
                         "lapack"), "ft.scipy.linalg, ft.numpy.linalg, ft.lax.linalg"
                        "  # routines of BLAS and LAPACK write into memory, which arrays are not"),
    },
    "functrans.debug": {
        "inspect_array_sharding": "ft.explain(fun, x)  # shows where values lie",
        "DebugEffect": "ft.debug.callback(fun, x)  # effects are of primitives",
        "OrderedDebugEffect": "ft.debug.callback(fun, x, ordered=True)"
            "  # effects are of primitives",
    },
    "functrans.tree_util": {
        "default_registry": "ft.tree_util.register_pytree_node(...)  # there is one registry",
    },
    "functrans.config": {
        "debug_nans": "ft.debug_nans()",
    },
    "functrans.random": {
        "random_gamma_p": "ft.random.gamma(key, a)  # a composition, not a primitive",
        "split_key": "ft.random.split(key)", "new_key": "ft.random.split(key)",
        "integers": "ft.random.randint(key, shape, low, high)",
        "choices": "ft.random.choice(key, x, shape)",
    },
    "functrans.numpy": {
        "random": "ft.random", "float": "float or jnp.float32", "int": "int or jnp.int32",
        "bool": "bool or jnp.bool_", "float_": "jnp.float64", "complex_": "jnp.complex128",
        "ma": "jnp.where(mask, x, fill)  # masks are arrays of their own",
        "grad": "ft.grad(fun)", "nditer": "ft.vmap(fun)",
        "ndenumerate": "jnp.indices(x.shape)", "datetime64": "integers, seconds since a start",
        "char": "np.char  # arrays hold numbers", "polynomial": "jnp.polyval(p, x)",
    },
    "functrans.nn": {
        "functional": "ft.nn itself", "init": "ft.nn.initializers", "Parameter":
        "jnp.array(values)  # parameters are arguments of a function",
    },
})
"""Names that mean something in one module alone, which go first."""

METHODS: Final[Mapping[str, str]] = MappingProxyType({
    "numpy": "numpy.asarray(x)", "detach": "ft.lax.stop_gradient(x)", "cpu": 'ft.device_put(x, '
    'ft.devices("cpu")[0])', "cuda": 'ft.device_put(x, ft.devices("cuda")[0])',
    "to": "x.astype(dtype), or ft.device_put(x, device)", "type": "x.astype(dtype)",
    "float": 'x.astype("float32")', "double": 'x.astype("float64")', "half": 'x.astype("float16")',
    "bfloat16": 'x.astype("bfloat16")', "int": 'x.astype("int32")', "long": 'x.astype("int64")',
    "bool": 'x.astype("bool")', "type_as": "x.astype(y.dtype)", "byte": 'x.astype("uint8")',
    "requires_grad": "ft.grad(fun)  # what is differentiated is an argument of grad",
    "requires_grad_": "ft.grad(fun)  # what is differentiated is an argument of grad",
    "backward": "ft.grad(fun)  # gradients belong to functions", "grad": "ft.grad(fun)",
    "grad_fn": "ft.make_jaxpr(fun)", "zero_grad": "ft.grad(fun)  # nothing is accumulated",
    "clone": "jnp.array(x, copy=True)", "contiguous": "x  # arrays are contiguous",
    "is_contiguous": "True  # arrays are contiguous", "data": "x", "base": "x",
    "data_ptr": "numpy.asarray(x).ctypes.data",
    "ctypes": "numpy.asarray(x).ctypes", "flags": "numpy.asarray(x).flags",
    "unsqueeze": "jnp.expand_dims(x, axis)", "permute": "x.transpose(axes)",
    "dim": "x.ndim", "ndimension": "x.ndim", "numel": "x.size", "nelement": "x.size",
    "element_size": "x.itemsize", "get_device": "x.device", "is_cuda": "x.device",
    "expand": "jnp.broadcast_to(x, shape)", "expand_as": "jnp.broadcast_to(x, y.shape)",
    "view_as": "x.reshape(y.shape)", "reshape_as": "x.reshape(y.shape)", "t": "x.T",
    "H": "x.conj().T",
    "mH": "jnp.conj(x.mT)", "adjoint": "jnp.conj(x.mT)",
    "chunk": "jnp.array_split(x, n)", "split": "jnp.split(x, n)", "unbind": "list(x)",
    "narrow": "ft.lax.dynamic_slice_in_dim(x, start, size, axis)", "select": "jnp.take(x, i, axis)",
    "masked_fill": "jnp.where(mask, value, x)", "masked_select": "x[mask]",
    "index_select": "jnp.take(x, indices, axis)", "gather": "jnp.take_along_axis(x, indices, axis)",
    "scatter": "x.at[indices].set(values)", "scatter_add": "x.at[indices].add(values)",
    "index_add": "x.at[indices].add(values)", "index_fill": "x.at[indices].set(value)",
    "fill": "jnp.full_like(x, value)", "put": "x.at[indices].set(values)",
    "itemset": "x.at[index].set(value)", "set": "x.at[index].set(value)",
    "setflags": "x  # arrays are never written to", "resize": "jnp.resize(x, shape)",
    "tofile": "numpy.asarray(x).tofile(file)", "dump": "numpy.save(file, x)",
    "append": "jnp.append(x, values)", "extend": "jnp.concatenate([x, values])",
    "insert": "jnp.insert(x, index, values)", "pop": "x[:-1]", "index": "jnp.argmax(x == value)",
    "count": "jnp.count_nonzero(x == value)", "map": "ft.vmap(fun)(x)", "apply": "ft.vmap(fun)(x)",
    "mm": "x @ y", "bmm": "x @ y", "matmul": "x @ y", "mv": "x @ y", "length": "len(x)",
    "abs": "jnp.abs(x)", "pow": "x ** y", "norm": "jnp.linalg.norm(x)", "inverse":
    "jnp.linalg.inv(x)", "det": "jnp.linalg.det(x)", "clamp": "x.clip(low, high)",
    "softmax": "ft.nn.softmax(x)", "log_softmax": "ft.nn.log_softmax(x)", "relu": "ft.nn.relu(x)",
    "sigmoid": "ft.nn.sigmoid(x)", "topk": "ft.lax.top_k(x, k)",
    "partition": "jnp.partition(x, kth)",
    "is_ready": "x.block_until_ready()", "delete": "del x",
    "copy_to_host_async": "ft.device_get(x)", "on_device_size_in_bytes": "x.nbytes",
    "unsafe_buffer_pointer": "numpy.asarray(x).ctypes.data",
    **{name: f"x = {code}  # arrays are immutable" for name, code in {
        "add_": "x + y", "sub_": "x - y", "mul_": "x * y", "div_": "x / y", "pow_": "x ** y",
        "neg_": "-x", "abs_": "jnp.abs(x)", "exp_": "jnp.exp(x)", "sqrt_": "jnp.sqrt(x)",
        "copy_": "y", "zero_": "jnp.zeros_like(x)", "fill_": "jnp.full_like(x, value)",
        "clamp_": "x.clip(low, high)", "relu_": "ft.nn.relu(x)", "sigmoid_": "ft.nn.sigmoid(x)",
        "tanh_": "jnp.tanh(x)", "round_": "x.round()", "floor_": "jnp.floor(x)",
        "normal_": "ft.random.normal(key, x.shape)", "uniform_": "ft.random.uniform(key, x.shape)",
        "random_": "ft.random.randint(key, x.shape, low, high)",
        "masked_fill_": "jnp.where(mask, value, x)", "scatter_": "x.at[indices].set(values)",
        "scatter_add_": "x.at[indices].add(values)", "index_add_": "x.at[indices].add(values)",
        "index_copy_": "x.at[indices].set(values)", "index_fill_": "x.at[indices].set(value)",
        "squeeze_": "x.squeeze()", "unsqueeze_": "jnp.expand_dims(x, axis)", "t_": "x.T",
        "transpose_": "x.transpose(axes)", "detach_": "ft.lax.stop_gradient(x)",
        "resize_": "jnp.resize(x, shape)", "set_": "y"}.items()},
})
"""What does the same, by a method or attribute that arrays of other libraries have."""

KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "dim": ("axis", "axes", "dimension"), "dims": ("axis", "axes"), "axes": ("axis",),
    "axis": ("axes", "dimension", "dimensions", "axis_name"), "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",), "size": ("shape",), "in_dims": ("in_axes",),
    "out_dims": ("out_axes",), "in_axis": ("in_axes",), "out_axis": ("out_axes",),
    "argnum": ("argnums",), "args": ("argnums",), "wrt": ("argnums",),
    "static_args": ("static_argnums", "static_argnames"),
    "static_argnum": ("static_argnums",), "static_argname": ("static_argnames",),
    "donate_args": ("donate_argnums",), "donate": ("donate_argnums",),
    "dynamic": ("dynamic_shapes",), "unbiased": ("ddof", "correction"),
    "correction": ("ddof",), "ddof": ("correction",), "type": ("dtype",), "batch_size":
    ("chunk_size",), "chunks": ("chunk_size",), "input": ("x", "a"),
    "other": ("y", "b", "x2"), "mask": ("where",), "aux": ("has_aux",), "num_steps": ("length",),
    "steps": ("length", "num"), "low": ("minval",), "high": ("maxval",), "a_min": ("min",),
    "a_max": ("max",), "name": ("axis_name",), "init_carry": ("init",),
    "initial": ("init",),
    "index": ("indices",), "sections": ("indices_or_sections",),
})
"""Parameters of the same meaning, of which the first that a function has is the one to write."""
