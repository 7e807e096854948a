"""Axes by name: einops on arrays, in `jit` and in derivatives, shapes that jaxtyping and beartype
check while functions are called or traced, and treescope's pictures of trees of arrays."""

# ruff: noqa: F722, F821  (axes are named in annotations)
import re

import einops
import jax
import jax.numpy as jnp
import numpy as np
import treescope
from beartype import beartype
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, TypeCheckError, jaxtyped

LIBRARIES = ["einops", "jaxtyping", "beartype", "treescope"]
KEYS = jax.random.split(jax.random.key(0), 4)
IMAGES = jax.random.normal(KEYS[0], (4, 16, 16, 3))


@jaxtyped(typechecker=beartype)
def patches(images: Float[Array, "n 16 16 c"], size: int) -> Float[Array, "n patches features"]:
    return einops.rearrange(images, "n (h p) (w q) c -> n (h w) (p q c)", p=size, q=size)


@jaxtyped(typechecker=beartype)
def attention(x: Float[Array, "n t d"], weights: PyTree[Float[Array, "d e"], "W"],
              mask: Bool[Array, "t t"]) -> Float[Array, "n t d"]:
    q, k, v = [einops.rearrange(x @ w, "n t (h e) -> n h t e", h=4) for w in weights]
    scores = einops.einsum(q, k, "n h t e, n h s e -> n h t s") / jnp.sqrt(q.shape[-1])
    shares = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))
    out = einops.einsum(shares, v, "n h t s, n h s e -> n h t e")
    return einops.rearrange(out, "n h t e -> n t (h e)")


@jaxtyped(typechecker=beartype)
def loss(weights: list, images: Float[Array, "n h w c"]) -> Float[Array, ""]:
    x = einops.reduce(patches(images, 4), "n t (p c) -> n t p", "mean", c=3)
    return jnp.square(attention(x, weights, jnp.tri(16, dtype=bool)) - x).mean()


@jaxtyped(typechecker=beartype)
def start(key: PRNGKeyArray, sizes: Int[np.ndarray, "2"]) -> list[Float[Array, "d e"]]:
    return [jax.random.normal(k, tuple(sizes.tolist())) / 4 for k in jax.random.split(key, 3)]


def refused(fun, *args):
    try:
        fun(*args)
    except TypeCheckError:
        return 1.0
    return 0.0


@jax.jit
def step(weights, images):
    value, grads = jax.value_and_grad(loss)(weights, images)
    return jax.tree.map(lambda w, g: w - g, weights, grads), value


def pictured(tree):
    """The text of treescope for a tree, without the addresses in it."""
    text = treescope.render_to_text(tree)
    return re.sub(r"0x[0-9a-f]+", "", text)


def program():
    return step, (start(KEYS[1], np.array([16, 16])), IMAGES)


def results():
    weights = start(KEYS[1], np.array([16, 16]))
    before = loss(weights, IMAGES)
    for _ in range(20):
        weights, _ = step(weights, IMAGES)
    packed, shapes = einops.pack([IMAGES[0], IMAGES[1, 0]], "* c")
    first, second = einops.unpack(packed, shapes, "* c")
    pooled = jax.jit(lambda x: einops.reduce(x, "n (h 4) (w 4) c -> n c h w", "max"))(IMAGES)
    per_image = jax.vmap(lambda x: einops.repeat(x, "h w c -> (2 h) w c").sum())(IMAGES)
    words = pictured({"weights": weights, "pooled": pooled, "name": "patches"})
    figure = treescope.render_array(pooled[0], around_zero=True)._repr_html_()
    return {"loss": before, "after 20 steps": loss(weights, IMAGES), "largest of tiles": pooled,
            "sums of repeated images": per_image, "packed": packed.sum(0),
            "unpacked": jnp.abs(first - IMAGES[0]).max() + jnp.abs(second - IMAGES[1, 0]).max(),
            "a right call is accepted": 1 - refused(patches, IMAGES, 4),
            "another size is refused": refused(patches, IMAGES[:, :8], 4),
            "another dtype is refused": refused(patches, IMAGES.astype(int), 4),
            "a mask of another length is refused in jit": refused(jax.jit(lambda x: attention(
                x, weights, jnp.tri(9, dtype=bool))), patches(IMAGES, 4)[..., :16]),
            "the picture names shapes": float("(4, 3, 4, 4)" in words and "weights" in words),
            "an array is drawn": float("treescope" in figure)}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.ravel(jnp.asarray(value))[0]:.4f}")
