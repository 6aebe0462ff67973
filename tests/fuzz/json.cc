// The JSON reader: bounded, and what it read is what another pass over its own text reads.
#include <algorithm>
#include <string>
#include <nlohmann/json.hpp>

#include "src/text/json.h"
#include "tests/fuzz/check.h"

namespace posenc::fuzz {
namespace {

using detail::Json;

bool same(const Json& a, const Json& b) {
  if (a.value.index() != b.value.index()) return false;
  if (const auto* list = a.get<Json::Array>())
    return std::ranges::equal(*list, *b.get<Json::Array>(), same);
  if (const auto* object = a.get<Json::Object>())
    return std::ranges::equal(*object, *b.get<Json::Object>(), [](const auto& x, const auto& y) {
      return x.key == y.key && same(x.value, y.value);
    });
  if (const auto* x = a.get<double>()) return *x == *b.get<double>();
  if (const auto* x = a.get<std::int64_t>()) return *x == *b.get<std::int64_t>();
  if (const auto* x = a.get<std::string>()) return *x == *b.get<std::string>();
  return a.is_null() || *a.get<bool>() == *b.get<bool>();
}

nlohmann::ordered_json written(const Json& json) {
  if (const auto* list = json.get<Json::Array>()) {
    auto out = nlohmann::ordered_json::array();
    for (const Json& item : *list) out.push_back(written(item));
    return out;
  }
  if (const auto* object = json.get<Json::Object>()) {
    auto out = nlohmann::ordered_json::object();
    for (const auto& [key, value] : *object) out.emplace(key, written(value));
    return out;
  }
  if (const auto* x = json.get<double>()) return *x;
  if (const auto* x = json.get<std::int64_t>()) return *x;
  if (const auto* x = json.get<std::string>()) return *x;
  if (const auto* x = json.get<bool>()) return *x;
  return nullptr;
}

void check_values(const Json& json, std::size_t depth) {
  must(depth <= detail::deepest_json, "no deeper than the limit");
  check_text(json.text(), 500);
  if (const auto* list = json.get<Json::Array>())
    for (const Json& item : *list) check_values(item, depth + 1);
  if (const auto* object = json.get<Json::Object>())
    for (const auto& [key, value] : *object) {
      must(json.find(key) == &value, "a key finds its value", key);
      check_values(value, depth + 1);
    }
}

}  // namespace
}  // namespace posenc::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const auto json = detail::parse_json(fuzz::text_of({data, size}), "file.json");
  if (!json) {
    fuzz::check_error(json.error());
    return 0;
  }
  fuzz::check_values(*json, 0);
  const std::string text = fuzz::written(*json).dump();
  const auto again = detail::parse_json(text, "again.json");
  fuzz::must(again.has_value() && fuzz::same(*json, *again),
             "what is read is written and read the same", text);
  return 0;
}
