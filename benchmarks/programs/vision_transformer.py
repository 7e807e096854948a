"""Loss and gradient of a vision transformer in bfloat16 (Dosovitskiy et al. 2021)."""

import ml_dtypes
import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, side=16, patch=4, width=32, heads=2, layers=1),
    "small": dict(images=4, side=32, patch=4, width=64, heads=4, layers=2),
    "large": dict(images=64, side=224, patch=16, width=384, heads=6, layers=6),
}
TOLERANCE = 3e-2  # of bfloat16, in both libraries


def make(lib, images, side, patch, width, heads, layers):
    jnp, nn = lib.numpy, lib.nn
    tokens = (side // patch) ** 2

    def layer_norm(x, p):
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide, axis=-1, keepdims=True)
        var = jnp.var(wide, axis=-1, keepdims=True)
        return ((wide - mean) / jnp.sqrt(var + 1e-6)).astype(x.dtype) * p["scale"] + p["shift"]

    def attention(x, p):
        qkv = (x @ p["qkv"]).reshape(*x.shape[:2], 3, heads, width // heads)
        q, k, v = (jnp.moveaxis(qkv[:, :, i], 1, 2) for i in range(3))
        scores = jnp.einsum("nhqd,nhkd->nhqk", q, k).astype(jnp.float32)
        weights = nn.softmax(scores / (width // heads) ** 0.5).astype(x.dtype)
        mixed = jnp.einsum("nhqk,nhkd->nhqd", weights, v)
        return jnp.moveaxis(mixed, 1, 2).reshape(x.shape) @ p["out"]

    def mlp(x, p):
        return nn.gelu(x @ p["widen"] + p["widen_bias"]) @ p["narrow"] + p["narrow_bias"]

    def patches(x):
        x = x.reshape(images, side // patch, patch, side // patch, patch, 3)
        return x.transpose(0, 1, 3, 2, 4, 5).reshape(images, tokens, patch * patch * 3)

    def network(params, x):
        x = patches(x).astype(jnp.bfloat16) @ params["embed"] + params["position"]
        first = jnp.broadcast_to(params["class"], (images, 1, width))
        x = jnp.concatenate([first, x], axis=1)
        for layer in params["layers"]:
            x = x + attention(layer_norm(x, layer["norm1"]), layer["attention"])
            x = x + mlp(layer_norm(x, layer["norm2"]), layer["mlp"])
        return layer_norm(x[:, 0], params["norm"]) @ params["head"]

    def loss(params, x, labels):
        logits = network(params, x).astype(jnp.float32)
        picked = jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1)
        return -jnp.mean(picked)

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(ml_dtypes.bfloat16)

    def zeros(*shape):
        return np.zeros(shape, ml_dtypes.bfloat16)

    def norm():
        return {"scale": np.ones(width, ml_dtypes.bfloat16), "shift": zeros(width)}

    def layer():
        mlp = {"widen": normal(width, 4 * width), "widen_bias": zeros(4 * width),
               "narrow": normal(4 * width, width), "narrow_bias": zeros(width)}  # fmt: skip
        attention = {"qkv": normal(width, 3 * width), "out": normal(width, width)}
        return {"norm1": norm(), "attention": attention, "norm2": norm(), "mlp": mlp}

    params = {
        "embed": normal(patch * patch * 3, width), "position": normal(tokens, width),
        "class": normal(1, width), "norm": norm(), "head": normal(width, 100),
        "layers": [layer() for _ in range(layers)],
    }  # fmt: skip
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    labels = rng.integers(100, size=images, dtype=np.int32)
    return lib.value_and_grad(loss), (params, x, labels)
