"""Programs that arithmetic limits: matrix products, attention, convolution."""

from __future__ import annotations

from bounds import Rate

from gpu_workloads.entries import nbytes, workload

BF16 = {"dtype": "bfloat16"}


def teraflops(rate: float) -> Rate:
    return Rate(rate, "TFLOP/s")


@workload("matmul bfloat16, 8192^3", teraflops(750), 2e-2)
def matmul(add):
    side = add.size(8192, 128)
    sets = [(add.normal(side, side, **BF16), add.normal(side, side, **BF16))]
    add.computes(2 * side**3)
    add.traced(lambda lib: lambda x, y: x @ y, sets)
    add.torch(lambda x, y: x @ y, sets)


@workload("matmul + bias + gelu bfloat16, 8192^3", teraflops(690), 2e-2)
def matmul_gelu(add):
    torch, side = add.torch_module, add.size(8192, 128)
    sets = [(add.normal(side, side, **BF16), add.normal(side, side, scale=side**-0.5, **BF16),
             add.normal(side, **BF16))]  # fmt: skip
    add.computes(2 * side**3)
    add.traced(lambda lib: lambda x, w, b: lib.nn.gelu(x @ w + b), sets)
    # addmm is what nn.Linear calls, without its transpose
    add.torch(lambda x, w, b: add.nn.gelu(torch.addmm(b, x, w), approximate="tanh"), sets)


@workload("batched matmul, 16384 x 32^3", Rate(2750, "GB/s"), 3e-3)
def batched(add):
    count = add.size(16384, 40)
    sets = add.sets(lambda: (add.normal(count, 32, 32), add.normal(count, 32, 32)))
    add.moves(1.5 * nbytes(sets[0]))
    add.traced(lambda lib: lambda x, y: x @ y, sets)
    add.torch(lambda x, y: x @ y, sets)


def attention(lib):
    """Softmax attention on (batch, heads, length, depth), as the formula has it."""
    xp = lib.numpy

    def run(q, k, v):
        scores = xp.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5
        return xp.einsum("bhst,bhtd->bhsd", lib.nn.softmax(scores, axis=-1), v)

    return run


def plain_attention(torch):
    """The reference, which must not be one of the kernels that it checks."""
    return lambda q, k, v: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def attention_sets(add, length, arrays):
    shape = (add.size(4, 2), add.size(16, 2), length, add.size(64, 16))
    add.computes(4 * shape[0] * shape[1] * length**2 * shape[3])
    return add.sets(lambda: tuple(add.normal(*shape, **BF16) for _ in range(arrays)))


@workload("attention bfloat16 B4 H16 S4096 D64", teraflops(460), 2e-2, host=True)
def attention_forward(add):
    torch = add.torch_module
    sets = attention_sets(add, add.size(4096, 64), 3)

    def reference():  # one sample at a time: the scores of all take 9 GB
        plain = plain_attention(torch)
        return torch.stack([plain(*sample) for sample in zip(*(x.double() for x in sets[0]))])

    add.reference = reference
    add.traced(attention, sets)
    add.torch(add.nn.scaled_dot_product_attention, sets)


@workload("attention bfloat16 B4 H16 S2048 D64: gradients", teraflops(380), 2e-2, host=True)
def attention_gradient(add):
    sets = attention_sets(add, add.size(2048, 64), 4)
    add.computes(3.5 * add.work.amount)  # 2 products forward, 5 backward

    def make(lib):
        return lambda cotangent, *arguments: lib.vjp(attention(lib), *arguments)[1](cotangent)

    plain = plain_attention(add.torch_module)

    def reference(cotangent, *arguments):
        return add.torch_module.autograd.grad(plain(*arguments), arguments, cotangent)

    add.expect(reference, sets, None)
    add.traced(make, sets)
    add.torch_pullback(add.nn.scaled_dot_product_attention, sets)


@workload("2 convolutions 3x3, c256 64x56^2 bfloat16: gradients", 1.9e-3, 2e-2, host=True)
def convolutions(add):
    count, edge, channels = add.size(64, 2), add.size(56, 8), add.size(256, 16)
    image = count, edge, edge, channels
    kernel = 3, 3, channels, channels
    scale = (9 * channels) ** -0.5
    kernels = [add.normal(*kernel, scale=scale, **BF16) for _ in range(2)]
    sets = [(kernels, add.normal(*image, **BF16), add.normal(*image, **BF16))]

    def make(lib):
        def conv(x, w):
            return lib.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        def loss(kernels, x, weights):
            y = conv(conv(x, kernels[0]), kernels[1])
            return lib.numpy.sum((y * weights).astype("float32"))

        return lib.grad(loss)

    def torch_loss(kernels, x, weights):
        # images in this layout are torch's channels_last, without a copy
        x = x.permute(0, 3, 1, 2)
        for w in kernels:
            x = add.nn.conv2d(x, w.permute(3, 2, 0, 1), padding=1)
        y = x.permute(0, 2, 3, 1) * weights
        return (y if y.dtype == add.torch_module.float64 else y.float()).sum()

    add.traced(make, sets)
    add.torch_gradient(torch_loss, sets, value=False)
