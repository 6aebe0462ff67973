// Threads of posenc's own, for programs that bring an OpenMP runtime already (PyTorch has one
// inside): two of these in one process spin against each other. The threads start with the first
// work that deserves them, sleep between calls, and are never waited for at exit. A child of fork()
// starts threads of its own.
#pragma once

#include "src/kernels/threads.h"

namespace posenc::detail::pool {

// OMP_NUM_THREADS where it is a number, as OpenMP's own runtimes read it; else the processors that
// the process may use.
int usual_threads();
bool within_part();

// As detail::run_parts. Any thread may call it at any time: the caller works too, takes what no
// sleeper has begun, and so never waits for threads that are busy elsewhere or could not be
// started.
void run_parts(std::int64_t count, int threads, Part part, const void* act);

}  // namespace posenc::detail::pool
