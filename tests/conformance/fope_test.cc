// FoPE as SGLang and vLLM rotate queries and keys.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

class FourierPositions : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Peers, FourierPositions, testing::ValuesIn(cases("fope")),
                         [](const auto& c) { return test_name(c.param.name); });

// Both form the angle in float; positions are below 100.
TEST_P(FourierPositions, RotateAsTheirOwnCode) {
  const Json& record = GetParam().record();
  const auto number = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
  const std::int64_t kv_heads = number("kv_heads"), dim = number("head_dim");
  Fope fope{.max_position_embeddings = number("length"),
            .cos_coef = numbers<double>(record.at("cos_coef")),
            .sin_coef = numbers<double>(record.at("sin_coef"))};
  if (!record.at("kept").is_null()) fope.num_inv_freq = number("kept");
  const Expected<Plan> plan = compile(fope, {.kv_heads = kv_heads, .head_dim = dim});
  ASSERT_TRUE(plan) << plan.error().message();
  for (const auto& [name, heads, side] :
       {std::tuple{"q", number("heads"), Side::query}, {"k", kv_heads, Side::key}}) {
    auto x = numbers<double>(record.at(name));
    const std::int64_t tokens = std::ssize(x) / heads / dim;
    const Tensor view = Tensor::dense(x.data(), {1, tokens, heads, dim}).swapped(1, 2);
    ASSERT_TRUE(rotate(*plan, view, Positions::range(number("first"), tokens), side, view));
    expect_close(x, numbers<double>(record.at(std::string(name) + "_out")), 5e-5);
  }
}

}  // namespace
}  // namespace posenc::golden
