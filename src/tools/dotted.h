// An object that a command line says value by value: vLLM's
// --hf-overrides.text_config.rope_theta 1e6.
#pragma once

#include <string>
#include <string_view>

#include "src/text/json.h"

namespace posenc::detail {

class DottedObject {
 public:
  // Later values stand above earlier ones. A value that is no JSON is a word.
  void put(std::string_view path, std::string_view value);
  // An object that is JSON, below what has been put. Errors: no JSON object.
  Expected<void> put_below(std::string_view object, std::string_view name);

  bool empty() const { return members_.empty(); }
  std::string text() const;  // as JSON

 private:
  Json::Object members_;
};

}  // namespace posenc::detail
