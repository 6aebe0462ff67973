// FIRE's gradients against central differences in double.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

Fire random_fire(std::int64_t heads, std::int64_t units, double length) {
  return {.hidden_weight = random(units, 41),
          .hidden_bias = random(units, 42, 0.5),
          .output_weight = random(heads * units, 43),
          .output_bias = random(heads, 44),
          .c = 0.3,
          .initial_length = length,
          .length_multiplier = 0.9};
}

// The loss is the sum of the output times random numbers.
struct FireTraining {
  Call call;
  Fire fire;
  Numbers out_gradient, dq, dk, dv;
  Fire by = {};  // where the parameters stand

  explicit FireTraining(Call of, double length = 20, std::int64_t units = 8)
      : call(std::move(of)), fire(random_fire(call.heads, units, length)) {
    call.fill();
    const auto like = [&](const Numbers& x, const std::vector<double>& from) {
      const auto& s = x.view.shape;
      return Numbers(call.dtype, {s[0], s[1], s[2], s[3]}, from);
    };
    const auto nothing = [](const Numbers& x) {
      return std::vector<double>(static_cast<std::size_t>(x.view.size()), NAN);
    };
    out_gradient = like(call.q, random(call.q.view.size(), 45));
    dq = like(call.q, nothing(call.q));
    dk = like(call.k, nothing(call.k));
    dv = like(call.v, nothing(call.v));
  }

  void run(Threads threads = {}) {
    by = fire;
    const auto view = [](std::vector<double>& x) {
      return Tensor::dense(x.data(), {static_cast<std::int64_t>(x.size())});
    };
    const auto hidden = static_cast<std::int64_t>(fire.hidden_weight.size());
    const auto done = attend_backward(
        call.inputs(threads), fire, call.plan, out_gradient.view,
        {.q = dq.view,
         .k = dk.view,
         .v = dv.view,
         .hidden_weight = view(by.hidden_weight),
         .hidden_bias = view(by.hidden_bias),
         .output_weight = Tensor::dense(by.output_weight.data(), {call.heads, hidden}),
         .output_bias = view(by.output_bias),
         .c = Tensor::dense(&by.c, {}),
         .length_multiplier = Tensor::dense(&by.length_multiplier, {1})});
    ASSERT_TRUE(done) << done.error().message();
  }

  double loss() {
    const auto done = attend(call.inputs(), fire, call.plan, call.out.view);
    EXPECT_TRUE(done) << done.error().message();
    double sum = 0;
    for (std::int64_t e = 0; e < call.out.view.size(); ++e) {
      sum += call.out.view.get(e) * out_gradient.view.get(e);
    }
    return sum;
  }
  // Of the loss by a number, which is left as it was. Rounding is some 1e-16 · loss/step, 1e-8
  // here; the step is so short that hardly any of thousands of x crosses a bend of the network.
  double difference(double& number) {
    constexpr double step = 1e-6;
    const double was = number;
    number = was + step;
    const double above = loss();
    number = was - step;
    const double below = loss();
    number = was;
    return (above - below) / (2 * step);
  }

  void expect_parameters() {
    const auto each = [&](std::vector<double>& parameters, const std::vector<double>& gradients,
                          const char* name) {
      ASSERT_EQ(parameters.size(), gradients.size());
      for (std::size_t n = 0; n < parameters.size(); ++n) {
        EXPECT_NEAR(gradients[n], difference(parameters[n]), 2e-6) << name << " " << n;
      }
    };
    each(fire.hidden_weight, by.hidden_weight, "hidden_weight");
    each(fire.hidden_bias, by.hidden_bias, "hidden_bias");
    each(fire.output_weight, by.output_weight, "output_weight");
    each(fire.output_bias, by.output_bias, "output_bias");
    EXPECT_NEAR(by.c, difference(fire.c), 2e-6);
    EXPECT_NEAR(by.length_multiplier, difference(fire.length_multiplier), 2e-6);
  }
  // Every `stride`th number of q, k and v.
  void expect_inputs(std::int64_t stride) {
    for (const auto& [x, gradient, name] :
         {std::tuple{&call.q, &dq, "q"}, {&call.k, &dk, "k"}, {&call.v, &dv, "v"}}) {
      for (std::int64_t e = 0; e < x->view.size(); e += stride) {
        EXPECT_NEAR(gradient->view.get(e), difference(static_cast<double*>(x->view.data)[e]), 1e-6)
            << name << " " << e;
      }
    }
  }
};

Call small() {
  Call call{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 6, .keys = 9, .dim = 4};
  call.query_positions = Positions::range(3, 6);
  call.key_positions = Positions::range(0, 9);
  return call;
}

TEST(FireBackward, IsTheDifferenceOfEveryNumber) {
  for (const double length : {100.0, 4.5}) {  // beyond all queries, and among them
    FireTraining training(small(), length);
    training.run();
    training.expect_parameters();
    training.expect_inputs(1);
  }
}

TEST(FireBackward, IsTheDifferenceBesideRotationsAndScales) {
  Call call = small();
  call.plan = rotating(4);
  call.plan.rotate->values = Values::rotated_and_back;
  call.plan.rotate->amplitude = 1.2;
  call.plan.logits = Logits{.multiplier = 1.5, .beta = 0.3, .floor = 4};
  FireTraining training(call, 4.5);
  training.run();
  training.expect_parameters();
  training.expect_inputs(1);
}

TEST(FireBackward, IsTheDifferenceWhereCAndLAreNegative) {
  FireTraining training(small(), -4.5);
  training.fire.c = -0.3;
  training.run();
  training.expect_parameters();
}

TEST(FireBackward, IsTheDifferenceBothWaysAndWithPadding) {
  Call call = small();
  call.mask.causal = false;
  call.keep = {0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
  FireTraining training(call, 4.5);
  training.run();
  training.expect_parameters();
  training.expect_inputs(1);
  for (std::int64_t c = 0; c < 4; ++c) EXPECT_EQ(training.dv.at(0, 0, 4, c), 0);
}

TEST(FireBackward, IsTheDifferenceOverSeveralBlocksAndTiles) {
  Call call{.heads = 2, .kv_heads = 1, .queries = 150, .keys = 150, .dim = 20};
  call.query_positions = call.key_positions = Positions::range(0, 150);
  FireTraining training(call, 60.5,
                        4);  // no query stands at 0.9 · 60.5, where max(i, L) has a bend
  training.run();
  training.expect_parameters();
  training.expect_inputs(211);
}

TEST(FireBackward, PackedSequencesAndGaps) {
  Call call{.queries = 70, .keys = 70};
  const std::vector<std::int64_t> cu_seqlens = {0, 3, 40, 70};
  call.query_positions = call.key_positions = *Positions::packed(cu_seqlens);
  FireTraining packed(call, 10.5);
  packed.run();
  packed.expect_parameters();
  packed.expect_inputs(37);
}

TEST(FireBackward, QueriesThatSeeNothingGiveNothing) {
  Call call = small();
  call.key_positions = Positions::range(100, 9);
  FireTraining training(call);
  training.run();
  for (const Numbers* x : {&training.dq, &training.dk, &training.dv}) {
    for (std::int64_t e = 0; e < x->view.size(); ++e) EXPECT_EQ(x->view.get(e), 0);
  }
  EXPECT_EQ(training.by.output_bias, std::vector<double>(4));
}

// A constant on all logits of a head changes no weight.
TEST(FireBackward, OutputBiasHasNoGradient) {
  FireTraining training(small());
  training.run();
  for (const double x : training.by.output_bias) EXPECT_NEAR(x, 0, 1e-13);
}

TEST(FireBackward, OtherDtypesAreNearDouble) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Call call = small();
    call.dtype = dtype;
    FireTraining rounded(call);
    rounded.run();
    FireTraining exact(small());
    // The same numbers, as the dtype has them.
    for (const auto& [to, from] : {std::pair{&exact.call.q, &rounded.call.q},
                                   {&exact.call.k, &rounded.call.k},
                                   {&exact.call.v, &rounded.call.v},
                                   {&exact.out_gradient, &rounded.out_gradient}}) {
      for (std::int64_t e = 0; e < to->view.size(); ++e) to->view.set(e, from->view.get(e));
    }
    exact.run();
    // Gradients here are below 8, and what is stored is rounded once.
    expect_near(rounded.dq, exact.dq, 8 * tolerance(dtype));
    expect_near(rounded.dk, exact.dk, 8 * tolerance(dtype));
    expect_near(rounded.dv, exact.dv, 8 * tolerance(dtype));
    EXPECT_NEAR(rounded.by.c, exact.by.c, 1e-3);
    EXPECT_NEAR(rounded.by.hidden_weight[1], exact.by.hidden_weight[1], 1e-3);
  }
}

TEST(FireBackward, GivesTheSameBitsOnAnyThreads) {
  Call call{.heads = 6, .kv_heads = 3, .queries = 200, .keys = 200, .dim = 16, .dtype = DType::f32};
  call.query_positions = call.key_positions = Positions::range(0, 200);
  FireTraining training(call);
  training.run({.count = 1});
  const auto dk = training.dk.memory;
  const auto c = training.by.c;
  training.run({.count = 3});
  EXPECT_EQ(training.dk.memory, dk);
  EXPECT_EQ(training.by.c, c);
}

TEST(FireBackward, HiddenNaNIsHarmless) {
  Call call = small();
  call.keep.assign(18, 1);
  call.keep[2] = 0;
  FireTraining training(call);
  for (std::int64_t c = 0; c < 4; ++c) {
    training.call.k.view.set(training.call.k.view.offset(0, 0, 2, c), NAN);
    training.call.v.view.set(training.call.v.view.offset(0, 0, 2, c), NAN);
  }
  training.run();
  for (const Numbers* x : {&training.dq, &training.dk, &training.dv}) {
    for (std::int64_t e = 0; e < x->view.size(); ++e) ASSERT_TRUE(std::isfinite(x->view.get(e)));
  }
  EXPECT_TRUE(std::isfinite(training.by.c));
}

// As the gradient of a sum comes.
TEST(FireBackward, TakesABroadcastGradient) {
  FireTraining training(small());
  for (std::int64_t e = 0; e < training.out_gradient.view.size(); ++e) {
    training.out_gradient.view.set(e, 1);
  }
  training.run();
  const auto dv = training.dv.memory;
  training.out_gradient.view.stride = {};
  training.run();
  EXPECT_EQ(training.dv.memory, dv);
}

TEST(FireBackward, WritesOnlyWhatIsAskedFor) {
  FireTraining training(small());
  training.run();
  const auto dk = training.dk.memory;
  FireTraining one(small());
  one.dq.view = one.dv.view = {};
  one.run();
  EXPECT_EQ(one.dk.memory, dk);
}

TEST(FireBackwardErrors, GradientsMustFit) {
  FireTraining training(small());
  const auto done = attend_backward(training.call.inputs(), training.fire, {},
                                    training.out_gradient.view, {.q = training.dk.view});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "the gradient of q must have the shape [2, 4, 6, 4]");
}

TEST(FireBackwardErrors, WhatItDoesNotLearnHasNoGradient) {
  FireTraining training(small());
  const auto done = attend_backward(training.call.inputs(), training.fire, {},
                                    training.out_gradient.view, {.log_gates = training.dk.view});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "fire learns no log_gates to have a gradient");
}

TEST(FireBackwardErrors, ParametersMustFit) {
  FireTraining training(small());
  const auto done = attend_backward(training.call.inputs(), training.fire, {},
                                    training.out_gradient.view, {.output_bias = training.dk.view});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "the gradient of output_bias must have at most 1 axes");
}

}  // namespace
}  // namespace posenc
