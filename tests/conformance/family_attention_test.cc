// Attention as families' own code computes it, its configuration read by posenc: rotation, window,
// scale and softmax are what the reader says of the layer.
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

// A whole model's attention, recorded as it ran: which keys each query saw is in the record too, as
// some pick them by content or have keys that stand for several tokens.
void expect_recorded(const Json& record) {
  const auto size = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
  const std::int64_t batch = size("batch"), heads = size("heads"), kv_heads = size("kv_heads"),
                     tokens = size("tokens"), keys = size("keys"), dim = size("head_dim"),
                     value_dim = size("value_dim");
  const Expected<Model> model = read_config(record.at("config").dump());
  ASSERT_TRUE(model) << model.error().message();
  const LayerGroup* group = find_group(*model, size("layer"), Stack::text);
  if (group == nullptr) group = &model->groups.at(0);  // a diffusion transformer's
  EXPECT_EQ(group->sink_logits, record.contains("sink_logits"));
  const Expected<Plan> plan = compile(*group);
  ASSERT_TRUE(plan) << plan.error().message();

  const Numbers q(record, "q", {batch, heads, tokens, dim}),
      k(record, "k", {batch, kv_heads, keys, dim}),
      v(record, "v", {batch, kv_heads, keys, value_dim}),
      wanted(record, "out", {batch, heads, tokens, value_dim});
  const auto ids = numbers<std::int64_t>(record.at("ids")),
             key_ids = numbers<std::int64_t>(record.at("key_ids"));
  const Positions queries = *Positions::signed_ids(ids, size("axes")),
                  at = *Positions::signed_ids(key_ids, size("axes"));
  std::vector<double> sinks, out(wanted.values.size());
  AttentionInputs in{q.view, k.view, v.view, queries, at, {.causal = false}};
  if (group->sink_logits) {
    sinks = numbers<double>(record.at("sink_logits"));
    in.sink_logits = Tensor::dense(sinks.data(), {heads});
  }
  const Mask layers{.causal = group->causal, .window = group->window.value_or(0)};
  for (std::int64_t i = 0; i < tokens; ++i) {  // a query at a time, as each has keys of its own
    const std::string row = record.at("seen").at(static_cast<std::size_t>(i));
    std::vector<std::uint8_t> keep;
    for (const char key : row) keep.push_back(key == '1');
    for (std::int64_t j = 0; j < tokens && record.at("axes") == 1; ++j)
      EXPECT_TRUE(layers.sees(i, j) || !keep[static_cast<std::size_t>(j)]) << i << ", " << j;
    Tensor result = Tensor::dense(out.data(), {batch, heads, tokens, value_dim});
    for (Tensor* each : {&in.q, &result}) {
      each->data = static_cast<double*>(each->data) + i * each->stride[2];
      each->shape[2] = 1;
    }
    in.queries = queries.slice(0, i, 1);
    in.mask.keep = keep.data();
    ASSERT_TRUE(attend(in, *plan, result));
    in.q = q.view;
  }
  expect_close(out, wanted.values, 5e-6);

  // The same at once, by lists of what each query sees.
  std::vector<std::int32_t> lists;
  for (std::int64_t i = 0; i < batch * tokens; ++i) {
    const std::string row = record.at("seen").at(static_cast<std::size_t>(i % tokens));
    for (std::int64_t j = 0; j < keys; ++j)
      lists.push_back(row[static_cast<std::size_t>(j)] == '1' ? static_cast<std::int32_t>(j) : -1);
  }
  in.queries = queries;
  in.mask = {.causal = false, .keys = lists.data(), .key_count = keys};
  ASSERT_TRUE(attend(in, *plan, Tensor::dense(out.data(), {batch, heads, tokens, value_dim})));
  expect_close(out, wanted.values, 5e-6);
}

TEST(FamilyAttention, IsThatOfItsOwnLibrary) {
  for (const Json& record : records("attention")) {
    SCOPED_TRACE(record.at("family").get<std::string>() + ", layer " + record.at("layer").dump());
    record.contains("seen") ? expect_recorded(record) : expect_family(record);
  }
}

}  // namespace
}  // namespace posenc::golden
