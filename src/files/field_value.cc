// A field's value from JSON and to it.
#include "src/files/field_value.h"

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace posenc::detail {

FieldValue to_field(const Json& json) {
  if (const bool* b = json.get<bool>()) return *b;
  if (const auto* i = json.get<std::int64_t>()) return *i;
  if (const double* x = json.get<double>()) return *x;
  if (const auto* s = json.get<std::string>()) return *s;
  std::vector<double> list;
  if (const auto* array = json.get<Json::Array>()) {
    for (const Json& item : *array) {
      const double* x = item.get<double>();
      const auto* i = item.get<std::int64_t>();
      if (!x && !i) return std::string(item.text());  // refused by set_field as no list of numbers
      list.push_back(x ? *x : static_cast<double>(*i));
    }
    return list;
  }
  return std::string(json.text());
}

void write(JsonWriter& out, const FieldValue& value) {
  std::visit(
      [&](const auto& x) {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>)
          out.null();
        else
          out.value(x);
      },
      value);
}

}  // namespace posenc::detail
