// The two programs of 03_gpu.ipynb as a person writes them in CUDA: a lane a thread.
struct state { float x, y, z; };

__device__ state slope(state s, float rho) {
    return {10 * (s.y - s.x), s.x * (rho - s.z) - s.y, s.x * s.y - 8.0f / 3 * s.z};
}
__device__ state moved(state s, float h, state k) {
    return {s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}
extern "C" __global__ void lorenz(const float *start, const float *rhos, float *end, int lanes,
                                  int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lanes) return;
    state s = {start[3 * i], start[3 * i + 1], start[3 * i + 2]};
    float rho = rhos[i];
    for (int n = 0; n < steps; n++) {
        state a = slope(s, rho), b = slope(moved(s, 0.005f, a), rho);
        state c = slope(moved(s, 0.005f, b), rho), d = slope(moved(s, 0.01f, c), rho);
        s = moved(s, 0.01f / 6, moved(moved(moved(a, 2, b), 2, c), 1, d));
    }
    end[3 * i] = s.x, end[3 * i + 1] = s.y, end[3 * i + 2] = s.z;
}
extern "C" __global__ void mandelbrot(const float *xs, const float *ys, int *counts, int side) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= side * side) return;
    float x = xs[i % side], y = ys[i / side], a = 0, b = 0;
    int count = 0;
    for (; a * a + b * b <= 4 && count < 512; count++) {
        float next = a * a - b * b + x;
        b = 2 * a * b + y, a = next;
    }
    counts[i] = count;
}
