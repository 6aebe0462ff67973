// The gradients of CoPE, forgetting, stick-breaking, Wall, PaTH and GRAPE-AP attention against
// central differences in double.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

// A scheme and the loss Σ out · g, g random. `extra` is what it learns beside q, k and v; for
// stick-breaking, which learns nothing, the gradient by the remainder, and the loss has Σ remainder
// · it.
struct Learner {
  std::string name;
  bool learns;
  std::function<Numbers(const Call&, DType)> extra;
  std::function<double(Call&, const Numbers& g, const Tensor& extra)> loss;
  std::function<Expected<void>(const Call&, const Tensor& extra, const Tensor& g, const Tensor& dq,
                               const Tensor& dk, const Tensor& dv, const Tensor& by_extra, Threads)>
      backward;
};

void PrintTo(const Learner& learner, std::ostream* out) { *out << learner.name; }

double product(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::int64_t e = 0; e < a.view.size(); ++e) sum += a.view.get(e) * b.view.get(e);
  return sum;
}

Learner cope(std::int64_t positions, bool shared, bool before_scale) {
  const auto scheme = [=](const Tensor& e) {
    return Cope{.embeddings = {e}, .before_scale = before_scale};
  };
  return {.name = "Cope" + std::to_string(positions) + (shared ? "Shared" : "PerHead") +
                  (before_scale ? "Scaled" : ""),
          .learns = true,
          .extra =
              [=](const Call& call, DType dtype) {
                const std::int64_t heads = shared ? 1 : call.heads;
                return Numbers(dtype, {heads, positions, call.dim},
                               random(heads * positions * call.dim, 21, 0.7));
              },
          .loss =
              [=](Call& call, const Numbers& g, const Tensor& e) {
                EXPECT_TRUE(attend(call.inputs(), scheme(e), call.plan, call.out.view));
                return product(call.out, g);
              },
          .backward =
              [=](const Call& call, const Tensor& e, const Tensor& g, const Tensor& dq,
                  const Tensor& dk, const Tensor& dv, const Tensor& de, Threads threads) {
                return attend_backward(call.inputs(threads), scheme(e), call.plan, g,
                                       {.q = dq, .k = dk, .v = dv, .embeddings = de});
              }};
}

Learner forgetting() {
  return {.name = "Forgetting",
          .learns = true,
          .extra =
              [](const Call& call, DType dtype) {
                Numbers gates(dtype, {call.batch, call.heads, call.keys},
                              random(call.batch * call.heads * call.keys, 22, 0.5));
                for (std::int64_t e = 0; e < gates.view.size(); ++e)
                  gates.view.set(e, -0.1 - std::abs(gates.view.get(e)));
                return gates;
              },
          .loss =
              [](Call& call, const Numbers& g, const Tensor& gates) {
                EXPECT_TRUE(attend(call.inputs(), Forgetting{{gates}}, call.plan, call.out.view));
                return product(call.out, g);
              },
          .backward =
              [](const Call& call, const Tensor& gates, const Tensor& g, const Tensor& dq,
                 const Tensor& dk, const Tensor& dv, const Tensor& by_gates, Threads threads) {
                return attend_backward(call.inputs(threads), Forgetting{{gates}}, call.plan, g,
                                       {.q = dq, .k = dk, .v = dv, .log_gates = by_gates});
              }};
}

// ln σ(x + 1) of random x.
std::vector<double> log_gates(std::int64_t count, unsigned seed) {
  std::vector<double> gates = random(count, seed);
  for (double& x : gates) x = -0.05 - std::log1p(std::exp(-x - 1));
  return gates;
}

// By the channels' gates, or by the head's beside them.
Learner wall(bool by_channels) {
  // The scheme with `extra` and what it does not stand for.
  const auto act = [=](const Call& call, const Tensor& extra, const auto& with) {
    const std::int64_t tokens = call.batch * call.heads * call.keys;
    const Numbers channels(DType::f64, {call.batch, call.heads, call.keys, call.dim},
                           log_gates(tokens * call.dim, 24));
    const Numbers heads(DType::f64, {call.batch, call.heads, call.keys}, log_gates(tokens, 25));
    return with(by_channels ? Wall{.channel_gates = {extra}, .log_gates = {heads.view}}
                            : Wall{.channel_gates = {channels.view}, .log_gates = {extra}});
  };
  return {.name = by_channels ? "WallByChannels" : "WallByHeads",
          .learns = true,
          .extra =
              [=](const Call& call, DType dtype) {
                const std::int64_t tokens = call.batch * call.heads * call.keys;
                return by_channels ? Numbers(dtype, {call.batch, call.heads, call.keys, call.dim},
                                             log_gates(tokens * call.dim, 22))
                                   : Numbers(dtype, {call.batch, call.heads, call.keys},
                                             log_gates(tokens, 22));
              },
          .loss =
              [=](Call& call, const Numbers& g, const Tensor& extra) {
                return act(call, extra, [&](const Wall& scheme) {
                  EXPECT_TRUE(attend(call.inputs(), scheme, call.plan, call.out.view));
                  return product(call.out, g);
                });
              },
          .backward =
              [=](const Call& call, const Tensor& extra, const Tensor& g, const Tensor& dq,
                  const Tensor& dk, const Tensor& dv, const Tensor& by_extra, Threads threads) {
                return act(call, extra, [&](const Wall& scheme) {
                  ContentGradients to{.q = dq, .k = dk, .v = dv};
                  (by_channels ? to.channel_gates : to.log_gates) = by_extra;
                  return attend_backward(call.inputs(threads), scheme, call.plan, g, to);
                });
              }};
}

// By p of the queries, or of the keys.
Learner grape_ap(bool of_keys) {
  const auto numbers = [](const Call& call, bool keys, DType dtype) {
    const std::int64_t tokens = keys ? call.keys : call.queries;
    return Numbers(dtype, {call.batch, call.heads, tokens, 3},
                   random(call.batch * call.heads * tokens * 3, keys ? 28 : 29, 1.5));
  };
  const auto act = [=](const Call& call, const Tensor& extra, const auto& with) {
    const Numbers other = numbers(call, !of_keys, DType::f64);
    return with(of_keys ? GrapeAp{{other.view}, {extra}, {0.5}}
                        : GrapeAp{{extra}, {other.view}, {0.5}});
  };
  return {.name = of_keys ? "GrapeApByKeys" : "GrapeApByQueries",
          .learns = true,
          .extra = [=](const Call& call, DType dtype) { return numbers(call, of_keys, dtype); },
          .loss =
              [=](Call& call, const Numbers& g, const Tensor& extra) {
                return act(call, extra, [&](const GrapeAp& scheme) {
                  EXPECT_TRUE(attend(call.inputs(), scheme, call.plan, call.out.view));
                  return product(call.out, g);
                });
              },
          .backward =
              [=](const Call& call, const Tensor& extra, const Tensor& g, const Tensor& dq,
                  const Tensor& dk, const Tensor& dv, const Tensor& by_extra, Threads threads) {
                return act(call, extra, [&](const GrapeAp& scheme) {
                  ContentGradients to{.q = dq, .k = dk, .v = dv};
                  (of_keys ? to.p_keys : to.p_queries) = by_extra;
                  return attend_backward(call.inputs(threads), scheme, call.plan, g, to);
                });
              }};
}

// By w, β or the gates beside them (`part` 0, 1, 2).
Learner path(std::size_t part, bool before_scale = false) {
  const auto numbers = [](const Call& call, std::size_t which, DType dtype) {
    const std::int64_t tokens = call.batch * call.kv_heads * call.keys;
    if (which == 0) {
      // Of length 0.9, so that products of many grow no more than the authors' do.
      std::vector<double> w = random(tokens * call.dim, 26);
      for (auto row = w.begin(); row != w.end(); row += call.dim) {
        const double length = std::sqrt(std::inner_product(row, row + call.dim, row, 0.0));
        for (auto x = row; x != row + call.dim; ++x) *x *= 0.9 / length;
      }
      return Numbers(dtype, {call.batch, call.kv_heads, call.keys, call.dim}, w);
    }
    if (which == 2)
      return Numbers(dtype, {call.batch, call.heads, call.keys},
                     log_gates(call.batch * call.heads * call.keys, 28));
    std::vector<double> beta = random(tokens, 27);
    for (double& x : beta) x = 2 / (1 + std::exp(-x));
    return Numbers(dtype, {call.batch, call.kv_heads, call.keys}, beta);
  };
  // The scheme with `extra` in its place.
  const auto act = [=](const Call& call, const Tensor& extra, const auto& with) {
    Numbers made[3];
    for (std::size_t n = 0; n < 3; ++n) made[n] = numbers(call, n, DType::f64);
    made[part].view = extra;
    return with(Path{.w = {made[0].view},
                     .beta = {made[1].view},
                     .log_gates = {made[2].view},
                     .gates_before_scale = before_scale});
  };
  return {.name = std::string("PathBy") +
                  (part == 0   ? "W"
                   : part == 1 ? "Beta"
                               : "Gates") +
                  (before_scale ? "BeforeTheScale" : ""),
          .learns = true,
          .extra = [=](const Call& call, DType dtype) { return numbers(call, part, dtype); },
          .loss =
              [=](Call& call, const Numbers& g, const Tensor& extra) {
                return act(call, extra, [&](const Path& scheme) {
                  EXPECT_TRUE(attend(call.inputs(), scheme, call.plan, call.out.view));
                  return product(call.out, g);
                });
              },
          .backward =
              [=](const Call& call, const Tensor& extra, const Tensor& g, const Tensor& dq,
                  const Tensor& dk, const Tensor& dv, const Tensor& by_extra, Threads threads) {
                return act(call, extra, [&](const Path& scheme) {
                  ContentGradients to{.q = dq, .k = dk, .v = dv};
                  (part == 0 ? to.w : part == 1 ? to.beta : to.log_gates) = by_extra;
                  return attend_backward(call.inputs(threads), scheme, call.plan, g, to);
                });
              }};
}

Learner stick_breaking(bool attend_current) {
  const StickBreaking scheme{.attend_current = attend_current};
  return {
      .name = attend_current ? "StickBreakingWithTheOwnToken" : "StickBreaking",
      .learns = false,
      .extra =
          [](const Call& call, DType dtype) {
            return Numbers(dtype, {call.batch, call.heads, call.queries},
                           random(call.batch * call.heads * call.queries, 23));
          },
      .loss =
          [=](Call& call, const Numbers& g, const Tensor& by_remainder) {
            Numbers remainder(DType::f64, {call.batch, call.heads, call.queries},
                              std::vector<double>(static_cast<std::size_t>(call.batch * call.heads *
                                                                           call.queries)));
            EXPECT_TRUE(attend(call.inputs(), scheme, call.plan, call.out.view, remainder.view));
            double sum = product(call.out, g);
            for (std::int64_t e = 0; e < by_remainder.size(); ++e)
              sum += remainder.view.get(e) * by_remainder.get(e);
            return sum;
          },
      .backward =
          [=](const Call& call, const Tensor& by_remainder, const Tensor& g, const Tensor& dq,
              const Tensor& dk, const Tensor& dv, const Tensor&, Threads threads) {
            return attend_backward(call.inputs(threads), scheme, call.plan, g,
                                   {.q = dq, .k = dk, .v = dv}, by_remainder);
          }};
}

Numbers like(const Numbers& x, DType dtype, double value) {
  Numbers y;
  y.memory.assign(static_cast<std::size_t>(x.view.size() + 1), 0);
  y.view = x.view;
  y.view.dtype = dtype;
  y.view.data = y.memory.data();
  for (std::int64_t e = 0; e < y.view.size(); ++e) y.view.set(e, value);
  return y;
}

struct Training {
  const Learner& learner;
  Call call;
  Numbers extra, g, dq, dk, dv, by_extra;

  Training(const Learner& of, Call what) : learner(of), call(std::move(what)) {
    call.fill();
    extra = learner.extra(call, call.dtype);
    g = like(call.q, call.dtype, 0);
    const std::vector<double> drawn = random(call.q.view.size(), 45);
    for (std::int64_t e = 0; e < g.view.size(); ++e)
      g.view.set(e, drawn[static_cast<std::size_t>(e)]);
    for (const auto& [to, from] :
         {std::pair{&dq, &call.q}, {&dk, &call.k}, {&dv, &call.v}, {&by_extra, &extra}}) {
      *to = like(*from, call.dtype, NAN);
    }
  }
  void run(Threads threads = {}) {
    const auto done = learner.backward(call, extra.view, g.view, dq.view, dk.view, dv.view,
                                       by_extra.view, threads);
    ASSERT_TRUE(done) << done.error().message();
  }
  // Rounding of the difference is some 1e-16 · loss/step, 1e-9 here; its own error is step² times a
  // third derivative. A position of CoPE that crosses a row of e on the way is rarer than 1 in 10⁵.
  double difference(Numbers& x, std::int64_t at) {
    constexpr double step = 1e-6;
    const double was = x.view.get(at);
    x.view.set(at, was + step);
    const double above = learner.loss(call, g, extra.view);
    x.view.set(at, was - step);
    const double below = learner.loss(call, g, extra.view);
    x.view.set(at, was);
    return (above - below) / (2 * step);
  }
  // At most about `most` numbers of each tensor.
  void expect_differences(std::int64_t most) {
    for (const auto& [x, gradient, name] : {std::tuple{&call.q, &dq, "q"},
                                            {&call.k, &dk, "k"},
                                            {&call.v, &dv, "v"},
                                            {&extra, &by_extra, "parameter"}}) {
      if (x == &extra && !learner.learns) continue;
      const std::int64_t stride = std::max<std::int64_t>(1, x->view.size() / most) | 1;
      for (std::int64_t e = 0; e < x->view.size(); e += stride) {
        ASSERT_NEAR(gradient->view.get(e), difference(*x, e), 2e-6) << name << " " << e;
      }
    }
  }
};

class ContentGradients : public testing::TestWithParam<Learner> {};

INSTANTIATE_TEST_SUITE_P(Schemes, ContentGradients,
                         testing::Values(cope(5, true, false), cope(4, false, true),
                                         cope(1, true, false), cope(400, false, false),
                                         forgetting(), stick_breaking(false), stick_breaking(true),
                                         wall(true), wall(false), path(0), path(1), path(2),
                                         path(2, true), grape_ap(false), grape_ap(true)),
                         [](const auto& each) { return each.param.name; });

TEST_P(ContentGradients, AreTheDifferencesInAllCalls) {
  for (Call& call : calls()) {
    SCOPED_TRACE(call.name);
    Training training(GetParam(), call);
    training.run();
    training.expect_differences(2);
  }
}

Call random_call(unsigned seed) {
  std::mt19937 engine(seed);
  const auto whole = [&](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(engine);
  };
  Call call{.name = "seed " + std::to_string(seed), .batch = whole(1, 2), .kv_heads = whole(1, 2)};
  call.heads = call.kv_heads * whole(1, 3);
  call.keys = whole(1, 7);
  call.queries = whole(1, 2) == 1 ? whole(1, call.keys) : call.keys;
  call.dim = 2 * whole(1, 3);
  call.query_positions = Positions::range(call.keys - call.queries, call.queries);
  call.key_positions = Positions::range(0, call.keys);
  switch (whole(0, 5)) {
    case 0: call.mask.window = whole(1, 4); break;
    case 1: call.mask.chunk = whole(1, 4); break;
    case 2:
      for (std::int64_t n = 0; n < call.batch * call.keys; ++n)
        call.keep.push_back(whole(0, 2) == 0 ? 0 : 1);
      break;
    case 3:
      call.queries = call.keys;
      call.query_positions = call.key_positions =
          *Positions::packed(std::vector<std::int64_t>{0, whole(0, call.keys), call.keys});
      break;
    case 4:
      call.plan = rotating(call.dim);
      if (whole(0, 1) == 1) call.plan.rotate->values = Values::rotated_and_back;
      call.plan.rotate->amplitude = 1.2;
      break;
    default: call.plan.logits = Logits{.multiplier = 1.5, .beta = 0.3, .floor = 2};
  }
  return call;
}

TEST_P(ContentGradients, AreTheDifferencesOfEveryNumberInRandomCalls) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Training training(GetParam(), random_call(seed));
    training.run();
    training.expect_differences(1000);
  }
}

TEST_P(ContentGradients, OfNoTokensAreZeros) {
  for (Call call : {Call{.queries = 0, .keys = 0}, Call{.queries = 0}, Call{.keys = 0}}) {
    call.query_positions = Positions::range(0, call.queries);
    call.key_positions = Positions::range(0, call.keys);
    Training training(GetParam(), call);
    training.run();
    for (const Numbers* x : {&training.dq, &training.dk, &training.dv}) {
      for (std::int64_t e = 0; e < x->view.size(); ++e) EXPECT_EQ(x->view.get(e), 0);
    }
    if (!GetParam().learns) continue;
    for (std::int64_t e = 0; e < training.by_extra.view.size(); ++e)
      EXPECT_EQ(training.by_extra.view.get(e), 0);
  }
}

TEST_P(ContentGradients, OtherDtypesAreNearDouble) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Call call{.heads = 4, .kv_heads = 2, .queries = 70, .keys = 70, .dim = 12, .dtype = dtype};
    call.query_positions = call.key_positions = Positions::range(0, 70);
    call.plan = rotating(12);
    Training rounded(GetParam(), call);
    rounded.run();
    call.dtype = DType::f64;
    Training exact(GetParam(), call);
    // The same numbers, as the dtype has them.
    double largest = 1;
    for (const auto& [to, from] : {std::pair{&exact.call.q, &rounded.call.q},
                                   {&exact.call.k, &rounded.call.k},
                                   {&exact.call.v, &rounded.call.v},
                                   {&exact.extra, &rounded.extra},
                                   {&exact.g, &rounded.g}}) {
      for (std::int64_t e = 0; e < to->view.size(); ++e) to->view.set(e, from->view.get(e));
    }
    exact.run();
    for (const auto& [got, wanted] : {std::pair{&rounded.dq, &exact.dq},
                                      {&rounded.dk, &exact.dk},
                                      {&rounded.dv, &exact.dv},
                                      {&rounded.by_extra, &exact.by_extra}}) {
      if (got == &rounded.by_extra && !GetParam().learns) continue;
      for (std::int64_t e = 0; e < wanted->view.size(); ++e)
        largest = std::max(largest, std::abs(wanted->view.get(e)));
      expect_near(*got, *wanted, largest * tolerance(dtype));
    }
  }
}

// One key head, of which the queries are shared out, and several.
TEST_P(ContentGradients, HaveTheSameBitsOnAnyThreads) {
  for (const std::int64_t kv_heads : {1, 3}) {
    Call call{.heads = 3,
              .kv_heads = kv_heads,
              .queries = 300,
              .keys = 300,
              .dim = 16,
              .dtype = DType::f32};
    call.query_positions = call.key_positions = Positions::range(0, 300);
    Training one(GetParam(), call), many(GetParam(), call);
    one.run({.count = 1});
    for (const int count : {2, 3, 7}) {
      many.run({.count = count});
      EXPECT_EQ(many.dq.memory, one.dq.memory);
      EXPECT_EQ(many.dk.memory, one.dk.memory);
      EXPECT_EQ(many.dv.memory, one.dv.memory);
      if (GetParam().learns) {
        EXPECT_EQ(many.by_extra.memory, one.by_extra.memory);
      }
    }
  }
}

TEST_P(ContentGradients, HiddenNaNIsHarmless) {
  Call call;
  call.keep = {1, 1, 0, 1, 1, 1};
  Training training(GetParam(), call);
  for (std::int64_t c = 0; c < 4; ++c) {
    training.call.k.view.set(training.call.k.view.offset(0, 0, 2, c), NAN);
    training.call.v.view.set(training.call.v.view.offset(0, 0, 2, c), NAN);
  }
  training.run();
  for (const Numbers* x : {&training.dq, &training.dk, &training.dv}) {
    for (std::int64_t e = 0; e < x->view.size(); ++e) ASSERT_TRUE(std::isfinite(x->view.get(e)));
  }
  for (std::int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(training.dk.at(0, 0, 2, c), 0);
    EXPECT_EQ(training.dv.at(0, 0, 2, c), 0);
  }
}

TEST_P(ContentGradients, MayTakeTheMemoryOfTheInputs) {
  Training apart(GetParam(), Call{}), same(GetParam(), Call{});
  apart.run();
  same.dq.view = same.call.q.view;
  same.dk.view = same.call.k.view;
  same.dv.view = same.call.v.view;
  if (GetParam().learns) same.by_extra.view = same.extra.view;
  same.run();
  EXPECT_EQ(same.call.q.memory, apart.dq.memory);
  EXPECT_EQ(same.call.k.memory, apart.dk.memory);
  EXPECT_EQ(same.call.v.memory, apart.dv.memory);
  if (GetParam().learns) {
    EXPECT_EQ(same.extra.memory, apart.by_extra.memory);
  }
}

TEST_P(ContentGradients, AreWrittenOnlyWhereAskedFor) {
  Training all(GetParam(), Call{}), one(GetParam(), Call{});
  all.run();
  one.dq.view = one.dv.view = one.by_extra.view = {};
  one.run();
  EXPECT_EQ(one.dk.memory, all.dk.memory);
}

TEST_P(ContentGradients, AskForCausalMasks) {
  Training training(GetParam(), Call{});
  training.call.mask.causal = false;
  const auto done = GetParam().backward(training.call, training.extra.view, training.g.view,
                                        training.dq.view, {}, {}, {}, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "the mask must be causal, without a prefix or blocks");
}

// A gate of 0 forgets whatever its logarithm is moved by.
TEST(ForgettingGradients, ShutGatesHaveNone) {
  const Learner learner = forgetting();
  Training training(learner, Call{});
  training.extra.view.set(training.extra.view.offset(0, 1, 3), -infinite);
  training.run();
  EXPECT_EQ(training.by_extra.view.get(training.extra.view.offset(0, 1, 3)), 0);
  for (std::int64_t e = 0; e < training.extra.view.size(); ++e) {
    if (std::isinf(training.extra.view.get(e))) continue;
    EXPECT_NEAR(training.by_extra.view.get(e), training.difference(training.extra, e), 2e-6);
  }
}

// Whatever comes before the first key is forgotten by nobody.
TEST(ForgettingGradients, FirstGateHasNone) {
  const Learner learner = forgetting();
  Training training(learner, Call{});
  training.run();
  EXPECT_NEAR(training.by_extra.view.get(0), 0, 1e-15);
}

TEST(CopeGradients, RowsThatNobodyReachesHaveNone) {
  const Learner learner = cope(40, true, false);
  Training training(learner, Call{});
  training.run();
  for (std::int64_t n = 7; n < 40; ++n) EXPECT_EQ(training.by_extra.view.get(n * 4), 0) << n;
}

TEST(ContentGradientsErrors, ParametersGradientsMustFit) {
  const Learner e = cope(5, true, false), gates = forgetting();
  for (const Learner* learner : {&e, &gates}) {
    Training training(*learner, Call{});
    Tensor wrong = training.by_extra.view;
    wrong.shape[2] -= 1;
    const auto done = learner->backward(training.call, training.extra.view, training.g.view,
                                        training.dq.view, {}, {}, wrong, {});
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().rule.find("must have the shape"), std::string::npos)
        << done.error().message();
    EXPECT_TRUE(std::isnan(training.dq.view.get(0)));
  }
}

}  // namespace
}  // namespace posenc
