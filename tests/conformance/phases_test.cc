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
  const Expected<Plan> plan = compile(
      scheme_of(record),
      {.heads = number("heads"), .kv_heads = number("kv_heads"), .head_dim = number("head_dim")});
  ASSERT_TRUE(plan) << plan.error().message();
  expect_logits(record, *plan, number("first"), {.causal = false});
}

}  // namespace
}  // namespace posenc::golden
