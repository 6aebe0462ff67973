// What a rank's memory grows with, counted: operator new of this program counts the bytes that are
// held.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backends/distributed/whole_text_test.h"
#include "posenc/distributed_cache.h"
#include "posenc/schemes.h"

namespace {

std::atomic<std::int64_t> held = 0, most = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  bytes = (bytes + alignment - 1) / alignment * alignment;  // as aligned_alloc asks
  void* const memory = std::aligned_alloc(alignment, bytes == 0 ? alignment : bytes);
  if (memory == nullptr) std::abort();
  held += static_cast<std::int64_t>(malloc_usable_size(memory));
  most = std::max(most.load(), held.load());
  return memory;
}
void released(void* memory) {
  if (memory != nullptr) held -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

// The other forms of new and delete end in these.
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { released(memory); }
void operator delete(void* memory, std::size_t) noexcept { released(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { released(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { released(memory); }

namespace posenc {
namespace {

constexpr std::int64_t heads = 8, kv_heads = 4, dim = 16;

// The most bytes that a call holds beside what it is given, of any rank, for `own` tokens on each
// of the ranks.
double bytes_of_attend(Strategy strategy, std::int64_t own) {
  const std::int64_t tokens = own * test_ranks();
  const Layout layout = *Layout::zigzag(tokens, test_ranks());
  const Plan plan =
      *compile(Rope{}, {.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .length = tokens});
  const Numbers q(DType::f32, 1, heads, own, dim), k(DType::f32, 1, kv_heads, own, dim),
      v(DType::f32, 1, kv_heads, own, dim), out(DType::f32, 1, heads, own, dim);
  const std::int64_t before = held;
  most = before;
  auto text = DistributedText::make(MPI_COMM_WORLD, layout, Positions::range(0, tokens), strategy);
  EXPECT_TRUE(text);
  const auto done =
      text->attend({.q = q.view(), .k = k.view(), .v = v.view(), .threads = {1}}, plan, out.view());
  EXPECT_TRUE(done) << (done ? "" : done.error().message());
  return largest_of_ranks(static_cast<double>(most - before));
}

// Of a text twice as long, so that what does not grow drops out.
double bytes_of_a_token(Strategy strategy) {
  constexpr std::int64_t own = 1024;
  return (bytes_of_attend(strategy, 2 * own) - bytes_of_attend(strategy, own)) / own;
}

// Three blocks of keys and values, two outputs in float, their sums' logarithms, positions and what
// attention itself needs: a rank's own tokens, whatever the number of ranks.
TEST(DistributedMemory, OfARingGrowsWithARanksOwnTokens) {
  constexpr double blocks = 3 * 2 * kv_heads * dim * 4, outputs = 2 * heads * dim * 4,
                   logarithms = 2 * heads * 8;
  const double bytes = bytes_of_a_token(Strategy::ring);
  RecordProperty("bytes_of_a_token", std::to_string(bytes));
  EXPECT_LT(bytes, 1.3 * (blocks + outputs + logarithms)) << test_ranks() << " ranks";
}

// All keys and values of its heads, as many as its own of all heads; and what travels.
TEST(DistributedMemory, OfHeadsGrowsWithARanksOwnTokens) {
  if (kv_heads % test_ranks() != 0) GTEST_SKIP() << "key heads that do not come out even";
  constexpr double tensors = (2 * heads + 2 * kv_heads) * dim * 4;
  EXPECT_LT(bytes_of_a_token(Strategy::heads), 4 * tensors) << test_ranks() << " ranks";
}

TEST(DistributedMemory, OfACacheIsSharedOut) {
  const std::int64_t ranks = test_ranks(), tokens = 1024 * ranks;
  const Numbers k(DType::f32, 1, kv_heads, tokens, dim);
  const std::int64_t before = held;
  auto cache = DistributedKvCache::make(
      MPI_COMM_WORLD, {.kv_heads = kv_heads, .head_dim = dim, .dtype = DType::f32}, 16);
  ASSERT_TRUE(cache);
  const std::array<KvCache::Sequence, 1> sequence = {cache->add()};
  ASSERT_TRUE(cache->append(sequence, k.view(), k.view(), {}));
  // Where every token stands, each rank knows: 16 bytes.
  const double known = 2.0 * 16 * static_cast<double>(tokens),
               kept = 2.0 * kv_heads * dim * 4 * 1024;
  EXPECT_LT(largest_of_ranks(static_cast<double>(held - before)), 2 * kept + known) << ranks;
}

}  // namespace
}  // namespace posenc
