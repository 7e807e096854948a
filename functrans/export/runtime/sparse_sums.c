// Sums of sparse arrays, each place once and in order; see csrc/lib_sparse_sums.cpp of functrans.
typedef struct {
  i64 place, part, element;
} ft_stored;

static i64 ft_index(const void *indices, i64 wide, i64 at) {
  return wide ? ((const i64 *)indices)[at] : (i64)((const int32_t *)indices)[at];
}

static void ft_put_index(void *indices, i64 wide, i64 at, i64 value) {
  if (wide) ((i64 *)indices)[at] = value;
  else ((int32_t *)indices)[at] = (int32_t)value;
}

// Sorted by places; those of one place keep their order.
static ft_stored *ft_sorted_places(ft_stored *from, ft_stored *to, i64 n) {
  for (i64 width = 1; width < n; width *= 2) {
    for (i64 begin = 0; begin < n; begin += 2 * width) {
      const i64 middle = begin + width < n ? begin + width : n;
      const i64 end = begin + 2 * width < n ? begin + 2 * width : n;
      i64 a = begin, b = middle;
      for (i64 p = begin; p < end; p++) {
        const int first = b >= end || (a < middle && from[a].place <= from[b].place);
        to[p] = first ? from[a++] : from[b++];
      }
    }
    ft_stored *swapped = from;
    from = to;
    to = swapped;
  }
  return from;
}

// The elements of a part of one lane that are in bounds; how many there are.
static i64 ft_stored_of_part(i64 wide, i64 compressed, i64 axes, const i64 *sizes, i64 lane,
                             i64 part, i64 count, const void *const *arrays, ft_stored *found) {
  i64 n = 0;
  if (!compressed) {
    for (i64 e = 0; e < count; e++) {
      i64 place = 0, inside = 1;
      for (i64 c = 0; c < axes; c++) {
        const i64 at = ft_index(arrays[1], wide, (lane * count + e) * axes + c);
        inside &= at >= 0 && at < sizes[c];
        if (inside) place = place * sizes[c] + at;
      }
      if (inside) found[n++] = (ft_stored){place, part, e};
    }
    return n;
  }
  i64 e = 0;
  for (i64 row = -1; row < sizes[0]; row++) {  // what is before the first pointer is of no row
    i64 end = ft_index(arrays[2], wide, lane * (sizes[0] + 1) + row + 1);
    if (end > count) end = count;
    for (; e < end; e++) {
      const i64 column = ft_index(arrays[1], wide, lane * count + e);
      if (row < 0 || column < 0 || column >= sizes[1]) continue;
      found[n++] = (ft_stored){row * sizes[1] + column, part, e};
    }
  }
  return n;
}

static int ft_lib_sum_places(i64 type, i64 wide, i64 lanes, i64 parts, i64 compressed, i64 to_rows,
                             i64 numbered, i64 axes, i64 room, const i64 *sizes,
                             const i64 *counts, void *const *in, void *const *out) {
  const i64 step = compressed ? 3 : 2, width = to_rows ? 1 : axes;
  i64 total = 0;
  for (i64 k = 0; k < parts; k++) total += counts[k];
  ft_stored *memory = (ft_stored *)malloc((size_t)(2 * total + 1) * sizeof(ft_stored));
  if (memory == NULL) return 2;
  for (i64 lane = 0; lane < lanes; lane++) {
    i64 n = 0;
    for (i64 k = 0; k < parts; k++) {
      n += ft_stored_of_part(wide, compressed, axes, sizes, lane, k, counts[k],
                             (const void *const *)in + k * step, memory + n);
      void *numbers = numbered ? out[2 + (to_rows != 0) + k] : NULL;
      for (i64 e = 0; numbered && e < counts[k]; e++) {
        ft_put_index(numbers, wide, lane * counts[k] + e, room);
      }
    }
    const ft_stored *sorted = ft_sorted_places(memory, memory + total, n);
    i64 count = 0, row = 0;
    if (to_rows) ft_put_index(out[2], wide, lane * (sizes[0] + 1), 0);
    for (i64 p = 0; p < n; p++) {
      const ft_stored s = sorted[p];
      const i64 is_new = p == 0 || sorted[p - 1].place != s.place;
      count += is_new;
      if (count > room) break;
      const i64 at = lane * room + count - 1, of = lane * counts[s.part] + s.element;
      if (type == 0) {
        const float value = ((const float *)in[s.part * step])[of];
        float *sum = (float *)out[0] + at;
        *sum = is_new ? value : *sum + value;
      } else {
        const double value = ((const double *)in[s.part * step])[of];
        double *sum = (double *)out[0] + at;
        *sum = is_new ? value : *sum + value;
      }
      if (numbered) ft_put_index(out[2 + (to_rows != 0) + s.part], wide, of, count - 1);
      if (!is_new) continue;
      i64 place = s.place;
      for (i64 c = axes - 1; c >= axes - width; c--) {
        ft_put_index(out[1], wide, at * width + c - (axes - width), place % sizes[c]);
        place /= sizes[c];
      }
      for (; to_rows && row < place; row++) {
        ft_put_index(out[2], wide, lane * (sizes[0] + 1) + row + 1, count - 1);
      }
    }
    if (count > room) count = room;
    for (; to_rows && row < sizes[0]; row++) {
      ft_put_index(out[2], wide, lane * (sizes[0] + 1) + row + 1, count);
    }
    for (i64 p = count; p < room; p++) {
      if (type == 0) ((float *)out[0])[lane * room + p] = 0;
      else ((double *)out[0])[lane * room + p] = 0;
      for (i64 c = 0; c < width; c++) {
        ft_put_index(out[1], wide, (lane * room + p) * width + c, sizes[axes - width + c]);
      }
    }
  }
  free(memory);
  return 0;
}
