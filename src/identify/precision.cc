// Engines form angles in float, or from frequencies or positions of 16 bits. Each way is computed
// anew and compared.
#include "src/identify/precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "posenc/apply.h"
#include "src/identify/dump.h"
#include "src/identify/frequency_fit.h"

namespace posenc::detail {
namespace {

using AngleRows = std::vector<double>;  // [token][pair]

std::optional<AngleRows> of_plan(const Rope& rope, std::int64_t dim, Angles angles,
                                 const Positions& positions) {
  const auto plan = compile(Scheme(rope), {.head_dim = dim}, angles);
  if (!plan) return {};
  const std::int64_t pairs = dim / 2;
  AngleRows rows(static_cast<std::size_t>(positions.size() * pairs));
  if (!rotation_angles(*plan, positions,
                       Tensor::dense(rows.data(), {1, 1, positions.size(), pairs}), {.count = 1}))
    return {};
  return rows;
}

// Which factors of an angle, and whether the angle itself, a type has rounded.
struct RoundedParts {
  bool position = false, frequency = false, product = false;
};

// Products in float, of positions that were divided before.
AngleRows of_rounded(const std::vector<double>& frequency, DType kept, RoundedParts parts,
                     const Positions& positions, double divisor = 1) {
  const auto rounded = [&](double x, bool does) {
    return static_cast<float>(does ? kept_as(kept, x) : x);
  };
  AngleRows rows;
  for (std::int64_t t = 0; t < positions.size(); ++t) {
    const double whole =
        kept_as(parts.position ? kept : DType::f64, static_cast<double>(positions.at(t)));
    const float position = rounded(whole / divisor, parts.position);
    for (const double f : frequency)
      rows.push_back(rounded(position * rounded(f, parts.frequency), parts.product));
  }
  return rows;
}

// A float's first 11 digits, which a matrix product in TF32 reads: rounded, of two the larger
// (cvt.rna.tf32), or cut off.
float as_tf32(float number, bool rounds) {
  constexpr std::uint32_t lost = 0x1FFF, half = 0x1000;
  auto bits = std::bit_cast<std::uint32_t>(number);
  if (rounds) bits += half;
  return std::bit_cast<float>(bits & ~lost);
}

AngleRows of_tf32(const std::vector<double>& frequency, bool rounds, const Positions& positions) {
  AngleRows rows;
  for (std::int64_t t = 0; t < positions.size(); ++t)
    for (const double f : frequency)
      rows.push_back(as_tf32(static_cast<float>(positions.at(t)), rounds) *
                     as_tf32(static_cast<float>(f), rounds));
  return rows;
}

// Frequencies in float, products in double.
AngleRows of_floats(const std::vector<double>& frequency, const Positions& positions) {
  AngleRows rows;
  for (std::int64_t t = 0; t < positions.size(); ++t)
    for (const double f : frequency)
      rows.push_back(static_cast<double>(positions.at(t)) * static_cast<float>(f));
  return rows;
}

// Positions as the type has them; empty where all of them are as they were, or one is too large.
std::vector<std::int64_t> rounded_ids(DType kept, std::span<const std::int64_t> positions) {
  std::vector<std::int64_t> ids;
  for (const std::int64_t p : positions) {
    const double id = kept_as(kept, static_cast<double>(p));
    if (!(std::abs(id) < 0x1p50)) return {};
    ids.push_back(static_cast<std::int64_t>(id));
  }
  return std::ranges::equal(ids, positions) ? std::vector<std::int64_t>() : ids;
}

double off_by(const AngleRows& rows, std::int64_t pairs, bool first_is_zero,
              std::span<const MeasuredAngles> measured) {
  double sum = 0, count = 0;
  for (const MeasuredAngles& pair : measured) {
    const auto at = [&](std::size_t t) {
      return rows[t * static_cast<std::size_t>(pairs) + static_cast<std::size_t>(pair.pair)];
    };
    for (std::size_t t = 0; t < pair.angle.size(); ++t) {
      const double expected = at(t) - (first_is_zero ? at(0) : 0);
      const double off = std::remainder(pair.angle[t] - expected, 6.283185307179586);
      sum += off * off;
      count += 1;
    }
  }
  return std::sqrt(sum / std::max(count, 1.0));
}

}  // namespace

std::vector<std::string> forms_of(const FrequencyFit& fit, std::int64_t rotary_dim,
                                  std::span<const std::int64_t> positions, bool first_is_zero,
                                  std::span<const MeasuredAngles> measured, double spread) {
  const auto at = Positions::signed_ids(positions);
  const Rope rope{.rope_theta = fit.base, .rotary_dim = rotary_dim, .scaling = fit.scaling};
  const auto made = rope_frequencies<double>(rope, {.head_dim = rotary_dim});
  if (!at || !made) return {};
  std::vector<std::pair<std::string, double>> ways;
  const auto add = [&](const char* name, const std::optional<AngleRows>& rows) {
    if (rows) ways.emplace_back(name, off_by(*rows, rotary_dim / 2, first_is_zero, measured));
  };
  constexpr RoundedParts of_frequency{.frequency = true}, of_product{.product = true},
      all{.position = true, .frequency = true, .product = true};
  if (fit.kept == DType::f64) {
    add("exact", of_plan(rope, rotary_dim, Angles::exact, *at));
    add("hf_float", of_plan(rope, rotary_dim, Angles::hf_float, *at));
    add("float_product", of_rounded(made->frequency, DType::f32, of_frequency, *at));
    add("ggml_float", of_plan(rope, rotary_dim, Angles::ggml_float, *at));
    for (const auto& [kept, name] :
         {std::pair(DType::bf16, "bfloat16_positions"), {DType::f16, "float16_positions"}}) {
      const std::vector<std::int64_t> ids = rounded_ids(kept, positions);
      const auto rounded = Positions::signed_ids(ids);
      if (ids.empty() || !rounded) continue;
      for (const Angles angles : {Angles::exact, Angles::hf_float})
        add(name, of_plan(rope, rotary_dim, angles, *rounded));
      add(name, of_rounded(made->frequency, DType::f32, of_frequency, *rounded));
      add(name, of_rounded(made->frequency, kept, of_frequency, *rounded));
      add(name, of_floats(made->frequency, *rounded));
    }
    add("tf32", of_tf32(made->frequency, true, *at));
    add("tf32", of_tf32(made->frequency, false, *at));
    add("bfloat16_products", of_rounded(made->frequency, DType::bf16, of_product, *at));
    add("float16_products", of_rounded(made->frequency, DType::f16, of_product, *at));
  }
  if (fit.kept != DType::f16) {
    add("bfloat16_frequencies", of_rounded(made->frequency, DType::bf16, of_frequency, *at));
    add("bfloat16", of_rounded(made->frequency, DType::bf16, all, *at));
  }
  if (fit.kept != DType::bf16) {
    add("float16", of_rounded(made->frequency, DType::f16, all, *at));
    add("float16_frequencies", of_rounded(made->frequency, DType::f16, of_frequency, *at));
  }
  // Linear scaling divides positions, and some do it before the product.
  if (const auto* linear = std::get_if<Linear>(&fit.scaling); linear && fit.kept == DType::f64) {
    std::vector<double> whole = made->frequency;
    for (double& f : whole) f *= linear->factor;
    add("bfloat16", of_rounded(whole, DType::bf16, all, *at, linear->factor));
    add("float16", of_rounded(whole, DType::f16, all, *at, linear->factor));
  }
  if (ways.empty()) return {};
  const double least =
      std::ranges::min_element(ways, {}, [](const auto& way) { return way.second; })->second;
  std::vector<std::string> explain;
  if (least > 3 * spread) return explain;
  // Thousands of angles: a way that is off by less than they can tell differs by a few parts in a
  // hundred.
  for (const auto& [name, off] : ways)
    if (off <= 1.2 * least + 1e-12 && (explain.empty() || explain.back() != name))
      explain.push_back(name);
  return explain;
}

}  // namespace posenc::detail
