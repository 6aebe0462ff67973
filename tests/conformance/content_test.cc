// Schemes that read the content against flash-linear-attention's own plain functions.
#include <algorithm>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

class ContentOfPeers : public testing::TestWithParam<Case> {};

TEST_P(ContentOfPeers, IsTheirs) {
  const Json& file = load("golden/content.json");
  const Json& record = GetParam().record();
  const std::int64_t heads = file.at("heads"), kv_heads = file.at("kv_heads"),
                     tokens = file.at("tokens"), dim = file.at("head_dim");
  const Json& given = file.at("given");
  std::vector<std::vector<double>> memory;
  memory.reserve(given.size() + 1);
  // The four axes, or three where a token has one number.
  const auto tensor = [&](const char* name, std::int64_t of_heads, bool wide) {
    std::vector<double>& x = memory.emplace_back(numbers<double>(given.at(name)));
    return wide ? Tensor::dense(x.data(), {1, of_heads, tokens, dim})
                : Tensor::dense(x.data(), {1, of_heads, tokens});
  };
  const bool gated = record.value("gated", false);
  Positions positions = Positions::range(0, tokens);
  if (record.contains("packed"))
    positions = *Positions::packed(numbers<std::int64_t>(record.at("packed")));
  const AttentionInputs in{tensor("q", heads, true),
                           tensor("k", kv_heads, true),
                           tensor("v", kv_heads, true),
                           positions,
                           positions,
                           {.window = record.value("window", std::int64_t{0})}};
  const Tensor gates = gated ? tensor("log_gates", heads, false) : Tensor{};
  ContentScheme scheme;
  if (record.at("name").get<std::string>().starts_with("wall")) {
    scheme = Wall{.channel_gates = {tensor("channel_gates", heads, true)}, .log_gates = {gates}};
  } else {
    scheme = Path{.w = {tensor("w", kv_heads, true)},
                  .beta = {tensor("beta", kv_heads, false)},
                  .log_gates = {gates},
                  .gates_before_scale = true};
  }
  std::vector<double> out(static_cast<std::size_t>(heads * tokens * dim));
  const Tensor to = Tensor::dense(out.data(), {1, heads, tokens, dim});
  ASSERT_TRUE(attend(in, scheme, {}, to));
  // Theirs is computed in float.
  expect_close(out, numbers<double>(record.at("out_f32")), 3e-6);
}

INSTANTIATE_TEST_SUITE_P(FlashLinearAttention, ContentOfPeers, testing::ValuesIn(cases("content")),
                         [](const auto& each) { return test_name(each.param.name); });

}  // namespace
}  // namespace posenc::golden
