// Rows whose channels are neighbours against the same numbers where they are not: to the bit.
#include "src/kernels/pairs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/kernels/reference.h"
#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

namespace reference = detail::reference;
using detail::Action;

// What is rotated: [2 sequences][3 heads][5 tokens][22 channels].
struct Sizes {
  static constexpr std::int64_t batch = 2, heads = 3, seq = 5, dim = 22;
};

std::vector<double> rotated_numbers(const Plan& plan, DType dtype, MemoryLayout layout,
                                    bool in_place, Action action) {
  const Memory x = memory(dtype, layout, Sizes::batch, Sizes::heads, Sizes::seq, Sizes::dim);
  const Memory y = memory(dtype, layout, Sizes::batch, Sizes::heads, Sizes::seq, Sizes::dim, 2);
  const Tensor from = x.view(), to = in_place ? from : y.view();
  std::size_t next = 0;
  const std::vector<double> numbers = random(from.size(), 3);
  for_each_index(from, [&](auto b, auto h, auto t, auto c) {
    from.set(from.offset(b, h, t, c), numbers[next++]);
  });
  EXPECT_EQ(detail::multiplies_pairs(*plan.rotate, from, to), layout == MemoryLayout::tokens_first);
  const auto done =
      reference::rotate(plan, from, Positions::range(1000, Sizes::seq), Side::query, to, action);
  EXPECT_TRUE(done) << done.error().message();
  std::vector<double> out;
  for_each_index(
      to, [&](auto b, auto h, auto t, auto c) { out.push_back(to.get(to.offset(b, h, t, c))); });
  return out;
}

void expect_same_bits(const Plan& plan, const std::string& what) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const bool in_place : {true, false}) {
      for (const Action action : {Action::forward, Action::transpose, Action::inverse}) {
        const auto in = [&](MemoryLayout layout) {
          return rotated_numbers(plan, dtype, layout, in_place, action);
        };
        const std::vector<double> alike = in(MemoryLayout::tokens_first);
        EXPECT_EQ(alike, in(MemoryLayout::every_third)) << what;
        EXPECT_EQ(alike, in(MemoryLayout::reversed)) << what;
      }
    }
  }
}

TEST(Pairs, NeighboursRotateAsScatteredChannelsDo) {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    for (const std::int64_t rotary_dim : {2, 6, 16, 18, 22}) {
      Plan plan = rope(rotary_dim, pairing);
      expect_same_bits(plan, std::string(name(pairing)) + " of " + std::to_string(rotary_dim));
      plan.rotate->slice.first_dim = Sizes::dim - rotary_dim;
      plan.rotate->amplitude = 1.25;
      expect_same_bits(plan, "the last " + std::to_string(rotary_dim));
    }
  }
}

TEST(Pairs, BlocksAreEachPairedByThemselves) {
  Plan plan = rope(20, Pairing::halves);
  plan.rotate->slice.blocks = 2;
  expect_same_bits(plan, "two blocks");
}

TEST(Pairs, EveryHeadMayHaveItsOwnMatrices) {
  Plan plan = rope(16, Pairing::halves);
  plan.rotate->kind = Plain{.phase = Phase{.side = Side::query,
                                           .heads = Sizes::heads,
                                           .radians = random(Sizes::heads * 8, 4)}};
  expect_same_bits(plan, "phases");
}

TEST(Pairs, ASecondRowMayBeOfAnotherAngle) {
  Plan plan = rope(16, Pairing::halves);
  plan.rotate->kind = TwoAngles{.radians = random(8, 5)};
  for (const DType dtype : {DType::f64, DType::f32}) {
    EXPECT_EQ(rotated_numbers(plan, dtype, MemoryLayout::tokens_first, true, Action::forward),
              rotated_numbers(plan, dtype, MemoryLayout::every_third, true, Action::forward));
  }
}

TEST(Pairs, OtherMemoryIsLeftToTheLoopsOverElements) {
  const Rotate rotate = *rope(16, Pairing::halves).rotate;
  const auto takes = [&](DType dtype, MemoryLayout layout) {
    const Memory x = memory(dtype, layout, 1, 1, 2, 16);
    return detail::multiplies_pairs(rotate, x.view(), x.view());
  };
  EXPECT_TRUE(takes(DType::f32, MemoryLayout::packed_qkv));
  EXPECT_FALSE(takes(DType::bf16, MemoryLayout::packed_qkv));
  EXPECT_FALSE(takes(DType::f64, MemoryLayout::channels_first));
  Rotate polar = rotate;
  polar.kind = Polar{};
  const Memory x = memory(DType::f64, MemoryLayout::tokens_first, 1, 1, 1, 16);
  EXPECT_FALSE(detail::multiplies_pairs(polar, x.view(), x.view()));
}

}  // namespace
}  // namespace posenc
