// Linear algebra of stacks of real matrices, each in double precision and by one thread.
typedef struct {
  i64 is_double, m, n, columns, left, lower, transposed, unit;
  const void *a, *b;
  void *out, *second, *third;
  i64 scratch;  // doubles
  void (*one)(const void *, i64, double *);
  int failed;
} ft_matrices;

static double ft_number(const ft_matrices *s, const void *p, i64 i) {
  return s->is_double ? ((const double *)p)[i] : ((const float *)p)[i];
}

static void ft_read(const ft_matrices *s, const void *p, i64 at, i64 n, double *to) {
  for (i64 i = 0; i < n; i++) to[i] = ft_number(s, p, at + i);
}

static void ft_write(const ft_matrices *s, void *p, i64 at, i64 n, const double *from) {
  for (i64 i = 0; i < n; i++) {
    if (s->is_double) ((double *)p)[at + i] = from[i];
    else ((float *)p)[at + i] = (float)from[i];
  }
}

static void ft_matrix_range(void *arg, i64 begin, i64 end) {
  ft_matrices *s = arg;
  double *memory = ft_allocate(s->scratch * 8);
  if (!memory) {
    ft_fail(&s->failed);
    return;
  }
  for (i64 k = begin; k < end; k++) s->one(s, k, memory);
  ft_release(memory);
}

static int ft_each_matrix(ft_matrices s, i64 batch) {
  if (batch == 0) return 0;
  ft_parallel(ft_matrix_range, &s, batch, 1 + 100000 / (s.m * s.n * (s.m < s.n ? s.m : s.n) + 1));
  return s.failed ? 2 : 0;
}

static void ft_swap_rows(double *a, i64 n, i64 i, i64 j) {
  for (i64 c = 0; i != j && c < n; c++) {
    const double x = a[i * n + c];
    a[i * n + c] = a[j * n + c];
    a[j * n + c] = x;
  }
}

// a = L U with rows exchanged as `pivots` says (each with a later one); the sign of the exchanges.
static double ft_factor(double *a, i64 m, i64 n, int32_t *pivots) {
  double sign = 1;
  for (i64 k = 0; k < ft_least(m, n); k++) {
    i64 best = k;
    for (i64 i = k + 1; i < m; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    pivots[k] = (int32_t)best;
    if (best != k) sign = -sign;
    ft_swap_rows(a, n, k, best);
    if (a[k * n + k] == 0) continue;
    for (i64 i = k + 1; i < m; i++) {
      const double x = a[i * n + k] /= a[k * n + k];
      for (i64 j = k + 1; j < n; j++) a[i * n + j] -= x * a[k * n + j];
    }
  }
  return sign;
}

// x = T^-1 x for `columns` columns, T of n rows, element (i, j) at i * row + j * column.
static void ft_substitute(const double *t, i64 n, i64 row, i64 column, int lower, int unit,
                          double *x, i64 columns) {
  for (i64 k = 0; k < n; k++) {
    const i64 i = lower ? k : n - 1 - k;
    for (i64 j = lower ? 0 : i + 1; j < (lower ? i : n); j++)
      for (i64 c = 0; c < columns; c++)
        x[i * columns + c] -= t[i * row + j * column] * x[j * columns + c];
    for (i64 c = 0; !unit && c < columns; c++) x[i * columns + c] /= t[i * (row + column)];
  }
}

static void ft_cholesky_one(const void *arg, i64 at, double *a) {
  const ft_matrices *s = arg;
  const i64 n = s->n;
  int healthy = 1;
  ft_read(s, s->a, at * n * n, n * n, a);
  for (i64 j = 0; j < n; j++) {
    for (i64 i = j; i < n; i++) {
      double x = a[i * n + j];
      for (i64 p = 0; p < j; p++) x -= a[i * n + p] * a[j * n + p];
      if (i == j) {
        healthy &= x > 0;
        a[j * n + j] = sqrt(x);
      } else {
        a[i * n + j] = x / a[j * n + j];
        a[j * n + i] = 0;
      }
    }
  }
  for (i64 i = 0; !healthy && i < n; i++)
    for (i64 j = 0; j <= i; j++) a[i * n + j] = NAN;
  ft_write(s, s->out, at * n * n, n * n, a);
}

static int ft_lib_cholesky(i64 type, i64 batch, i64 n, void *a, void *out) {
  return ft_each_matrix((ft_matrices){.is_double = type, .m = n, .n = n, .a = a, .out = out,
                                      .scratch = n * n, .one = ft_cholesky_one}, batch);
}

static void ft_solve_one(const void *arg, i64 at, double *memory) {
  const ft_matrices *s = arg;
  const i64 n = s->n, k = s->columns;
  double *a = memory, *x = memory + n * n;
  int32_t *pivots = (int32_t *)(x + n * k);
  int singular = 0;
  ft_read(s, s->a, at * n * n, n * n, a);
  ft_read(s, s->b, at * n * k, n * k, x);
  ft_factor(a, n, n, pivots);
  for (i64 i = 0; i < n; i++) {
    ft_swap_rows(x, k, i, pivots[i]);
    singular |= a[i * n + i] == 0;
  }
  ft_substitute(a, n, n, 1, 1, 1, x, k);
  ft_substitute(a, n, n, 1, 0, 0, x, k);
  for (i64 i = 0; singular && i < n * k; i++) x[i] = NAN;
  ft_write(s, s->out, at * n * k, n * k, x);
}

static int ft_lib_solve(i64 type, i64 batch, i64 n, i64 k, void *a, void *b, void *out) {
  return ft_each_matrix((ft_matrices){.is_double = type, .m = n, .n = n, .columns = k, .a = a,
                                      .b = b, .out = out, .scratch = n * n + n * k + n,
                                      .one = ft_solve_one}, batch);
}

static void ft_triangular_one(const void *arg, i64 at, double *memory) {
  const ft_matrices *s = arg;
  const i64 n = s->n, k = s->columns;
  double *a = memory, *x = memory + n * n;
  ft_read(s, s->a, at * n * n, n * n, a);
  // from the right: X T = B is T' X' = B'
  for (i64 i = 0; i < n; i++)
    for (i64 c = 0; c < k; c++)
      x[i * k + c] = ft_number(s, s->b, at * n * k + (s->left ? i * k + c : c * n + i));
  const int turned = s->left ? s->transposed != 0 : s->transposed == 0;
  ft_substitute(a, n, turned ? 1 : n, turned ? n : 1, turned ? !s->lower : s->lower != 0,
                s->unit != 0, x, k);
  for (i64 i = 0; i < n; i++)
    for (i64 c = 0; c < k; c++)
      ft_write(s, s->out, at * n * k + (s->left ? i * k + c : c * n + i), 1, x + i * k + c);
}

static int ft_lib_triangular_solve(i64 type, i64 batch, i64 n, i64 k, i64 left, i64 lower,
                                   i64 transposed, i64 unit, i64 conjugated, void *a, void *b,
                                   void *out) {
  (void)conjugated;  // of real numbers
  return ft_each_matrix(
      (ft_matrices){.is_double = type, .m = n, .n = n, .columns = k, .left = left, .lower = lower,
                    .transposed = transposed, .unit = unit, .a = a, .b = b, .out = out,
                    .scratch = n * n + n * k, .one = ft_triangular_one}, batch);
}

static void ft_det_one(const void *arg, i64 at, double *a) {
  const ft_matrices *s = arg;
  const i64 n = s->n;
  ft_read(s, s->a, at * n * n, n * n, a);
  double sign = ft_factor(a, n, n, (int32_t *)(a + n * n)), det = sign, log_det = 0;
  for (i64 i = 0; i < n; i++) {
    const double x = a[i * n + i];
    det *= x;
    sign *= x > 0 ? 1 : x < 0 ? -1 : x;
    log_det += log(fabs(x));
  }
  ft_write(s, s->out, at, 1, s->second ? &sign : &det);
  if (s->second) ft_write(s, s->second, at, 1, &log_det);
}

static int ft_lib_slogdet(i64 type, i64 batch, i64 n, void *a, void *sign, void *log_det) {
  return ft_each_matrix((ft_matrices){.is_double = type, .m = n, .n = n, .a = a, .out = sign,
                                      .second = log_det, .scratch = n * n + n, .one = ft_det_one},
                        batch);
}

static int ft_lib_det(i64 type, i64 batch, i64 n, void *a, void *det) {
  return ft_lib_slogdet(type, batch, n, a, det, NULL);
}

static void ft_lu_one(const void *arg, i64 at, double *a) {
  const ft_matrices *s = arg;
  const i64 m = s->m, n = s->n, k = ft_least(m, n);
  int32_t *pivots = (int32_t *)s->second + at * k, *order = (int32_t *)s->third + at * m;
  ft_read(s, s->a, at * m * n, m * n, a);
  ft_factor(a, m, n, pivots);
  ft_write(s, s->out, at * m * n, m * n, a);
  for (i64 i = 0; i < m; i++) order[i] = (int32_t)i;
  for (i64 i = 0; i < k; i++) {
    const int32_t row = order[i];
    order[i] = order[pivots[i]];
    order[pivots[i]] = row;
  }
}

static int ft_lib_lu(i64 type, i64 batch, i64 m, i64 n, void *a, void *factors, void *pivots,
                     void *permutation) {
  return ft_each_matrix((ft_matrices){.is_double = type, .m = m, .n = n, .a = a, .out = factors,
                                      .second = pivots, .third = permutation, .scratch = m * n,
                                      .one = ft_lu_one}, batch);
}
