// Dual chunk attention: the logits that vLLM's rotations give.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

class DualChunks : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Peers, DualChunks, testing::ValuesIn(cases("dual_chunk")),
                         [](const auto& c) { return test_name(c.param.name); });

// Angles are formed in float there; what is behind the query is 0.
TEST_P(DualChunks, GiveTheLogitsOfItsRotations) {
  const Json& record = GetParam().record();
  const auto number = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
  Scheme rope = Rope{.rotary_dim = number("rotary_dim"),
                     .distance_map = DualChunk{.chunk_size = number("chunk_size"),
                                               .local_size = number("local_size")}};
  set(rope, "pairing", record.at("pairing").get<std::string>());
  const Expected<Plan> plan =
      compile(rope, {.heads = number("heads"), .head_dim = number("head_dim")});
  ASSERT_TRUE(plan) << plan.error().message();
  expect_logits(record, *plan, 0, {});
}

}  // namespace
}  // namespace posenc::golden
