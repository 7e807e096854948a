// Convolutions, image by image, as products of the filters with the patches of the image.
typedef struct {
  i64 rank, groups, batch, in_features, out_features;
  i64 in_size[3], window[3], out_size[3];
  i64 stride[3], pad_low[3], in_dilation[3], window_dilation[3];
  const void *x; i64 x_group, x_batch, x_feature, x_space[3];
  const void *w; i64 w_group, w_out, w_in, w_space[3];
  void *out; i64 out_group, out_batch, out_feature, out_space[3];
  int in_type, out_type;
  double alpha;
  int accumulate;
} ft_conv;

typedef struct { const ft_conv *c; i64 taps, places, item; int failed; } ft_images;

static i64 ft_item_size(int type) {
  const i64 sizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8};
  return sizes[type];
}

// `flat` as an index of each axis of `size`.
static void ft_unflatten(const ft_conv *c, i64 flat, const i64 *size, i64 *at) {
  for (i64 d = c->rank - 1; d >= 0; d--) {
    at[d] = flat % size[d];
    flat /= size[d];
  }
}

// Where the window's tap `t` reads for the place `o`, or -1 in the padding and between elements.
static i64 ft_reads(const ft_conv *c, const i64 *o, const i64 *t) {
  i64 at = 0;
  for (i64 d = 0; d < c->rank; d++) {
    const i64 i = o[d] * c->stride[d] + t[d] * c->window_dilation[d] - c->pad_low[d];
    if (i < 0 || i % c->in_dilation[d] || i / c->in_dilation[d] >= c->in_size[d]) return -1;
    at += i / c->in_dilation[d] * c->x_space[d];
  }
  return at;
}

static i64 ft_strided(const ft_conv *c, const i64 *at, const i64 *strides) {
  i64 sum = 0;
  for (i64 d = 0; d < c->rank; d++) sum += at[d] * strides[d];
  return sum;
}

static int ft_image(const ft_images *all, i64 group, i64 image, char *filters, char *patches,
                    char *result) {
  const ft_conv *c = all->c;
  const i64 item = all->item, depth = c->in_features * all->taps, out_item = ft_item_size(c->out_type);
  const char *x = (const char *)c->x + (group * c->x_group + image * c->x_batch) * item;
  const char *w = (const char *)c->w + group * c->w_group * item;
  i64 o[3], t[3];
  memset(patches, 0, (size_t)(depth * all->places * item));
  for (i64 tap = 0; tap < all->taps; tap++) {
    ft_unflatten(c, tap, c->window, t);
    for (i64 f = 0; f < c->in_features; f++) {
      const i64 row = f * all->taps + tap;
      for (i64 k = 0; k < c->out_features; k++)
        memcpy(filters + (k * depth + row) * item,
               w + (k * c->w_out + f * c->w_in + ft_strided(c, t, c->w_space)) * item, (size_t)item);
      for (i64 place = 0; place < all->places; place++) {
        ft_unflatten(c, place, c->out_size, o);
        const i64 at = ft_reads(c, o, t);
        if (at >= 0)
          memcpy(patches + (row * all->places + place) * item, x + (f * c->x_feature + at) * item,
                 (size_t)item);
      }
    }
  }
  const ft_gemm g = {.batch0 = 1, .batch1 = 1, .m = c->out_features, .n = all->places, .k = depth,
                     .a = filters, .a_row = depth, .a_col = 1, .b = patches, .b_row = all->places,
                     .b_col = 1, .c = result, .c_row = all->places, .c_col = 1,
                     .in_type = c->in_type, .out_type = c->out_type, .alpha = 1};
  const int error = ft_lib_gemm(&g);
  char *out = (char *)c->out + (group * c->out_group + image * c->out_batch) * out_item;
  for (i64 place = 0; place < all->places; place++) {
    ft_unflatten(c, place, c->out_size, o);
    for (i64 k = 0; k < c->out_features; k++)
      memcpy(out + (k * c->out_feature + ft_strided(c, o, c->out_space)) * out_item,
             result + (k * all->places + place) * out_item, (size_t)out_item);
  }
  return error;
}

static void ft_image_range(void *arg, i64 begin, i64 end) {
  ft_images *all = arg;
  const ft_conv *c = all->c;
  const i64 depth = c->in_features * all->taps;
  const i64 of_w = ft_round_up(depth * c->out_features * all->item, 64);
  const i64 of_x = ft_round_up(depth * all->places * all->item, 64);
  char *memory = ft_allocate(of_w + of_x + c->out_features * all->places * ft_item_size(c->out_type));
  int failed = memory == NULL;
  for (i64 i = begin; !failed && i < end; i++)
    failed = ft_image(all, i / c->batch, i % c->batch, memory, memory + of_w, memory + of_w + of_x);
  free(memory);
  if (failed) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
    all->failed = 1;
  }
}

static int ft_lib_conv(const ft_conv *c) {
  ft_images all = {c, 1, 1, ft_item_size(c->in_type), 0};
  for (i64 d = 0; d < c->rank; d++) {
    all.taps *= c->window[d];
    all.places *= c->out_size[d];
  }
  if (c->groups * c->batch == 0 || all.places == 0 || c->out_features == 0) return 0;
  ft_parallel(ft_image_range, &all, c->groups * c->batch, 1);
  return all.failed ? 2 : 0;
}
