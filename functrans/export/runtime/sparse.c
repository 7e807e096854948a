// Products of matrices of compressed rows; see csrc/lib_sparse.cpp of functrans.
typedef struct {
  i64 transpose, rows, columns, nse, n;
  const void *data, *indices, *indptr, *x;
  void *out;
} ft_compressed;

// Pointers that do not decrease: their running maximum, in memory that the caller frees.
static const void *ft_in_order(const void *indptr, i64 wide, i64 rows, void **copy) {
  const int32_t *narrow = (const int32_t *)indptr;
  const i64 *long_ones = (const i64 *)indptr;
  int increasing = (wide ? long_ones[0] : (i64)narrow[0]) >= 0;
  for (i64 i = 0; i < rows; i++) {
    increasing &= wide ? long_ones[i] <= long_ones[i + 1] : narrow[i] <= narrow[i + 1];
  }
  *copy = NULL;
  if (increasing) return indptr;
  *copy = malloc((size_t)(rows + 1) * (wide ? 8 : 4));
  i64 most = 0;
  for (i64 i = 0; *copy != NULL && i <= rows; i++) {
    const i64 here = wide ? long_ones[i] : (i64)narrow[i];
    if (here > most) most = here;
    if (wide) ((i64 *)*copy)[i] = most;
    else ((int32_t *)*copy)[i] = (int32_t)most;
  }
  return *copy;
}

static i64 ft_inside(i64 place, i64 nse) { return place < 0 ? 0 : place > nse ? nse : place; }

#define FT_CSR(suffix, T, I) \
  static void ft_csr_dot_##suffix(void *arg, i64 begin, i64 end) { \
    const ft_compressed *s = (const ft_compressed *)arg; \
    const T *data = (const T *)s->data, *x = (const T *)s->x; \
    const I *indices = (const I *)s->indices, *indptr = (const I *)s->indptr; \
    T *out = (T *)s->out; \
    for (i64 i = begin; i < end; i++) { \
      const i64 last = ft_inside(indptr[i + 1], s->nse); \
      if (!s->transpose) { \
        for (i64 j = 0; j < s->n; j++) out[i * s->n + j] = 0; \
      } \
      for (i64 e = ft_inside(indptr[i], s->nse); e < last; e++) { \
        const i64 c = (i64)indices[e]; \
        if (c < 0 || c >= s->columns) continue; \
        const i64 to = s->transpose ? c : i, from = s->transpose ? i : c; \
        for (i64 j = 0; j < s->n; j++) out[to * s->n + j] += data[e] * x[from * s->n + j]; \
      } \
    } \
  } \
  static void ft_csr_sample_##suffix(void *arg, i64 begin, i64 end) { \
    const ft_compressed *s = (const ft_compressed *)arg; \
    const T *y = (const T *)s->data, *x = (const T *)s->x; \
    const I *indices = (const I *)s->indices, *indptr = (const I *)s->indptr; \
    T *out = (T *)s->out; \
    for (i64 i = begin; i < end; i++) { \
      const i64 last = ft_inside(indptr[i + 1], s->nse); \
      for (i64 e = ft_inside(indptr[i], s->nse); e < last; e++) { \
        const i64 c = (i64)indices[e]; \
        T total = 0; \
        for (i64 j = 0; c >= 0 && c < s->columns && j < s->n; j++) { \
          total += y[i * s->n + j] * x[c * s->n + j]; \
        } \
        out[e] = total; \
      } \
    } \
  }

FT_CSR(f32_i32, float, int32_t)
FT_CSR(f32_i64, float, i64)
FT_CSR(f64_i32, double, int32_t)
FT_CSR(f64_i64, double, i64)

static int ft_lib_coo_dot(i64 type, i64 wide, i64 transpose, i64 rows, i64 columns, i64 nse, i64 n,
                          const void *data, const void *indices, const void *x, void *out) {
  memset(out, 0, (size_t)((transpose ? columns : rows) * n * (type == 0 ? 4 : 8)));
  for (i64 e = 0; e < nse; e++) {
    const i64 row = wide ? ((const i64 *)indices)[2 * e] : (i64)((const int32_t *)indices)[2 * e];
    const i64 column =
        wide ? ((const i64 *)indices)[2 * e + 1] : (i64)((const int32_t *)indices)[2 * e + 1];
    if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
    const i64 to = (transpose ? column : row) * n, from = (transpose ? row : column) * n;
    for (i64 j = 0; j < n; j++) {
      if (type == 0) {
        ((float *)out)[to + j] += ((const float *)data)[e] * ((const float *)x)[from + j];
      } else {
        ((double *)out)[to + j] += ((const double *)data)[e] * ((const double *)x)[from + j];
      }
    }
  }
  return 0;
}

static int ft_lib_csr_dot(i64 type, i64 wide, i64 transpose, i64 rows, i64 columns, i64 nse, i64 n,
                          const void *data, const void *indices, const void *indptr, const void *x,
                          void *out) {
  ft_compressed s = {transpose, rows, columns, nse, n, data, indices, indptr, x, out};
  const ft_range bodies[] = {ft_csr_dot_f32_i32, ft_csr_dot_f32_i64, ft_csr_dot_f64_i32,
                             ft_csr_dot_f64_i64};
  const ft_range body = bodies[2 * type + (wide != 0)];
  void *copy;
  s.indptr = ft_in_order(indptr, wide, rows, &copy);
  if (s.indptr == NULL) return 2;
  if (transpose) {
    memset(out, 0, (size_t)(columns * n * (type == 0 ? 4 : 8)));
    body(&s, 0, rows);
  } else {
    ft_parallel(body, &s, rows, 1024);
  }
  free(copy);
  return 0;
}

static int ft_lib_csr_sample(i64 type, i64 wide, i64 rows, i64 columns, i64 nse, i64 n,
                             const void *indices, const void *indptr, const void *y, const void *x,
                             void *out) {
  ft_compressed s = {0, rows, columns, nse, n, y, indices, indptr, x, out};
  const ft_range bodies[] = {ft_csr_sample_f32_i32, ft_csr_sample_f32_i64, ft_csr_sample_f64_i32,
                             ft_csr_sample_f64_i64};
  void *copy;
  s.indptr = ft_in_order(indptr, wide, rows, &copy);
  if (s.indptr == NULL) return 2;
  memset(out, 0, (size_t)(nse * (type == 0 ? 4 : 8)));
  ft_parallel(bodies[2 * type + (wide != 0)], &s, rows, 1024);
  free(copy);
  return 0;
}

// The row of an element moves up while the pointer to the next row is not behind the element.
static int ft_lib_row_coordinates(i64 wide, i64 lanes, i64 rows, i64 parts, const i64 *counts,
                                  void *const *inputs, void *out) {
  i64 to = 0;
  for (i64 lane = 0; lane < lanes; lane++) {
    for (i64 part = 0; part < parts; part++) {
      const i64 nse = counts[part], first = lane * (rows + 1);
      const void *columns = inputs[2 * part], *pointers = inputs[2 * part + 1];
      i64 row = -1;
      for (i64 e = 0; e < nse; e++, to += 2) {
        while (row < rows && (wide ? ((const i64 *)pointers)[first + row + 1]
                                   : (i64)((const int32_t *)pointers)[first + row + 1]) <= e) {
          row++;
        }
        if (wide) {
          ((i64 *)out)[to] = row;
          ((i64 *)out)[to + 1] = ((const i64 *)columns)[lane * nse + e];
        } else {
          ((int32_t *)out)[to] = (int32_t)row;
          ((int32_t *)out)[to + 1] = ((const int32_t *)columns)[lane * nse + e];
        }
      }
    }
  }
  return 0;
}
