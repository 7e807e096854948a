#include "library_functions.h"

namespace functrans {

// each at the end of its file
void register_sort_library();
void register_top_k_library();
void register_cumulate_library();
void register_scatter_library();
void register_linalg_library();
void register_schur_library();
void register_fft_library();
void register_narrow_library();
void register_sparse_library();
void register_sparse_sums_library();
void register_row_coordinates_library();

void register_library_functions() {
  register_sort_library();
  register_top_k_library();
  register_cumulate_library();
  register_scatter_library();
  register_linalg_library();
  register_schur_library();
  register_fft_library();
  register_narrow_library();
  register_sparse_library();
  register_sparse_sums_library();
  register_row_coordinates_library();
}

}  // namespace functrans
