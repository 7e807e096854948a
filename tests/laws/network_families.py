"""Layers of ordinary networks at the sizes of research: images, text, audio, graphs, volumes.

They are drawn beside those of `network_layers`, for an x with any number of axes: its first is the
batch, its last has features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.laws.network_layers import ACTIVATIONS, LAYERS, Draft, draw_loss

__all__ = ["FAMILIES", "ORDINARY_LAYERS", "draw_ordinary_loss", "draw_ordinary_shape"]

USUAL = ("nn.gelu(x)", "nn.silu(x)", "nn.relu(x)", "n.tanh(x)", "nn.leaky_relu(x)", "nn.elu(x)",
         "nn.softplus(x)", "n.square(nn.relu(x))", "nn.gelu(x, approximate=False)", "nn.mish(x)")
WIDTHS = (128, 192, 256, 320, 384, 512, 640, 768, 1000, 1024, 1280, 2048, 3072, 4096)
LENGTHS = (50, 64, 77, 128, 196, 197, 256, 257, 512, 577, 1000, 1024, 1500, 2048, 4096, 8192)
SIDES = (14, 28, 32, 56, 64, 96, 112, 128, 224, 227, 256, 299, 384, 512)
CHANNELS = (1, 3, 4, 12, 16, 24, 32, 48, 64, 96, 128, 144, 192, 256, 320, 512, 768, 1024)
HEAD_DIMS = (32, 40, 48, 64, 72, 80, 96, 128, 160, 256)
VOCABULARIES = (256, 1000, 8192, 30_522, 32_000, 50_257, 50_304, 128_256)
BATCHES = (1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64, 100, 128, 200, 256, 512)

FAMILIES = ("rows", "sequence", "image", "volume", "points")
"""What x is: rows of features, tokens, pictures, voxels, many rows of few features."""


def draw_ordinary_shape(rng: np.random.Generator, per_sample: bool, most: int) -> list[int]:
    """The shape of x in a network of one of FAMILIES."""
    def pick(values: tuple[int, ...], above: int = 0, to: int = 1 << 30) -> int:
        return int(rng.choice([v for v in values if above <= v <= to]))

    family = rng.choice(len(FAMILIES), p=(0.2, 0.35, 0.3, 0.05, 0.1))
    if FAMILIES[family] == "rows":
        shape = [pick((*BATCHES, 1024, 4096, 16_384)), pick(WIDTHS)]
    elif FAMILIES[family] == "sequence":
        shape = [pick(BATCHES), pick(LENGTHS), pick(WIDTHS)]
    elif FAMILIES[family] == "image":
        side = pick(SIDES)
        shape = [pick(BATCHES), side, side if rng.random() < 0.8 else pick(SIDES), pick(CHANNELS)]
    elif FAMILIES[family] == "volume":
        side = pick((8, 16, 24, 32, 64, 96))
        shape = [pick(BATCHES, 0, 16), side, side, pick((8, 16, 32, 64)), pick(CHANNELS, 0, 128)]
    else:
        shape = [pick((1000, 2708, 10_000, 65_536, 169_343, 1_000_000)), pick((3, 16, 50, 64, 128))]
    while np.prod([float(n) for n in shape]) > most:
        k = int(np.argmax(shape[:-1])) if shape[0] < 8 else 0
        shape[k] = max(1, shape[k] // 2)
    return shape


# --- layers: each appends lines, or returns False where x is not made for it


def fits(d: Draft, shape: tuple[Any, ...]) -> bool:
    return float(np.prod([float(n) for n in shape])) <= d.most_elements


def act(d: Draft) -> None:
    d.line(f"x = {d.pick(*USUAL) if d.chance(0.8) else d.pick(*ACTIVATIONS)}")


def spatial(d: Draft) -> int:
    return d.rank - 2


def convolution(d: Draft) -> bool | None:
    """Any rank, strides, dilations, groups; channels last or first."""
    axes = spatial(d)
    if axes not in (1, 2, 3) or min(d.shape[1:-1]) < 2:
        return False
    c = d.features
    kind = d.pick("plain", "plain", "plain", "point", "depthwise", "grouped", "dilated", "strided")
    width = 1 if kind == "point" else int(d.pick(3, 3, 5, 7, 4, 9) if axes < 3 else d.pick(3, 2))
    stride = int(d.pick(2, 2, 4)) if kind == "strided" else 1
    dilation = int(d.pick(2, 4)) if kind == "dilated" else 1
    groups = c if kind == "depthwise" else 1
    if kind == "grouped":
        groups = int(d.pick(*[g for g in (2, 4, 8, 16, 32) if c % g == 0] or [1]))
    out = c * int(d.pick(1, 1, 2)) if kind == "depthwise" else int(d.pick(
        *[m for m in CHANNELS if m % groups == 0 and m >= 8]))
    if kind in ("plain", "strided") and d.chance(0.5):
        width, out = (7 if d.chance(0.2) else 3), max(16, c)
    if kind == "grouped":
        out = max(out, groups) // groups * groups
    padding = d.pick("SAME", "SAME", "VALID")
    reach = (width - 1) * dilation
    if min(d.shape[1:-1]) <= reach:
        padding = "SAME"
    size = [-(-(n - (reach if padding == "VALID" else 0)) // stride) for n in d.shape[1:-1]]
    shape = (d.shape[0], *size, out)
    if not fits(d, shape) or float(width**axes) * c // groups * np.prod(shape, dtype=float) > 2e13:
        return False
    kernel = d.param(*([width] * axes), c // groups, out, scale=(width**axes * c // groups) ** -0.5)
    letters = "DHW"[3 - axes:]
    x, picked = ("x[None]", "[0]") if d.per_sample else ("x", "")
    first = d.chance(0.3)
    if first:
        x = f"n.moveaxis({x}, -1, 1)"
    data = f"NC{letters}" if first else f"N{letters}C"
    line = (f"lax.conv_general_dilated({x}, {kernel}, {(stride,) * axes}, {padding!r}, "
            f"rhs_dilation={(dilation,) * axes}, feature_group_count={groups}, "
            f'dimension_numbers=("{data}", "{letters}IO", "{data}"))')
    if first:
        line = f"n.moveaxis({line}, 1, -1)"
    bias = f" + {d.param(out, scale=0.1, letter='b')}" if d.chance(0.5) else ""
    d.line(f"x = {line}{picked}{bias}")
    d.shape = shape
    act(d)
    return None


def upsampling(d: Draft) -> bool | None:
    axes = spatial(d)
    if axes not in (1, 2) or min(d.shape[1:-1]) < 2:
        return False
    shape = (d.shape[0], *[2 * n for n in d.shape[1:-1]], d.features)
    if not fits(d, shape):
        return False
    if d.chance(0.5):
        for k in range(axes):
            d.line(f"x = n.repeat(x, 2, {k + 1 - d.per_sample})")
    else:
        width, out = int(d.pick(2, 3, 4)), int(d.pick(16, 32, 64, d.features))
        shape = (*shape[:-1], out)
        if not fits(d, shape) or d.features > 512:
            return False
        w = d.param(*([width] * axes), d.features, out, scale=(width**axes * d.features) ** -0.5)
        letters = "HW"[2 - axes:]
        x, picked = ("x[None]", "[0]") if d.per_sample else ("x", "")
        d.line(f"x = lax.conv_transpose({x}, {w}, {(2,) * axes}, 'SAME', "
               f'dimension_numbers=("N{letters}C", "{letters}IO", "N{letters}C")){picked}')
    d.shape = shape
    return None


def pooling(d: Draft) -> bool | None:
    axes = spatial(d)
    if axes < 1 or min(d.shape[1:-1]) < 4:
        return False
    width, stride = d.pick((2, 2), (3, 2), (2, 2))
    lead = () if d.per_sample else (1,)
    window, steps = (*lead, *[width] * axes, 1), (*lead, *[stride] * axes, 1)
    if d.chance(0.6):
        d.line(f'x = lax.reduce_window(x, -n.inf, lax.max, {window}, {steps}, "SAME")')
    else:
        d.line(f'x = lax.reduce_window(x, 0.0, lax.add, {window}, {steps}, "SAME") '
               f"/ {width**axes}")
    d.shape = (d.shape[0], *[-(-n // stride) for n in d.shape[1:-1]], d.features)
    return None


def channel_norm(d: Draft) -> bool | None:
    """Batch, instance and group norms of pictures."""
    axes = spatial(d)
    if axes < 1:
        return False
    scale, shift = (d.param(d.features, scale=1.0, letter=x) for x in "gb")
    inner = tuple(range(1 - d.per_sample, 1 - d.per_sample + axes))
    form = d.pick("batch", "instance", "group")
    if form == "batch" and not d.per_sample:
        d.line(f"x = nn.standardize(x, axis={(0, *inner)}) * {scale} + {shift}")
    elif form == "group" and any(d.features % g == 0 for g in (32, 8, 4)):
        groups = next(g for g in (32, 8, 4) if d.features % g == 0)
        d.line(f"y = x.reshape(*x.shape[:-1], {groups}, -1)")
        d.line(f"y = nn.standardize(y, axis={(*inner, -1)})")
        d.line(f"x = y.reshape(x.shape) * {scale} + {shift}")
    else:
        d.line(f"x = nn.standardize(x, axis={inner}) * {scale} + {shift}")
    return None


def residual(d: Draft) -> bool | None:
    """Two 3x3 convolutions beside x."""
    if spatial(d) != 2 or d.features < 8 or d.size * d.features * 9.0 > 1e13:
        return False
    c = d.features
    u, v = (d.param(3, 3, c, c, scale=(9 * c) ** -0.5) for _ in range(2))
    x, picked = ("[None]", "[0]") if d.per_sample else ("", "")
    names = 'dimension_numbers=("NHWC", "HWIO", "NHWC")'
    d.line(f"y = lax.conv_general_dilated(x{x}, {u}, (1, 1), 'SAME', {names}){picked}")
    d.line("y = nn.relu(nn.standardize(y, axis=-1))")
    d.line(f"x = x + lax.conv_general_dilated(y{x}, {v}, (1, 1), 'SAME', {names}){picked}")
    d.work += 20.0 * d.size * c
    return None


def tokens(d: Draft) -> bool | None:
    """Pictures as rows of tokens; or rows as one row of tokens."""
    axes = spatial(d)
    if axes < 2:
        return False
    lead = "" if d.per_sample else "x.shape[0], "
    patch = int(d.pick(1, 2, 4, 8, 16))
    if axes == 2 and patch > 1 and all(n % patch == 0 for n in d.shape[1:-1]):
        h, w = (n // patch for n in d.shape[1:-1])
        k = 0 if d.per_sample else 1
        order = (*range(k), k, k + 2, k + 1, k + 3, k + 4)
        d.line(f"x = x.reshape({lead}{h}, {patch}, {w}, {patch}, {d.features})")
        d.line(f"x = x.transpose({order}).reshape({lead}{h * w}, {patch**2 * d.features})")
        d.shape = (d.shape[0], h * w, patch**2 * d.features)
        if d.features > 1024:
            w_in = d.param(d.features, 768)
            d.multiply(d.features, 768)
            d.line(f"x = x @ {w_in}")
    else:
        d.line(f"x = x.reshape({lead}-1, {d.features})")
        d.shape = (d.shape[0], int(np.prod(d.shape[1:-1])), d.features)
    return None


def flattened(d: Draft) -> bool | None:
    if d.rank < 3 or not fits(d, (int(np.prod(d.shape[1:])), 256)):
        return False
    if d.chance(0.4) and int(np.prod(d.shape[1:])) < 200_000:
        d.line("x = x.reshape(-1)" if d.per_sample else "x = x.reshape(x.shape[0], -1)")
        d.shape = (d.shape[0], int(np.prod(d.shape[1:])))
        m = int(d.pick(128, 256, 512))
        w = d.param(d.features, m)
        d.multiply(d.features, m)
        d.line(f"x = x @ {w}")
    else:
        axes = tuple(range(1 - d.per_sample, d.rank - 1 - d.per_sample))
        d.line(f"x = x.{d.pick('mean', 'max', 'mean')}({axes})")
        d.shape = (d.shape[0], d.features)
    return None


def multi_head(d: Draft) -> bool | None:
    """Attention of many heads: masks, biases, grouped queries, cross, local; by hand or by name."""
    if d.rank != 3 or d.shape[1] < 2:
        return False
    b, length, width = d.shape
    depth, heads = int(d.pick(*HEAD_DIMS)), int(d.pick(1, 2, 4, 6, 8, 12, 16, 25))
    shared = int(d.pick(1, 1, 2, 4))
    if heads % shared or not fits(d, (b, length, heads * depth)):
        return False
    by_hand = d.chance(0.6)
    cross = d.chance(0.2) and not d.per_sample
    others = int(d.pick(77, 128, 197, 256, 500)) if cross else length
    if by_hand and not fits(d, (b, heads, length, others)):
        return False
    few = heads // shared
    q = d.param(width, heads * depth)
    k, v = (d.param(width, few * depth) for _ in range(2))
    o = d.param(heads * depth, width)
    source = "x"
    if cross:
        context = d.param(b, others, width, scale=1.0, letter="c")
        source = context
    norm = d.pick("x", "nn.standardize(x)")
    d.line(f"y = {norm}")
    source = "y" if source == "x" else source
    bias = [f" + {d.param(heads * depth, scale=0.1, letter='b')}" if d.chance(0.3) else ""]
    d.line(f"q = (y @ {q}{bias[0]}).reshape(*y.shape[:-1], {heads}, {depth})")
    d.line(f"k = ({source} @ {k}).reshape(*{source}.shape[:-1], {few}, {depth})")
    d.line(f"v = ({source} @ {v}).reshape(*{source}.shape[:-1], {few}, {depth})")
    d.work += 4.0 * d.size * heads * depth + 2.0 * b * length * others * heads * depth
    if d.chance(0.3):  # rotary positions
        half = depth // 2
        d.line(f"angle = n.arange({length})[:, None] * 10000.0 ** (-n.arange({half}) / {half})")
        d.line("c, s = [turn(angle)[:, None].astype(x.dtype) for turn in (n.cos, n.sin)]")
        d.line(f"q = n.concatenate([q[..., :{half}] * c - q[..., {half}:] * s, "
               f"q[..., :{half}] * s + q[..., {half}:] * c], -1)")
        if not cross:
            d.line(f"k = n.concatenate([k[..., :{half}] * c - k[..., {half}:] * s, "
                   f"k[..., :{half}] * s + k[..., {half}:] * c], -1)")
    mask = d.pick("", "", "causal", "local", "bias", "padding")
    if cross and mask in ("causal", "local"):
        mask = ""
    if d.per_sample and mask == "padding":
        mask = "causal"
    if by_hand:
        if shared > 1:
            d.line(f"k, v = n.repeat(k, {shared}, -2), n.repeat(v, {shared}, -2)")
        d.line(f's = n.einsum("...ihd,...jhd->...hij", q, k) / {depth**0.5:.6g}')
        if mask == "bias":
            bias_name = d.param(heads, length, others, scale=0.1, letter="b")
            d.line(f"s = s + {bias_name}")
        elif mask == "causal":
            d.line(f"s = n.where(n.tril(n.ones(({length}, {length}), bool)), s, -1e9)")
        elif mask == "local":
            reach = int(d.pick(16, 64, 128))
            d.line(f"i = n.arange({length})")
            d.line(f"s = n.where(n.abs(i[:, None] - i) <= {reach}, s, {d.pick('-1e9', '-n.inf')})")
        elif mask == "padding":
            name = d.extra((b, others), 0, letter="mask")
            d.line(f"s = n.where({name}[:, None, None, :], s, -1e9)")
        if d.chance(0.3):
            d.line("s = nn.softmax(s.astype(n.float32), -1).astype(x.dtype)")
        else:
            d.line("s = nn.softmax(s, -1)")
        d.line('y = n.einsum("...hij,...jhd->...ihd", s, v)')
    else:
        extra = {"causal": ", is_causal=True", "local": ", local_window_size=64"}.get(mask, "")
        if mask == "bias":
            bias_name = d.param(1, heads, length, others, scale=0.1, letter="b")
            extra = f", bias={bias_name}" + ("[0]" if d.per_sample else "")
        elif mask == "padding":
            name = d.extra((b, others), 0, letter="mask")
            extra = f", mask={name}[:, None, None, :]"
        d.line(f"y = nn.dot_product_attention(q, k, v{extra})")
    d.line(f"x = x + y.reshape(*x.shape[:-1], {heads * depth}) @ {o}")
    return None


def feed_forward(d: Draft) -> bool | None:
    """Twice to four times as wide, beside x; swiglu or one activation."""
    k = d.features
    m = int(d.pick(2 * k, 4 * k, 8 * k // 3 // 64 * 64 or 64))
    if not fits(d, (*d.shape[:-1], m)) or k > 8192:
        return False
    d.work += 3.0 * d.size * m
    norm = d.pick("nn.standardize(x)", "x * lax.rsqrt(n.mean(x * x, -1, keepdims=True) + 1e-6)")
    if d.chance(0.5):
        d.line(f"y = {norm} * {d.param(k, scale=1.0, letter='g')}")
    else:
        d.line(f"y = {norm}")
    w, v = d.param(k, m), d.param(m, k)
    if d.chance(0.4):
        u = d.param(k, m)
        d.line(f"x = x + (nn.silu(y @ {w}) * (y @ {u})) @ {v}")
    else:
        b = d.param(m, scale=0.1, letter="b")
        d.line(f"x = x + nn.{d.pick('gelu', 'relu', 'silu')}(y @ {w} + {b}) @ {v}")
    return None


def gated_recurrence(d: Draft) -> bool | None:
    """LSTM and GRU by scan."""
    if d.rank != 3 or d.shape[1] > 1024:
        return False
    k, m = d.features, int(d.pick(128, 256, 512, 650))
    kind = d.pick("lstm", "gru")
    gates = 4 if kind == "lstm" else 3
    if not fits(d, (*d.shape[:-1], gates * m)):
        return False
    w, u = d.param(k, gates * m), d.param(m, gates * m)
    d.work += d.size * gates * m + d.size / k * m * gates * m
    b = d.param(gates * m, scale=0.1, letter="b")
    before = d.chance(0.5)
    d.line("xs = n.moveaxis(x, -2, 0)" + (f" @ {w}" if before else ""))
    inner = "x" if before else f"x @ {w}"
    d.line("def cell(state, x):")
    if kind == "lstm":
        d.line("    h, c = state")
        d.line(f"    i, f, g, o = n.split({inner} + h @ {u} + {b}, 4, -1)")
        d.line("    c = nn.sigmoid(f) * c + nn.sigmoid(i) * n.tanh(g)")
        d.line("    h = nn.sigmoid(o) * n.tanh(c)")
        d.line("    return (h, c), h")
        d.line(f"h = n.zeros((*x.shape[:-2], {m}), x.dtype)")
        d.line("state = (h, h)")
    else:
        d.line(f"    a, e = {inner} + {b}, state @ {u}")
        d.line(f"    r, z = n.split(nn.sigmoid(a[..., :{2 * m}] + e[..., :{2 * m}]), 2, -1)")
        d.line(f"    h = n.tanh(a[..., {2 * m}:] + r * e[..., {2 * m}:])")
        d.line("    h = z * state + (1 - z) * h")
        d.line("    return h, h")
        d.line(f"state = n.zeros((*x.shape[:-2], {m}), x.dtype)")
    d.line("x = n.moveaxis(lax.scan(cell, state, xs)[1], 0, -2)")
    d.shape = (*d.shape[:-1], m)
    return None


def state_space(d: Draft) -> bool | None:
    """A diagonal linear recurrence by associative_scan, with gates of x."""
    if d.rank != 3:
        return False
    states = int(d.pick(1, 1, 8, 16))
    if not fits(d, (*d.shape, states)) or d.features > 2048:
        return False
    k, axis = d.features, 1 - d.per_sample
    rate = d.param(k, states, scale=1.0, letter="a")
    w = d.param(k, k)
    d.work += float(d.size) * k + 100.0 * d.size * states
    d.line(f"dt = nn.softplus(x @ {w})[..., None]")
    d.line(f"decay = n.exp(-dt * n.exp({rate}))")
    d.line("u = dt * x[..., None] * n.ones_like(decay)")
    d.line("def join(a, b):")
    d.line("    return a[0] * b[0], b[0] * a[1] + b[1]")
    d.line(f"h = lax.associative_scan(join, (decay, u), axis={axis})[1]")
    d.line("x = x + n.sum(h, -1)" if d.chance(0.5) else "x = n.mean(h, -1) * nn.silu(x)")
    return None


def experts(d: Draft) -> bool | None:
    """The best one or two of some experts for each token, dense or by dispatch with a capacity."""
    k, count, best = d.features, int(d.pick(4, 8, 16)), int(d.pick(1, 2))
    m = int(d.pick(k, 2 * k))
    rows = int(np.prod(d.shape[:-1]))
    if k > 2048 or not fits(d, (rows, count, m)) or d.per_sample:
        return False
    w = d.param(k, count)
    u, v = d.param(count, k, m), d.param(count, m, k)
    d.work += 2.0 * d.size * m * count
    d.line(f"y = x.reshape(-1, {k})")
    d.line(f"gates, chosen = lax.top_k(nn.softmax(y @ {w}), {best})")
    if d.chance(0.5):
        d.line(f"weight = n.sum(nn.one_hot(chosen, {count}, dtype=x.dtype) * gates[..., None], -2)")
        d.line(f'h = nn.gelu(n.einsum("tk,ekm->tem", y, {u}))')
        d.line(f'y = n.einsum("tem,emk,te->tk", h, {v}, weight)')
    else:
        room = max(1, -(-rows * best // count))
        d.line("flat = chosen.reshape(-1)")
        d.line(f"place = n.cumsum(nn.one_hot(flat, {count}, dtype=n.int32), 0) - 1")
        d.line("place = n.take_along_axis(place, flat[:, None], -1)[:, 0]")
        d.line(f"place = n.where(place < {room}, flat * {room} + place, {count * room})")
        d.line(f"sent = n.zeros(({count * room}, {k}), x.dtype)"
               f'.at[place].set(n.repeat(y, {best}, 0), mode="drop").reshape({count}, {room}, {k})')
        d.line(f'h = nn.silu(n.einsum("ecd,edm->ecm", sent, {u}))')
        d.line(f'got = n.einsum("ecm,emd->ecd", h, {v}).reshape(-1, {k})')
        d.line('back = got.at[place].get(mode="fill", fill_value=0)')
        d.line(f"y = n.sum(back.reshape(-1, {best}, {k}) * gates[..., None], 1)")
    d.line("x = x + y.reshape(x.shape)")
    return None


def messages(d: Draft) -> bool | None:
    """Rows are nodes: messages along random edges, summed, averaged, or weighted by attention."""
    if d.rank != 2 or d.per_sample or d.features > 1024 or d.shape[0] < 100:
        return False
    nodes, k = d.shape
    edges = nodes * int(d.pick(2, 5, 10))
    m = int(d.pick(16, 64, 128, 256))
    if not fits(d, (edges, max(k, m))):
        return False
    sender, receiver = d.extra((edges,), nodes), d.extra((edges,), nodes)
    w = d.param(k, m)
    form = d.pick("mean", "sum", "gat", "edge", "max")
    d.line(f"y = x @ {w}")
    if form == "mean":
        d.line(f"degree = ft.ops.segment_sum(n.ones(({edges},), x.dtype), {receiver}, {nodes})")
        d.line(f"y = ft.ops.segment_sum(y[{sender}], {receiver}, {nodes}) "
               "/ n.maximum(degree, 1)[:, None]")
    elif form == "sum":
        d.line(f"y = ft.ops.segment_sum(y[{sender}], {receiver}, {nodes})")
    elif form == "max":
        d.line(f"y = ft.ops.segment_max(y[{sender}], {receiver}, {nodes})")
        d.line("y = n.where(n.isfinite(y), y, 0)")
    elif form == "gat":
        a, b = d.param(m, scale=m**-0.5, letter="a"), d.param(m, scale=m**-0.5, letter="a")
        d.line(f"s = nn.leaky_relu((y @ {a})[{sender}] + (y @ {b})[{receiver}])")
        d.line(f"top = ft.ops.segment_max(s, {receiver}, {nodes})")
        d.line(f"s = n.exp(s - top[{receiver}])")
        d.line(f"total = ft.ops.segment_sum(s, {receiver}, {nodes})")
        d.line(f"s = s / (total[{receiver}] + 1e-9)")
        d.line(f"y = ft.ops.segment_sum(s[:, None] * y[{sender}], {receiver}, {nodes})")
    else:
        u = d.param(2 * m, m)
        d.line(f"e = n.concatenate([y[{sender}], y[{receiver}]], -1)")
        d.line(f"y = ft.ops.segment_sum(nn.silu(e @ {u}), {receiver}, {nodes})")
    d.line(f"x = {d.pick(*USUAL).replace('(x', '(y')}".replace("nn.relu(x", "nn.relu(y"))
    d.shape = (nodes, m)
    d.work += 20.0 * edges * m + float(nodes) * k * m
    return None


def embedding(d: Draft) -> bool | None:
    """Words and positions, added to x."""
    if d.rank not in (2, 3) or d.per_sample:
        return False
    words = int(d.pick(*VOCABULARIES))
    if not fits(d, (words, d.features)):
        return False
    index, table = d.extra(d.shape[:-1], words), d.param(words, d.features, scale=0.02)
    d.line(f"x = x + {table}[{index}]")
    if d.rank == 3 and d.chance(0.5):
        d.line(f"x = x + {d.param(d.shape[1], d.features, scale=0.02)}")
    return None


def shuffled(d: Draft) -> bool | None:
    """Transposes and rolls along other axes than the last, as of mixers and windows."""
    if d.rank < 3:
        return False
    k = 1 - d.per_sample
    form = d.pick("mixer", "roll", "window")
    if form == "mixer" and d.rank == 3 and 2 < d.shape[1] <= 1024:
        length, m = d.shape[1], int(d.pick(64, 256, 2 * d.shape[1]))
        w, v = d.param(length, m), d.param(m, length)
        d.work += 2.0 * d.size * m
        d.line(f"x = x + n.swapaxes(nn.gelu(n.swapaxes(x, -1, -2) @ {w}) @ {v}, -1, -2)")
    elif form == "window" and d.rank == 4 and all(n % 7 == 0 for n in d.shape[1:3]):
        a, b = (n // 7 for n in d.shape[1:3])
        lead = "" if d.per_sample else "x.shape[0], "
        order = (*range(k), k, k + 2, k + 1, k + 3, k + 4)
        d.line(f"y = x.reshape({lead}{a}, 7, {b}, 7, -1).transpose({order})")
        d.line("y = y * nn.softmax(y.mean((-2, -3), keepdims=True), -1)")
        d.line(f"x = y.transpose({order}).reshape(x.shape)")
    else:
        d.line(f"x = n.roll(x, {int(d.pick(1, -3))}, {k})")
    return None


def draw_ordinary_loss(d: Draft) -> str:
    """The expression of a loss of x."""
    form = d.pick("small", "classes", "words", "contrastive", "alignment", "mse", "mse")
    if form == "classes":
        if d.rank > 2:
            d.line(f"x = x.mean({tuple(range(1 - d.per_sample, d.rank - 1 - d.per_sample))})")
            d.shape = (d.shape[0], d.features)
        classes = int(d.pick(10, 100, 1000, 1000, 21_841))
        w, b = d.param(d.features, classes), d.param(classes, scale=0.1, letter="b")
        d.multiply(d.features, classes)
        d.line(f"x = x @ {w} + {b}")
        y = d.extra(d.shape[:-1], classes, by_row=True, letter="y")
        forms = [f"-n.mean(n.sum(nn.one_hot({y}, {classes}, dtype=x.dtype) "
                 "* nn.log_softmax(x), -1))",
                 f"n.mean(nn.logsumexp(x, -1) - n.take_along_axis(x, {y}[..., None], -1)[..., 0])"]
        return str(d.pick(*forms))
    if form == "words" and d.rank == 3:
        words = int(d.pick(*VOCABULARIES))
        if fits(d, (*d.shape[:-1], words)):
            table = d.param(words, d.features, scale=0.02)
            d.multiply(d.features, words)
            y = d.extra(d.shape[:-1], words, by_row=True, letter="y")
            up = d.pick("", ".astype(n.float32)")
            d.line(f"x = (x @ {table}.T){up}")
            return str(d.pick(
                f"n.mean(nn.logsumexp(x, -1) - n.take_along_axis(x, {y}[..., None], -1)[..., 0])",
                f"-n.mean(n.take_along_axis(nn.log_softmax(x), {y}[..., None], -1))"))
    if form == "contrastive" and not d.per_sample and 2 <= d.shape[0] <= 8192:
        if d.rank > 2:
            d.line(f"x = x.mean({tuple(range(1, d.rank - 1))})")
            d.shape = (d.shape[0], d.features)
        w, v = d.param(d.features, 128), d.param(d.features, 128)
        d.line(f"a, b = x @ {w}, x @ {v}")
        d.line("a, b = [y * lax.rsqrt(n.sum(y * y, -1, keepdims=True) + 1e-6) for y in (a, b)]")
        d.line("s = a @ b.T / 0.07")
        return ("n.mean(nn.logsumexp(s, 0) + nn.logsumexp(s, 1) - 2 * n.diagonal(s))"
                if d.chance(0.5) else "-n.mean(n.diag(nn.log_softmax(s, -1)))")
    if form == "alignment" and d.rank == 3 and d.shape[1] <= 1024:
        classes, length = int(d.pick(29, 128)), int(d.pick(10, 40, 100))
        w = d.param(d.features, classes)
        d.multiply(d.features, classes)
        y = d.extra((d.shape[0], length), classes, by_row=True, letter="y")
        d.line(f"x = nn.log_softmax(x @ {w})")
        taken = f"{y}[..., None, :]"
        d.line(f"e = n.moveaxis(n.take_along_axis(x, n.broadcast_to({taken}, "
               f"(*x.shape[:-1], {length})), -1), -2, 0)")
        d.line("def forward(a, e):")
        d.line("    before = n.concatenate([n.full_like(a[..., :1], -1e4), a[..., :-1]], -1)")
        d.line("    a = n.logaddexp(a, before) + e")
        d.line("    return a, None")
        d.line("a = n.full_like(e[0], -1e4).at[..., 0].set(0)")
        return "-n.mean(lax.scan(forward, a, e)[0][..., -1])"
    if form == "mse":
        return str(d.pick("n.mean(n.square(x - 1))", "0.5 * n.sum(x * x) / x.size"))
    return draw_loss(d) if d.rank <= 3 else "n.mean(n.square(x.astype(n.float32)))"


def _shared(*names: str) -> dict[str, tuple[float, Callable[[Draft], bool | None]]]:
    return {name: (0.5, LAYERS[name][1]) for name in names}


ORDINARY_LAYERS: dict[str, tuple[float, Callable[[Draft], bool | None]]] = {
    "convolution": (4, convolution), "upsampling": (1, upsampling), "pooling": (1.5, pooling),
    "channel_norm": (1.5, channel_norm), "residual": (1.5, residual), "tokens": (0.5, tokens),
    "flattened": (0.5, flattened), "multi_head": (4, multi_head),
    "feed_forward": (2.5, feed_forward), "gated_recurrence": (1, gated_recurrence),
    "state_space": (1, state_space), "experts": (1, experts), "messages": (2, messages),
    "embedding": (1, embedding), "shuffled": (0.7, shuffled), "dense": (2, LAYERS["dense"][1]),
    "norm": (1.5, LAYERS["norm"][1]),
    **_shared("gated", "elementwise", "recurrence", "gather", "order", "cumulative", "mask",
              "normalised", "moved", "pooled", "checkpointed"),
}
"""Layers and how often they are drawn."""
