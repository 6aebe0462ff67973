// Attention as families' own code computes it, its configuration read by posenc: rotation, window, scale and softmax
// are what the reader says of the layer.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

struct Numbers {
  std::vector<double> values;
  Tensor view;
  Numbers(const Json& record, const char* name, std::initializer_list<std::int64_t> shape)
      : values(numbers<double>(record.at(name))), view(Tensor::dense(values.data(), shape)) {
    EXPECT_EQ(std::ssize(values), view.size()) << name;
  }
};

void expect_family(const Json& record) {
  const auto size = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
  const std::int64_t batch = size("batch"), heads = size("heads"), kv_heads = size("kv_heads"),
                     tokens = size("tokens"), dim = size("head_dim");
  const Expected<Model> model = read_config(record.at("config").dump());
  ASSERT_TRUE(model) << model.error().message();
  const LayerGroup* const group = find_group(*model, size("layer"), Stack::text);
  ASSERT_NE(group, nullptr);
  Expected<Plan> plan = compile(*group);
  ASSERT_TRUE(plan) << plan.error().message();
  const bool learned = record.contains("temperature");
  EXPECT_EQ(plan->logits.temperature == Temperature::heads, learned);
  if (learned) {
    ASSERT_TRUE(set_temperature(plan->logits, Numbers(record, "temperature", {2, heads}).view));
  }
  EXPECT_EQ(group->sink_logits, record.contains("sink_logits"));

  Numbers q(record, "q", {batch, heads, tokens, dim}),
      k(record, "k", {batch, kv_heads, tokens, dim}),
      v(record, "v", {batch, kv_heads, tokens, dim}),
      out(record, "out", {batch, heads, tokens, dim});
  const Positions at = Positions::range(0, tokens);
  AttentionInputs in{q.view, k.view, v.view, at, at, {.causal = group->causal}};
  in.mask.window = group->window.value_or(0);
  std::vector<double> sinks;
  if (group->sink_logits) {
    sinks = numbers<double>(record.at("sink_logits"));
    in.sink_logits = Tensor::dense(sinks.data(), {heads});
  }
  const std::vector<double> wanted = out.values;
  // transformers forms cos and sin in float.
  ASSERT_TRUE(attend(in, *plan, out.view));
  expect_close(out.values, wanted, 2e-6);
  ASSERT_TRUE(attend_reference(in, *plan, out.view));
  expect_close(out.values, wanted, 2e-6);
}

TEST(FamilyAttention, IsThatOfTransformers) {
  for (const Json& record : records("attention")) {
    SCOPED_TRACE(record.at("family").get<std::string>() + ", layer " + record.at("layer").dump());
    expect_family(record);
  }
}

}  // namespace
}  // namespace posenc::golden
