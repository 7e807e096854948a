// Products of matrices of compressed rows; see csrc/lib_sparse.cpp of functrans.
typedef struct {
  i64 transpose, rows, columns, nse, n;
  const void *data, *indices, *indptr, *x;
  void *out;
} ft_compressed;

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

static int ft_lib_csr_dot(i64 type, i64 wide, i64 transpose, i64 rows, i64 columns, i64 nse, i64 n,
                          const void *data, const void *indices, const void *indptr, const void *x,
                          void *out) {
  ft_compressed s = {transpose, rows, columns, nse, n, data, indices, indptr, x, out};
  const ft_range bodies[] = {ft_csr_dot_f32_i32, ft_csr_dot_f32_i64, ft_csr_dot_f64_i32,
                             ft_csr_dot_f64_i64};
  const ft_range body = bodies[2 * type + (wide != 0)];
  if (!transpose) {
    ft_parallel(body, &s, rows, 1024);
    return 0;
  }
  memset(out, 0, (size_t)(columns * n * (type == 0 ? 4 : 8)));
  body(&s, 0, rows);
  return 0;
}

static int ft_lib_csr_sample(i64 type, i64 wide, i64 rows, i64 columns, i64 nse, i64 n,
                             const void *indices, const void *indptr, const void *y, const void *x,
                             void *out) {
  ft_compressed s = {0, rows, columns, nse, n, y, indices, indptr, x, out};
  const ft_range bodies[] = {ft_csr_sample_f32_i32, ft_csr_sample_f32_i64, ft_csr_sample_f64_i32,
                             ft_csr_sample_f64_i64};
  memset(out, 0, (size_t)(nse * (type == 0 ? 4 : 8)));
  ft_parallel(bodies[2 * type + (wide != 0)], &s, rows, 1024);
  return 0;
}
