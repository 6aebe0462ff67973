// PoPE and RoPE++ as their own code has them: the logits of every head.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

Scheme scheme_of(const Json& record) {
  if (record.contains("imaginary")) {
    Scheme rope = Rope{};
    set(rope, "imaginary_heads", record.at("imaginary").get<std::string>());
    return rope;
  }
  Pope pope{.rope_theta = record.value("theta", 10000.0),
            .phases = numbers<double>(record.at("phases"))};
  if (record.contains("rotary_dim")) pope.rotary_dim = record.at("rotary_dim").get<std::int64_t>();
  return pope;
}

class Phases : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Peers, Phases, testing::ValuesIn(cases("phases")),
                         [](const auto& c) { return test_name(c.param.name); });

// x-transformers and PoPE-pytorch take softplus or the phases in float.
TEST_P(Phases, GiveTheLogitsOfTheirOwnCode) {
  const Json& record = GetParam().record();
  const auto number = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
  const std::int64_t heads = number("heads"), kv_heads = number("kv_heads"),
                     dim = number("head_dim");
  const Expected<Plan> plan =
      compile(scheme_of(record), {.heads = heads, .kv_heads = kv_heads, .head_dim = dim});
  ASSERT_TRUE(plan) << plan.error().message();
  auto q = numbers<double>(record.at("q")), k = numbers<double>(record.at("k"));
  auto wanted = numbers<double>(record.at("logits"));
  for (double& each : wanted) each /= std::sqrt(static_cast<double>(dim));
  const std::int64_t tokens = std::ssize(q) / heads / dim;
  std::vector<double> out(q.size()), logits(wanted.size());
  const Positions at = Positions::range(number("first"), tokens);
  const Tensor keys = Tensor::dense(k.data(), {1, kv_heads, tokens, dim});
  const auto done = attend_reference(
      {Tensor::dense(q.data(), {1, heads, tokens, dim}), keys, keys, at, at, {.causal = false}},
      *plan, Tensor::dense(out.data(), {1, heads, tokens, dim}),
      Tensor::dense(logits.data(), {1, heads, tokens, tokens}));
  ASSERT_TRUE(done) << done.error().message();
  expect_close(logits, wanted, 2e-5);
}

}  // namespace
}  // namespace posenc::golden
