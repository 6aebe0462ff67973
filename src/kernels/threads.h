// Shares work out among threads. Kernels give the same bits wherever a range is cut, so the number of
// threads changes no result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "posenc/apply.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace posenc::detail {

// Below this many bytes a thread, starting it costs more than it saves.
constexpr std::int64_t bytes_per_thread = 64 * 1024;

// How many threads to use for so many bytes read or written. Within a parallel region of the caller:
// one, since the caller's threads occupy the cores already.
inline int thread_count([[maybe_unused]] Threads threads, [[maybe_unused]] std::int64_t bytes) {
#ifdef _OPENMP
  if (threads.count == 1 || bytes < 2 * bytes_per_thread || omp_in_parallel() != 0) return 1;
  const std::int64_t wanted = threads.count > 0 ? threads.count : omp_get_max_threads();
  return static_cast<int>(std::min(wanted, bytes / bytes_per_thread));
#else
  return 1;
#endif
}

// Calls act(first, last) for consecutive parts that make up [0, count).
template <class Act>
void share_out(std::int64_t count, [[maybe_unused]] int threads, const Act& act) {
#ifdef _OPENMP
  if (threads > 1 && count > 1) {
#pragma omp parallel num_threads(static_cast<int>(std::min<std::int64_t>(threads, count)))
    {
      const std::int64_t team = omp_get_num_threads(), member = omp_get_thread_num();
      const std::int64_t share = count / team, rest = count % team;
      const std::int64_t first = member * share + std::min(member, rest);
      act(first, first + share + (member < rest ? 1 : 0));
    }
    return;
  }
#endif
  act(std::int64_t{0}, count);
}

}  // namespace posenc::detail
