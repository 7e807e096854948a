// Running sums, products, extrema and log-sums of exponentials, along the middle of three axes.
static inline double ft_log_add(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  if (a != a || b != b) return a + b;
  return high == low && isinf(high) ? high : high + log1p(exp(low - high));
}

#define FT_EXTREME(x, y, wins) (x != x ? x : y != y ? y : wins ? x : y)
#define FT_RUN(kind, combined) \
  for (i64 o = begin; o < end; o++) { \
    const kind *in = (const kind *)s->in + o * s->n * s->inner; \
    kind *out = (kind *)s->out + o * s->n * s->inner; \
    for (i64 i = 0; i < s->n; i++) { \
      const i64 at = (s->reverse ? s->n - 1 - i : i) * s->inner; \
      const i64 before = s->reverse ? at + s->inner : at - s->inner; \
      for (i64 j = 0; j < s->inner; j++) { \
        const kind y = in[at + j]; \
        if (i == 0) { out[at + j] = y; continue; } \
        const kind x = out[before + j]; \
        out[at + j] = (kind)(combined); \
      } \
    } \
  } \
  return
#define FT_ARITHMETIC(kind, wide) \
  if (s->op == 0) { FT_RUN(wide, x + y); } \
  if (s->op == 1) { FT_RUN(wide, x * y); } \
  if (s->op == 2) { FT_RUN(kind, FT_EXTREME(x, y, x > y)); } \
  if (s->op == 3) { FT_RUN(kind, FT_EXTREME(x, y, x < y)); } \
  FT_RUN(kind, ft_log_add((double)x, (double)y))

typedef struct { i64 op, type, reverse, n, inner; const void *in; void *out; } ft_scan;

static void ft_scan_range(void *arg, i64 begin, i64 end) {
  const ft_scan *s = arg;
  switch (s->type) {
    case FT_ROW_F32: FT_ARITHMETIC(float, float);
    case FT_ROW_F64: FT_ARITHMETIC(double, double);
    case FT_ROW_I8: FT_ARITHMETIC(int8_t, u8);
    case FT_ROW_I16: FT_ARITHMETIC(int16_t, u16);
    case FT_ROW_I32: FT_ARITHMETIC(int32_t, u32);
    case FT_ROW_I64: FT_ARITHMETIC(int64_t, u64);
    case FT_ROW_U16: FT_ARITHMETIC(u16, u16);
    case FT_ROW_U32: FT_ARITHMETIC(u32, u32);
    case FT_ROW_U64: FT_ARITHMETIC(u64, u64);
    default: FT_ARITHMETIC(u8, u8);
  }
}

static int ft_lib_cumulate_rows(i64 op, i64 type, i64 reverse, i64 outer, i64 n, i64 inner,
                                const void *in, void *out) {
  ft_scan s = {op, type, reverse, n, inner, in, out};
  if (outer == 0 || n == 0 || inner == 0) return 0;
  ft_parallel(ft_scan_range, &s, outer, 1 + 16384 / (n * inner));
  return 0;
}
