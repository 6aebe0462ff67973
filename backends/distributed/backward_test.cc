// Gradients of distributed attention against those of the whole on one process.
#include "backends/distributed/whole_text_test.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

Plan compiled_plan(const Scheme& scheme) {
  return *compile(scheme, {.heads = 8, .kv_heads = 8, .head_dim = 16, .length = 64});
}

// Gradients by all that a text has, as memory.
struct Gradients {
  Numbers q, k, v;
  std::vector<double> slopes, bias, key, query, value, frequency, sinks, scale, offset;

  static Gradients of(const WholeText& text) {
    const DType dtype = text.dtype;
    return {.q = Numbers(dtype, text.batch, text.heads, text.q.view().shape[2], text.head_dim),
            .k = Numbers(dtype, text.batch, text.kv_heads, text.k.view().shape[2], text.head_dim),
            .v = Numbers(dtype, text.batch, text.kv_heads, text.k.view().shape[2], text.value_dim)};
  }
  AttentionGradients views(const WholeText& text) {
    AttentionGradients to{.q = q.view(), .k = k.view(), .v = v.view()};
    const auto table = [](std::vector<double>& numbers, std::initializer_list<std::int64_t> shape) {
      std::int64_t size = 1;
      for (const std::int64_t extent : shape) size *= extent;
      numbers.resize(static_cast<std::size_t>(size));
      return Tensor::dense(numbers.data(), shape);
    };
    const Plan& plan = text.plan;
    if (plan.bias) {
      if (std::holds_alternative<Slopes>(*plan.bias))
        to.slopes = table(slopes, {8});
      else
        to.bias = table(bias, {8, std::get<BiasTable>(*plan.bias).row_count});
    }
    if (plan.relative) {
      to.relative_key = table(key, {plan.relative->row_count, 16});
      to.relative_query = table(query, {8, plan.relative->row_count, 16});
      to.relative_value = table(value, {plan.relative->row_count, 16});
    }
    if (plan.rotate)
      to.rotation_frequency = table(
          frequency,
          {plan.rotate->frequencies.heads, plan.rotate->frequencies.axes, plan.rotate->pairs()});
    if (!text.sinks.empty()) to.sink_logits = table(sinks, {8});
    if (plan.logits.temperature == Temperature::heads) {
      to.head_scale = table(scale, {8});
      to.head_bias = table(offset, {8});
    }
    return to;
  }
};

double error_of(const std::vector<double>& found, const std::vector<double>& expected) {
  double most = 0, scale = 1e-30;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    scale = std::max(scale, std::abs(expected[n]));
    most = std::max(most, std::abs(found[n] - expected[n]));
  }
  return most / scale;
}

void expect_gradients(WholeText text, const std::string& what, double tolerance = 5e-6) {
  text.filled();
  ASSERT_TRUE(attend(text.inputs(), text.plan, text.out.view(), text.log_sums.of_rows()));
  Gradients expected = Gradients::of(text);
  const auto done =
      attend_backward(text.inputs(), text.plan, text.out_gradient.view(), expected.views(text));
  ASSERT_TRUE(done) << done.error().message();
  const int ranks = test_ranks();
  for (const Layout& layout :
       {*Layout::contiguous(text.tokens(), ranks), *Layout::zigzag(text.tokens(), ranks),
        *Layout::striped(text.tokens(), ranks, 2)}) {
    const auto tokens = layout.tokens_of(test_rank());
    WholeText own = text.part(tokens);
    for (const Strategy strategy : {Strategy::gather, Strategy::ring, Strategy::heads}) {
      if (strategy == Strategy::heads && text.kv_heads < ranks) continue;
      auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions, strategy);
      ASSERT_TRUE(distributed);
      ASSERT_TRUE(
          distributed->attend(own.inputs(), text.plan, own.out.view(), own.log_sums.of_rows()));
      Gradients found = Gradients::of(own);
      const auto backward = distributed->attend_backward(own.inputs(), text.plan, own.out.view(),
                                                         own.log_sums.of_rows(),
                                                         own.out_gradient.view(), found.views(own));
      const std::string where = what + ", " + std::string(name(strategy));
      ASSERT_TRUE(backward) << where << ": " << backward.error().message();
      EXPECT_LT(largest_of_ranks(found.q.error(expected.q, tokens)), tolerance) << where;
      EXPECT_LT(largest_of_ranks(found.k.error(expected.k, tokens)), tolerance) << where;
      EXPECT_LT(largest_of_ranks(found.v.error(expected.v, tokens)), tolerance) << where;
      if (strategy != Strategy::ring && text.dtype != DType::bf16) {
        EXPECT_EQ(largest_of_ranks(found.q.same_bits(expected.q, tokens) ? 0 : 1), 0) << where;
      }
      using Table = std::vector<double> Gradients::*;
      for (const Table table : {&Gradients::slopes, &Gradients::bias, &Gradients::key,
                                &Gradients::query, &Gradients::value, &Gradients::frequency,
                                &Gradients::sinks, &Gradients::scale, &Gradients::offset})
        EXPECT_LT(largest_of_ranks(error_of(found.*table, expected.*table)), tolerance) << where;
    }
  }
}

TEST(DistributedBackward, OfRotationsAndTheirFrequencies) {
  expect_gradients({.plan = compiled_plan(Rope{})}, "rope");
}

TEST(DistributedBackward, OfSlopes) { expect_gradients({.plan = compiled_plan(Alibi{})}, "alibi"); }

TEST(DistributedBackward, OfATable) {
  Plan plan = compiled_plan(T5{});
  auto& table = std::get<BiasTable>(*plan.bias);
  const std::vector<double> numbers = random(8 * table.row_count, 8);
  table.values =
      Table::borrow(Tensor::dense(const_cast<double*>(numbers.data()), {8, table.row_count}));
  expect_gradients({.plan = plan}, "t5");
}

TEST(DistributedBackward, OfVectorsByDistance) {
  Plan plan = compiled_plan(Shaw{});
  Relative& relative = *plan.relative;
  const std::vector<double> numbers = random(8 * relative.row_count * 16, 8);
  const auto table = [&](std::initializer_list<std::int64_t> shape) {
    return Table::borrow(Tensor::dense(const_cast<double*>(numbers.data()), shape));
  };
  relative.uses_query = relative.uses_key = relative.uses_value = true;
  relative.key = relative.value = table({relative.row_count, 16});
  relative.query = table({8, relative.row_count, 16});
  expect_gradients({.plan = plan}, "vectors by distance");
}

TEST(DistributedBackward, OfRotatedValuesUnderASoftcap) {
  Plan plan = compiled_plan(Rope{});
  plan.rotate->values = Values::rotated_and_back;
  plan.logits.softcap = 2;
  expect_gradients({.plan = plan, .mask = {.window = 12}}, "rotated values");
}

TEST(DistributedBackward, OfTemperaturesOfHeads) {
  Plan plan;
  plan.logits.temperature = Temperature::heads;
  plan.logits.head_scale = random(8, 3), plan.logits.head_bias = random(8, 4);
  plan.logits.offset = 1;
  expect_gradients({.plan = plan}, "temperature");
}

TEST(DistributedBackward, OfSinkLogits) {
  WholeText text{.plan = compiled_plan(Rope{}), .mask = {.window = 5}};
  for (int h = 0; h < 8; ++h) text.sinks.push_back(0.3F * static_cast<float>(h) - 1);
  expect_gradients(text, "sinks");
}

TEST(DistributedBackward, OfPackedTextsWithPadding) {
  WholeText text{.positions = *Positions::packed(std::vector<std::int64_t>{0, 3, 4, 20, 41}),
                 .plan = compiled_plan(Alibi{})};
  for (int n = 0; n < 82; ++n) text.keep.push_back(n % 7 != 0);
  expect_gradients(text, "packed");
}

TEST(DistributedBackward, OfSixteenBits) {
  expect_gradients({.dtype = DType::bf16, .plan = compiled_plan(Rope{})}, "bf16", 1.5e-2);
}

TEST(DistributedBackward, OfDoubles) {
  expect_gradients({.dtype = DType::f64, .plan = compiled_plan(Rope{})}, "float64", 1e-12);
}

TEST(DistributedBackward, ARingNeedsWhatAttendLeft) {
  WholeText text{.plan = compiled_plan(Rope{})};
  text.filled();
  const Layout layout = *Layout::contiguous(41, test_ranks());
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  WholeText own = text.part(layout.tokens_of(test_rank()));
  Gradients to = Gradients::of(own);
  const auto done = distributed->attend_backward(own.inputs(), text.plan, own.out.view(), {},
                                                 own.out_gradient.view(), to.views(own));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("give attend log_sums"), std::string::npos);
}

TEST(DistributedBackward, WhatNoRankKnowsIsRefusedByAll) {
  WholeText text{.plan = compiled_plan(Rope{})};
  text.filled();
  const Layout layout = *Layout::contiguous(41, test_ranks());
  auto distributed = DistributedText::make(MPI_COMM_WORLD, layout, text.positions);
  WholeText own = text.part(layout.tokens_of(test_rank()));
  Gradients to = Gradients::of(own);
  text.plan.unknown = {"rotate.hologram"};
  const auto done = distributed->attend_backward(own.inputs(), text.plan, own.out.view(), {},
                                                 own.out_gradient.view(), to.views(own));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("rotate.hologram"), std::string::npos)
      << done.error().message();
}

}  // namespace
}  // namespace posenc
