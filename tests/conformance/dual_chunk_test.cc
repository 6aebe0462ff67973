// Dual chunk attention: the logits that vLLM's rotations give.
#include <limits>

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
  const std::int64_t heads = number("heads"), kv_heads = number("kv_heads"),
                     dim = number("head_dim");
  Scheme rope = Rope{.rotary_dim = number("rotary_dim"),
                     .distance_map = DistanceMap::dual_chunk,
                     .chunk_size = number("chunk_size"),
                     .local_size = number("local_size")};
  set(rope, "pairing", record.at("pairing").get<std::string>());
  const Expected<Plan> plan = compile(rope, {.heads = heads, .head_dim = dim});
  ASSERT_TRUE(plan) << plan.error().message();
  auto q = numbers<double>(record.at("q")), k = numbers<double>(record.at("k"));
  auto wanted = numbers<double>(record.at("logits"));
  for (double& each : wanted) each /= std::sqrt(static_cast<double>(dim));
  const std::int64_t tokens = std::ssize(q) / heads / dim;
  std::vector<double> out(q.size()), logits(wanted.size());
  const Positions at = Positions::range(0, tokens);
  const Tensor keys = Tensor::dense(k.data(), {1, kv_heads, tokens, dim});
  const auto done =
      attend_reference({Tensor::dense(q.data(), {1, heads, tokens, dim}), keys, keys, at, at},
                       *plan, Tensor::dense(out.data(), {1, heads, tokens, dim}),
                       Tensor::dense(logits.data(), {1, heads, tokens, tokens}));
  ASSERT_TRUE(done) << done.error().message();
  for (double& each : logits)
    if (each == -std::numeric_limits<double>::infinity()) each = 0;
  expect_close(logits, wanted, 2e-5);
}

}  // namespace
}  // namespace posenc::golden
