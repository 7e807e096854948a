// Scatters on slices of their results. Lists of rows by slices cost as much as walking all rows on
// three threads, and where rows are short as combining them does; more threads gain from them.
enum { FT_LEAST_LISTING_THREADS = 8 };

static int ft_lib_scatter_slices(void *ctx, void *parallel, const ft_range *loops, void *arg,
                                 i64 slices, i64 blocks) {
  if (ft_threads() < FT_LEAST_LISTING_THREADS) {
    ft_parallel(loops[0], arg, slices, -1);
    return 0;
  }
  ft_parallel(loops[1], arg, blocks, 1);
  ft_parallel(loops[2], arg, slices, -1);
  return 0;
}
