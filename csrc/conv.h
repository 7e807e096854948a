// Convolutions of any geometry for compiled programs, as matrix products whose patches are gathered
// while they are packed.
#pragma once

#include "gemm.h"

namespace functrans {

extern "C" {

// out[b, f, o] (+)= alpha * sum over c, t of x[b, c, o * stride + t * window_dilation - pad_low] *
// w[f, c, t], for each group; x has in_dilation - 1 zeros between its elements, and zeros around.
// Strides count elements and may be anything, so that layouts, flipped windows and the gradients
// (features and batch exchanged) are all this one function. Up to three spatial axes.
typedef struct ft_conv {
  i64 rank, groups, batch, in_features, out_features;
  i64 in_size[3], window[3], out_size[3];
  i64 stride[3], pad_low[3], in_dilation[3], window_dilation[3];
  const void* x;
  i64 x_group, x_batch, x_feature, x_space[3];
  const void* w;
  i64 w_group, w_out, w_in, w_space[3];
  void* out;
  i64 out_group, out_batch, out_feature, out_space[3];
  int in_type, out_type;  // GemmType, complex ones left out
  double alpha;
  int accumulate;
} ft_conv;

// 0, or 2 when memory ran out.
__attribute__((visibility("default"))) int ft_conv_run(const ft_conv* conv);
}

}  // namespace functrans
