// Whether scatters make lists of rows (csrc/list_choice.h), by times that are given.
#include "../../csrc/list_choice.h"

// Runs that take `walk` and `lists` nanoseconds, of which each is noted in `used`.
extern "C" void simulated_lists(std::uint64_t loop, int threads, std::int64_t walk,
                                std::int64_t lists, int runs, int* used) {
  functrans::ListChoice& choice = functrans::ListChoice::of(loop);
  for (int k = 0; k < runs; ++k) {
    used[k] = choice.next(threads);
    choice.note(used[k] != 0, used[k] != 0 ? lists : walk);
  }
}
