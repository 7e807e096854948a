// Fourier transforms in double precision, an array of the batch after the other in each task.
enum { FT_FORWARD, FT_INVERSE, FT_REAL_FORWARD, FT_REAL_INVERSE, FT_AXES = 32 };

typedef struct {
  i64 kind, is_double, rank, half;  // half: points of the last axis as complex numbers
  i64 lengths[FT_AXES];
  i64 points, longest;
  const double *roots[FT_AXES];  // of unity, for each axis
  const void *in;
  void *out;
  int failed;
} ft_fourier;

static i64 ft_least_factor(i64 n) {
  for (i64 p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

// n points, every `step`-th of `in`, to `out`; `roots` are those of unity of degree `total`.
static void ft_points(const double *in, i64 step, double *out, i64 n, i64 total,
                      const double *roots, double *work) {
  if (n == 1) {
    out[0] = in[0];
    out[1] = in[1];
    return;
  }
  const i64 p = ft_least_factor(n), m = n / p, turn = total / n;
  for (i64 r = 0; r < p; r++)
    ft_points(in + 2 * r * step, step * p, out + 2 * r * m, m, total, roots, work);
  for (i64 k = 0; k < m; k++) {
    for (i64 r = 0; r < p; r++) memcpy(work + 2 * r, out + 2 * (r * m + k), 16);
    for (i64 q = 0; q < p; q++) {
      double re = 0, im = 0;
      for (i64 r = 0; r < p; r++) {
        const double *w = roots + 2 * (r * (q * m + k) % n * turn), *x = work + 2 * r;
        re += x[0] * w[0] - x[1] * w[1];
        im += x[0] * w[1] + x[1] * w[0];
      }
      out[2 * (q * m + k)] = re;
      out[2 * (q * m + k) + 1] = im;
    }
  }
}

static void ft_roots(i64 n, i64 inverse, double *roots) {
  const double unit = (inverse ? 2 : -2) * 3.14159265358979323846 / (double)n;
  for (i64 j = 0; j < n; j++) {
    roots[2 * j] = cos(unit * (double)j);
    roots[2 * j + 1] = sin(unit * (double)j);
  }
}

// All lines along an axis of n points in complex memory of [outer, n, inner].
static void ft_axis(const ft_fourier *f, double *z, i64 axis, i64 n, i64 inner, double *memory) {
  double *line = memory, *to = line + 2 * f->longest, *work = to + 2 * f->longest;
  const double factor = f->kind % 2 ? 1 / (double)n : 1;
  const i64 outer = f->points / (n * inner);
  for (i64 o = 0; o < outer; o++)
    for (i64 i = 0; i < inner; i++) {
      double *first = z + 2 * (o * n * inner + i);
      for (i64 k = 0; k < n; k++) memcpy(line + 2 * k, first + 2 * k * inner, 16);
      ft_points(line, 1, to, n, n, f->roots[axis], work);
      for (i64 k = 0; k < n; k++)
        for (i64 part = 0; part < 2; part++)
          first[2 * k * inner + part] = factor * to[2 * k + part];
    }
}

static void ft_axes(const ft_fourier *f, double *z, i64 rank, double *memory) {
  i64 inner = 1;
  for (i64 d = f->rank - 1; d >= 0; d--) {
    const i64 n = d == f->rank - 1 ? f->half : f->lengths[d];
    if (d < rank) ft_axis(f, z, d, n, inner, memory);
    inner *= n;
  }
}

// The last axis of real numbers, a line at a time: n of them are `half` complex ones.
static void ft_real_lines(const ft_fourier *f, i64 at, double *z, double *memory) {
  const i64 n = f->lengths[f->rank - 1], half = f->half, inverse = f->kind == FT_REAL_INVERSE;
  double *line = memory, *to = line + 2 * f->longest, *work = to + 2 * f->longest;
  for (i64 l = 0; l < f->points / half; l++) {
    double *own = z + 2 * l * half;
    const i64 first = (at * (f->points / half) + l) * n;
    for (i64 k = 0; k < n; k++) {
      const i64 from = k < half ? k : n - k;
      if (inverse) {
        line[2 * k] = own[2 * from];
        line[2 * k + 1] = k % n == (n - k) % n ? 0 : k < half ? own[2 * k + 1] : -own[2 * from + 1];
      } else {
        line[2 * k] = f->is_double ? ((const double *)f->in)[first + k]
                                   : ((const float *)f->in)[first + k];
        line[2 * k + 1] = 0;
      }
    }
    ft_points(line, 1, to, n, n, f->roots[f->rank - 1], work);
    if (!inverse) memcpy(own, to, (size_t)half * 16);
    for (i64 k = 0; inverse && k < n; k++) {
      if (f->is_double) ((double *)f->out)[first + k] = to[2 * k] / (double)n;
      else ((float *)f->out)[first + k] = (float)(to[2 * k] / (double)n);
    }
  }
}

static void ft_fourier_range(void *arg, i64 begin, i64 end) {
  ft_fourier *f = arg;
  double *z = ft_allocate((f->points + 3 * f->longest) * 16), *memory = z + 2 * f->points;
  if (!z) {
    ft_fail(&f->failed);
    return;
  }
  for (i64 at = begin; at < end; at++) {
    const i64 first = 2 * at * f->points;
    for (i64 k = 0; f->kind != FT_REAL_FORWARD && k < 2 * f->points; k++)
      z[k] = f->is_double ? ((const double *)f->in)[first + k] : ((const float *)f->in)[first + k];
    if (f->kind == FT_REAL_FORWARD) ft_real_lines(f, at, z, memory);
    ft_axes(f, z, f->rank - (f->kind >= FT_REAL_FORWARD), memory);
    if (f->kind == FT_REAL_INVERSE) ft_real_lines(f, at, z, memory);
    for (i64 k = 0; f->kind != FT_REAL_INVERSE && k < 2 * f->points; k++) {
      if (f->is_double) ((double *)f->out)[first + k] = z[k];
      else ((float *)f->out)[first + k] = (float)z[k];
    }
  }
  ft_release(z);
}

static int ft_lib_fft(i64 kind, i64 type, i64 rank, const i64 *lengths, i64 batch, const void *in,
                      void *out) {
  ft_fourier f = {.kind = kind, .is_double = type == 1 || type == 14, .rank = rank, .points = 1,
                  .in = in, .out = out};
  for (i64 d = 0; d < rank; d++) {
    f.lengths[d] = lengths[d];
    f.half = kind >= FT_REAL_FORWARD && d == rank - 1 ? lengths[d] / 2 + 1 : lengths[d];
    f.points *= f.half;
    if (lengths[d] > f.longest) f.longest = lengths[d];
  }
  if (batch == 0 || f.points == 0) return 0;
  double *roots = ft_allocate(rank * f.longest * 16);
  if (!roots) return 2;
  for (i64 d = 0; d < rank; d++) {
    f.roots[d] = roots + 2 * d * f.longest;
    ft_roots(lengths[d], kind % 2, roots + 2 * d * f.longest);
  }
  ft_parallel(ft_fourier_range, &f, batch, 1 + 4096 / f.points);
  ft_release(roots);
  return f.failed ? 2 : 0;
}
