"""What a good engineer writes instead of `vmap(grad(loss))`: the factors of each layer's gradients.

A dense layer's gradient for a sample is the outer product of its input and of the cotangent of its
output, so that norms, sums and products are those of the factors (Goodfellow, "Efficient
Per-Example Gradient Computations", 2015). One forward and one backward pass, both written out.
"""

from __future__ import annotations

from collections.abc import Callable

from per_sample_workloads.quantities import clip_factors


def cotangents(lib, logits, label):
    """Of the cross entropy of each sample."""
    return lib.nn.softmax(logits, axis=-1) - lib.nn.one_hot(label, logits.shape[-1])


def factors(lib, params, x, cotangent: Callable):
    """Each dense layer's inputs and cotangents of outputs, [batch, width] each."""
    inputs = []
    for weight, bias in params[:-1]:
        inputs.append(x)
        x = lib.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    inputs.append(x)
    deltas = [cotangent(x @ weight + bias)]
    for (weight, _), a in zip(params[:0:-1], inputs[:0:-1]):
        deltas.append(lib.numpy.where(a > 0, deltas[-1] @ weight.T, 0))
    return list(zip(inputs, reversed(deltas)))


def loss_factors(lib, params, x, label):
    return factors(lib, params, x, lambda logits: cotangents(lib, logits, label))


def squares(pairs):
    """The squared norms of the gradients of the dense layers, weights and biases."""
    return sum(((a * a).sum(1) + 1) * (d * d).sum(1) for a, d in pairs)


def weighted(pairs, weights):
    """The mean of the gradients, each times its weight."""
    found = []
    for a, d in pairs:
        d = d * (weights / len(weights))[:, None]
        found += [a.T @ d, d.sum(0)]
    return found


def variances(pairs):
    """The variance of each coordinate."""
    found = []
    for a, d in pairs:
        mean, count = a.T @ d / len(a), len(a)
        found += [(a * a).T @ (d * d) / count - mean**2, d.var(0)]
    return found


def mlp_norms(lib):
    return lambda *arguments: lib.numpy.sqrt(squares(loss_factors(lib, *arguments)))


def mlp_clipped_mean(lib, max_norm):
    def run(*arguments):
        pairs = loss_factors(lib, *arguments)
        return weighted(pairs, clip_factors(lib.numpy, lib.numpy.sqrt(squares(pairs)), max_norm))

    return run


def mlp_variance(lib):
    return lambda *arguments: variances(loss_factors(lib, *arguments))


def mlp_ntk(lib):
    """Of the sum of the outputs."""

    def run(params, x):
        pairs = factors(lib, params, x, lib.numpy.ones_like)
        return sum((a @ a.T + 1) * (d @ d.T) for a, d in pairs)

    return run


def bag_factors(lib, params, ids, label):
    """The dense layer's factors, the cotangents of the rows, and how often a bag has each row."""
    table, weight, bias = params
    pooled = table[ids].mean(-2)
    deltas = cotangents(lib, pooled @ weight + bias, label)
    counts = (ids[:, :, None] == ids[:, None, :]).sum(-1).astype(table.dtype)
    return [(pooled, deltas)], deltas @ weight.T / ids.shape[-1], counts


def scatter(lib, table, ids, rows):
    """Zeros like the table plus `rows`, [batch, bag, width]."""
    return lib.numpy.zeros_like(table).at[ids].add(rows)


def bag_squares(pairs, rows, counts):
    return squares(pairs) + counts.sum(1) * (rows * rows).sum(1)


def bag_norms(lib):
    return lambda *arguments: lib.numpy.sqrt(bag_squares(*bag_factors(lib, *arguments)))


def bag_clipped_mean(lib, max_norm):
    def run(params, ids, label):
        pairs, rows, counts = bag_factors(lib, params, ids, label)
        norms = lib.numpy.sqrt(bag_squares(pairs, rows, counts))
        weights = clip_factors(lib.numpy, norms, max_norm)
        rows = rows * (weights / len(weights))[:, None]
        spread = lib.numpy.broadcast_to(rows[:, None], (*ids.shape, rows.shape[-1]))
        return [scatter(lib, params[0], ids, spread), *weighted(pairs, weights)]

    return run


def bag_variance(lib):
    def run(params, ids, label):
        pairs, rows, counts = bag_factors(lib, params, ids, label)
        spread = lib.numpy.broadcast_to(rows[:, None], (*ids.shape, rows.shape[-1]))
        mean = scatter(lib, params[0], ids, spread) / len(rows)
        # a row that a bag has n times has n times the cotangent, and n places that add to it
        square = scatter(lib, params[0], ids, counts[..., None] * spread**2) / len(rows)
        return [square - mean**2, *variances(pairs)]

    return run


PROGRAMS = {
    ("MLP", "norms"): mlp_norms,
    ("MLP", "clipped mean"): mlp_clipped_mean,
    ("MLP", "variance"): mlp_variance,
    ("MLP", "NTK"): mlp_ntk,
    ("embedding bag", "norms"): bag_norms,
    ("embedding bag", "clipped mean"): bag_clipped_mean,
    ("embedding bag", "variance"): bag_variance,
}
"""By model and quantity; each takes the library, and clipped means the largest norm."""


def program(model: str, quantity: str, max_norm: float, lib) -> Callable | None:
    """The program of a quantity of a model, where there is one."""
    make = PROGRAMS.get((model, quantity))
    if make is None:
        return None
    return make(lib, max_norm) if quantity == "clipped mean" else make(lib)
