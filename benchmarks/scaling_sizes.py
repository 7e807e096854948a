"""Sizes of programs as a server of many cores has them: 20 to 300 ms a call on one core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SERVER: Mapping[str, Mapping[str, Any]] = {
    "bundle_adjustment": dict(cameras=16, points=4096, views=6, iterations=4),
    "contrastive_learning": dict(images=32, side=32, patch=4, widths=(32, 64, 128), blocks=1),
    "denoising_diffusion": dict(images=8, side=32, width=32),
    "electronic_structure": dict(molecules=16, atoms=8, iterations=10),
    "finite_elements": dict(side=96, sensors=300),
    "gaussian_mixture": dict(points=20_000, dims=16, clusters=16, lloyds=5, iterations=5),
    "gaussian_process": dict(points=1024, features=8),
    "graph_attention": dict(nodes=4000, degree=16, features=128, hidden=16, heads=8),
    "kalman_smoother": dict(tracks=64, times=512),
    "language_model": dict(batch=4, length=128, width=256, heads=8, groups=2, layers=2,
                           words=1024),
    "long_convolution": dict(batch=4, length=1024, width=128, layers=2, words=256),
    "molecular_dynamics": dict(side=16, steps=10),
    "particle_filter": dict(series=16, particles=4096, steps=20),
    "radiance_field": dict(rays=256, coarse=32, fine=32, width=128, bands=8),
    "reaction_diffusion": dict(side=1024, steps=50),
    "recurrent_network": dict(batch=64, length=32, width=256, words=1024),
    "residual_network": dict(images=32, side=32, widths=(16, 32, 64), blocks=1),
    "segmentation_unet": dict(images=4, side=64, widths=(16, 32, 64), groups=4),
    "state_space": dict(batch=4, length=1024, width=64, states=16, layers=2),
    "vision_transformer": dict(images=16, side=64, patch=8, width=192, heads=6, layers=2),
}  # fmt: skip
