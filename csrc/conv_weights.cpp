// Gradients of convolutions to their weights: sums over the places of all images, of outer products
// of features in and features out, which are both read where they are.
//
// In ft_conv the batch is the features in and the features are the images: the window is the
// cotangent, and the places of out are those of the kernel.
#include "conv_slab.h"
#include "program.h"

namespace functrans {
namespace {

// Pieces of the sum have sums of their own. How many there are depends on the sizes alone, so that
// results do not depend on threads.
constexpr i64 kMostPieces = 32;
constexpr i64 kPlacesOfPiece = 512;

struct WeightGradient {
  const ft_conv& conv;
  const ConvSpace s;
  const Kernels& kernels;
  const Pack pack;
  const i64 item, features_in, features_out, tile;

  explicit WeightGradient(const ft_conv& given)
      : conv(given), s(given), kernels(gemm_kernels(given.in_type)),
        pack(gemm_pack(given.in_type)), item(kSizes[given.in_type]), features_in(given.batch),
        features_out(given.out_features),
        tile(product_of(s.out) * features_in * features_out) {}

  Slab slab_of(const i64 (&block)[3]) const {
    Slab slab{{}, {}, features_in};
    for (int d = 0; d < 3; ++d) {
      slab.size[d] = (block[d] - 1) * s.spread[d] + (s.out[d] - 1) * s.stride[d] + 1;
    }
    return slab;
  }

  // One line of the cotangent after another, each for all places of the kernel: the line stays in
  // the first-level cache.
  void multiply(const Slab& slab, const char* image, const i64 (&start)[3], const i64 (&length)[3],
                const char* cotangent, char* line_copy, char* sums) const {
    const bool joined = s.stride[2] == 1;
    const i64 rows = joined ? s.out[2] * features_in : features_in;
    const bool adjacent = conv.w_out == 1;
    for (i64 i = 0; i < length[0]; ++i) {
      for (i64 j = 0; j < length[1]; ++j) {
        const char* line = cotangent + ((start[0] + i) * s.w[0] + (start[1] + j) * s.w[1] +
                                        start[2] * s.w[2]) * item;
        if (!adjacent) {
          pack(line, conv.w_out, s.w[2], features_out, length[2], static_cast<int>(features_out),
               false, line_copy);
          line = line_copy;
        }
        const i64 line_row = adjacent ? s.w[2] : features_out;
        char* c = sums;
        for (i64 p = 0; p < s.out[0]; ++p) {
          for (i64 q = 0; q < s.out[1]; ++q) {
            for (i64 r = 0; r < (joined ? 1 : s.out[2]); ++r) {
              const i64 from = slab.at(i * s.spread[0] + p * s.stride[0],
                                       j * s.spread[1] + q * s.stride[1], r * s.stride[2]);
              kernels.direct(rows, features_out, length[2], image + from * item, 1,
                             s.spread[2] * features_in, line, line_row, c, features_out, true);
              c += rows * features_out * item;
            }
          }
        }
      }
    }
  }

  int run() const {
    i64 block[3];
    fit_block(s.window, item, [&](const i64 (&b)[3]) { return slab_of(b).elements(); }, block);
    const Blocks blocks(s.window, block);
    const i64 units = conv.in_features * blocks.total();
    const i64 places = conv.in_features * product_of(s.window);
    const i64 pieces = std::max<i64>(
        1, std::min({kMostPieces, units, places / kPlacesOfPiece}));
    const Buffer all(conv.groups * pieces * tile * item);
    if (all.get() == nullptr) return 2;
    const i64 work = conv.groups * places * tile;
    const bool serial = work < kSerial;
    std::atomic<bool> failed{false};
    each(conv.groups * pieces, 1, serial, work, [&](i64 begin, i64 end) {
      const Buffer copy(slab_of(blocks.size).elements() * item);
      const Buffer line(conv.w_out == 1 ? 0 : blocks.size[2] * features_out * item);
      if (copy.get() == nullptr || line.get() == nullptr) {
        failed = true;
        return;
      }
      for (i64 task = begin; task < end; ++task) {
        const i64 group = task / pieces, piece = task % pieces;
        char* sums = all.get() + task * tile * item;
        std::memset(sums, 0, static_cast<std::size_t>(tile * item));
        for (i64 unit = units * piece / pieces; unit < units * (piece + 1) / pieces; ++unit) {
          const i64 image = unit / blocks.total();
          i64 start[3], length[3];
          blocks.of(unit % blocks.total(), start, length);
          Slab slab = slab_of(length);
          for (int d = 0; d < 3; ++d) slab.begin[d] = start[d] * s.spread[d] - s.low[d];
          slab.fill(static_cast<const char*>(conv.x) +
                        (group * conv.x_group + image * conv.x_feature) * item,
                    s, conv.x_batch, item, pack, copy.get());
          multiply(slab, copy.get(), start, length,
                   static_cast<const char*>(conv.w) +
                       (group * conv.w_group + image * conv.w_in) * item,
                   line.get(), sums);
        }
      }
    });
    if (failed) return 2;
    const Finish add = kernels.finish[conv.in_type];
    const i64 taps = product_of(s.out), part = features_in * features_out;
    // an addition counts as eight multiply-adds
    const i64 added = 8 * conv.groups * pieces * tile;
    each(conv.groups * taps, 1, serial || added < 2 * kSerial, added, [&](i64 begin, i64 end) {
      for (i64 index = begin; index < end; ++index) {
        const i64 group = index / taps, tap = index % taps;
        char* sums = all.get() + (group * pieces * tile + tap * part) * item;
        for (i64 piece = 1; piece < pieces; ++piece) {
          add(1, part, sums + piece * tile * item, part, 1, true, sums, part, 1);
        }
        const i64 r = tap % s.out[2], q = tap / s.out[2] % s.out[1], p = tap / s.out[2] / s.out[1];
        char* out = static_cast<char*>(conv.out) +
                    (group * conv.out_group + p * s.to[0] + q * s.to[1] + r * s.to[2]) *
                        kSizes[conv.out_type];
        kernels.finish[conv.out_type](features_in, features_out, sums, features_out, conv.alpha,
                                      conv.accumulate != 0, out, conv.out_batch,
                                      conv.out_feature);
      }
    });
    return running_call != nullptr && running_call->stopped ? 2 : 0;
  }
};

}  // namespace

bool suits_weight_slabs(const ft_conv& conv) {
  if (conv.in_type > kF64 || conv.in_features == 0) return false;
  const ConvSpace s(conv);
  // Sums are read and written once a line, which short lines pay only where packing costs more:
  // lines of 8 with 256 features took 1.2 times as long.
  const i64 least = conv.out_features <= 64 ? 6 : 12;
  return product_of(s.out) > 1 && product_of(s.window) >= 4 * product_of(s.out) &&
         product_of(s.out) <= 64 && s.window[2] >= least &&
         conv.in_features * product_of(s.window) >= 1024;
}

int run_weight_slabs(const ft_conv& conv) {
  const bool empty = conv.groups * conv.batch * conv.out_features == 0;
  return empty ? 0 : WeightGradient(conv).run();
}

}  // namespace functrans
