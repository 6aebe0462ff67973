// Shares work out among threads. Kernels give the same bits wherever a range is cut, so the number
// of threads changes no result. Whose threads they are is a choice of the build (POSENC_THREADS),
// and known to threads.cc alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "posenc/apply.h"

namespace posenc::detail {

// Below this many bytes a thread, starting it costs more than it saves.
constexpr std::int64_t bytes_per_thread = 64 * 1024;

// How many threads a call gets that asks for no number.
int usual_threads();

// Whether the calling thread works on a part already: its fellows occupy the cores.
bool within_part();

// Tells the calling thread from others.
inline const void* this_thread() {
  thread_local const char mine = 0;
  return &mine;
}

// Calls part(act, first, last) for consecutive parts that make up [0, count), on up to `threads`
// threads, and returns when all are done.
using Part = void (*)(const void* act, std::int64_t first, std::int64_t last);
void run_parts(std::int64_t count, int threads, Part part, const void* act);

// Part `member` of `team` of [0, count): they differ by one at most.
struct Share {
  std::int64_t first, last;
};
constexpr Share share_of(std::int64_t count, int team, int member) {
  const std::int64_t share = count / team, rest = count % team;
  const std::int64_t first = member * share + std::min<std::int64_t>(member, rest);
  return {first, first + share + (member < rest ? 1 : 0)};
}

inline std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.size() * static_cast<std::int64_t>(size_of(tensor.dtype));
}

// How many threads to use for so many bytes read or written.
inline int thread_count(Threads threads, std::int64_t bytes) {
  if (threads.count == 1 || bytes < 2 * bytes_per_thread || within_part()) return 1;
  const std::int64_t wanted = threads.count > 0 ? threads.count : usual_threads();
  return static_cast<int>(std::min(wanted, bytes / bytes_per_thread));
}

// Calls act(first, last) for consecutive parts that make up [0, count).
template <class Act>
void share_out(std::int64_t count, int threads, const Act& act) {
  if (threads <= 1 || count <= 1) return act(std::int64_t{0}, count);
  run_parts(
      count, static_cast<int>(std::min<std::int64_t>(threads, count)),
      [](const void* what, std::int64_t first, std::int64_t last) {
        (*static_cast<const Act*>(what))(first, last);
      },
      &act);
}

}  // namespace posenc::detail
