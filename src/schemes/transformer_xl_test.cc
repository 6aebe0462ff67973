#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {
namespace of_transformer_xl {

constexpr std::int64_t heads = 2, dim = 3, width = 6, length = 5;
constexpr Geometry geometry{
    .width = width, .heads = heads, .kv_heads = heads, .head_dim = dim, .length = length};

// A layer's numbers, and a loss Σ weight·out of its attention over random q, k, v.
struct Layer {
  std::vector<double> projection = random(heads * dim * width, 1), u = random(heads * dim, 2),
                      v = random(heads * dim, 3), q = random(heads * length * dim, 4),
                      k = random(heads * length * dim, 5), x = random(heads * length * dim, 6),
                      weight = random(heads * length * dim, 7),
                      out = std::vector<double>(heads * length * dim);
  bool biases = true;
  WaveLayout layout = WaveLayout::interleaved;

  TransformerXl scheme() {
    TransformerXl scheme{.layout = layout, .biases = biases};
    scheme.projection = Table::borrow(Tensor::dense(projection.data(), {heads * dim, width}));
    if (!biases) return scheme;
    scheme.content_bias = Table::borrow(Tensor::dense(u.data(), {heads, dim}));
    scheme.position_bias = Table::borrow(Tensor::dense(v.data(), {heads, dim}));
    return scheme;
  }
  static Tensor tokens(std::vector<double>& numbers) {
    return Tensor::dense(numbers.data(), {1, heads, length, dim});
  }
  AttentionInputs inputs() {
    const Positions text = Positions::range(0, length);
    return {tokens(q), tokens(k), tokens(x), text, text, {.causal = false}};
  }
  double loss() {
    const auto plan = compile(scheme(), geometry);
    EXPECT_TRUE(plan) << plan.error().message();
    EXPECT_TRUE(attend_reference(inputs(), *plan, tokens(out)));
    double sum = 0;
    for (std::size_t e = 0; e < out.size(); ++e) sum += weight[e] * out[e];
    return sum;
  }
};

// [(q_i + u)·k_j + (q_i + v)·W_R s_{i−j}]/√d, written out.
TEST(TransformerXl, IsItsFormula) {
  for (const WaveLayout layout : {WaveLayout::interleaved, WaveLayout::concatenated}) {
    Layer layer{.layout = layout};
    const auto plan = compile(layer.scheme(), geometry);
    ASSERT_TRUE(plan) << plan.error().message();
    std::vector<double> logits(heads * length * length);
    ASSERT_TRUE(attend_reference(layer.inputs(), *plan, Layer::tokens(layer.out),
                                 Tensor::dense(logits.data(), {1, heads, length, length})));
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j < length; ++j) {
          double wanted = 0;
          for (std::int64_t c = 0; c < dim; ++c) {
            double r = 0;
            for (std::int64_t w = 0; w < width; ++w) {
              const bool interleaved = layout == WaveLayout::interleaved;
              const std::int64_t pair = interleaved ? w / 2 : w % (width / 2);
              const bool sine = interleaved ? w % 2 == 0 : w < width / 2;
              const double angle =
                  static_cast<double>(i - j) *
                  std::pow(10000, -2 * static_cast<double>(pair) / static_cast<double>(width));
              r += layer.projection[static_cast<std::size_t>((h * dim + c) * width + w)] *
                   (sine ? std::sin(angle) : std::cos(angle));
            }
            const auto at = [&](const std::vector<double>& x, std::int64_t t) {
              return x[static_cast<std::size_t>((h * length + t) * dim + c)];
            };
            const auto head = static_cast<std::size_t>(h * dim + c);
            wanted += (at(layer.q, i) + layer.u[head]) * at(layer.k, j) +
                      (at(layer.q, i) + layer.v[head]) * r;
          }
          EXPECT_NEAR(logits[static_cast<std::size_t>((h * length + i) * length + j)],
                      wanted / std::sqrt(3.0), 1e-12);
        }
      }
    }
  }
}

TEST(TransformerXl, HasGradientsByItsLearnedTensors) {
  for (const bool biases : {true, false}) {
    Layer layer{.biases = biases};
    const auto plan = compile(layer.scheme(), geometry);
    ASSERT_TRUE(plan) << plan.error().message();
    constexpr std::int64_t rows = 2 * length - 1;
    std::vector<double> key(heads * rows * dim), query = key, bias(heads * rows);
    AttentionGradients to{.relative_key = Tensor::dense(key.data(), {heads, rows, dim})};
    if (biases) {
      to.relative_query = Tensor::dense(query.data(), {heads, rows, dim});
      to.bias = Tensor::dense(bias.data(), {heads, rows});
    }
    const auto done = attend_backward(layer.inputs(), *plan, Layer::tokens(layer.weight), to);
    ASSERT_TRUE(done) << done.error().message();
    const auto by = transformer_xl_gradients(layer.scheme(), geometry, to.relative_key, to.bias,
                                             to.relative_query);
    ASSERT_TRUE(by) << by.error().message();
    const auto expect = [&](std::vector<double>& numbers, const std::vector<double>& gradient) {
      ASSERT_EQ(numbers.size(), gradient.size());
      for (std::size_t e = 0; e < numbers.size(); ++e) {
        const double at = numbers[e], step = 1e-5;
        numbers[e] = at + step;
        const double above = layer.loss();
        numbers[e] = at - step;
        const double below = layer.loss();
        numbers[e] = at;
        EXPECT_NEAR(gradient[e], (above - below) / (2 * step), 1e-8) << e;
      }
    };
    expect(layer.projection, by->projection);
    if (!biases) continue;
    expect(layer.u, by->content_bias);
    expect(layer.v, by->position_bias);
  }
}

TEST(TransformerXl, CompilesBeforeItsTensorsAreGiven) {
  const auto plan = compile(TransformerXl{}, geometry);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_FALSE(plan->relative->key);
  EXPECT_EQ(plan->relative->row_count, 9);
  EXPECT_FALSE(compile(TransformerXl{}, {.width = 6, .heads = 2, .head_dim = 3}));
  const auto causal = compile(TransformerXl{.bidirectional = false}, geometry);
  EXPECT_EQ(causal->relative->row_count, 5);
}

}  // namespace of_transformer_xl
}  // namespace
}  // namespace posenc
