// Convolutions with few features out: places are multiplied where they are.
//
// Packing a patch costs an element of memory for each of its elements, which few features do not pay:
// 16 images of 32 x 32 x 64 with 3x3 windows took 2.6 times as long as their multiply-adds.
#include "conv_slab.h"
#include "program.h"

namespace functrans {
namespace {

// Of a run of weights in a panel, which stays in the first-level cache for all places of a slab.
constexpr i64 kRunBytes = 36 << 10;

// A stretch of the sum whose elements are adjacent in the slab, for each place.
struct Segment {
  i64 offset;  // in the slab
  i64 before;  // elements of the sum before it
  i64 depth;
};

std::vector<Segment> segments_of(const ConvSpace& s, const Slab& slab, i64 most) {
  std::vector<Segment> result;
  const bool joined = s.spread[2] == 1;
  const i64 run = joined ? s.window[2] * slab.features : slab.features;
  const i64 pieces = divide_up(run, most), depth = divide_up(run, pieces);
  i64 before = 0;
  for (i64 i = 0; i < s.window[0]; ++i) {
    for (i64 j = 0; j < s.window[1]; ++j) {
      for (i64 k = 0; k < (joined ? 1 : s.window[2]); ++k) {
        const i64 start = slab.at(i * s.spread[0], j * s.spread[1], k * s.spread[2]);
        for (i64 done = 0; done < run; done += depth) {
          result.push_back({start + done, before, std::min(depth, run - done)});
          before += result.back().depth;
        }
      }
    }
  }
  return result;
}

struct Direct {
  const ft_conv& conv;
  const ConvSpace s;
  const Kernels& kernels;
  const Pack pack;
  const i64 item, sum, panels;

  explicit Direct(const ft_conv& given)
      : conv(given), s(given), kernels(gemm_kernels(given.in_type)),
        pack(gemm_pack(given.in_type)), item(kSizes[given.in_type]),
        sum(product_of(s.window) * given.in_features),
        panels(divide_up(given.out_features, kernels.nr)) {}

  Slab slab_of(const i64 (&block)[3]) const {
    Slab slab{{}, {}, conv.in_features};
    for (int d = 0; d < 3; ++d) {
      slab.size[d] = (block[d] - 1) * s.stride[d] + (s.window[d] - 1) * s.spread[d] + 1;
    }
    return slab;
  }

  // As groups x panels x sum x nr, zeros behind the last feature.
  void pack_weights(bool serial, char* to) const {
    const i64 taps = product_of(s.window), width = kernels.nr;
    // to pack an element takes about as long as 16 multiply-adds
    const i64 packed = conv.groups * panels * width * sum;
    each(conv.groups * panels * taps, 1, serial, 16 * packed, [&](i64 begin, i64 end) {
      for (i64 index = begin; index < end; ++index) {
        const i64 tap = index % taps, panel = index / taps % panels, group = index / taps / panels;
        const i64 k = tap % s.window[2], j = tap / s.window[2] % s.window[1];
        const i64 i = tap / s.window[2] / s.window[1];
        const char* from = static_cast<const char*>(conv.w) +
                           (group * conv.w_group + panel * width * conv.w_out + i * s.w[0] +
                            j * s.w[1] + k * s.w[2]) * item;
        pack(from, conv.w_out, conv.w_in, std::min(width, conv.out_features - panel * width),
             conv.in_features, kernels.nr, true, to + index * conv.in_features * width * item);
      }
    });
  }

  void multiply(const Slab& slab, const i64 (&length)[3], const char* image, const char* weights,
                char* sums, const i64 (&row)[3], bool accumulate) const {
    const i64 width = kernels.nr;
    const std::vector<Segment> segments = segments_of(s, slab, kRunBytes / (width * item));
    for (i64 panel = 0; panel < panels; ++panel) {
      const i64 columns = std::min(width, conv.out_features - panel * width);
      for (const Segment& segment : segments) {
        const char* b = weights + (panel * sum + segment.before) * width * item;
        for (i64 i = 0; i < length[0]; ++i) {
          for (i64 j = 0; j < length[1]; ++j) {
            kernels.direct(length[2], columns, segment.depth,
                           image + (slab.at(i * s.stride[0], j * s.stride[1], 0) +
                                    segment.offset) * item,
                           s.stride[2] * slab.features, 1, b, width,
                           sums + (i * row[0] + j * row[1] + panel * width) * item, row[2],
                           accumulate || segment.before > 0);
          }
        }
      }
    }
  }

  // Whether places are adjacent in out, as in NCHW, and sums are moved there as they are.
  bool is_turned() const {
    return s.to[2] == 1 && conv.out_feature != 1 && conv.out_type == conv.in_type &&
           conv.alpha == 1 && conv.accumulate == 0;
  }

  // A line of sums to out: transposed in registers, since its elements one by one take as long as
  // half of the multiply-adds of 3x3 windows over 64 features.
  void finish(i64 count, const char* sums, char* turned, char* out) const {
    const i64 features = conv.out_features;
    if (!is_turned()) {
      kernels.finish[conv.out_type](count, features, sums, features, conv.alpha,
                                    conv.accumulate != 0, out, s.to[2], conv.out_feature);
      return;
    }
    pack(sums, features, 1, count, features, static_cast<int>(count), false, turned);
    for (i64 f = 0; f < features; ++f) {
      std::memcpy(out + f * conv.out_feature * item, turned + f * count * item,
                  static_cast<std::size_t>(count * item));
    }
  }

  int run() const {
    i64 block[3];
    fit_block(s.out, item, [&](const i64 (&b)[3]) { return slab_of(b).elements(); }, block);
    const i64 work = conv.groups * conv.batch * product_of(s.out) * conv.out_features *
                     std::max<i64>(sum, 1);
    const bool serial = work < kSerial;
    // lines for all threads, where there are few images
    while (!serial && block[0] * block[1] > 1 &&
           conv.groups * conv.batch * Blocks(s.out, block).total() < 16) {
      i64& longest = block[0] > 1 ? block[0] : block[1];
      longest = divide_up(longest, 2);
    }
    const Blocks blocks(s.out, block);
    const Buffer packed(conv.groups * panels * sum * kernels.nr * item);
    if (packed.get() == nullptr) return 2;
    pack_weights(serial, packed.get());
    const bool in_place = conv.out_feature == 1 && conv.out_type == conv.in_type &&
                          conv.alpha == 1;
    std::atomic<bool> failed{false};
    each(conv.groups * conv.batch * blocks.total(), 1, serial, work, [&](i64 begin, i64 end) {
      const i64 places = product_of(blocks.size);
      const Buffer copy(slab_of(blocks.size).elements() * item);
      const Buffer own(in_place ? 0 : places * conv.out_features * item);
      const Buffer turned(is_turned() ? places * conv.out_features * item : 0);
      if (copy.get() == nullptr || own.get() == nullptr || turned.get() == nullptr) {
        failed = true;
        return;
      }
      for (i64 task = begin; task < end; ++task) {
        const i64 image = task / blocks.total() % conv.batch;
        const i64 group = task / blocks.total() / conv.batch;
        i64 start[3], length[3];
        blocks.of(task % blocks.total(), start, length);
        Slab slab = slab_of(length);
        for (int d = 0; d < 3; ++d) slab.begin[d] = start[d] * s.stride[d] - s.low[d];
        slab.fill(static_cast<const char*>(conv.x) +
                      (group * conv.x_group + image * conv.x_batch) * item,
                  s, conv.x_feature, item, pack, copy.get());
        const char* weights = packed.get() + group * panels * sum * kernels.nr * item;
        const i64 out_item = kSizes[conv.out_type];
        char* out = static_cast<char*>(conv.out) +
                    (group * conv.out_group + image * conv.out_batch + start[0] * s.to[0] +
                     start[1] * s.to[1] + start[2] * s.to[2]) * out_item;
        if (in_place) {
          multiply(slab, length, copy.get(), weights, out, s.to, conv.accumulate != 0);
          continue;
        }
        const i64 features = conv.out_features;
        const i64 row[3] = {length[1] * length[2] * features, length[2] * features, features};
        multiply(slab, length, copy.get(), weights, own.get(), row, false);
        // lines that follow each other in memory are one
        const bool one = length[2] == s.out[2] && s.to[1] == length[2] * s.to[2];
        const i64 lines = one ? 1 : length[1], line = one ? length[1] * length[2] : length[2];
        for (i64 i = 0; i < length[0]; ++i) {
          for (i64 j = 0; j < lines; ++j) {
            finish(line, own.get() + (i * row[0] + j * row[1]) * item, turned.get(),
                   out + (i * s.to[0] + j * s.to[1]) * out_item);
          }
        }
      }
    });
    return failed || (running_call != nullptr && running_call->stopped) ? 2 : 0;
  }
};

}  // namespace

bool suits_slabs(const ft_conv& conv) {
  if (conv.in_type > kF64 || conv.in_features == 0) return false;
  const ConvSpace s(conv);
  return product_of(s.window) > 1 && s.out[2] >= 4;
}

int run_slabs(const ft_conv& conv) {
  const ConvSpace s(conv);
  const bool empty = conv.groups * conv.batch * product_of(s.out) * conv.out_features == 0;
  return empty ? 0 : Direct(conv).run();
}

}  // namespace functrans
