// Golden numbers from other projects' code, and how closely to meet them (tests/data/README.md).
#pragma once

#include <gtest/gtest.h>

#include <cctype>
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

inline Json load(std::string_view file) {
  std::ifstream in(data_path(file));
  Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) ADD_FAILURE() << "cannot read " << data_path(file);
  return json;
}

// The records of golden/<name>.json, only those whose `key` has `value` if one is given.
inline std::vector<Json> records(std::string_view name, std::string_view key = {},
                                 std::string_view value = {}) {
  std::vector<Json> chosen;
  const Json file = load("golden/" + std::string(name) + ".json");
  for (const Json& record : file.at("records")) {
    if (key.empty() || record.at(std::string(key)) == std::string(value)) chosen.push_back(record);
  }
  EXPECT_FALSE(chosen.empty()) << name << ": no record has " << key << " = " << value;
  return chosen;
}

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

// A record as a test's parameter: failures show its name and not its thousand numbers.
struct Case {
  std::string name;
  Json record;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

inline std::vector<Case> cases(std::string_view file) {
  std::vector<Case> all;
  for (const Json& record : records(file)) all.push_back({record.at("name"), record});
  return all;
}

// A name as gtest allows it.
inline std::string test_name(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return result;
}

// What set_field takes for a value of a file.
inline FieldValue field_value(const Json& json) {
  if (json.is_null()) return std::monostate{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return numbers<double>(json);
}

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
inline std::vector<double> pair_frequencies(const Rotate& rotate) {
  std::vector<double> frequency;
  for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
    double sum = 0;
    for (std::int64_t a = 0; a < rotate.axes; ++a) sum += rotate.at(0, a, r);
    frequency.push_back(sum);
  }
  return frequency;
}

// For every channel of heads [...][head_dim] the length of the pair it belongs to, turned; 0 where a
// channel is not rotated.
inline std::vector<double> pair_norms(const Rotate& rotate, const std::vector<float>& x,
                                      std::int64_t head_dim) {
  std::vector<double> norms(x.size(), 0.0);
  const auto dim = static_cast<std::size_t>(head_dim);
  for (std::size_t head = 0; head < x.size(); head += dim) {
    for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
      const bool halves = rotate.pairing == Pairing::halves;
      const std::int64_t a = rotate.first_dim + (halves ? r : 2 * r);
      const std::size_t i = head + static_cast<std::size_t>(a);
      const std::size_t j = i + static_cast<std::size_t>(halves ? rotate.pairs() : 1);
      norms[i] = norms[j] = rotate.amplitude * std::hypot(x[i], x[j]);
    }
  }
  return norms;
}

// Float results of a rotation: within two units in the last place of each pair's length.
inline void expect_within_two_ulp(const std::vector<float>& got, const std::vector<float>& want,
                                  const std::vector<double>& norms) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_EQ(got.size(), norms.size());
  std::size_t worst = 0;
  double most = -1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double ulp = norms[i] == 0 ? 0x1p-149 : std::ldexp(1.0, std::ilogb(norms[i]) - 23);
    const double off = std::abs(static_cast<double>(got[i]) - want[i]) / ulp;
    if (!(off <= most)) worst = i, most = off;
  }
  EXPECT_LE(most, 2) << "element " << worst << ": got " << got[worst] << ", want " << want[worst];
}

inline void set(Scheme& scheme, std::string_view field, const FieldValue& value) {
  const auto done = set_field(scheme, field, value);
  EXPECT_TRUE(done) << done.error().message();
}

inline bool has_field(const SchemeInfo& scheme, std::string_view field) {
  for (const FieldInfo& f : scheme.fields) {
    if (f.name == field) return true;
  }
  return false;
}

// The Rope of a record's rope_parameters, built field by field as a caller of the library would.
// Lengths that Hugging Face keeps beside the dictionary are fields of the scalings that read them;
// a missing trained length is the model's length.
inline Rope rope_of(const Json& record) {
  const Json& parameters = record.at("rope_parameters");
  const bool has_alpha = parameters.contains("alpha");  // HunYuan: "dynamic" that is NTK-aware
  Scheme scheme = Rope{};
  set(scheme, "rope_type",
      has_alpha ? std::string("ntk") : parameters.at("rope_type").get<std::string>());
  for (const auto& [key, value] : parameters.items()) {
    if (key == "rope_type" || (has_alpha && key == "factor")) continue;
    set(scheme, key, field_value(value));
  }
  const SchemeInfo& scaling = info(std::get<Rope>(scheme).scaling);
  constexpr auto model_length = "max_position_embeddings";
  constexpr auto trained_length = "original_max_position_embeddings";
  if (has_field(scaling, model_length) && record.contains(model_length)) {
    set(scheme, model_length, field_value(record.at(model_length)));
  }
  if (has_field(scaling, trained_length) && !parameters.contains(trained_length)) {
    set(scheme, trained_length,
        field_value(record.at(record.contains(trained_length) ? trained_length : model_length)));
  }
  return std::get<Rope>(scheme);
}

inline std::int64_t length_of(const Json& set) {
  const Json& length = set.at("seq_len");
  return length.is_null() ? 0 : length.get<std::int64_t>();
}

}  // namespace posenc::golden
