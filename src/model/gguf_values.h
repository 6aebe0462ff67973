// A GGUF's metadata by key, behind the architecture's name, as the kinds that readers ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/files.h"
#include "src/model/reading.h"

namespace posenc::detail {

// A value of another kind than asked is refused, with its key.
class GgufValues {
 public:
  GgufValues(Reading& reading, const Gguf& gguf) : reading_(reading), gguf_(gguf) {}

 protected:
  std::string path(std::string_view key) const { return arch_ + "." + std::string(key); }
  const GgufValue* find(std::string_view key) const { return gguf_.find(path(key)); }
  template <class T>
  const T* get(std::string_view key) const {  // null: absent, or of another kind
    const GgufValue* value = find(key);
    return value ? std::get_if<T>(value) : nullptr;
  }
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> whole(std::string_view key) const;

  const StoredTensor* tensor(std::string_view name) const {
    return find_tensor(gguf_.tensors, name);
  }
  std::vector<double> values(const StoredTensor& from) const;  // a small tensor's numbers

  Reading& reading_;
  const Gguf& gguf_;
  std::string arch_;
};

// A number stored in single precision stands for the shortest decimal that rounds to it.
double meant(double stored);
Json json(const GgufValue& value);

}  // namespace posenc::detail
