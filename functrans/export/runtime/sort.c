// Stable sorting of rows: places are merged in the order of keys, which are unsigned integers.

// The bits of a float so that unsigned order is theirs: zeros are equal, NaN comes last.
static inline u64 ft_float_key(u64 bits, u64 sign, u64 infinity) {
  if ((bits & ~sign & (2 * sign - 1)) > infinity) return ~(u64)0;
  if (bits == sign) bits = 0;
  return (bits & sign ? ~bits : bits | sign) & (2 * sign - 1);
}

static u64 ft_key(i64 type, const char *row, i64 i) {
  switch (type) {
    case FT_ROW_F32: return ft_float_key(((const u32 *)row)[i], 1ull << 31, 0x7f800000);
    case FT_ROW_F16: return ft_float_key(((const u16 *)row)[i], 1ull << 15, 0x7c00);
    case FT_ROW_BF16: return ft_float_key(((const u16 *)row)[i], 1ull << 15, 0x7f80);
    case FT_ROW_F64: {
      const u64 bits = ((const u64 *)row)[i], sign = 1ull << 63;
      if ((bits & ~sign) > 0x7ff0000000000000ull) return ~(u64)0;
      return bits == sign ? sign : bits & sign ? ~bits : bits | sign;
    }
    case FT_ROW_I8: return (u64)((const int8_t *)row)[i] ^ 1ull << 63;
    case FT_ROW_I16: return (u64)((const int16_t *)row)[i] ^ 1ull << 63;
    case FT_ROW_I32: return (u64)((const int32_t *)row)[i] ^ 1ull << 63;
    case FT_ROW_I64: return (u64)((const int64_t *)row)[i] ^ 1ull << 63;
    case FT_ROW_U16: return ((const u16 *)row)[i];
    case FT_ROW_U32: return ((const u32 *)row)[i];
    case FT_ROW_U64: return ((const u64 *)row)[i];
    default: return ((const u8 *)row)[i];
  }
}

typedef struct { u64 key; i64 at; } ft_record;

// The records in order of keys, equal ones as they were; `other` is as large.
static void ft_merge_sort(ft_record *records, ft_record *other, i64 n) {
  ft_record *from = records, *to = other;
  for (i64 width = 1; width < n; width *= 2) {
    for (i64 begin = 0; begin < n; begin += 2 * width) {
      const i64 middle = ft_least(n, begin + width), end = ft_least(n, begin + 2 * width);
      i64 i = begin, j = middle;
      for (i64 k = begin; k < end; k++)
        to[k] = i < middle && (j >= end || from[i].key <= from[j].key) ? from[i++] : from[j++];
    }
    ft_record *swap = from;
    from = to;
    to = swap;
  }
  if (from != records) memcpy(records, from, (size_t)n * sizeof *records);
}

typedef struct {
  i64 n, k, operands, keys, descending;
  const i64 *types;
  const char *const *in;
  char *const *out;
  int32_t *places;
  int failed;
} ft_sorting;

static void ft_sort_range(void *arg, i64 begin, i64 end) {
  ft_sorting *s = arg;
  ft_record *records = ft_allocate(2 * s->n * (i64)sizeof(ft_record));
  if (!records) {
    ft_fail(&s->failed);
    return;
  }
  for (i64 row = begin; row < end; row++) {
    for (i64 i = 0; i < s->n; i++) records[i].at = i;
    for (i64 key = s->keys - 1; key >= 0; key--) {  // the last key first: the sort is stable
      const char *values = s->in[key] + row * s->n * ft_row_items[s->types[key]];
      for (i64 i = 0; i < s->n; i++) {
        const u64 bits = ft_key(s->types[key], values, records[i].at);
        records[i].key = s->descending ? ~bits : bits;
      }
      ft_merge_sort(records, records + s->n, s->n);
    }
    for (i64 o = 0; o < s->operands; o++) {
      const i64 item = ft_row_items[s->types[o]];
      const char *from = s->in[o] + row * s->n * item;
      char *to = s->out[o] ? s->out[o] + row * s->k * item : NULL;
      for (i64 i = 0; to && i < s->k; i++)
        memcpy(to + i * item, from + records[i].at * item, (size_t)item);
    }
    for (i64 i = 0; s->places && i < s->k; i++) s->places[row * s->k + i] = (int32_t)records[i].at;
  }
  ft_release(records);
}

static int ft_sort(ft_sorting s, i64 rows) {
  if (rows == 0 || s.n == 0 || s.k == 0) return 0;
  ft_parallel(ft_sort_range, &s, rows, 1 + 4096 / s.n);
  return s.failed ? 2 : 0;
}

static int ft_lib_sort_rows(i64 rows, i64 n, i64 operands, i64 keys, i64 stable, const i64 *types,
                            const void *const *in, void *const *out) {
  (void)stable;
  return ft_sort((ft_sorting){n, n, operands, keys, 0, types, (const char *const *)in,
                              (char *const *)out, NULL, 0}, rows);
}

static int ft_lib_argsort_rows(i64 rows, i64 n, i64 type, const void *in, void *sorted,
                               int32_t *places) {
  const char *const from[] = {in};
  char *const to[] = {sorted};
  return ft_sort((ft_sorting){n, n, 1, 1, 0, &type, from, to, places, 0}, rows);
}

static int ft_lib_top_k_rows(i64 rows, i64 n, i64 k, i64 type, const void *in, void *values,
                             int32_t *places) {
  const char *const from[] = {in};
  char *const to[] = {values};
  return ft_sort((ft_sorting){n, k, 1, 1, 1, &type, from, to, places, 0}, rows);
}
