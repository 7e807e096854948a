#include "conv.h"

#include "conv_gather.h"
#include "conv_slab.h"
#include "gemm_product.h"

#include <cstdlib>
#include <numeric>

namespace functrans {
namespace {

// A convolution without holes in the image, as a matrix product: rows are batch and places,
// columns the features out, and the sum runs over features in and window.
struct Convolution {
  const ft_conv& conv;
  Patches patches;                  // rows x sum
  std::vector<PatchAxis> out_rows;  // the rows in out, in the order of patches.rows
  std::vector<PatchAxis> w_sum;     // the sum in w, in the order of patches.columns
  i64 x_group_bytes, w_group_bytes;
  const char* w;
  char* out;
  bool turned;  // the product is computed with rows and columns exchanged
};

i64 size_of(const std::vector<PatchAxis>& axes) {
  i64 size = 1;
  for (const PatchAxis& axis : axes) size *= axis.size;
  return size;
}

// The same permutation of two lists, by falling strides of the first.
void sort_axes(std::vector<PatchAxis>& by, std::vector<PatchAxis>& other) {
  std::vector<std::size_t> order(by.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return std::abs(by[i].stride) > std::abs(by[j].stride);
  });
  const std::vector<PatchAxis> first = by, second = other;
  for (std::size_t i = 0; i < order.size(); ++i) {
    by[i] = first[order[i]];
    other[i] = second[order[i]];
  }
}

void fill_patches(void* arg, i64 group, i64 r0, i64 r1, i64 c0, i64 c1, void* to) {
  const Convolution& c = *static_cast<const Convolution*>(arg);
  Patches patches = c.patches;
  patches.image += group * c.x_group_bytes;
  const bool along_columns = patches.columns_adjacent();
  if (c.turned) {
    patches.gather(c0, c1, r0, r1, along_columns, static_cast<char*>(to));
  } else {
    patches.gather(r0, r1, c0, c1, along_columns, static_cast<char*>(to));
  }
}

// A tile of sums to rows of out that have no common stride.
void scatter(void* arg, i64 group, i64 i0, i64 i1, i64 j0, i64 j1, const void* tile, i64 tile_row) {
  const Convolution& c = *static_cast<const Convolution*>(arg);
  const ft_conv& conv = c.conv;
  const i64 out_item = kSizes[conv.out_type], sum_item = gemm_kernels(conv.in_type).sum_size;
  const Finish finish = gemm_kernels(conv.in_type).finish[conv.out_type];
  char* out = c.out + group * conv.out_group * out_item;
  const char* sums = static_cast<const char*>(tile);
  const i64 r0 = c.turned ? j0 : i0, r1 = c.turned ? j1 : i1;
  const i64 f0 = c.turned ? i0 : j0, features = c.turned ? i1 - i0 : j1 - j0;
  const PatchAxis& last = c.out_rows.back();
  for (i64 r = r0; r < r1;) {
    const i64 at = r % last.size, count = std::min(last.size - at, r1 - r);
    i64 rest = r / last.size, offset = f0 * conv.out_feature + at * last.stride;
    for (std::size_t d = c.out_rows.size() - 1; d-- > 0; rest /= c.out_rows[d].size) {
      offset += rest % c.out_rows[d].size * c.out_rows[d].stride;
    }
    if (c.turned) {
      finish(features, count, sums + (r - r0) * sum_item, tile_row, conv.alpha,
             conv.accumulate != 0, out + offset * out_item, conv.out_feature, last.stride);
    } else {
      finish(count, features, sums + (r - r0) * tile_row * sum_item, tile_row, conv.alpha,
             conv.accumulate != 0, out + offset * out_item, last.stride, conv.out_feature);
    }
    r += count;
  }
}

// Whether no patch reaches outside, so that the image itself may be the matrix.
bool stays_inside(const ft_conv& conv) {
  for (i64 d = 0; d < conv.rank; ++d) {
    const i64 last = (conv.out_size[d] - 1) * conv.stride[d] +
                     (conv.window[d] - 1) * conv.window_dilation[d] - conv.pad_low[d];
    if (conv.pad_low[d] > 0 || last >= conv.in_size[d]) return false;
  }
  return true;
}

// conv has no holes in the image (in_dilation 1).
int run_dense(const ft_conv& conv) {
  if (suits_weight_slabs(conv)) return run_weight_slabs(conv);
  if (suits_slabs(conv)) return run_slabs(conv);
  const i64 in = kSizes[conv.in_type];
  Convolution c{conv, {}, {}, {}, conv.x_group * in, conv.w_group * in,
                static_cast<const char*>(conv.w), static_cast<char*>(conv.out), false};
  Patches& p = c.patches;
  p.image = static_cast<const char*>(conv.x);
  p.item = in;
  p.rank = static_cast<int>(conv.rank);
  p.offset = 0;
  p.rows.push_back({conv.batch, conv.x_batch, -1, 0});
  c.out_rows.push_back({conv.batch, conv.out_batch, -1, 0});
  p.columns.push_back({conv.in_features, conv.x_feature, -1, 0});
  c.w_sum.push_back({conv.in_features, conv.w_in, -1, 0});
  for (int d = 0; d < p.rank; ++d) {
    p.start[d] = -conv.pad_low[d];
    p.extent[d] = conv.in_size[d];
    p.offset += p.start[d] * conv.x_space[d];
    const i64 stride = conv.stride[d], spread = conv.window_dilation[d];
    p.rows.push_back({conv.out_size[d], stride * conv.x_space[d], d, stride});
    c.out_rows.push_back({conv.out_size[d], conv.out_space[d], -1, 0});
    p.columns.push_back({conv.window[d], spread * conv.x_space[d], d, spread});
    c.w_sum.push_back({conv.window[d], conv.w_space[d], -1, 0});
  }
  // axes of one element only hide which ones are adjacent
  const auto drop_single = [](std::vector<PatchAxis>& axes, std::vector<PatchAxis>& other) {
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (axes[i].size == 1 && axes.size() > 1) {
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
        other.erase(other.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  };
  drop_single(p.rows, c.out_rows);
  drop_single(p.columns, c.w_sum);
  sort_axes(c.out_rows, p.rows);
  sort_axes(p.columns, c.w_sum);

  const i64 rows = size_of(p.rows), sum = size_of(p.columns);
  if (rows == 0 || conv.out_features == 0 || conv.groups == 0) return 0;
  c.turned = conv.out_feature != 1 && c.out_rows.back().stride == 1;
  ft_gemm g{};
  g.batch0 = conv.groups;
  g.batch1 = 1;
  g.m = rows;
  g.n = conv.out_features;
  g.k = sum;
  g.in_type = conv.in_type;
  g.out_type = conv.out_type;
  g.alpha = conv.alpha;
  g.accumulate = conv.accumulate;
  g.fill_arg = &c;

  i64 row_stride = 0, sum_stride = 0, w_stride = 0, out_stride = 0;
  const bool inside = stays_inside(conv) && common_stride(p.rows, &row_stride) &&
                      common_stride(p.columns, &sum_stride);
  if (inside) {
    g.a = p.image + p.offset * in;
    g.a_batch0 = conv.x_group;
    g.a_row = row_stride;
    g.a_col = sum_stride;
  } else {
    g.a_fill = fill_patches;
    g.a_fill_columns = !p.columns_adjacent();
  }
  g.b = conv.w;
  g.b_batch0 = conv.w_group;
  g.b_col = conv.w_out;
  Buffer w_copy(0);
  if (common_stride(c.w_sum, &w_stride)) {
    g.b_row = w_stride;
  } else {
    // as groups x features x sum
    w_copy = Buffer(conv.groups * conv.out_features * sum * in);
    if (w_copy.get() == nullptr) return 2;
    std::vector<PatchAxis> w_rows{{conv.groups, conv.w_group, -1, 0},
                                  {conv.out_features, conv.w_out, -1, 0}};
    const Patches kernel{c.w, in, 0, {}, {}, w_rows, c.w_sum, 0};
    const bool along_columns = std::abs(c.w_sum.back().stride) <= std::abs(conv.w_out);
    if (along_columns) {
      each(conv.groups * conv.out_features, 1, rows * sum < kSerial,
           8 * conv.groups * conv.out_features * sum, [&](i64 begin, i64 end) {
        kernel.gather(begin, end, 0, sum, true, w_copy.get() + begin * sum * in);
      });
      g.b_batch0 = conv.out_features * sum;
      g.b_col = sum;
      g.b_row = 1;
    } else {
      const i64 width = conv.groups * conv.out_features;
      each(sum, 16, rows * sum < kSerial, 8 * width * sum, [&](i64 begin, i64 end) {
        kernel.gather(0, width, begin, end, false, w_copy.get() + begin * width * in);
      });
      g.b_batch0 = conv.out_features;
      g.b_col = 1;
      g.b_row = width;
    }
    g.b = w_copy.get();
  }
  g.c = conv.out;
  g.c_batch0 = conv.out_group;
  g.c_col = conv.out_feature;
  if (common_stride(c.out_rows, &out_stride)) {
    g.c_row = out_stride;
  } else {
    g.epilogue = scatter;
    g.epilogue_arg = &c;
  }
  if (c.turned) turn(g);
  return ft_gemm_run(&g);
}

}  // namespace

// Holes in the image are left out by computing each residue class of places modulo in_dilation by
// itself: the windows of one class meet the same elements of w, and none of the holes.
int ft_conv_run(const ft_conv* given) {
  i64 classes = 1;
  for (i64 d = 0; d < given->rank; ++d) classes *= given->in_dilation[d];
  if (classes == 1) return run_dense(*given);
  for (i64 index = 0; index < classes; ++index) {
    ft_conv conv = *given;
    i64 rest = index, w_offset = 0, out_offset = 0;
    for (i64 d = 0; d < conv.rank; ++d) {
      const i64 holes = conv.in_dilation[d], residue = rest % holes;
      rest /= holes;
      if (holes == 1) continue;
      // t with residue * stride + t * window_dilation - pad_low = 0 modulo holes
      const i64 period = holes / std::gcd(holes, conv.window_dilation[d]);
      i64 first = 0;
      i64 place = residue * conv.stride[d] - conv.pad_low[d];
      while (first < period && (place + first * conv.window_dilation[d]) % holes != 0) ++first;
      const bool meets = first < period && first < conv.window[d];
      place += first * conv.window_dilation[d];
      conv.window[d] = meets ? divide_up(conv.window[d] - first, period) : 0;
      conv.window_dilation[d] = conv.window_dilation[d] * period / holes;
      conv.pad_low[d] = meets ? -(place / holes) : 0;
      conv.in_dilation[d] = 1;
      conv.out_size[d] = conv.out_size[d] > residue ? divide_up(conv.out_size[d] - residue, holes)
                                                    : 0;
      w_offset += meets ? first * conv.w_space[d] : 0;
      conv.w_space[d] *= period;
      out_offset += residue * conv.out_space[d];
      conv.out_space[d] *= holes;
    }
    conv.w = static_cast<const char*>(conv.w) + w_offset * kSizes[conv.in_type];
    conv.out = static_cast<char*>(conv.out) + out_offset * kSizes[conv.out_type];
    const int status = run_dense(conv);
    if (status != 0) return status;
  }
  return 0;
}

}  // namespace functrans
