#include "src/kernels/ahead.h"

#include <gtest/gtest.h>

namespace posenc::detail {
namespace {

TEST(Ahead, SmallWorkDoesNotAskAndDecidesNothing) {
  const bool known = chosen_ahead(Loop::sum).known;
  Ahead ahead(Loop::sum, Ahead::least_bytes - 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ahead(1 << 20), Ask::no);
  EXPECT_EQ(chosen_ahead(Loop::sum).known, known);
}

TEST(Ahead, LargeWorkTriesAllWaysAndThenKeepsOne) {
  constexpr std::int64_t part = 1 << 20;
  for (int call = 0; call < 4; ++call) {
    Ahead ahead(Loop::scaling, 8 * part);
    for (int i = 0; i < 8; ++i) ahead(part);
  }
  const AheadChoice choice = chosen_ahead(Loop::scaling);
  EXPECT_TRUE(choice.known);
  Ahead later(Loop::scaling, 8 * part);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(later(part), choice.ask);
}

TEST(Ahead, WhileOneThreadTriesOthersAsk) {
  if (chosen_ahead(Loop::rotation).known) GTEST_SKIP() << "chosen before";
  Ahead first(Loop::rotation, Ahead::least_bytes);
  Ahead second(Loop::rotation, Ahead::least_bytes);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(second(1 << 20), Ask::first);
}

}  // namespace
}  // namespace posenc::detail
