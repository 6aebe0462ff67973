// What the tests of the schemes in content.h share: a call with all its arguments, and the output
// that a full matrix of weights gives, in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "src/kernels/instruction_sets.h"
#include "tests/hidden_memory.h"
#include "tests/random.h"

namespace posenc {

inline constexpr double infinite = std::numeric_limits<double>::infinity();

// Numbers in a tensor of any dtype, rounded to it.
struct Numbers {
  std::vector<double> memory;  // enough for any dtype
  Tensor view;

  Numbers() = default;
  Numbers(DType dtype, std::initializer_list<std::int64_t> shape, const std::vector<double>& from)
      : memory(from.size() + 1) {
    view = Tensor::dense(memory.data(), dtype, shape);
    for (std::size_t i = 0; i < from.size(); ++i) view.set(static_cast<std::int64_t>(i), from[i]);
  }
  double at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return view.get(view.offset(a, b, c, d));
  }
};

using Matrix = std::vector<std::vector<double>>;  // [query][key]

struct Call {
  std::string name = "six tokens";
  std::int64_t batch = 1, heads = 2, kv_heads = 1, queries = 6, keys = 6, dim = 4;
  DType dtype = DType::f64;
  Plan plan = {};
  Mask mask = {};
  Positions query_positions = Positions::range(0, 6), key_positions = Positions::range(0, 6);
  std::vector<std::uint8_t> keep = {};  // of mask.keep
  double scale = 1;                     // of q and k
  Numbers q = {}, k = {}, v = {}, out = {};

  AttentionInputs inputs(Threads threads = {}) const {
    return {q.view, k.view, v.view, query_positions, key_positions, mask, threads};
  }

  // Random numbers for the shape; call it once the fields are set.
  void fill() {
    const auto made = [&](std::int64_t n, std::int64_t seq, unsigned seed, double by) {
      return Numbers(dtype, {batch, n, seq, dim}, random(batch * n * seq * dim, seed, by));
    };
    q = made(heads, queries, 1, scale);
    k = made(kv_heads, keys, 2, scale);
    v = made(kv_heads, keys, 3, 1);
    out =
        Numbers(dtype, {batch, heads, queries, dim},
                std::vector<double>(static_cast<std::size_t>(batch * heads * queries * dim), NAN));
    if (!keep.empty()) mask.keep = keep.data();
    spoil_hidden(inputs());
  }

  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    if (mask.keep != nullptr && mask.keep[b * keys + j] == 0) return false;
    if (query_positions.segment(i) != key_positions.segment(j)) return false;
    if (query_positions.axes() != 1) return mask.sees(keys - queries + i, j);
    return mask.sees(query_positions.at(i, b), key_positions.at(j, b));
  }

  // x rotated by the plan, in double.
  Numbers rotated(const Numbers& x, const Positions& positions, Side side) const {
    const auto& s = x.view.shape;
    std::vector<double> numbers;
    for (std::int64_t e = 0; e < x.view.size(); ++e) numbers.push_back(x.view.get(e));
    Numbers y(DType::f64, {s[0], s[1], s[2], s[3]}, numbers);
    EXPECT_TRUE(rotate(plan, y.view, positions, side, y.view));
    return y;
  }

  double logit_scale(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return plan.logits.query_scale(query_positions.at(i, b), h) /
           std::sqrt(static_cast<double>(dim));
  }

  // Scaled products of rotated queries and keys, −∞ where hidden.
  Matrix scores(std::int64_t b, std::int64_t h) const {
    const Numbers rotated_q = rotated(q, query_positions, Side::query);
    const Numbers rotated_k = rotated(k, key_positions, Side::key);
    Matrix z(static_cast<std::size_t>(queries));
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        double sum = 0;
        for (std::int64_t c = 0; c < dim; ++c) {
          sum += rotated_q.at(b, h, i, c) * rotated_k.at(b, h / (heads / kv_heads), j, c);
        }
        z[static_cast<std::size_t>(i)].push_back(sees(b, i, j) ? sum * logit_scale(b, h, i)
                                                               : -infinite);
      }
    }
    return z;
  }

  // What `weights` of every head make of the values.
  Numbers expected(const std::function<Matrix(std::int64_t, std::int64_t)>& weights) const {
    const Numbers values = rotated(v, key_positions, Side::value);
    Numbers result(DType::f64, {batch, heads, queries, dim},
                   std::vector<double>(static_cast<std::size_t>(batch * heads * queries * dim)));
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const Matrix w = weights(b, h);
        for (std::int64_t i = 0; i < queries; ++i) {
          for (std::int64_t c = 0; c < dim; ++c) {
            double sum = 0;
            for (std::int64_t j = 0; j < keys; ++j) {
              const double weight = w[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
              if (weight != 0) sum += weight * values.at(b, h / (heads / kv_heads), j, c);
            }
            result.view.set(result.view.offset(b, h, i, c), sum);
          }
        }
      }
    }
    if (plan.rotate && !plan.rotate->rotates_outputs()) return result;
    EXPECT_TRUE(rotate_inverse(plan, result.view, query_positions, Side::value, result.view));
    return result;
  }
};

// Rows of logits to weights; zeros where every key is hidden.
inline Matrix softmax(Matrix logits) {
  for (auto& row : logits) {
    double peak = -infinite, sum = 0;
    for (const double x : row) peak = std::max(peak, x);
    for (double& x : row) sum += x = x == -infinite ? 0 : std::exp(x - peak);
    for (double& x : row) x = sum == 0 ? 0 : x / sum;
  }
  return logits;
}

// Half a unit of the last place of a stored number, and what a float gives: logits of order 20 are
// off by some 1e-5 after sums over head_dim, and so are their weights.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-12;
    case DType::f32: return 2e-5;
    case DType::f16: return 2e-3;
    case DType::bf16: return 1.6e-2;
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;
  }
  return 0;
}

inline void expect_near(const Numbers& got, const Numbers& wanted, double within) {
  for (std::int64_t e = 0; e < wanted.view.size(); ++e) {
    ASSERT_NEAR(got.view.get(e), wanted.view.get(e), within) << "element " << e;
  }
}

inline Plan rotating(std::int64_t head_dim) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = head_dim}};
  for (std::int64_t r = 0; r < head_dim / 2; ++r) {
    plan.rotate->frequencies.radians.push_back(
        std::pow(100.0, -static_cast<double>(2 * r) / static_cast<double>(head_dim)));
  }
  return plan;
}

// Shapes, masks, positions and plans in which a loop over blocks of 64 keys and tiles of 16 queries
// may go wrong.
inline std::vector<Call> calls() {
  std::vector<Call> all = {Call{}};
  const auto text = [](std::string name, std::int64_t queries, std::int64_t keys) {
    Call call{.name = std::move(name),
              .batch = 2,
              .heads = 4,
              .kv_heads = 2,
              .queries = queries,
              .keys = keys,
              .dim = 20};
    call.query_positions = Positions::range(keys - queries, queries);
    call.key_positions = Positions::range(0, keys);
    return call;
  };
  all.push_back(text("one token", 1, 1));
  all.push_back(text("grouped heads, blocks that do not fill", 150, 150));
  all.push_back(text("decoding one token", 1, 130));
  all.push_back(text("decoding 70 of 200", 70, 200));
  all.push_back(text("a window of 5", 150, 150));
  all.back().mask.window = 5;
  all.push_back(text("a window of 100", 150, 150));
  all.back().mask.window = 100;
  all.push_back(text("chunks of 7", 50, 50));
  all.back().mask.chunk = 7;
  all.push_back(text("far from position 0", 90, 90));
  all.back().query_positions = all.back().key_positions = Positions::range(100000, 90);
  all.push_back(text("queries before all keys", 9, 9));
  all.back().key_positions = Positions::range(5, 9);
  all.push_back(text("left padding", 80, 80));
  all.back().keep.assign(160, 1);
  std::fill_n(all.back().keep.begin(), 71, 0);
  all.back().query_positions = all.back().key_positions = *Positions::from_mask(all.back().keep, 2);
  all.push_back(text("right padding", 80, 80));
  all.back().keep.assign(160, 1);
  std::fill_n(all.back().keep.begin() + 9, 71, 0);
  all.back().query_positions = all.back().key_positions = *Positions::from_mask(all.back().keep, 2);
  all.push_back(text("padding within a range", 80, 80));
  for (int t = 0; t < 160; ++t) all.back().keep.push_back(t % 5 == 1 ? 0 : 1);
  all.push_back(text("packed sequences", 140, 140));
  const std::vector<std::int64_t> cu_seqlens = {0, 3, 3, 70, 140};
  all.back().query_positions = all.back().key_positions = *Positions::packed(cu_seqlens);
  all.push_back(text("positions with gaps", 40, 40));
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < 40; ++t) ids.push_back(t * t);
  all.back().query_positions = all.back().key_positions = *Positions::ids(ids);
  all.push_back(text("two keys at each position", 40, 40));
  for (std::int64_t t = 0; t < 40; ++t) ids[static_cast<std::size_t>(t)] = t / 2;
  all.back().query_positions = all.back().key_positions = *Positions::ids(ids);
  // Sums of these numbers do not fit into 64 bits.
  all.push_back(text("a window beyond all distances", 9, 9));
  all.back().mask.window = std::numeric_limits<std::int64_t>::max();
  all.push_back(text("queries 2^62 behind the keys", 3, 9));
  ids.assign({furthest_position / 2, furthest_position - 1, furthest_position});
  all.back().query_positions = *Positions::ids(ids);
  all.push_back(all.back());
  all.back().name = "queries 2^62 behind the keys, and a window";
  all.back().mask.window = std::numeric_limits<std::int64_t>::max();
  all.push_back(text("rotated", 70, 70));
  all.back().plan = rotating(20);
  all.push_back(text("rotated values", 70, 70));
  all.back().plan = rotating(20);
  all.back().plan.rotate->values = Values::rotated_and_back;
  all.push_back(text("rotated values that stay", 70, 70));
  all.back().plan = rotating(20);
  all.back().plan.rotate->values = Values::rotated;
  all.push_back(text("logits that grow with the query", 70, 70));
  all.back().plan.logits = Logits{.multiplier = 1.5, .beta = 0.3, .floor = 8};
  for (Call& call : all) call.fill();
  return all;
}

// One scheme: how it is called with what it reads, and its weights by the paper's formula.
struct Subject {
  using Act = std::function<Expected<void>(const ContentScheme&)>;
  std::function<Expected<void>(const Call&, const Act&)> with;
  std::function<Matrix(const Call&, std::int64_t, std::int64_t)> weights;

  Expected<void> attend(const Call& call, const Tensor& out, Threads threads) const {
    return with(call, [&](const ContentScheme& scheme) {
      return posenc::attend(call.inputs(threads), scheme, call.plan, out);
    });
  }

  void run(Call& call, Threads threads = {}) const {
    const auto done = attend(call, call.out.view, threads);
    ASSERT_TRUE(done) << done.error().message();
  }
  void expect_formula(Call& call, double within) const {
    run(call);
    expect_near(call.out,
                call.expected([&](std::int64_t b, std::int64_t h) { return weights(call, b, h); }),
                within);
  }

  // The reference, its weights, and its logits as what they are the softmax or the logarithms of.
  void expect_reference(Call& call) const {
    const std::int64_t size = call.batch * call.heads * call.queries * call.keys;
    const std::vector<double> nothing(static_cast<std::size_t>(size), NAN);
    const auto square = [&] {
      return Numbers(DType::f64, {call.batch, call.heads, call.queries, call.keys}, nothing);
    };
    const Numbers logits = square(), taken = square();
    const auto done = with(call, [&](const ContentScheme& scheme) {
      return attend_reference(call.inputs(), scheme, call.plan, call.out.view, logits.view,
                              taken.view);
    });
    ASSERT_TRUE(done) << done.error().message();
    std::vector<Matrix> all_wanted;
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t h = 0; h < call.heads; ++h) {
        const Matrix& wanted = all_wanted.emplace_back(weights(call, b, h));
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          double all = 0, sum = 0;
          for (std::size_t j = 0; j < wanted[i].size(); ++j) {
            const auto at = logits.view.offset(b, h, static_cast<std::int64_t>(i),
                                               static_cast<std::int64_t>(j));
            const double logit = logits.view.get(at), weight = taken.view.get(at);
            ASSERT_NEAR(weight, wanted[i][j], 1e-12) << "query " << i << ", key " << j;
            if (logit == -infinite) {
              ASSERT_EQ(weight, 0);
            }
            if (weight > 1e-200) all += weight * (logit - std::log(weight)), sum += weight;
          }
          // One constant of the row lies between logits and logarithms of weights.
          for (std::size_t j = 0; j < wanted[i].size(); ++j) {
            const auto at = logits.view.offset(b, h, static_cast<std::int64_t>(i),
                                               static_cast<std::int64_t>(j));
            const double weight = taken.view.get(at);
            if (weight > 1e-200) {
              ASSERT_NEAR(logits.view.get(at) - std::log(weight), all / sum, 1e-9);
            }
          }
        }
      }
    }
    expect_near(call.out, call.expected([&](std::int64_t b, std::int64_t h) {
      return all_wanted[static_cast<std::size_t>(b * call.heads + h)];
    }),
                1e-12);
  }
};

inline void expect_formula_in_all_calls(const Subject& subject) {
  for (Call& call : calls()) {
    SCOPED_TRACE(call.name);
    subject.expect_formula(call, tolerance(DType::f64));
    subject.expect_reference(call);
  }
}

// Every dtype on every instruction set.
inline void expect_formula_in_all_dtypes(const Subject& subject) {
  for (const auto& set : detail::instruction_sets()) {
    detail::use_instruction_set(set.bit);
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(std::string(set.name) + " " + std::string(name(dtype)));
      Call call{.heads = 4, .kv_heads = 2, .queries = 130, .keys = 130, .dim = 40, .dtype = dtype};
      call.query_positions = call.key_positions = Positions::range(0, 130);
      call.plan = rotating(40);
      call.fill();
      subject.expect_formula(call, tolerance(dtype));
    }
  }
  detail::use_instruction_set(0);
}

inline void expect_same_bits_on_any_threads(const Subject& subject) {
  Call call{.heads = 3, .kv_heads = 3, .queries = 200, .keys = 200, .dim = 16, .dtype = DType::f32};
  call.query_positions = call.key_positions = Positions::range(0, 200);
  call.fill();
  subject.run(call, {.count = 1});
  const std::vector<double> one = call.out.memory;
  for (const int count : {2, 3, 7}) {
    subject.run(call, {.count = count});
    EXPECT_EQ(call.out.memory, one) << count << " threads";
  }
}

// NaN in what nobody sees harms nobody.
inline void expect_hidden_nan_is_harmless(const Subject& subject) {
  Call call;
  call.keep = {1, 0, 1, 1, 1, 1};
  call.fill();
  const auto spoil = [&](std::int64_t token) {
    for (std::int64_t c = 0; c < call.dim; ++c) {
      call.k.view.set(call.k.view.offset(0, 0, token, c), NAN);
      call.v.view.set(call.v.view.offset(0, 0, token, c), NAN);
    }
  };
  spoil(1);  // padding
  spoil(5);  // the future of all queries but the last
  subject.run(call);
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(std::isfinite(call.out.at(0, 1, i, 0))) << "query " << i;
  }
}

inline void expect_seen_nan_is_given(const Subject& subject) {
  Call call{.queries = 100, .keys = 100};
  call.query_positions = call.key_positions = Positions::range(0, 100);
  call.fill();
  call.k.view.set(call.k.view.offset(0, 0, 70, 1), NAN);
  subject.run(call);
  EXPECT_TRUE(std::isnan(call.out.at(0, 0, 99, 0)));
  EXPECT_TRUE(std::isfinite(call.out.at(0, 0, 69, 0)));
}

inline void expect_no_tokens_are_no_error(const Subject& subject) {
  for (Call call : {Call{.queries = 0, .keys = 0}, Call{.queries = 0}, Call{.keys = 0}}) {
    call.query_positions = Positions::range(0, call.queries);
    call.key_positions = Positions::range(0, call.keys);
    call.fill();
    subject.run(call);
    for (std::int64_t e = 0; e < call.out.view.size(); ++e) EXPECT_EQ(call.out.view.get(e), 0);
  }
}

// The rule that a call breaks; "" where it breaks none.
inline std::string broken_rule(const Subject& subject, Call call) {
  call.fill();
  const auto done = subject.attend(call, call.out.view, {});
  return done ? "" : done.error().message();
}

inline void expect_other_plan_parts_are_refused(const Subject& subject) {
  Call call;
  call.plan.bias = Slopes{.slope = {1, 1}};
  EXPECT_NE(broken_rule(subject, call).find("must not have slopes"), std::string::npos);
  call.plan = {};
  call.plan.relative = Relative{
      .rows = {.row = {0}}, .row_count = 1, .key = Table::own(std::vector<double>(4), 1, 4)};
  EXPECT_NE(broken_rule(subject, call).find("must not have vectors by distance"),
            std::string::npos);
}

inline void expect_only_causal_masks_are_taken(const Subject& subject) {
  Call call;
  call.mask.causal = false;
  EXPECT_NE(broken_rule(subject, call).find("the mask must be causal"), std::string::npos);
  call.mask = {.prefix = 2};
  EXPECT_NE(broken_rule(subject, call).find("got prefix 2"), std::string::npos);
}

inline void expect_keys_out_of_order_are_refused(const Subject& subject) {
  Call call;
  const std::vector<std::int64_t> ids = {0, 1, 3, 2, 4, 5};
  call.key_positions = call.query_positions = *Positions::ids(ids);
  EXPECT_NE(broken_rule(subject, call)
                .find("keys must stand in the order of their positions, got 2 after 3"),
            std::string::npos);
}

// A text of several blocks, whose queries share keys by two.
inline Call causal_text(std::int64_t length, DType dtype = DType::f64) {
  Call call{.heads = 4, .kv_heads = 2, .queries = length, .keys = length, .dim = 8, .dtype = dtype};
  call.query_positions = call.key_positions = Positions::range(0, length);
  call.fill();
  return call;
}

}  // namespace posenc
