// Queries and keys before and after rotation in eleven families' own code, in double and in float.
#include <span>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

Expected<Plan> plan_of(const Json& record, Angles angles = Angles::exact) {
  const auto head_dim = record.at("head_dim").get<std::int64_t>();
  if (record.contains("grid_thw")) {  // a vision tower: height first, base 10000
    return compile(
        Axial{.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
        {.head_dim = head_dim}, angles);
  }
  Rope rope = rope_of(record);
  if (record.at("pairing") != "half") rope.pairing = Pairing::interleaved;
  return compile(rope, {.head_dim = head_dim}, angles);
}

Expected<Positions> positions_of(const Json& record) {
  if (record.contains("grid_thw")) {
    const Json& grid = record.at("grid_thw")[0];
    return patch_positions(grid[1], grid[2], record.at("spatial_merge_size"), grid[0]);
  }
  const Json& rows = record.at("positions");
  std::vector<std::int64_t> ids;
  if (!rows[0].is_array()) return Positions::ids(numbers<std::int64_t>(rows));
  for (const Json& row : rows) {
    for (const Json& p : row) ids.push_back(p);
  }
  return Positions::ids(ids, static_cast<std::int64_t>(rows.size()));
}

// DeepSeek reads pairs (2r, 2r + 1) and leaves them as (r, r + d/2): the same rotation, then a
// permutation of the channels that query and key share.
template <class Real>
void deinterleave(std::span<Real> head) {
  const std::vector<Real> pairs(head.begin(), head.end());
  const std::size_t half = head.size() / 2;
  for (std::size_t r = 0; r < half; ++r) {
    head[r] = pairs[2 * r];
    head[r + half] = pairs[2 * r + 1];
  }
}

// The channels in the order of the record's outputs.
template <class Real>
void reorder(const Json& record, std::vector<Real>& heads) {
  if (record.at("pairing") != "interleaved-in, half-out") return;
  const auto head_dim = record.at("head_dim").get<std::size_t>();
  for (std::size_t i = 0; i < heads.size(); i += head_dim) {
    deinterleave(std::span(heads).subspan(i, head_dim));
  }
}

template <class Real>
std::vector<Real> rotated(const Json& record, const std::string& which, Side side,
                          Angles angles = Angles::exact) {
  const auto heads = record.at("n_" + which + "_heads").get<std::int64_t>();
  const auto seq = record.at("seq").get<std::int64_t>();
  const auto head_dim = record.at("head_dim").get<std::int64_t>();
  std::vector<Real> x = float_inputs<Real>(record.at(which));
  const auto plan = plan_of(record, angles);
  const auto positions = positions_of(record);
  EXPECT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(positions) << positions.error().message();
  if (!plan || !positions) return {};
  const Tensor tensor = Tensor::dense(x.data(), {1, heads, seq, head_dim});
  const auto done = rotate(*plan, tensor, *positions, side, tensor);
  EXPECT_TRUE(done) << done.error().message();
  reorder(record, x);
  return x;
}

std::int64_t largest_position(const Json& record) {
  const auto positions = positions_of(record);
  return positions ? positions->length() - 1 : 0;
}

class RotationGolden : public testing::TestWithParam<Case> {};

TEST_P(RotationGolden, Double) {
  const Json& record = GetParam().record();
  expect_close(rotated<double>(record, "q", Side::query), numbers<double>(record.at("q_out_f64")),
               kRotationF64);
  expect_close(rotated<double>(record, "k", Side::key), numbers<double>(record.at("k_out_f64")),
               kRotationF64);
}

TEST_P(RotationGolden, Float) {
  const Json& record = GetParam().record();
  const double tolerance = rotation_f32(largest_position(record));
  expect_close(rotated<float>(record, "q", Side::query), numbers<double>(record.at("q_out_f32")),
               tolerance);
  expect_close(rotated<float>(record, "k", Side::key), numbers<double>(record.at("k_out_f32")),
               tolerance);
}

// Float tensors lose one rounding: our float result is the double one, not the peers' float one.
TEST_P(RotationGolden, FloatTensorsHaveExactAngles) {
  const Json& record = GetParam().record();
  expect_close(rotated<float>(record, "q", Side::query), numbers<double>(record.at("q_out_f64")),
               1e-6);
}

TEST_P(RotationGolden, HuggingFaceAnglesGiveHuggingFaceFloats) {
  const Json& record = GetParam().record();
  const auto plan = plan_of(record, Angles::hf_float);
  ASSERT_TRUE(plan) << plan.error().message();
  for (const auto& [which, side] : {std::pair{"q", Side::query}, {"k", Side::key}}) {
    const std::string name = which;
    auto norms = pair_norms(*plan->rotate, float_inputs<float>(record.at(name)),
                            record.at("head_dim").get<std::int64_t>());
    reorder(record, norms);
    expect_within_two_ulp(rotated<float>(record, name, side, Angles::hf_float),
                          numbers<float>(record.at(name + "_out_f32")), norms);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RotationGolden, testing::ValuesIn(cases("rotation")),
                         [](const auto& c) { return test_name(c.param.name); });

TEST(GoldenCases, EveryRecordIsOne) {
  for (const char* file : {"rotation", "zoo_rope"})
    EXPECT_EQ(cases(file).size(), records(file).size()) << file;
}

}  // namespace
}  // namespace posenc::golden
