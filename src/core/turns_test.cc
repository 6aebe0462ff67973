// Turns of frequencies beside the digits of 1/2π; backends/cuda/turns_test.cc has their products.
#include "posenc/turns.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "posenc/apply.h"

namespace posenc {
namespace {

TEST(Turns, OfOneAreTheDigitsOfTheInverseOfATurn) {
  const Turns one = turns_of(1);
  EXPECT_EQ(one.high, 0x28be60db9391054au);
  EXPECT_EQ(one.low, 0x7f09d5f47d4d3770u);
  const Turns back = turns_of(-1);
  EXPECT_EQ(back.high, ~one.high);
  EXPECT_EQ(back.low, 0 - one.low);
  EXPECT_EQ(turns_of(0x1p-64).low, one.high);
  EXPECT_EQ(turns_of(0x1p64).high, one.low);
}

TEST(Turns, OfAPlanAreThoseOfItsFrequencies) {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 4}, .frequencies = {.axes = 2, .radians = {1, 0, 0, 0.01}}};
  const auto turns = rotation_turns(plan);
  ASSERT_TRUE(turns);
  ASSERT_EQ(turns->size(), 4u);
  EXPECT_EQ(turns->at(3).high, turns_of(0.01).high);
  EXPECT_EQ(turns->at(1).low, 0u);
  plan.rotate->frequencies.radians[0] = 0x1p200;
  EXPECT_FALSE(rotation_turns(plan));
  EXPECT_FALSE(rotation_turns(Plan{}));
}

}  // namespace
}  // namespace posenc
