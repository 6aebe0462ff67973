// Golden numbers from other projects' code, and how closely to meet them (tests/data/README.md).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>
#include <nlohmann/json.hpp>

#include "posenc/posenc.h"
#include "tests/paths.h"

namespace posenc::golden {

using Json = nlohmann::json;

// Relative: a frequency in double and in float, a slope. Absolute: a rotation in double.
constexpr double kFrequencyF64 = 1e-12, kFrequencyF32 = 1e-6, kSlope = 2e-6, kRotationF64 = 1e-9;

// Absolute, of a rotation in float: those who form the angle in float are off by this much, and the
// value itself by a few roundings.
inline double rotation_f32(std::int64_t position) {
  return 2e-7 * static_cast<double>(position) + 1e-6;
}

using test::data_path;

const Json& load(std::string_view file);

// The records of golden/<name>.json, only those whose `key` has `value` if one is given.
std::vector<Json> records(std::string_view name, std::string_view key = {},
                          std::string_view value = {});

template <class Number>
std::vector<Number> numbers(const Json& list) {
  std::vector<Number> result;
  for (const Json& x : list) result.push_back(x.get<Number>());
  return result;
}

// Inputs that were float, printed with nine digits: the float they were, in either precision.
template <class Number>
std::vector<Number> float_inputs(const Json& list) {
  const auto floats = numbers<float>(list);
  return std::vector<Number>(floats.begin(), floats.end());
}

// A record as a test's parameter, by its name: the file is parsed when a test asks for the numbers.
struct Case {
  std::string file, name;
  const Json& record() const;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Every record of golden/<file>.json that has a name.
std::vector<Case> cases(std::string_view file);

// A name as gtest allows it.
std::string test_name(std::string_view name);

// What set_field takes for a value of a file.
FieldValue field_value(const Json& json);

// Whether a record's q and k [head][token][head_dim], of tokens from position `first` on, have its
// logits under a plan, which a mask leaves 0 there. They are those before the scale of 1/√head_dim,
// from angles formed in float.
void expect_logits(const Json& record, const Plan& plan, std::int64_t first, const Mask& mask);

// One failure for a whole list, at the element that is furthest off.
template <class Number>
void expect_close(const std::vector<Number>& got, const std::vector<double>& want, double absolute,
                  double relative = 0) {
  ASSERT_EQ(got.size(), want.size());
  std::size_t worst = 0;
  double worst_excess = -1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    const double excess = error - (absolute + relative * std::abs(want[i]));
    if (!(excess <= worst_excess) || i == 0) worst = i, worst_excess = excess;
  }
  EXPECT_TRUE(got.empty() || worst_excess <= 0)
      << "element " << worst << " of " << got.size() << ": got "
      << ::testing::PrintToString(got[worst]) << ", want " << ::testing::PrintToString(want[worst]);
}

template <class Number>
void expect_relative(const std::vector<Number>& got, const std::vector<double>& want,
                     double relative) {
  expect_close(got, want, 0, relative);
}

// A rotation's frequencies without their axes: the sum over axes, of which one counts.
std::vector<double> pair_frequencies(const Rotate& rotate);

// For every channel of heads [...][head_dim] the length of the pair it belongs to, turned; 0 where
// a channel is not rotated.
std::vector<double> pair_norms(const Rotate& rotate, const std::vector<float>& x,
                               std::int64_t head_dim);

// Float results of a rotation: within two units in the last place of each pair's length.
void expect_within_two_ulp(const std::vector<float>& got, const std::vector<float>& want,
                           const std::vector<double>& norms);

void set(Scheme& scheme, std::string_view field, const FieldValue& value);

bool has_field(const SchemeInfo& scheme, std::string_view field);

// The Rope of a record's rope_parameters, built field by field as a caller of the library would.
// Lengths that Hugging Face keeps beside the dictionary are fields of the scalings that read them;
// a missing trained length is the model's length.
Rope rope_of(const Json& record);

std::int64_t length_of(const Json& set);

}  // namespace posenc::golden
