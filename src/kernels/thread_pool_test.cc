// The pool: every index once, from any number of callers at a time, and after fork().
#include "src/kernels/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace posenc {
namespace {

using detail::pool::run_parts;

// How often each index of [0, count) was visited.
std::vector<int> visits(std::int64_t count, int threads) {
  std::vector<int> seen(static_cast<std::size_t>(count));
  run_parts(
      count, threads,
      [](const void* act, std::int64_t first, std::int64_t last) {
        auto& all = **static_cast<std::vector<int>* const*>(act);
        for (; first < last; ++first) ++all[static_cast<std::size_t>(first)];
      },
      std::initializer_list<std::vector<int>*>{&seen}.begin());
  return seen;
}

TEST(ThreadPool, VisitsEveryIndexOnce) {
  for (const std::int64_t count : {2, 3, 7, 1000})
    for (const int threads : {1, 2, 3, 7})
      EXPECT_EQ(visits(count, threads), std::vector<int>(static_cast<std::size_t>(count), 1))
          << count << " on " << threads;
}

TEST(ThreadPool, ServesCallersAtOnce) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call) wrong += visits(64, 3) != std::vector<int>(64, 1);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, APartKnowsThatItIsOne) {
  EXPECT_FALSE(detail::pool::within_part());
  std::atomic<int> within = 0;
  run_parts(
      4, 4,
      [](const void* act, std::int64_t, std::int64_t) {
        **static_cast<std::atomic<int>* const*>(act) += detail::pool::within_part();
      },
      std::initializer_list<std::atomic<int>*>{&within}.begin());
  EXPECT_EQ(within, 4);
  EXPECT_FALSE(detail::pool::within_part());
}

// The child has no thread but the one that forked.
TEST(ThreadPool, WorksInAChild) {
  EXPECT_EQ(visits(100, 3), std::vector<int>(100, 1));
  const pid_t child = fork();
  if (child == 0) _exit(visits(100, 3) == std::vector<int>(100, 1) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace posenc
