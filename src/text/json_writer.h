// JSON as text, member by member in the order written, without blanks. Numbers are the shortest
// that read back the same, with a point or an exponent where they are real; what is not finite is
// null. Bytes that are no UTF-8 become U+FFFD; what a terminal obeys is escaped.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::detail {

class JsonWriter {
 public:
  // Containers; `end` closes the innermost one that is open.
  JsonWriter& object() { return open('{', '}'); }
  JsonWriter& array() { return open('[', ']'); }
  JsonWriter& end();
  JsonWriter& key(std::string_view name);

  void null();
  void json(std::string_view value);  // a value that is JSON already
  void value(std::string_view word);
  void value(const char* word) { value(std::string_view(word)); }
  void value(const std::string& word) { value(std::string_view(word)); }
  void value(double number);
  void value(std::int64_t number);
  void value(std::same_as<bool> auto flag) { truth(flag); }
  void value(std::span<const double> items);
  void value(std::span<const float> items);
  void value(std::span<const std::int64_t> items);
  void value(std::span<const std::int32_t> items);
  void value(std::span<const std::string> items);
  void value(std::span<const std::string_view> items);
  template <class T>
  void value(const std::vector<T>& list) {
    value(std::span<const T>(list));
  }
  template <class T>
  void value(const std::optional<T>& maybe) {
    if (maybe)
      value(*maybe);
    else
      null();
  }

  template <class T>
  JsonWriter& member(std::string_view name, const T& what) {
    key(name).value(what);
    return *this;
  }

  std::string text;

 private:
  JsonWriter& open(char first, char last);
  void truth(bool flag);
  void separate();
  template <class T, class As>
  void list(std::span<const T> items);

  std::string ends_;      // of the open containers, innermost last
  bool follows_ = false;  // a comma is due before the next key or value
};

}  // namespace posenc::detail
