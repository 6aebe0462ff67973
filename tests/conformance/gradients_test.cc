// Every scheme can be trained: gradients through its compiled plan, by q, k and v for each of the
// list, and by what a scheme learns as the scheme keeps it.
#include <cmath>
#include <string>
#include <vector>

#include "tests/conformance/golden.h"
#include "tests/random.h"

namespace posenc::golden {
namespace {

constexpr std::int64_t kHeads = 4, kSeq = 9, kHeadDim = 8;
constexpr Geometry kGeometry{.width = 16,
                             .heads = kHeads,
                             .kv_heads = kHeads,
                             .head_dim = kHeadDim,
                             .length = 32,
                             .grid_height = 3,
                             .grid_width = 3};

// Attention over nine tokens, whose positions are those of a 3 x 3 picture where a plan wants two
// axes.
struct Layer {
  std::vector<double> q = random(kHeads * kSeq * kHeadDim, 1), k = random(q_size(), 2),
                      v = random(q_size(), 3), loss_weight = random(q_size(), 4),
                      profiles = random(16 * kHeads * kSeq, 5);

  static std::int64_t q_size() { return kHeads * kSeq * kHeadDim; }
  static Tensor view(std::vector<double>& x) {
    return Tensor::dense(x.data(), {1, kHeads, kSeq, kHeadDim});
  }
  static Positions positions(const Plan& plan) {
    if (plan.rotate && plan.rotate->frequencies.axes == 2) return *patch_positions(3, 3);
    return Positions::range(0, kSeq);
  }
  // With the profiles of queries that a plan wants.
  AttentionInputs inputs(const Plan& plan) {
    const Positions at = positions(plan);
    AttentionInputs in{view(q), view(k), view(v), at, at, {.causal = false}};
    if (plan.relative && plan.relative->profiles > 0)
      in.profiles.query =
          Tensor::dense(profiles.data(), {1, kHeads, kSeq, plan.relative->profiles});
    return in;
  }
  double loss(const Plan& plan) {
    std::vector<double> out(q.size());
    const auto done = attend_reference(inputs(plan), plan, view(out));
    EXPECT_TRUE(done) << done.error().message();
    double sum = 0;
    for (std::size_t e = 0; e < out.size(); ++e) sum += loss_weight[e] * out[e];
    return sum;
  }
  double loss(const Scheme& scheme) {
    const auto plan = compile(scheme, kGeometry);
    EXPECT_TRUE(plan) << plan.error().message();
    return loss(*plan);
  }
  void backward(const Scheme& scheme, const AttentionGradients& to) {
    const auto plan = compile(scheme, kGeometry);
    ASSERT_TRUE(plan) << plan.error().message();
    const auto done = attend_backward(inputs(*plan), *plan, view(loss_weight), to);
    ASSERT_TRUE(done) << done.error().message();
  }
};

// The slope of the loss by one number; the step is 1e-5 as in src/attention/gradients_test.cc.
void expect_slope(double gradient, double& number, auto&& loss) {
  const double at = number;
  number = at + 1e-5;
  const double above = loss();
  number = at - 1e-5;
  const double below = loss();
  number = at;
  const double slope = (above - below) / 2e-5;
  EXPECT_NEAR(gradient, slope, 1e-6 * (1 + std::abs(slope)));
}

void expect_slopes(const std::vector<double>& gradients, std::vector<double>& numbers,
                   auto&& loss) {
  ASSERT_EQ(gradients.size(), numbers.size());
  for (std::size_t e = 0; e < numbers.size(); e += 1 + numbers.size() / 32) {
    SCOPED_TRACE("element " + std::to_string(e));
    expect_slope(gradients[e], numbers[e], loss);
  }
}

// A learned table of the scheme's, whatever its shape.
Table table(std::vector<double>& numbers, std::initializer_list<std::int64_t> shape) {
  return Table::borrow(Tensor::dense(numbers.data(), shape));
}

std::vector<Scheme> schemes_with_tables(std::vector<double>& numbers) {
  numbers = random(4096, 5);
  std::vector<Scheme> schemes;
  for (const SchemeInfo& info : all_schemes()) {
    Scheme scheme = *make_scheme(info.name);
    if (auto* learned = std::get_if<Learned>(&scheme)) {
      *learned = Learned{.rows = 32, .table = table(numbers, {32, 16})};
    } else if (auto* shaw = std::get_if<Shaw>(&scheme)) {
      *shaw = Shaw{.max_distance = 3,
                   .key = table(numbers, {7, kHeadDim}),
                   .value = table(numbers, {7, kHeadDim})};
    } else if (auto* t5 = std::get_if<T5>(&scheme)) {
      t5->table = table(numbers, {32, kHeads});
    } else if (auto* deberta = std::get_if<Deberta>(&scheme)) {
      *deberta = Deberta{.position_buckets = 4,
                         .max_relative_positions = 16,
                         .key = table(numbers, {kHeads, 8, kHeadDim}),
                         .query = table(numbers, {kHeads, 8, kHeadDim})};
    } else if (auto* profiles = std::get_if<Profiles>(&scheme)) {
      *profiles = Profiles{.profiles = 3, .extent = 6, .table = table(numbers, {3, 6})};
    } else if (auto* xl = std::get_if<TransformerXl>(&scheme)) {
      xl->projection = table(numbers, {kHeads * kHeadDim, 16});
      xl->content_bias = xl->position_bias = table(numbers, {kHeads, kHeadDim});
    } else if (auto* clipped = std::get_if<ClippedBias>(&scheme)) {
      *clipped = ClippedBias{.left = 3, .right = 2, .table = table(numbers, {6, kHeads})};
    } else if (auto* grid = std::get_if<GridBias>(&scheme)) {
      grid->table = table(numbers, {25, kHeads});
    } else if (auto* cpb = std::get_if<LogCpb>(&scheme)) {
      cpb->hidden_weight = table(numbers, {8, 2});
      cpb->hidden_bias = table(numbers, {8});
      cpb->output_weight = table(numbers, {kHeads, 8});
    } else if (auto* decomposed = std::get_if<Decomposed>(&scheme)) {
      decomposed->row_vectors = decomposed->column_vectors = table(numbers, {5, kHeadDim});
    } else if (auto* page = std::get_if<AxisBuckets>(&scheme)) {
      page->table = table(numbers, {32, kHeads});
      page->axis_tables = table(numbers, {2, 64, kHeads});
    }
    schemes.push_back(std::move(scheme));
  }
  return schemes;
}

TEST(Gradients, OfEverySchemeByItsStates) {
  std::vector<double> numbers;
  for (const Scheme& scheme : schemes_with_tables(numbers)) {
    SCOPED_TRACE(info(scheme).name);
    Layer layer;
    std::vector<double> by_q(layer.q.size()), by_k(by_q), by_v(by_q);
    layer.backward(scheme,
                   {.q = Layer::view(by_q), .k = Layer::view(by_k), .v = Layer::view(by_v)});
    const auto loss = [&] { return layer.loss(scheme); };
    expect_slopes(by_q, layer.q, loss);
    expect_slopes(by_k, layer.k, loss);
    expect_slopes(by_v, layer.v, loss);
  }
}

TEST(Gradients, OfKerplesParameters) {
  for (Kerple scheme : {Kerple{.p = {1, 2, 0.5, 1.2}, .a = {0.5, 1, 2, 0.3}},
                        Kerple{.kernel = KerpleKernel::power, .p = {0.7}, .a = {0.5, 1, 2, 0.3}}}) {
    Layer layer;
    std::vector<double> by_bias(kHeads * 32);
    layer.backward(scheme, {.bias = Tensor::dense(by_bias.data(), {kHeads, 32})});
    const auto by = kerple_gradients(scheme, Tensor::dense(by_bias.data(), {kHeads, 32}));
    ASSERT_TRUE(by) << by.error().message();
    const auto loss = [&] { return layer.loss(scheme); };
    expect_slopes(by->p, scheme.p, loss);
    expect_slopes(by->a, scheme.a, loss);
  }
}

// T5 keeps [bucket][head], the plan [head][bucket]: the same memory with two axes exchanged.
TEST(Gradients, OfT5sTableAsItIsKept) {
  std::vector<double> numbers = random(8 * kHeads, 5), by_table(numbers.size());
  const T5 scheme{.num_buckets = 8,
                  .max_distance = 16,
                  .bidirectional = true,
                  .table = table(numbers, {8, kHeads})};
  Layer layer;
  layer.backward(scheme, {.bias = Tensor::dense(by_table.data(), {8, kHeads}).swapped(0, 1)});
  expect_slopes(by_table, numbers, [&] { return layer.loss(scheme); });
}

TEST(Gradients, OfShawsTables) {
  std::vector<double> key = random(7 * kHeadDim, 5), value = random(7 * kHeadDim, 6);
  const Shaw scheme{
      .max_distance = 3, .key = table(key, {7, kHeadDim}), .value = table(value, {7, kHeadDim})};
  Layer layer;
  std::vector<double> by_key(key.size()), by_value(value.size());
  layer.backward(scheme, {.relative_key = Tensor::dense(by_key.data(), {7, kHeadDim}),
                          .relative_value = Tensor::dense(by_value.data(), {7, kHeadDim})});
  expect_slopes(by_key, key, [&] { return layer.loss(scheme); });
  expect_slopes(by_value, value, [&] { return layer.loss(scheme); });
}

// BERT's relative_key_query reads one table twice, which has the sum of both gradients.
TEST(Gradients, OfATableReadTwiceIsTheSum) {
  std::vector<double> key = random(7 * kHeadDim, 5);
  const Shaw scheme{
      .max_distance = 3, .use_values = false, .use_keys = true, .key = table(key, {7, kHeadDim})};
  Layer layer;
  std::vector<double> by_key(key.size()), by_query(key.size());
  layer.backward(scheme, {.relative_query = Tensor::dense(by_query.data(), {7, kHeadDim}),
                          .relative_key = Tensor::dense(by_key.data(), {7, kHeadDim})});
  for (std::size_t e = 0; e < key.size(); ++e) by_key[e] += by_query[e];
  expect_slopes(by_key, key, [&] { return layer.loss(scheme); });
}

// Mixed keeps [head][x, y][pair], the plan [head][axis y, axis x][pair].
TEST(Gradients, OfMixedFrequencies) {
  constexpr std::int64_t pairs = kHeadDim / 2;
  Mixed scheme{.frequencies = random(kHeads * 2 * pairs, 5)};
  Layer layer;
  std::vector<double> by_axis(scheme.frequencies.size()), by;
  layer.backward(scheme, {.rotation_frequency = Tensor::dense(by_axis.data(), {kHeads, 2, pairs})});
  for (std::size_t h = 0; h < kHeads; ++h) {
    for (const std::size_t axis : {1, 0}) {
      const auto from = by_axis.begin() + static_cast<std::ptrdiff_t>((2 * h + axis) * pairs);
      by.insert(by.end(), from, from + pairs);
    }
  }
  expect_slopes(by, scheme.frequencies, [&] { return layer.loss(scheme); });
}

}  // namespace
}  // namespace posenc::golden
