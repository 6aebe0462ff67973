// ggml's rope in its five modes and its softmax with ALiBi, replayed through plans.
#include <limits>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

// ggml multiplies its angles step by step in float; a record says how far that took it from double.
double tolerance(const Json& record) {
  return 2 * record.at("max_abs_diff_from_float64").get<double>() + 1e-6;
}

std::vector<std::int64_t> sections(const Json& record) {
  auto list = numbers<std::int64_t>(record.at("sections"));
  list.resize(3);  // t, h, w; the fourth stream is empty in every record
  return list;
}

// ggml's freq_scale is 1/factor; with ext_factor 1 it is YaRN's, and 0.1 ln(factor) + 1 applies.
Scaling scaling_of(const Json& record) {
  const double factor = 1 / record.at("freq_scale").get<double>();
  if (record.at("ext_factor") == 1) {
    return Yarn{.factor = factor,
                .original_max_position_embeddings = record.at("n_ctx_orig"),
                .beta_fast = record.at("beta_fast"),
                .beta_slow = record.at("beta_slow")};
  }
  EXPECT_EQ(record.at("ext_factor"), 0);
  return Linear{.factor = factor};
}

Scheme scheme_of(const Json& record) {
  const std::string mode = record.at("mode");
  if (mode == "vision") {  // rows 0 and 1 of the positions, each over its own n_dims channels
    return Axial{.rope_theta = record.at("freq_base"),
                 .pairing = Pairing::halves,
                 .order = AxisOrder::height_width};
  }
  Rope rope{.rope_theta = record.at("freq_base"),
            .pairing = mode == "normal" ? Pairing::interleaved : Pairing::halves,
            .rotary_dim = record.at("n_dims").get<std::int64_t>(),
            .scaling = scaling_of(record)};
  if (record.contains("freq_factors")) {
    rope.frequency_factors = numbers<double>(record.at("freq_factors"));
  }
  if (mode == "mrope" || mode == "imrope") rope.mrope_section = sections(record);
  rope.mrope_interleaved = mode == "imrope";
  return rope;
}

// Pairs of an interleaved M-RoPE in no section go to ggml's fourth stream, zero for text; the
// model's own code gives them to time, and so do we. ggml's reading is a plan written by hand.
void give_the_rest_to_nobody(Rotate& rotate, const std::vector<std::int64_t>& section) {
  for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
    if (r < 3 * section[static_cast<std::size_t>(r % 3)]) continue;
    for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis) {
      rotate.frequencies.radians[static_cast<std::size_t>(axis * rotate.pairs() + r)] = 0;
    }
  }
}

Expected<Plan> plan_of(const Json& record, Angles angles) {
  auto plan = compile(scheme_of(record), {.head_dim = record.at("head_dim")}, angles);
  if (!plan) return plan;
  Rotate& rotate = *plan->rotate;
  rotate.amplitude *= record.at("attn_factor").get<double>();
  if (auto* ggml = std::get_if<GgmlRope>(&rotate.kind))
    ggml->attn_factor *= record.at("attn_factor").get<float>();
  if (record.at("mode") == "imrope" && angles == Angles::exact) {
    give_the_rest_to_nobody(rotate, sections(record));
  }
  return checked(*plan, record.at("head_dim"));
}

Expected<Positions> positions_of(const Json& record) {
  auto ids = numbers<std::int64_t>(record.at("positions"));
  const auto seq = record.at("n_seq").get<std::size_t>();
  const bool text = ids.size() == seq;
  const std::size_t axes = text ? 1 : record.at("mode") == "vision" ? 2 : 3;
  ids.resize(axes * seq);
  return Positions::ids(ids, static_cast<std::int64_t>(axes));
}

template <class Real>
void replay(const Json& record, Angles angles) {
  SCOPED_TRACE(record.at("id").get<std::string>() + " " + record.value("note", ""));
  const auto plan = plan_of(record, angles);
  ASSERT_TRUE(plan) << plan.error().message();
  const auto positions = positions_of(record);
  ASSERT_TRUE(positions) << positions.error().message();
  auto x = float_inputs<Real>(record.at("x"));
  const auto before = float_inputs<float>(record.at("x"));
  const Tensor view =  // [seq][head][dim] in memory
      Tensor::dense(x.data(), {1, record.at("n_seq"), record.at("n_head"), record.at("head_dim")})
          .swapped(1, 2);
  const auto done = rotate(*plan, view, *positions, Side::query, view);
  ASSERT_TRUE(done) << done.error().message();
  if constexpr (std::is_same_v<Real, float>) {
    if (angles == Angles::ggml_float) {
      return expect_within_two_ulp(x, numbers<float>(record.at("y")),
                                   pair_norms(*plan->rotate, before, record.at("head_dim")));
    }
  }
  expect_close(x, numbers<double>(record.at("y")), tolerance(record));
}

class GgmlRope : public testing::TestWithParam<std::pair<const char*, std::size_t>> {};

TEST_P(GgmlRope, Double) {
  const auto chosen = records("ggml", "mode", GetParam().first);
  EXPECT_EQ(chosen.size(), GetParam().second);
  for (const Json& record : chosen) replay<double>(record, Angles::exact);
}

TEST_P(GgmlRope, Float) {
  for (const Json& record : records("ggml", "mode", GetParam().first))
    replay<float>(record, Angles::exact);
}

TEST_P(GgmlRope, GgmlAnglesGiveGgmlFloats) {
  for (const Json& record : records("ggml", "mode", GetParam().first)) {
    replay<float>(record, Angles::ggml_float);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, GgmlRope,
                         testing::Values(std::pair{"normal", 44u}, std::pair{"neox", 50u},
                                         std::pair{"mrope", 3u}, std::pair{"imrope", 2u},
                                         std::pair{"vision", 1u}),
                         [](const auto& mode) { return std::string(mode.param.first); });

TEST(GgmlGolden, EveryRecordIsReplayed) {
  EXPECT_EQ(records("ggml").size(), 44u + 50u + 3u + 2u + 1u + 10u);
}

// --- soft_max_ext: softmax(scale·x + slope·mask) -------------------------------------------------

// The bias our ALiBi gives for the record's queries (the last n_q of n_kv) and keys, [head][q][k].
std::vector<double> alibi_of(const Json& record) {
  const auto heads = record.at("n_head").get<std::int64_t>();
  const auto queries = record.at("n_q").get<std::int64_t>();
  const auto keys = record.at("n_kv").get<std::int64_t>();
  std::vector<double> out(static_cast<std::size_t>(heads * queries * keys));
  if (record.at("max_bias") == 0) return out;
  const auto plan = compile(Alibi{.alibi_bias_max = record.at("max_bias"),
                                  .symmetric = record.at("mask_kind") == "-|q-k|"},
                            {.heads = heads});
  EXPECT_TRUE(plan) << plan.error().message();
  if (!plan) return out;
  const auto done =
      bias(*plan, Positions::range(keys - queries, queries), Positions::range(0, keys),
           Tensor::dense(out.data(), {heads, queries, keys}));
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

TEST(GgmlGolden, SoftmaxWithAlibi) {
  for (const Json& record : records("ggml", "mode", "soft_max_ext")) {
    SCOPED_TRACE(record.at("id").get<std::string>() + " " +
                 record.at("mask_kind").get<std::string>());
    const auto keys = record.at("n_kv").get<std::size_t>();
    const Json& mask = record.at("mask");
    auto p = alibi_of(record);
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = mask[i % mask.size()] == "-inf"
                 ? -std::numeric_limits<double>::infinity()
                 : p[i] + record.at("scale").get<double>() * record.at("x")[i].get<double>();
    }
    for (std::size_t row = 0; row < p.size(); row += keys) {
      double sum = 0;
      for (std::size_t k = row; k < row + keys; ++k) sum += p[k] = std::exp(p[k]);
      for (std::size_t k = row; k < row + keys; ++k) p[k] /= sum;
    }
    expect_close(p, numbers<double>(record.at("y")), tolerance(record));
  }
}

}  // namespace
}  // namespace posenc::golden
