// Products whose sums are of type SUM.
typedef SUM ft_vector_TAG __attribute__((vector_size(FT_VECTOR), aligned(sizeof(SUM)), may_alias));
enum { FT_LANES_TAG = FT_VECTOR / sizeof(SUM), FT_NR_TAG = 2 * FT_LANES_TAG };

#define FT_LOADS(kind, read) \
  for (i64 k = 0; k < n; k++) to[k * to_step] = (SUM)read(((const kind *)p)[at + k * step]); \
  return

// n elements from `at` on, every `step`-th, as sums.
static void ft_load_TAG(int type, const void *p, i64 at, i64 step, i64 n, SUM *to, i64 to_step) {
  switch (type) {
    case FT_F32: FT_LOADS(float, );
    case FT_F64: FT_LOADS(double, );
    case FT_BF16: FT_LOADS(u16, ft_from_bf16);
    case FT_F16: FT_LOADS(u16, ft_from_f16);
    case FT_I8: FT_LOADS(int8_t, );
    case FT_I16: FT_LOADS(int16_t, );
    case FT_I32: FT_LOADS(int32_t, );
    case FT_I64: FT_LOADS(int64_t, );
    case FT_U8: FT_LOADS(u8, );
    case FT_U16: FT_LOADS(u16, );
    case FT_U32: FT_LOADS(u32, );
    default: FT_LOADS(u64, );
  }
}
#undef FT_LOADS

#define FT_STORES(kind, write) \
  for (i64 k = 0; k < n; k++) ((kind *)p)[at + k * step] = (kind)write(from[k]); \
  return

static void ft_store_TAG(int type, void *p, i64 at, i64 step, i64 n, const SUM *from) {
  switch (type) {
    case FT_F32: FT_STORES(float, );
    case FT_F64: FT_STORES(double, );
    case FT_BF16: FT_STORES(u16, ft_to_bf16);
    case FT_F16: FT_STORES(u16, ft_to_f16);
    case FT_I8: case FT_U8: FT_STORES(u8, );
    case FT_I16: case FT_U16: FT_STORES(u16, );
    case FT_I32: case FT_U32: FT_STORES(u32, );
    default: FT_STORES(u64, );
  }
}
#undef FT_STORES

// A tile of FT_MR rows and FT_NR columns, added to the sums.
static void ft_micro_TAG(i64 depth, const SUM *a, const SUM *b, SUM *sums, i64 row) {
  ft_vector_TAG acc[FT_MR][2] = {{{0}}};
  for (i64 p = 0; p < depth; p++) {
    const ft_vector_TAG b0 = *(const ft_vector_TAG *)(b + p * FT_NR_TAG);
    const ft_vector_TAG b1 = *(const ft_vector_TAG *)(b + p * FT_NR_TAG + FT_LANES_TAG);
    for (int r = 0; r < FT_MR; r++) {
      acc[r][0] += a[p * FT_MR + r] * b0;
      acc[r][1] += a[p * FT_MR + r] * b1;
    }
  }
  for (int r = 0; r < FT_MR; r++) {
    *(ft_vector_TAG *)(sums + r * row) += acc[r][0];
    *(ft_vector_TAG *)(sums + r * row + FT_LANES_TAG) += acc[r][1];
  }
}

// `depth` x `width` elements in panels of `panel` columns, filled up with zeros.
static void ft_pack_TAG(int type, const void *p, i64 at, i64 depth_step, i64 width_step, i64 depth,
                        i64 width, i64 panel, SUM *to) {
  for (i64 first = 0; first < width; first += panel, to += depth * panel) {
    const i64 count = ft_least(panel, width - first);
    const i64 from = at + first * width_step;
    if (count < panel) memset(to, 0, (size_t)(depth * panel) * sizeof(SUM));
    if (width_step == 1) {
      for (i64 d = 0; d < depth; d++)
        ft_load_TAG(type, p, from + d * depth_step, 1, count, to + d * panel, 1);
    } else {
      for (i64 c = 0; c < count; c++)
        ft_load_TAG(type, p, from + c * width_step, depth_step, depth, to + c, panel);
    }
  }
}

typedef struct { const ft_gemm *g; int failed; } ft_product_TAG;

static void ft_tile_TAG(const ft_gemm *g, i64 batch, i64 i0, i64 i1, i64 j0, i64 j1, SUM *a, SUM *b,
                        SUM *sums) {
  const i64 row = ft_round_up(j1 - j0, FT_NR_TAG), rows = ft_round_up(i1 - i0, FT_MR);
  const i64 outer = batch / g->batch1, inner = batch % g->batch1;
  const i64 a_at = outer * g->a_batch0 + inner * g->a_batch1 + i0 * g->a_row;
  const i64 b_at = outer * g->b_batch0 + inner * g->b_batch1 + j0 * g->b_col;
  memset(sums, 0, (size_t)(row * rows) * sizeof(SUM));
  for (i64 k0 = 0; k0 < g->k; k0 += FT_DEPTH) {
    const i64 depth = ft_least(FT_DEPTH, g->k - k0);
    ft_pack_TAG(g->in_type, g->a, a_at + k0 * g->a_col, g->a_col, g->a_row, depth, i1 - i0, FT_MR,
                a);
    ft_pack_TAG(g->in_type, g->b, b_at + k0 * g->b_row, g->b_row, g->b_col, depth, j1 - j0,
                FT_NR_TAG, b);
    for (i64 j = 0; j < row; j += FT_NR_TAG)
      for (i64 i = 0; i < rows; i += FT_MR)
        ft_micro_TAG(depth, a + i * depth, b + j * depth, sums + i * row + j, row);
  }
  if (g->epilogue) {
    g->epilogue(g->epilogue_arg, batch, i0, i1, j0, j1, sums, row);
    return;
  }
  const i64 c_at = outer * g->c_batch0 + inner * g->c_batch1 + j0 * g->c_col;
  for (i64 i = i0; i < i1; i++)
    ft_store_TAG(g->out_type, g->c, c_at + i * g->c_row, g->c_col, j1 - j0, sums + (i - i0) * row);
}

static void ft_tiles_TAG(void *arg, i64 begin, i64 end) {
  ft_product_TAG *product = arg;
  const ft_gemm *g = product->g;
  const i64 rows = ft_least(FT_ROWS, ft_round_up(g->m, FT_MR)), depth = ft_least(FT_DEPTH, g->k);
  const i64 columns = ft_least(FT_COLUMNS, ft_round_up(g->n, FT_NR_TAG));
  const i64 down = (g->m + rows - 1) / rows, across = (g->n + columns - 1) / columns;
  const i64 of_a = ft_round_up(rows * depth, 64), of_b = ft_round_up(columns * depth, 64);
  SUM *memory = ft_allocate((of_a + of_b + rows * columns) * (i64)sizeof(SUM));
  if (!memory) {
    ft_fail(&product->failed);
    return;
  }
  for (i64 t = begin; t < end; t++) {
    const i64 i0 = t / across % down * rows, j0 = t % across * columns;
    ft_tile_TAG(g, t / across / down, i0, ft_least(g->m, i0 + rows), j0,
                ft_least(g->n, j0 + columns), memory, memory + of_a, memory + of_a + of_b);
  }
  ft_release(memory);
}

static int ft_product_of_TAG(const ft_gemm *g) {
  const i64 rows = ft_least(FT_ROWS, ft_round_up(g->m, FT_MR));
  const i64 columns = ft_least(FT_COLUMNS, ft_round_up(g->n, FT_NR_TAG));
  const i64 batches = g->batch0 * g->batch1;
  if (batches == 0 || g->m == 0 || g->n == 0) return 0;
  const i64 tiles = batches * ((g->m + rows - 1) / rows) * ((g->n + columns - 1) / columns);
  ft_product_TAG product = {g, 0};
  const i64 work = rows * columns * g->k;  // of a tile; a thread takes some 0.1 ms to pay for
  ft_parallel(ft_tiles_TAG, &product, tiles, 1 + 1000000 / (work + 1));
  return product.failed ? 2 : 0;
}
