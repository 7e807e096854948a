// Products of few rows with a matrix of 8-bit weights; see csrc/lib_narrow.cpp of functrans.
typedef struct {
  i64 format, m, k, n;
  const float *x;
  const uint8_t *w;
  float *out;
} ft_narrow;

static float ft_widened(uint8_t byte, i64 format) {
  if (format == 0) return (float)(int8_t)byte;
  const int places = format == 1 ? 3 : 2, least = format == 1 ? -6 : -14;
  const int t = byte & 0x7f, exponent = t >> places, fraction = t & ((1 << places) - 1);
  float value;
  if (format == 1 ? t == 0x7f : t > 0x7c) {
    value = NAN;
  } else if (format == 2 && t == 0x7c) {
    value = INFINITY;
  } else if (exponent == 0) {
    value = ldexpf((float)fraction, least - places);
  } else {
    value = ldexpf((float)(fraction + (1 << places)), exponent - 1 + least - places);
  }
  return byte & 0x80 ? -value : value;
}

static void ft_narrow_columns(void *arg, i64 begin, i64 end) {
  const ft_narrow *s = (const ft_narrow *)arg;
  float table[256];
  for (int byte = 0; byte < 256; byte++) table[byte] = ft_widened((uint8_t)byte, s->format);
  for (i64 r = 0; r < s->m; r++) {
    float *out = s->out + r * s->n;
    for (i64 j = begin; j < end; j++) out[j] = 0;
    for (i64 p = 0; p < s->k; p++) {
      const uint8_t *w = s->w + p * s->n;
      const float factor = s->x[r * s->k + p];
      for (i64 j = begin; j < end; j++) out[j] += factor * table[w[j]];
    }
  }
}

static int ft_lib_narrow_dot(i64 format, i64 m, i64 k, i64 n, const float *x, const void *w,
                             float *out) {
  ft_narrow s = {format, m, k, n, x, (const uint8_t *)w, out};
  ft_parallel(ft_narrow_columns, &s, n, 512);
  return 0;
}
