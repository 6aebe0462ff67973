// Whose threads work on parts: those of OpenMP, of posenc's own pool, or the caller's alone.
#include "src/kernels/threads.h"

#ifdef _OPENMP
#include <omp.h>
#elif POSENC_THREAD_POOL
#include "src/kernels/thread_pool.h"
#endif

namespace posenc::detail {

#ifdef _OPENMP

int usual_threads() { return omp_get_max_threads(); }
bool within_part() { return omp_in_parallel() != 0; }
void run_parts(std::int64_t count, int threads, Part part, const void* act) {
#pragma omp parallel num_threads(threads)
  {
    const Share mine = share_of(count, omp_get_num_threads(), omp_get_thread_num());
    part(act, mine.first, mine.last);
  }
}

#elif POSENC_THREAD_POOL

int usual_threads() { return pool::usual_threads(); }
bool within_part() { return pool::within_part(); }
void run_parts(std::int64_t count, int threads, Part part, const void* act) {
  pool::run_parts(count, threads, part, act);
}

#else

int usual_threads() { return 1; }
bool within_part() { return true; }
void run_parts(std::int64_t count, int, Part part, const void* act) { part(act, 0, count); }

#endif

}  // namespace posenc::detail
