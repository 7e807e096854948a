"""What random networks are made of: layers as lines of source, over a value named x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ACTIVATIONS", "LAYERS", "LOSSES", "Draft", "draw_loss", "draw_size"]

ACTIVATIONS = (
    *[f"nn.{name}(x)" for name in (
        "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
        "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
        "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh")],
    "nn.gelu(x, approximate=False)", "n.tanh(x)", "n.sin(x)", "n.maximum(x, 0)", "n.arctan(x)",
    "n.clip(x, -1, 1)", "x / (1 + n.abs(x))", "n.exp(-x * x)", "n.log1p(n.abs(x))",
    "n.sqrt(x * x + 1)", "n.where(n.abs(x) < 1, 0.5 * x * x, n.abs(x) - 0.5)", "x * nn.sigmoid(x)",
    "lax.erf(x)", "n.square(nn.relu(x))")

LOSSES = (
    "n.mean(x * x)", "n.mean(n.square(x - 1))", "n.mean(n.tanh(x))", "n.sum(x * x) / x.size",
    "n.mean(n.where(n.abs(x) < 1, 0.5 * x * x, n.abs(x) - 0.5))", "n.mean(nn.logsumexp(x, -1))",
    "n.mean(n.abs(x))", "n.sqrt(n.sum(x * x) + 1)", "n.mean(n.max(x, -1))",
    "n.mean(nn.softplus(-x))", "n.log(n.mean(n.exp(n.tanh(x))))", "n.var(x)",
    "n.mean(n.sqrt(n.sum(x * x, -1) + 1e-3))", "n.mean(nn.relu(1 - x))", "x.mean()",
    "n.mean(n.log(n.cosh(n.clip(x, -4, 4))))")


class Draft:
    """A network as far as it is drawn: the shape of x, lines so far, arguments, operations.

    In a program of single samples x has no leading axis, and no layer may speak of it.
    """

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...], per_sample: bool,
                 most_elements: int) -> None:
        self.rng = rng
        self.first = self.shape = shape
        self.per_sample = per_sample
        self.most_elements = most_elements
        self.lines: list[str] = []
        self.params: list[tuple[str, tuple[int, ...], float]] = []
        self.extras: list[tuple[str, tuple[int, ...], int, bool]] = []
        self.work = 10.0 * float(np.prod(shape))

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def features(self) -> int:
        return self.shape[-1]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.work += 10.0 * self.size

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def param(self, *shape: int, scale: float | None = None, letter: str = "w") -> str:
        name = f"{letter}{len(self.params)}"
        self.params.append((name, shape, shape[-2] ** -0.5 if scale is None else scale))
        return name

    def extra(self, shape: tuple[int, ...], high: int, by_row: bool = False,
              letter: str = "index") -> str:
        """An argument of integers below `high`, a mask for 0; `by_row`: one for each sample."""
        name = f"{letter}{len(self.extras)}"
        self.extras.append((name, shape, high, by_row))
        return name

    def width(self, most: int = 1000) -> int:
        """A number of features that x may get."""
        return draw_size(self.rng, 3, max(3, min(most, self.most_elements // max(
            self.size // self.features, 1))))

    def multiply(self, inner: int, outer: int) -> None:
        self.work += float(self.size) / self.features * inner * outer
        self.shape = (*self.shape[:-1], outer)


def activated(activation: str, of: str) -> str:
    """An activation of an expression; where it reads its argument several times, as a lambda."""
    head, _, tail = activation.partition("(x")
    if head.replace(".", "").replace("_", "").isalnum() and (tail == ")" or tail.startswith(",")):
        return f"{head}({of}{tail}"
    return f"(lambda x: {activation})({of})"


def draw_size(rng: np.random.Generator, low: int, high: int) -> int:
    """A size as programs have them: round, beside a power of two, or any."""
    any_size = round(np.exp(rng.uniform(np.log(low), np.log(high + 0.4))))
    kind = rng.random()
    if kind < 0.5:
        round_ones = [n for n in (1, 2, 4, 8, 16, 32, 64, 96, 100, 128, 192, 256, 384, 500, 512,
                                  640, 768, 1000, 1024, 2048, 4096, 8192) if low <= n <= high]
        return int(rng.choice(round_ones)) if round_ones else any_size
    if kind < 0.7:
        beside = 2 ** int(np.log2(any_size)) + int(rng.choice([-1, 1]))
        return min(max(beside, low), high)
    return any_size


# --- layers: each appends lines, or returns False where x is not made for it


def dense(d: Draft) -> bool | None:
    same = d.chance(0.4)
    k, m = d.features, d.features if same else d.width()
    form = d.rng.integers(4)
    w = d.param(m, k, scale=k ** -0.5) if form == 2 else d.param(k, m)
    product = {2: f"x @ {w}.T", 3: f'n.einsum("...i,ij->...j", x, {w})'}.get(
        int(form), f"x @ {w}")
    if d.chance(0.7):
        product += f" + {d.param(m, scale=0.1, letter='b')}"
    value = activated(d.pick(*ACTIVATIONS), product) if d.chance(0.8) else product
    d.multiply(k, m)
    d.line(f"x = x + {value}" if same and d.chance(0.6) else f"x = {value}")
    return None


def gated(d: Draft) -> bool | None:
    k, m = d.features, d.width()
    w, v = d.param(k, m), d.param(k, m)
    d.work += float(d.size) * m
    d.line(f"x = {activated(d.pick(*ACTIVATIONS), f'x @ {w}')} * (x @ {v})")
    d.multiply(k, m)
    return None


def block(d: Draft) -> bool | None:
    """Two products around an activation, beside x, after a norm: of a transformer."""
    k, m = d.features, min(4 * d.features, d.width(2048))
    w, v = d.param(k, m), d.param(m, k)
    d.work += 2.0 * d.size * m
    before = d.pick("x", "nn.standardize(x)", "x / n.sqrt(n.mean(x * x, -1, keepdims=True) + 1e-5)")
    d.line(f"y = {before}")
    d.line(f"x = x + {activated(d.pick(*ACTIVATIONS), f'y @ {w}')} @ {v}")
    return None


def elementwise(d: Draft) -> bool | None:
    value = d.pick(*ACTIVATIONS)
    d.line(f"x = {d.pick('', 'x + ', 'x * ')}{value if value.startswith('n') else f'({value})'}")
    return None


def norm(d: Draft) -> bool | None:
    scale, shift = (d.param(d.features, scale=1.0, letter=x) for x in "gb")
    forms = [f"nn.standardize(x) * {scale} + {shift}",
             f"x / n.sqrt(n.mean(x * x, -1, keepdims=True) + 1e-5) * {scale} + {shift}",
             f"(x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)"
             f" * {scale} + {shift}"]
    if not d.per_sample:
        axes = "0" if d.rank == 2 else d.pick("0", "(0, 1)")
        forms += [f"(x - n.mean(x, {axes})) / n.sqrt(n.var(x, {axes}) + 1e-3) * {scale} + {shift}",
                  f"nn.standardize(x, axis={axes}) * {scale} + {shift}"]
    d.line(f"x = {d.pick(*forms)}")
    return None


def convolution(d: Draft) -> bool | None:
    if d.rank != 3 or d.features > 256:
        return False
    k, m, width = d.features, d.width(128), d.pick(1, 2, 3, 5, 7)
    stride = d.pick(1, 1, 2)
    kernel = d.param(width, k, m, scale=(width * k) ** -0.5)
    padding = '"SAME"' if d.shape[1] < width else d.pick('"SAME"', '"VALID"')
    d.work += float(d.size) * width * m
    x, picked = ("x[None]", "[0]") if d.per_sample else ("x", "")
    d.line(f"x = lax.conv_general_dilated({x}, {kernel}, ({stride},), {padding}, "
           f'dimension_numbers=("NWC", "WIO", "NWC")){picked}')
    length = -(-(d.shape[1] - (width - 1) * (padding == '"VALID"')) // stride)
    d.shape = (d.shape[0], length, m)
    d.line(f"x = {d.pick(*ACTIVATIONS)}")
    return None


def images(d: Draft) -> bool | None:
    """A convolution of two dimensions over the features, which become a picture."""
    side = next((s for s in (28, 16, 12, 10, 8, 5, 4) if d.features % (s * s) == 0), 0)
    if d.rank != 2 or not side:
        return False
    c, m = d.features // side ** 2, int(d.pick(1, 4, 6, 16))
    if d.size * 9 * m > 40 * d.most_elements or d.size // c * m > d.most_elements:
        return False
    kernel = d.param(3, 3, c, m, scale=(9 * c) ** -0.5)
    d.work += 9.0 * d.size * m
    lead, picked = ("1", "[0]") if d.per_sample else ("x.shape[0]", "")
    d.line(f"x = lax.conv_general_dilated(x.reshape({lead}, {side}, {side}, {c}), {kernel}, "
           f'(1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")){picked}')
    d.line(f"x = {d.pick(*ACTIVATIONS)}")
    if side % 2 == 0 and d.chance(0.5):
        window = "(2, 2, 1)" if d.per_sample else "(1, 2, 2, 1)"
        d.line(f'x = lax.reduce_window_max(x, {window}, {window}, "VALID")')
        side //= 2
    d.line("x = x.reshape(-1)" if d.per_sample else "x = x.reshape(x.shape[0], -1)")
    d.shape = (d.shape[0], side * side * m)
    return None


def attention(d: Draft) -> bool | None:
    """Over the second axis from the end; of rows that is the rows."""
    length, k = d.shape[-2], d.features
    if (d.per_sample and d.rank == 2) or d.size // k * length > d.most_elements:
        return False
    size = d.pick(16, 32, 64, d.width(100))
    q, key, v = (d.param(k, size) for _ in range(3))
    d.work += 3.0 * d.size * size + 2.0 * d.size / k * length * size
    d.line(f"q, k, v = x @ {q}, x @ {key}, x @ {v}")
    d.line(f"s = q @ n.swapaxes(k, -1, -2) * {size ** -0.5:.4g}")
    if d.chance(0.4):
        d.line("s = n.where(n.tri(s.shape[-1], dtype=bool), s, -1e9)")
    d.line("x = nn.softmax(s) @ v")
    d.shape = (*d.shape[:-1], size)
    return None


def heads(d: Draft) -> bool | None:
    if d.rank != 3 or d.size * d.shape[1] > d.most_elements * 64:
        return False
    count = int(d.pick(1, 2, 4))
    if d.features % count or d.features // count < 3 \
            or d.size // d.features * count * d.shape[1] > d.most_elements:
        return False
    k = d.features
    w = d.param(k, 3 * k)
    d.work += 3.0 * d.size * k + 2.0 * d.size * d.shape[1]
    d.line(f"q, k, v = n.split(x @ {w}, 3, -1)")
    d.line(f"q, k, v = [y.reshape(*y.shape[:-1], {count}, -1) for y in (q, k, v)]")
    causal = d.pick("", ", is_causal=True")
    d.line(f"x = x + nn.dot_product_attention(q, k, v{causal}).reshape(x.shape)")
    return None


def recurrence(d: Draft) -> bool | None:
    k = d.features
    if d.rank == 3 and d.chance(0.6):
        m = d.width(256)
        w, u = d.param(k, m), d.param(m, m)
        d.work += float(d.size) * m + d.size / k * m * m
        cell = d.pick("n.tanh(x @ {w} + h @ {u})", "h + nn.sigmoid(x @ {w}) * n.tanh(h @ {u})",
                      "nn.relu(x @ {w} + h @ {u}) * 0.5").format(w=w, u=u)
        d.line("def cell(h, x):")
        d.line(f"    h = {cell}")
        d.line("    return h, h")
        d.line(f"h = n.zeros((*x.shape[:-2], {m}), x.dtype)")
        last = d.chance(0.3) and not d.per_sample
        if last:
            d.line("x = lax.scan(cell, h, n.moveaxis(x, -2, 0))[0]")
            d.shape = (d.shape[0], m)
        else:
            d.line("x = n.moveaxis(lax.scan(cell, h, n.moveaxis(x, -2, 0))[1], 0, -2)")
            d.shape = (*d.shape[:-1], m)
        return None
    steps = int(d.pick(2, 3, 5))
    if d.chance(0.5):
        w = d.param(k, k)
        d.line(f"x = lax.fori_loop(0, {steps}, lambda i, x: n.tanh(x @ {w}) + 0.5 * x, x)")
    else:
        w = d.param(steps, k, k)
        d.line(f"x = lax.scan(lambda x, w: ({activated(d.pick(*ACTIVATIONS), 'x @ w')}, None), "
               f"x, {w})[0]")
    d.work += float(steps) * d.size * k
    return None


def gather(d: Draft) -> bool | None:
    forms = ["columns"] + ["rows", "embedding", "along"] * (not d.per_sample)
    form = d.pick(*forms)
    if form == "columns":
        count = d.width(512)
        index = d.extra((count,), d.features)
        d.line(f"x = x[..., {index}]")
        d.shape = (*d.shape[:-1], count)
    elif form == "rows":
        count = min(draw_size(d.rng, 1, 4096), max(1, d.most_elements * d.shape[0] // d.size))
        index = d.extra((count,), d.shape[0])
        d.line(f"x = x[{index}]")
        d.shape = (count, *d.shape[1:])
    elif form == "embedding":
        entries = draw_size(d.rng, 2, 1000)
        index = d.extra(d.shape[:-1], entries)
        table = d.param(entries, d.features, scale=1.0)
        d.line(f"x = x + {table}[{index}]")
    else:
        index = d.extra((*d.shape[:-1], d.pick(1, 3, d.features)), d.features)
        d.line(f"x = n.take_along_axis(x, {index}, -1)")
        d.shape = d.extras[-1][1]
    return None


def order(d: Draft) -> bool | None:
    axis = -1 if d.per_sample and d.rank == 2 else d.pick(-1, -1, -2)
    if d.shape[axis] > 2048:
        return False
    if axis == -1 and d.chance(0.3) and d.features > 8:
        k = int(d.pick(1, 5, 8))
        d.line(f"x = lax.top_k(x, {k})[0]")
        d.shape = (*d.shape[:-1], k)
    else:
        d.line(d.pick(f"x = n.sort(x, {axis})",
                      f"x = n.take_along_axis(x, n.argsort(x, {axis}), {axis})"))
    d.work += 50.0 * d.size
    return None


def cumulative(d: Draft) -> bool | None:
    axis = -1 if d.per_sample and d.rank == 2 else d.pick(-1, -2)
    d.line(d.pick(f"x = n.cumsum(x, {axis}) / {d.shape[axis] ** 0.5:.4g}",
                  f"x = x + n.cumsum(x, {axis}) / {d.shape[axis]}",
                  f"x = lax.cummax(x, {d.rank + axis - d.per_sample})",
                  f"x = lax.cumlogsumexp(x, {d.rank + axis - d.per_sample})"))
    return None


def mask(d: Draft) -> bool | None:
    forms = ["x = n.where(x > -0.5, x, 0)", "x = n.where(n.abs(x) < 2, x * 1.25, 0)"]
    if not d.per_sample:
        name = d.extra(d.pick(d.shape, d.shape[:1] + (1,) * (d.rank - 1), d.shape[-1:]), 0,
                       letter="mask")
        forms = [f"x = n.where({name}, x * 2, 0)", f"x = x * {name}",
                 f"x = n.where({name}, x, {d.pick(*ACTIVATIONS)})"]
    d.line(d.pick(*forms))
    return None


def normalised(d: Draft) -> bool | None:
    axis = -1 if d.per_sample or d.chance(0.6) else d.pick(0, -2)
    d.line(d.pick(f"x = nn.softmax(x, axis={axis})", f"x = nn.log_softmax(x, axis={axis})",
                  f"x = x * nn.softmax(x, axis={axis})",
                  f"x = x - nn.logsumexp(x, {axis}, keepdims=True)",
                  f"x = x / (n.max(n.abs(x), {axis}, keepdims=True) + 1)"))
    return None


def moved(d: Draft) -> bool | None:
    k = d.features
    forms = ["x = n.roll(x, 1, -1)", "x = x[..., ::-1]", "x = n.flip(x, -1) + x"]
    form = d.pick("same", "halves", "glu", "wide", "pad")
    if form in ("halves", "glu") and k % 2 == 0 and k >= 6:
        d.line("x = nn.glu(x)" if form == "glu" else f"x = x[..., :{k // 2}] * x[..., {k // 2}:]")
        d.shape = (*d.shape[:-1], k // 2)
    elif form == "wide" and 2 * d.size <= d.most_elements and k <= 500:
        d.line(f"x = n.concatenate([x, {d.pick(*ACTIVATIONS)}], -1)")
        d.shape = (*d.shape[:-1], 2 * k)
    elif form == "pad" and 2 * d.size <= d.most_elements:
        before = "" if d.per_sample and d.rank == 2 else "(0, 0), " * (d.rank - 1 - d.per_sample)
        d.line(f"x = n.pad(x, ({before}(1, 2)))")
        d.shape = (*d.shape[:-1], k + 3)
    else:
        d.line(d.pick(*forms))
    return None


def pooled(d: Draft) -> bool | None:
    if d.rank != 3:
        return False
    d.line(d.pick("x = x.mean(-2)", "x = x.max(-2)", "x = x[..., -1, :]", "x = x.sum(-2) * 0.1"))
    d.shape = (d.shape[0], d.features)
    return None


def checkpointed(d: Draft) -> bool | None:
    k = d.features
    w = d.param(k, k)
    d.work += float(d.size) * k
    d.line(f"x = ft.checkpoint(lambda x: x + {activated(d.pick(*ACTIVATIONS), f'x @ {w}')})(x)")
    return None


LAYERS: dict[str, tuple[float, Callable[[Draft], bool | None]]] = {
    "dense": (6, dense), "gated": (1, gated), "block": (1.5, block),
    "elementwise": (1.5, elementwise), "norm": (2, norm), "convolution": (1.5, convolution),
    "images": (0.7, images), "attention": (1, attention), "heads": (1, heads),
    "recurrence": (1.5, recurrence), "gather": (1.5, gather), "order": (1, order),
    "cumulative": (1, cumulative), "mask": (1, mask), "normalised": (1, normalised),
    "moved": (1, moved), "pooled": (0.5, pooled), "checkpointed": (0.5, checkpointed),
}
"""Layers and how often they are drawn."""


def draw_loss(d: Draft) -> str:
    """The expression of a loss of x."""
    if not d.chance(0.3):
        return str(d.pick(*LOSSES))
    if d.rank == 3:
        d.line("x = x.mean(-2)")
        d.shape = (d.shape[0], d.features)
    if d.chance(0.5):
        classes = d.pick(2, 10, 16, 100)
        w, b = d.param(d.features, classes), d.param(classes, scale=0.1, letter="b")
        d.multiply(d.features, classes)
        d.line(f"x = x @ {w} + {b}")
    classes = d.features
    y = d.extra(d.shape[:-1], classes, by_row=True, letter="y")
    forms = [f"-n.mean(n.sum(nn.one_hot({y}, {classes}, dtype=x.dtype) * nn.log_softmax(x), -1))",
             f"n.mean(nn.logsumexp(x, -1) - n.take_along_axis(x, {y}[..., None], -1)[..., 0])"]
    if not d.per_sample:
        forms.append(f"-n.mean(nn.log_softmax(x)[n.arange(x.shape[0]), {y}])")
    return str(d.pick(*forms))
