// The allocator of the WebAssembly module, natively and over memory that grows in pages as the
// module's does.
#include "src/wasm/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace posenc::detail {
namespace {

constexpr std::size_t page = 65536, pages = 1024;
alignas(16) std::byte memory[page * pages];
std::size_t grown;

std::byte* grow(std::size_t bytes) {
  const std::size_t wanted = (bytes + page - 1) / page * page;
  if (wanted > sizeof memory - grown) return nullptr;
  grown += wanted;
  return memory + grown;
}

Blocks fresh_blocks() {
  grown = page;
  Blocks blocks(grow);
  blocks.begin(memory + 48, memory + grown);
  return blocks;
}

bool aligned(const void* block) { return reinterpret_cast<std::uintptr_t>(block) % 16 == 0; }

TEST(Blocks, OfEverySizeAreAligned) {
  Blocks blocks = fresh_blocks();
  for (std::size_t bytes = 0; bytes < 3000; bytes++)
    EXPECT_TRUE(aligned(blocks.take(bytes))) << bytes;
}

TEST(Blocks, InUseKeepWhatWasWritten) {
  Blocks blocks = fresh_blocks();
  std::mt19937 random(7);
  struct Held {
    unsigned char* begin;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  for (int step = 0; step < 20000; step++) {
    if (held.size() < 64 || random() % 2) {
      const std::size_t bytes = std::size_t{1} << random() % 14 | random() % 100;
      auto* const block = static_cast<unsigned char*>(blocks.take(bytes));
      ASSERT_NE(block, nullptr);
      const auto mark = static_cast<unsigned char>(random());
      std::memset(block, mark, bytes);
      held.push_back({block, bytes, mark});
    } else {
      std::swap(held[random() % held.size()], held.back());
      const Held last = held.back();
      ASSERT_TRUE(std::all_of(last.begin, last.begin + last.bytes,
                              [&](unsigned char byte) { return byte == last.mark; }));
      blocks.give_back(last.begin);
      held.pop_back();
    }
    if (held.size() > 256) {
      blocks.give_back(held.front().begin);
      held.erase(held.begin());
    }
  }
}

TEST(Blocks, GivenBackAreTakenAgain) {
  Blocks blocks = fresh_blocks();
  for (int round = 0; round < 1000; round++) {
    void* const large = blocks.take(1 << 20);
    void* const small = blocks.take(100);
    blocks.give_back(large);
    blocks.give_back(small);
  }
  EXPECT_LE(grown, (1 << 20) + 2 * page);
}

TEST(Blocks, BeyondMemoryAreNone) {
  Blocks blocks = fresh_blocks();
  EXPECT_EQ(blocks.take(sizeof memory), nullptr);
  EXPECT_EQ(blocks.take(SIZE_MAX), nullptr);
  EXPECT_NE(blocks.take(1000), nullptr);
}

TEST(Blocks, NoBlockIsNothingToGiveBack) {
  Blocks blocks = fresh_blocks();
  blocks.give_back(nullptr);
  EXPECT_TRUE(aligned(blocks.take(0)));
}

}  // namespace
}  // namespace posenc::detail
