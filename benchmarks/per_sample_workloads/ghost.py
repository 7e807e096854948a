"""Ghost clipping on torch modules, as Opacus does it: hooks, norms, two backward passes.

The first pass goes back to the outputs of layers only, not to their weights; norms of a sample's
gradient come from a layer's input and the cotangent of its output (Li et al., "Large Language
Models Can Be Strong Differentially Private Learners", 2022). The second is of the reweighted loss.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from per_sample_workloads.quantities import clip_factors


def linear_squares(torch: ModuleType, layer: Any, x: Any, cotangent: Any) -> Any:
    return (x.square().sum(1) + 1) * cotangent.square().sum(1)


def conv_squares(torch: ModuleType, layer: Any, x: Any, cotangent: Any) -> Any:
    """A layer's gradients are smaller than the products of its many positions."""
    patches = torch.nn.functional.unfold(x, layer.kernel_size, padding=layer.padding)
    cotangent = cotangent.flatten(2)
    weights = torch.bmm(cotangent, patches.mT)
    return weights.square().sum((1, 2)) + cotangent.sum(2).square().sum(1)


def embedding_squares(torch: ModuleType, layer: Any, ids: Any, cotangent: Any) -> Any:
    """Cotangents of one row add up, where a sample has it more than once."""
    same = ids[:, :, None] == ids[:, None, :]
    return (same * torch.bmm(cotangent, cotangent.mT)).sum((1, 2))


class Ghost:
    """Norms and clipped means of the gradients of a network's cross entropy."""

    def __init__(self, torch: ModuleType, network: Any, max_norm: float):
        self.torch, self.network, self.max_norm = torch, network, max_norm
        self.params = list(network.parameters())
        self.transposed = transposed(torch, network)
        self.seen: list[tuple[Callable, Any, Any, Any]] = []
        squares = {torch.nn.Linear: linear_squares, torch.nn.Conv2d: conv_squares,
                   torch.nn.Embedding: embedding_squares}  # fmt: skip
        for layer in network.modules():
            if type(layer) in squares:
                layer.register_forward_hook(self.hook(squares[type(layer)]))

    def hook(self, squares: Callable) -> Callable:
        return lambda layer, inputs, out: self.seen.append((squares, layer, inputs[0], out))

    def losses(self, x: Any, label: Any) -> Any:
        self.seen.clear()
        return self.torch.nn.functional.cross_entropy(self.network(x), label, reduction="none")

    def norms_of(self, losses: Any, again: bool) -> Any:
        outs = [out for *_, out in self.seen]
        cotangents = self.torch.autograd.grad(losses.sum(), outs, retain_graph=again)
        with self.torch.no_grad():
            parts = [squares(self.torch, layer, x, d)
                     for (squares, layer, x, _), d in zip(self.seen, cotangents)]  # fmt: skip
            return self.torch.sqrt(sum(parts))

    def norms(self, x: Any, label: Any) -> Any:
        return self.norms_of(self.losses(x, label.long()), again=False)

    def clipped_mean(self, x: Any, label: Any) -> Any:
        losses = self.losses(x, label.long())
        factors = clip_factors(self.torch, self.norms_of(losses, again=True), self.max_norm)
        gradients = self.torch.autograd.grad((losses * factors).mean(), self.params)
        return [g.T if turned else g for g, turned in zip(gradients, self.transposed)]


def mlp_network(torch: ModuleType, params: Any) -> Any:
    layers: list[Any] = []
    for weight, _ in params:
        layers += [torch.nn.Linear(*weight.shape), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def cnn_network(torch: ModuleType, params: Any) -> Any:
    nn, layers = torch.nn, []
    for kernel, _ in params[:-1]:
        out, into = kernel.shape[:2]
        layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(*params[-1][0].shape))


def bag_network(torch: ModuleType, params: Any) -> Any:
    class Mean(torch.nn.Module):
        def forward(self, rows):
            return rows.mean(-2)

    table, weight, _ = params
    return torch.nn.Sequential(
        torch.nn.Embedding(*table.shape), Mean(), torch.nn.Linear(*weight.shape)
    )


NETWORKS = {"MLP": mlp_network, "CNN": cnn_network, "embedding bag": bag_network}


def transposed(torch: ModuleType, network: Any) -> list[bool]:
    """By parameter, whether it is the weight of a dense layer, which torch has transposed."""
    return [
        type(layer) is torch.nn.Linear and parameter.ndim == 2
        for layer in network.modules()
        for parameter in layer.parameters(recurse=False)
    ]


def ghost(torch: ModuleType, network: Any, leaves: list[Any], max_norm: float) -> Ghost:
    """Of the network, with these tensors as its parameters."""
    with torch.no_grad():
        for parameter, value, turned in zip(
            network.parameters(), leaves, transposed(torch, network), strict=True
        ):
            parameter.copy_(value.T if turned else value)
    return Ghost(torch, network, max_norm)


def programs(
    torch: ModuleType, model: str, params: Any, max_norm: float
) -> dict[str, Callable]:
    """By quantity, for a model with parameters of tensors; functions of the batch."""
    if model not in NETWORKS:
        return {}
    leaves = torch.utils._pytree.tree_leaves(params)
    found = ghost(torch, NETWORKS[model](torch, params), leaves, max_norm)
    return {"norms": found.norms, "clipped mean": found.clipped_mean}
