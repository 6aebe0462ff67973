// What a token costs a cache beside the attention itself: as many instructions behind 64k tokens as
// behind 1k, and no allocation. Both are counted, not timed. A window of one token keeps attention
// itself constant; a child process takes the step one instruction at a time and its parent counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#ifdef __linux__
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#endif

#include "posenc/cache.h"
#include "posenc/schemes.h"

namespace {
std::atomic<std::int64_t> allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  bytes = (bytes + alignment - 1) / alignment * alignment;  // as aligned_alloc asks
  void* const memory = std::aligned_alloc(alignment, bytes == 0 ? alignment : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
}  // namespace

// The other forms of new and delete end in these.
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace posenc {
namespace {

// Instructions of act(); nullopt where a process may not trace its child.
std::optional<std::int64_t> instructions([[maybe_unused]] const std::function<void()>& act) {
#ifdef __linux__
  const pid_t child = fork();
  if (child < 0) return {};
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    std::raise(SIGSTOP);
    act();
    std::raise(SIGSTOP);
    _exit(0);
  }
  std::int64_t steps = -1;
  int status = 0;
  const auto stopped_by = [&](int signal) {
    return waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == signal;
  };
  if (stopped_by(SIGSTOP)) {
    do {
      ++steps;
    } while (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 && stopped_by(SIGTRAP));
  }
  const bool finished = WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
  if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (finished && steps > 0) return steps;
#endif
  return {};
}

enum class Standing { in_a_row, behind_a_hole };

// A sequence of so many tokens, decoded by one token after the other.
struct Decoding {
  static constexpr std::int64_t heads = 2, kv_heads = 1, head_dim = 8;

  Plan plan;
  KvCache cache;
  KvCache::Sequence sequence[1];
  Mask mask{.window = 1};
  std::vector<float> numbers = std::vector<float>(heads * head_dim, 0.5f),
                     out = std::vector<float>(heads * head_dim);

  Decoding(Plan made_plan, CachedKeys keys, Standing standing, std::int64_t tokens)
      : plan(std::move(made_plan)),
        cache(*KvCache::make({.kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .max_pages = tokens / 16 + 8,
                              .keys = keys})),
        sequence{cache.add()} {
    std::vector<float> prompt(static_cast<std::size_t>(tokens * head_dim), 0.25f);
    const Tensor view = Tensor::dense(prompt.data(), {1, kv_heads, tokens, head_dim});
    EXPECT_TRUE(cache.append(sequence, view, view, plan, {}, {.count = 1}));
    if (standing == Standing::behind_a_hole) {
      EXPECT_TRUE(cache.evict(sequence[0], 4, 20, KvCache::Gap::keep));
    }
    for (int warm = 0; warm < 3; ++warm) step();
  }

  void append() {
    const Tensor token = Tensor::dense(numbers.data(), {1, kv_heads, 1, head_dim});
    if (!cache.append(sequence, token, token, plan, {}, {.count = 1})) std::abort();
  }
  void attend() {
    const Tensor query = Tensor::dense(numbers.data(), {1, heads, 1, head_dim});
    const Tensor to = Tensor::dense(out.data(), {1, heads, 1, head_dim});
    if (!cache.attend(sequence, query, plan, mask, to, {.count = 1})) std::abort();
  }
  void step() {
    append();
    attend();
  }
};

struct Case {
  std::string name;
  Scheme scheme;
  CachedKeys keys;
  Standing standing;

  Decoding of(std::int64_t tokens) const {
    const Geometry geometry{.heads = Decoding::heads,
                            .kv_heads = Decoding::kv_heads,
                            .head_dim = Decoding::head_dim,
                            .length = tokens + 64};
    return {compile(scheme, geometry).value(), keys, standing, tokens};
  }
};

class DecodeStep : public testing::TestWithParam<Case> {};

// With pages reserved and the first steps made, nothing asks for memory.
TEST_P(DecodeStep, AllocatesNothing) {
  Decoding decoding = GetParam().of(4096);
  for (int step = 0; step < 40; ++step) {  // through a page and into the next two
    const std::int64_t before = allocations;
    decoding.append();
    ASSERT_EQ(allocations - before, 0) << "append " << step;
    decoding.attend();
    ASSERT_EQ(allocations - before, 0) << "attend " << step;
  }
}

TEST_P(DecodeStep, CostsTheSameBehindAnyNumberOfTokens) {
  const auto cost = [](Decoding decoding) { return instructions([&] { decoding.step(); }); };
  const auto few = cost(GetParam().of(1024)), many = cost(GetParam().of(65536));
  if (!few || !many) GTEST_SKIP() << "no process may be traced here";
  EXPECT_LE(*many, *few + *few / 10) << *few << " instructions behind 1024 tokens";
}

INSTANTIATE_TEST_SUITE_P(
    Schemes, DecodeStep,
    testing::Values(Case{"RopeRotated", Rope{}, CachedKeys::rotated, Standing::in_a_row},
                    Case{"RopeUnrotated", Rope{}, CachedKeys::unrotated, Standing::in_a_row},
                    Case{"RopeBehindAHole", Rope{}, CachedKeys::rotated, Standing::behind_a_hole},
                    Case{"Alibi", Alibi{}, CachedKeys::unrotated, Standing::in_a_row},
                    Case{"Kerple", Kerple{}, CachedKeys::unrotated, Standing::in_a_row}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace posenc
