// A length that somebody raised, told by the published model that is built alike, and by no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/model/small_gguf_test.h"
#include "src/tools/doctor_parts.h"

namespace posenc::detail {
namespace {

// OLMo 2's 7B in a GGUF of 65,536 tokens.
test::SmallGguf raised_olmo() {
  test::SmallGguf file("olmo2");
  file.set("block_count", 32).set("embedding_length", 4096).set("context_length", 65536);
  file.set("attention.head_count", 32).set("attention.head_count_kv", 32);
  return file;
}

TEST(RaisedContext, IsToldByTheModelThatIsBuiltAlike) {
  const auto found = raised_context(raised_olmo().model());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected, "4,096");
}

TEST(RaisedContext, LayersOfAnotherKindMakeAnotherModel) {
  auto file = raised_olmo();
  file.set("attention.sliding_window", 4096);
  test::LayerList slides;
  for (int layer = 0; layer < 32; ++layer) slides.push_back(layer % 4 != 3 ? 1 : 0);
  file.set("attention.sliding_window_pattern", slides);
  EXPECT_FALSE(raised_context(file.model()));
}

TEST(RaisedContext, AScalingMayBeWhatTheLengthIsMadeBy) {
  auto file = raised_olmo();
  file.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 16.0);
  file.set("rope.scaling.original_context_length", 4096);
  EXPECT_FALSE(raised_context(file.model()));
}

}  // namespace
}  // namespace posenc::detail
