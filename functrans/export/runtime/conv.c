// Convolutions, image by image, as products of the filters with the patches of the image.
#include "conv.h"

typedef struct {
  const ft_conv *c;
  i64 taps, places, depth, item, out_item;
  i64 *reads;    // of every tap and place, -1 in the padding and between elements
  i64 *writes;   // of every place
  char *filters; // of every group, a row for each feature out
  int failed;
} ft_images;

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

static void ft_plan(ft_images *all) {
  const ft_conv *c = all->c;
  i64 o[3], t[3];
  for (i64 place = 0; place < all->places; place++) {
    ft_unflatten(c, place, c->out_size, o);
    all->writes[place] = ft_strided(c, o, c->out_space);
    for (i64 tap = 0; tap < all->taps; tap++) {
      ft_unflatten(c, tap, c->window, t);
      all->reads[tap * all->places + place] = ft_reads(c, o, t);
    }
  }
  char *to = all->filters;
  for (i64 row = 0; row < c->groups * c->out_features; row++) {
    const i64 at = row / c->out_features * c->w_group + row % c->out_features * c->w_out;
    for (i64 f = 0; f < c->in_features; f++)
      for (i64 tap = 0; tap < all->taps; tap++, to += all->item) {
        ft_unflatten(c, tap, c->window, t);
        memcpy(to, (const char *)c->w + (at + f * c->w_in + ft_strided(c, t, c->w_space)) * all->item,
               (size_t)all->item);
      }
  }
}

#define FT_PICK(kind) \
  for (i64 i = 0; i < n; i++) \
    ((kind *)to)[i] = at[i] < 0 ? 0 : ((const kind *)from)[at[i]]; \
  return

// n elements of `item` bytes from their places; 0 where there is none.
static void ft_pick(i64 item, const char *from, const i64 *at, i64 n, char *to) {
  switch (item) {
    case 1: FT_PICK(u8);
    case 2: FT_PICK(u16);
    case 4: FT_PICK(u32);
    default: FT_PICK(u64);
  }
}

#define FT_PUT(kind) \
  for (i64 i = 0; i < n; i++) ((kind *)to)[at[i]] = ((const kind *)from)[i]; \
  return

static void ft_put(i64 item, const char *from, const i64 *at, i64 n, char *to) {
  switch (item) {
    case 1: FT_PUT(u8);
    case 2: FT_PUT(u16);
    case 4: FT_PUT(u32);
    default: FT_PUT(u64);
  }
}

static int ft_image(const ft_images *all, i64 group, i64 image, char *patches, char *result) {
  const ft_conv *c = all->c;
  const i64 n = all->places, item = all->item;
  const char *x = (const char *)c->x + (group * c->x_group + image * c->x_batch) * item;
  for (i64 f = 0; f < c->in_features; f++)
    for (i64 tap = 0; tap < all->taps; tap++)
      ft_pick(item, x + f * c->x_feature * item, all->reads + tap * n, n,
              patches + (f * all->taps + tap) * n * item);
  const ft_gemm g = {.batch0 = 1, .batch1 = 1, .m = c->out_features, .n = n, .k = all->depth,
                     .a = all->filters + group * c->out_features * all->depth * item,
                     .a_row = all->depth, .a_col = 1, .b = patches, .b_row = n, .b_col = 1,
                     .c = result, .c_row = n, .c_col = 1, .in_type = c->in_type,
                     .out_type = c->out_type, .alpha = 1};
  const int error = ft_lib_gemm(&g);
  char *out = (char *)c->out + (group * c->out_group + image * c->out_batch) * all->out_item;
  for (i64 f = 0; f < c->out_features; f++)
    ft_put(all->out_item, result + f * n * all->out_item, all->writes, n,
           out + f * c->out_feature * all->out_item);
  return error;
}

static void ft_image_range(void *arg, i64 begin, i64 end) {
  ft_images *all = arg;
  const ft_conv *c = all->c;
  const i64 of_x = ft_round_up(all->depth * all->places * all->item, 64);
  char *memory = ft_allocate(of_x + c->out_features * all->places * all->out_item);
  int failed = memory == NULL;
  for (i64 i = begin; !failed && i < end; i++)
    failed = ft_image(all, i / c->batch, i % c->batch, memory, memory + of_x);
  ft_release(memory);
  if (failed) {
    ft_fail(&all->failed);
  }
}

static int ft_lib_conv(const ft_conv *c) {
  ft_images all = {.c = c, .taps = 1, .places = 1, .item = ft_item_size(c->in_type),
                   .out_item = ft_item_size(c->out_type)};
  for (i64 d = 0; d < c->rank; d++) {
    all.taps *= c->window[d];
    all.places *= c->out_size[d];
  }
  if (c->groups * c->batch == 0 || all.places == 0 || c->out_features == 0) return 0;
  all.depth = c->in_features * all.taps;
  all.reads = ft_allocate((all.taps + 1) * all.places * 8);
  all.filters = ft_allocate(c->groups * c->out_features * all.depth * all.item);
  all.failed = !all.reads || !all.filters;
  if (!all.failed) {
    all.writes = all.reads + all.taps * all.places;
    ft_plan(&all);
    const i64 work = all.places * all.depth * c->out_features;
    ft_parallel(ft_image_range, &all, c->groups * c->batch, 1 + 200000 / (work + 1));
  }
  ft_release(all.filters);
  ft_release(all.reads);
  return all.failed ? 2 : 0;
}
