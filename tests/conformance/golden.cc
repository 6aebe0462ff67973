#include "tests/conformance/golden.h"

#include <cctype>
#include <fstream>
#include <limits>
#include <map>

namespace posenc::golden {

// A file is parsed by the first test of a process that asks for it, and stays.
const Json& load(std::string_view file) {
  static auto& read = *new std::map<std::string, Json, std::less<>>;
  if (const auto known = read.find(file); known != read.end()) return known->second;
  std::ifstream in(data_path(file));
  Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) ADD_FAILURE() << "cannot read " << data_path(file);
  return read.emplace(file, std::move(json)).first->second;
}

std::vector<Json> records(std::string_view name, std::string_view key, std::string_view value) {
  std::vector<Json> chosen;
  for (const Json& record : load("golden/" + std::string(name) + ".json").at("records")) {
    if (key.empty() || record.at(std::string(key)) == std::string(value)) chosen.push_back(record);
  }
  EXPECT_FALSE(chosen.empty()) << name << ": no record has " << key << " = " << value;
  return chosen;
}

// Tests are listed before main() chooses among them: a search for the names costs a thousandth of
// parsing.
std::vector<Case> cases(std::string_view file) {
  std::ifstream in(data_path("golden/" + std::string(file) + ".json"));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  constexpr std::string_view key = "\"name\":\"";
  std::vector<Case> all;
  for (auto at = text.find(key); at != text.npos; at = text.find(key, at)) {
    at += key.size();
    all.push_back({std::string(file), text.substr(at, text.find('"', at) - at)});
  }
  return all;
}

const Json& Case::record() const {
  for (const Json& each : load("golden/" + file + ".json").at("records"))
    if (each.at("name") == name) return each;
  static const Json none;
  ADD_FAILURE() << file << " has no record " << name;
  return none;
}

std::string test_name(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return result;
}

FieldValue field_value(const Json& json) {
  if (json.is_null()) return std::monostate{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return numbers<double>(json);
}

std::vector<double> pair_frequencies(const Rotate& rotate) {
  std::vector<double> frequency;
  for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
    double sum = 0;
    for (std::int64_t a = 0; a < rotate.frequencies.axes; ++a) sum += rotate.at(0, a, r);
    frequency.push_back(sum);
  }
  return frequency;
}

std::vector<double> pair_norms(const Rotate& rotate, const std::vector<float>& x,
                               std::int64_t head_dim) {
  std::vector<double> norms(x.size(), 0.0);
  const auto dim = static_cast<std::size_t>(head_dim);
  for (std::size_t head = 0; head < x.size(); head += dim) {
    for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
      const bool halves = rotate.slice.pairing == Pairing::halves;
      const std::int64_t a = rotate.slice.first_dim + (halves ? r : 2 * r);
      const std::size_t i = head + static_cast<std::size_t>(a);
      const std::size_t j = i + static_cast<std::size_t>(halves ? rotate.pairs() : 1);
      norms[i] = norms[j] = rotate.amplitude * std::hypot(x[i], x[j]);
    }
  }
  return norms;
}

void expect_within_two_ulp(const std::vector<float>& got, const std::vector<float>& want,
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

void set(Scheme& scheme, std::string_view field, const FieldValue& value) {
  const auto done = set_field(scheme, field, value);
  EXPECT_TRUE(done) << done.error().message();
}

Rope rope_of(const Json& record) {
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
  if (find_field(scaling, model_length) && record.contains(model_length)) {
    set(scheme, model_length, field_value(record.at(model_length)));
  }
  if (find_field(scaling, trained_length) && !parameters.contains(trained_length)) {
    set(scheme, trained_length,
        field_value(record.at(record.contains(trained_length) ? trained_length : model_length)));
  }
  return std::get<Rope>(scheme);
}

std::int64_t length_of(const Json& set) {
  const Json& length = set.at("seq_len");
  return length.is_null() ? 0 : length.get<std::int64_t>();
}

void expect_logits(const Json& record, const Plan& plan, std::int64_t first, const Mask& mask) {
  const auto number = [&](const char* name) { return record.at(name).get<std::int64_t>(); };
  const std::int64_t heads = number("heads"), dim = number("head_dim");
  auto q = numbers<double>(record.at("q")), k = numbers<double>(record.at("k"));
  auto wanted = numbers<double>(record.at("logits"));
  for (double& each : wanted) each /= std::sqrt(static_cast<double>(dim));
  const std::int64_t tokens = std::ssize(q) / heads / dim;
  std::vector<double> out(q.size()), logits(wanted.size());
  const Positions at = Positions::range(first, tokens);
  const Tensor keys = Tensor::dense(k.data(), {1, number("kv_heads"), tokens, dim});
  const auto done =
      attend_reference({Tensor::dense(q.data(), {1, heads, tokens, dim}), keys, keys, at, at, mask},
                       plan, Tensor::dense(out.data(), {1, heads, tokens, dim}),
                       Tensor::dense(logits.data(), {1, heads, tokens, tokens}));
  ASSERT_TRUE(done) << done.error().message();
  for (double& each : logits)
    if (each == -std::numeric_limits<double>::infinity()) each = 0;
  expect_close(logits, wanted, 2e-5);
}

}  // namespace posenc::golden
