#include "posenc/rekey.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "posenc/schemes.h"

namespace {

using namespace posenc;

constexpr std::int64_t heads = 2, tokens = 5, dim = 16;

struct Keys {
  std::vector<double> values = std::vector<double>(heads * tokens * dim);
  Keys() {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    for (double& x : values) x = normal(random);
  }
  Tensor view() { return Tensor::dense(values.data(), {1, heads, tokens, dim}); }
};

Plan plan_of(const Scheme& scheme) {
  return compile(scheme, {.heads = heads, .kv_heads = heads, .head_dim = dim}).value();
}

Positions at(std::vector<std::int64_t> ids) { return Positions::signed_ids(ids).value(); }

double off(const Keys& a, const Keys& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    most = std::max(most, std::abs(a.values[i] - b.values[i]));
  return most;
}

// Keys rotated by one and moved are those rotated by the other.
void expect_moved(const Plan& a, const Positions& from, const Plan& b, const Positions& to,
                  double most = 1e-12) {
  Keys moved, fresh;
  ASSERT_TRUE(rotate(a, moved.view(), from, Side::key, moved.view()));
  ASSERT_TRUE(rotate(b, fresh.view(), to, Side::key, fresh.view()));
  const auto done = rekey({&a, from}, {&b, to}, moved.view(), moved.view());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_LT(off(moved, fresh), most);
}

const Positions old_ids = at({40, 41, 42, 43, 44}), new_ids = at({0, 1, 7, 8, 1000});

TEST(Rekey, KeysStandAsIfTheyHadBeenRotatedThere) {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    const Plan plan = plan_of(Rope{.pairing = pairing});
    expect_moved(plan, old_ids, plan, new_ids);
  }
}

TEST(Rekey, OnePartOfTheHeadMovesAndTheRestStays) {
  const Plan plan = plan_of(Rope{.rotary_dim = 8, .slice = SliceEnd::trailing});
  expect_moved(plan, old_ids, plan, new_ids);
}

TEST(Rekey, TheAmplitudeIsNotAppliedAgain) {
  const Plan plan =
      plan_of(Rope{.scaling = Yarn{.factor = 8, .original_max_position_embeddings = 64}});
  ASSERT_GT(plan.rotate->amplitude, 1);
  expect_moved(plan, old_ids, plan, new_ids);
}

TEST(Rekey, FromOneBaseAndScalingToAnother) {
  const Plan plain = plan_of(Rope{}), other = plan_of(Rope{.rope_theta = 500000});
  const Plan yarn =
      plan_of(Rope{.scaling = Yarn{.factor = 8, .original_max_position_embeddings = 64}});
  expect_moved(plain, old_ids, other, old_ids);
  expect_moved(plain, old_ids, yarn, new_ids);
  expect_moved(yarn, old_ids, plain, new_ids);
}

TEST(Rekey, FromOnePairingToAnother) {
  expect_moved(plan_of(Rope{}), old_ids, plan_of(Rope{.pairing = Pairing::interleaved}), new_ids);
}

TEST(Rekey, FromNoRotationAndToNone) {
  const Plan rope = plan_of(Rope{}), none = plan_of(NoPe{});
  expect_moved(none, old_ids, rope, new_ids);
  expect_moved(rope, old_ids, none, new_ids);
}

TEST(Rekey, GrowthMovesWithTheKeys) {
  const Plan plan = plan_of(XPos{});
  expect_moved(plan, old_ids, plan, at({0, 1, 7, 8, 100}), 1e-9);
}

TEST(Rekey, EachAxisMovesByItsOwnStep) {
  const Plan plan = plan_of(Rope{.mrope_section = {2, 3, 3}});
  const auto axes = [](std::vector<std::int64_t> ids) {
    return Positions::signed_ids(ids, 3).value();
  };
  expect_moved(plan, axes({4, 4, 4, 4, 6, 4, 4, 5, 5, 6, 4, 5, 4, 5, 6}), plan,
               axes({9, 9, 9, 9, 11, 0, 0, 1, 1, 2, 7, 8, 7, 8, 9}));
}

TEST(Rekey, SixteenBitKeysAreRoundedOnce) {
  const Plan plan = plan_of(Rope{});
  Keys exact;
  std::vector<std::uint16_t> memory(exact.values.size());
  const Tensor half = Tensor::dense(memory.data(), DType::bf16, {1, heads, tokens, dim});
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = double_to_bfloat16(exact.values[i]);
    exact.values[i] = bfloat16_to_float(memory[i]);
  }
  ASSERT_TRUE(rekey({&plan, old_ids}, {&plan, new_ids}, half, half));
  ASSERT_TRUE(rekey({&plan, old_ids}, {&plan, new_ids}, exact.view(), exact.view()));
  for (std::size_t i = 0; i < memory.size(); ++i)
    EXPECT_LE(std::abs(bfloat16_to_float(memory[i]) - exact.values[i]),
              std::abs(exact.values[i]) * 0x1p-8 + 1e-6);
}

TEST(Rekey, StaysWhereNothingMoves) {
  const Plan plan = plan_of(Rope{});
  Keys before, after;
  ASSERT_TRUE(rekey({&plan, old_ids}, {&plan, old_ids}, after.view(), after.view()));
  EXPECT_LT(off(before, after), 1e-15);
}

TEST(Rekey, WhatCannotBeMovedIsRefusedByName) {
  const Plan rope = plan_of(Rope{}), fope = plan_of(Fope{});
  Keys keys;
  const auto refused = rekey({&fope, old_ids}, {&rope, new_ids}, keys.view(), keys.view());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("FoPE"), std::string::npos) << refused.error().message();
  EXPECT_FALSE(rekey({&rope, at({1, 2})}, {&rope, new_ids}, keys.view(), keys.view()));
  EXPECT_FALSE(rekey({&rope, old_ids}, {&rope, new_ids}, keys.view(), keys.view(), Side::query));
}

}  // namespace
