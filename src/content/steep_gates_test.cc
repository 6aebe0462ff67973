// Gates so steep that a running sum of them would hold nothing else, in every scheme that sums
// gates up: forwards beside the reference, and the gradients of a text that such a gate parts
// beside those of its two parts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "src/content/content_test.h"

namespace posenc::steep_gates_tests {
namespace {

// A scheme of which some tensor is gates: [batch][heads][keys], or a number more for each channel.
struct Gated {
  std::string name;
  bool channels = false;
  std::function<ContentScheme(const std::vector<Numbers>& said, const Tensor& gates)> scheme;
  Tensor posenc::ContentGradients::* gradient = &posenc::ContentGradients::log_gates;

  std::int64_t width(const Call& call) const { return channels ? call.dim : 1; }
};
void PrintTo(const Gated& gated, std::ostream* out) { *out << gated.name; }

// What the schemes take beside their gates: of channels, w and β.
std::vector<Numbers> said(const Call& call) {
  const std::int64_t tokens = call.keys;
  std::vector<double> channels = random(call.heads * tokens * call.dim, 41),
                      w = random(call.kv_heads * tokens * call.dim, 42, 0.4),
                      beta = random(call.kv_heads * tokens, 43);
  for (double& x : channels) x = -std::abs(x) / 4;
  for (double& x : beta) x = 1 / (1 + std::exp(-x));
  std::vector<Numbers> all(3);  // whose views are of their own memory
  all[0] = Numbers(call.dtype, {1, call.heads, tokens, call.dim}, channels);
  all[1] = Numbers(call.dtype, {1, call.kv_heads, tokens, call.dim}, w);
  all[2] = Numbers(call.dtype, {1, call.kv_heads, tokens}, beta);
  return all;
}

std::vector<Gated> all_gated() {
  using Said = std::vector<Numbers>;
  return {
      {.name = "Forgetting",
       .scheme = [](const Said&, const Tensor& gates) { return Forgetting{{gates}}; }},
      {.name = "WallByHeads",
       .scheme =
           [](const Said& of, const Tensor& gates) {
             return Wall{.channel_gates = {of[0].view}, .log_gates = {gates}};
           }},
      {.name = "WallByChannels",
       .channels = true,
       .scheme = [](const Said&, const Tensor& gates) { return Wall{.channel_gates = {gates}}; },
       .gradient = &posenc::ContentGradients::channel_gates},
      {.name = "Path",
       .scheme =
           [](const Said& of, const Tensor& gates) {
             return Path{.w = {of[1].view}, .beta = {of[2].view}, .log_gates = {gates}};
           }},
      {.name = "PathBeforeTheScale", .scheme = [](const Said& of, const Tensor& gates) {
         return Path{.w = {of[1].view},
                     .beta = {of[2].view},
                     .log_gates = {gates},
                     .gates_before_scale = true};
       }}};
}

Call text(std::int64_t keys, DType dtype) {
  Call call{.heads = 2, .kv_heads = 1, .queries = keys, .keys = keys, .dim = 8, .dtype = dtype};
  call.query_positions = call.key_positions = Positions::range(0, keys);
  call.fill();
  return call;
}

// Ordinary gates but for those of the tokens at `steep`.
Numbers gates_of(const Gated& gated, const Call& call, const std::vector<std::int64_t>& steep,
                 double value) {
  const std::int64_t width = gated.width(call);
  std::vector<double> numbers = random(call.heads * call.keys * width, 44);
  for (double& x : numbers) x = -std::log1p(std::exp(-x - 1));
  for (std::int64_t h = 0; h < call.heads; ++h)
    for (const std::int64_t j : steep)
      std::fill_n(numbers.begin() + (h * call.keys + j) * width, width, value);
  Numbers gates(call.dtype, {1, call.heads, call.keys, width}, numbers);
  if (!gated.channels) gates.view.rank = 3;
  return gates;
}

class SteepGates : public testing::TestWithParam<Gated> {};
INSTANTIATE_TEST_SUITE_P(Schemes, SteepGates, testing::ValuesIn(all_gated()),
                         [](const auto& param) { return param.param.name; });

TEST_P(SteepGates, GiveWhatTheReferenceGives) {
  const std::vector<std::vector<std::int64_t>> places = {
      {0}, {1}, {0, 1, 2}, {63, 64}, {5, 90}, {17, 18, 19, 70, 128, 129, 149}};
  constexpr double most_float = std::numeric_limits<float>::max();
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const double value : {-1e3, -1e9, -1e20, -most_float, -1e308}) {
      if (dtype == DType::f32 && value < -most_float) continue;
      for (const auto& steep : places) {
        SCOPED_TRACE(std::string(name(dtype)) + ", " + std::to_string(value) + " at " +
                     std::to_string(steep[0]));
        Call call = text(150, dtype);
        const Numbers gates = gates_of(GetParam(), call, steep, value);
        const auto of = said(call);
        const ContentScheme scheme = GetParam().scheme(of, gates.view);
        ASSERT_TRUE(attend(call.inputs(), scheme, {}, call.out.view));
        const Numbers got = call.out;
        Call other = text(150, dtype);
        ASSERT_TRUE(attend_reference(other.inputs(), scheme, {}, other.out.view));
        expect_near(got, other.out, dtype == DType::f64 ? 1e-9 : 2e-5);
      }
    }
  }
}

// Every token's gate is one of its own order of magnitude.
TEST_P(SteepGates, OfEveryMagnitudeTogether) {
  Call call = text(150, DType::f64);
  Numbers gates = gates_of(GetParam(), call, {}, 0);
  for (std::int64_t e = 0; e < gates.view.size(); ++e)
    gates.view.set(e, gates.view.get(e) * std::pow(10.0, static_cast<double>(e * 7 % 41 - 3)));
  const auto of = said(call);
  const ContentScheme scheme = GetParam().scheme(of, gates.view);
  ASSERT_TRUE(attend(call.inputs(), scheme, {}, call.out.view));
  Call other = text(150, DType::f64);
  ASSERT_TRUE(attend_reference(other.inputs(), scheme, {}, other.out.view));
  expect_near(call.out, other.out, 1e-9);
}

// Schemes whose gates are products: of q and k, or of tensors beside them.
TEST(SteepProducts, GiveWhatTheReferenceGives) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const double scale : {1e2, 1e8, 1e18}) {
      Call call = text(150, dtype);
      std::vector<double> p = random(2 * 150 * 4, 47, scale), e = random(20 * 8, 48);
      const Numbers p_queries(dtype, {1, 2, 150, 4}, p), p_keys(dtype, {1, 2, 150, 4}, p),
          embeddings(dtype, {1, 20, 8}, e);
      Call steep = call;
      std::vector<double> q = random(2 * 150 * 8, 49, scale);
      steep.q = Numbers();
      steep.q.memory.resize(q.size() + 1);
      steep.q.view = Tensor::dense(steep.q.memory.data(), dtype, {1, 2, 150, 8});
      for (std::size_t i = 0; i < q.size(); ++i)
        steep.q.view.set(static_cast<std::int64_t>(i), q[i]);
      const std::vector<std::pair<const Call*, ContentScheme>> all = {
          {&call, GrapeAp{{p_queries.view}, {p_keys.view}, {0.5}}},
          {&steep, StickBreaking{}},
          {&steep, Cope{.embeddings = {embeddings.view}}}};
      for (const auto& [in, scheme] : all) {
        SCOPED_TRACE(std::string(name(dtype)) + ", " + std::to_string(scale) + ", scheme " +
                     std::to_string(scheme.index()));
        Numbers got(dtype, {1, 2, 150, 8}, std::vector<double>(2 * 150 * 8, NAN));
        ASSERT_TRUE(attend(in->inputs(), scheme, {}, got.view));
        Numbers reference(dtype, {1, 2, 150, 8}, std::vector<double>(2 * 150 * 8, NAN));
        ASSERT_TRUE(attend_reference(in->inputs(), scheme, {}, reference.view));
        expect_near(got, reference, dtype == DType::f64 ? 1e-9 : 2e-3);  // z in float
      }
    }
  }
}

// The gradient by the gates, given that of the output.
Numbers by_gates(const Gated& gated, const Call& call, const Numbers& gates, const Numbers& g) {
  Numbers to(call.dtype, {1, call.heads, call.keys, gated.width(call)},
             std::vector<double>(static_cast<std::size_t>(gates.view.size()), NAN));
  to.view.rank = gates.view.rank;
  posenc::ContentGradients wanted;
  wanted.*gated.gradient = to.view;
  const auto of = said(call);
  const auto done =
      attend_backward(call.inputs(), gated.scheme(of, gates.view), {}, g.view, wanted);
  EXPECT_TRUE(done) << done.error().message();
  return to;
}

// Tokens [first, first + count) of a tensor.
Tensor tokens_of(Tensor x, std::int64_t first, std::int64_t count) {
  x.data = static_cast<char*>(x.data) +
           first * x.stride[2] * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[2] = count;
  return x;
}

// Gradients of the output, 1e12 times as large from token `parted` on, or 0 there.
Numbers output_gradient(const Call& call, std::int64_t parted, double times) {
  std::vector<double> given = random(call.heads * call.keys * call.dim, 45);
  for (std::int64_t h = 0; h < call.heads; ++h)
    for (std::int64_t e = parted * call.dim; e < call.keys * call.dim; ++e)
      given[static_cast<std::size_t>(h * call.keys * call.dim + e)] *= times;
  return Numbers(DType::f64, {1, call.heads, call.keys, call.dim}, given);
}

// What stands before a gate that lets nothing through learns nothing of what stands behind it.
TEST_P(SteepGates, HideGradientsFromGatesBeforeThem) {
  constexpr std::int64_t keys = 150, parted = 80;
  Call call = text(keys, DType::f64);
  const Numbers gates = gates_of(GetParam(), call, {parted}, -1e20);
  const Numbers large = by_gates(GetParam(), call, gates, output_gradient(call, parted, 1e12));
  const Numbers none = by_gates(GetParam(), call, gates, output_gradient(call, parted, 0));
  for (std::int64_t h = 0; h < call.heads; ++h)
    for (std::int64_t j = 0; j <= parted; ++j)
      for (std::int64_t c = 0; c < GetParam().width(call); ++c) {
        const std::int64_t at = large.view.offset(0, h, j, c);
        ASSERT_NEAR(large.view.get(at), none.view.get(at), 1e-12) << "token " << j;
      }
}

// No pair stands across a gate that lets nothing through, however large the gradients behind it
// are.
TEST_P(SteepGates, PartTheGradients) {
  if (GetParam().channels) return;  // a product of 0 has a weight
  constexpr std::int64_t keys = 150, parted = 80;
  Call call = text(keys, DType::f64);
  const Numbers gates = gates_of(GetParam(), call, {parted}, -1e20);
  const Numbers g = output_gradient(call, parted, 1e12);
  const Numbers whole = by_gates(GetParam(), call, gates, g);
  const auto of_part = [&](std::int64_t first, std::int64_t count, double within) {
    const std::int64_t width = GetParam().width(call);
    Call part = call;
    part.query_positions = part.key_positions = Positions::range(0, count);
    for (Numbers* const x : {&part.q, &part.k, &part.v}) x->view = tokens_of(x->view, first, count);
    std::vector<Numbers> of = said(call);
    for (Numbers& x : of) x.view = tokens_of(x.view, first, count);
    Numbers to(DType::f64, {1, call.heads, count, width},
               std::vector<double>(static_cast<std::size_t>(call.heads * count * width), NAN));
    to.view.rank = gates.view.rank;
    posenc::ContentGradients wanted;
    wanted.*GetParam().gradient = to.view;
    const Tensor own = tokens_of(gates.view, first, count);
    const auto done = attend_backward(part.inputs(), GetParam().scheme(of, own), {},
                                      tokens_of(g.view, first, count), wanted);
    ASSERT_TRUE(done) << done.error().message();
    for (std::int64_t h = 0; h < call.heads; ++h)
      for (std::int64_t j = first == 0 ? 0 : 1; j < count; ++j)
        for (std::int64_t c = 0; c < width; ++c)
          ASSERT_NEAR(whole.view.get(whole.view.offset(0, h, first + j, c)),
                      to.view.get(to.view.offset(0, h, j, c)), within)
              << "head " << h << ", token " << first + j;
  };
  of_part(0, parted, 1e-12);
  of_part(parted, keys - parted, 1);
  for (std::int64_t h = 0; h < call.heads; ++h)
    EXPECT_EQ(whole.view.get(whole.view.offset(0, h, parted)), 0);
}

}  // namespace
}  // namespace posenc::steep_gates_tests
