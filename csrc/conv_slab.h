// Parts of an image with the zeros around it, and what the drivers that multiply from them share.
#pragma once

#include "conv.h"
#include "gemm_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace functrans {

// The spatial axes of a convolution without holes in the image: three, the first of which are of
// one element where there are fewer. In the order of ft_conv, which may be a gradient's.
struct ConvSpace {
  i64 in[3] = {1, 1, 1}, window[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  i64 stride[3] = {1, 1, 1}, low[3] = {}, spread[3] = {1, 1, 1};
  i64 x[3] = {}, w[3] = {}, to[3] = {};  // strides of memory, in elements

  explicit ConvSpace(const ft_conv& conv) {
    for (i64 d = 0, at = 3 - conv.rank; d < conv.rank; ++d, ++at) {
      in[at] = conv.in_size[d];
      window[at] = conv.window[d];
      out[at] = conv.out_size[d];
      stride[at] = conv.stride[d];
      low[at] = conv.pad_low[d];
      spread[at] = conv.window_dilation[d];
      x[at] = conv.x_space[d];
      w[at] = conv.w_space[d];
      to[at] = conv.out_space[d];
    }
  }
};

inline i64 product_of(const i64 (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// Places `begin` to `begin + size` of an image, some of them outside, features adjacent. The copy
// stays in the second-level cache while all places of all windows are read from it.
struct Slab {
  i64 begin[3], size[3], features;

  i64 elements() const { return product_of(size) * features; }
  i64 at(i64 i, i64 j, i64 k) const { return ((i * size[1] + j) * size[2] + k) * features; }

  void fill(const char* image, const ConvSpace& space, i64 x_feature, i64 item, Pack pack,
            char* to) const {
    const i64 line = size[2] * features * item;
    const i64 first = std::clamp<i64>(-begin[2], 0, size[2]);
    const i64 last = std::clamp<i64>(space.in[2] - begin[2], first, size[2]);
    for (i64 i = begin[0]; i < begin[0] + size[0]; ++i) {
      for (i64 j = begin[1]; j < begin[1] + size[1]; ++j, to += line) {
        if (i < 0 || i >= space.in[0] || j < 0 || j >= space.in[1] || first == last) {
          std::memset(to, 0, static_cast<std::size_t>(line));
          continue;
        }
        const char* from =
            image + (i * space.x[0] + j * space.x[1] + (begin[2] + first) * space.x[2]) * item;
        char* filled = to + first * features * item;
        const i64 bytes = (last - first) * features * item;
        std::memset(to, 0, static_cast<std::size_t>(filled - to));
        if (x_feature == 1 && space.x[2] == features) {
          std::memcpy(filled, from, static_cast<std::size_t>(bytes));
        } else {
          pack(from, x_feature, space.x[2], features, last - first, static_cast<int>(features),
               false, filled);
        }
        std::memset(filled + bytes, 0, static_cast<std::size_t>(to + line - filled - bytes));
      }
    }
  }
};

// Half of a second-level cache of 1 MiB, where packed weights or sums are, too.
constexpr i64 kSlabBytes = 256 << 10;

// The largest block of places of `counts` whose slab fits, given the elements of a slab for a
// block. The last axis, along which kernels run, is cut last.
template <typename Elements>
void fit_block(const i64 (&counts)[3], i64 item, const Elements& elements, i64 (&block)[3]) {
  for (int d = 0; d < 3; ++d) block[d] = counts[d];
  for (int d = 0; d < 3; ++d) {
    const i64 least = d == 2 ? std::min<i64>(counts[d], 32) : 1;
    while (block[d] > least && elements(block) * item > kSlabBytes) {
      block[d] = std::max(least, divide_up(block[d], 2));
    }
  }
}

// Blocks of `size` places in a row of counts, and where the one of a number begins.
struct Blocks {
  i64 counts[3], size[3], number[3];

  Blocks(const i64 (&all)[3], const i64 (&block)[3]) {
    for (int d = 0; d < 3; ++d) {
      counts[d] = all[d];
      number[d] = divide_up(all[d], block[d]);
      size[d] = divide_up(all[d], number[d]);  // nearly equal ones
      number[d] = divide_up(all[d], size[d]);
    }
  }
  i64 total() const { return product_of(number); }
  void of(i64 index, i64 (&begin)[3], i64 (&length)[3]) const {
    for (int d = 2; d >= 0; index /= number[d], --d) {
      begin[d] = index % number[d] * size[d];
      length[d] = std::min(size[d], counts[d] - begin[d]);
    }
  }
};

// Convolutions that are computed from slabs: false from `suits` leaves them to products of gathered
// patches. Both return 0, or 2 when memory ran out.
bool suits_slabs(const ft_conv& conv);
int run_slabs(const ft_conv& conv);
// The same of gradients to weights, whose window is an image and whose out is a window.
bool suits_weight_slabs(const ft_conv& conv);
int run_weight_slabs(const ft_conv& conv);

}  // namespace functrans
