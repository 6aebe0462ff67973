// A GGUF's metadata by key, behind the architecture's name, as the kinds that readers ask for, and
// the config.json that says the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/files.h"
#include "src/model/families/reading.h"

namespace posenc::detail {

struct Architecture;
struct Family;

// A key of the file, and of a config.json.
struct GgufKey {
  std::string_view gguf;  // behind the architecture
  std::string_view name;  // in Hugging Face's words
};

// What a GGUF says, translated key by key. A value of another kind than asked is refused, with its
// key. Keys that llama.cpp does not read for the architecture are as if they were not there.
class GgufTranslation {
 public:
  GgufTranslation(Reading& reading, const Gguf& gguf) : reading_(reading), gguf_(gguf) {}

  // --- the file ---
  std::string_view architecture() const { return arch_; }
  std::string path(std::string_view key) const { return arch_ + "." + std::string(key); }
  const GgufValue* find(std::string_view key) const;
  const GgufValue* find_unread(std::string_view key) const { return gguf_.find(path(key)); }
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

  // --- what is known of it ---
  Reading& reading() const { return reading_; }
  const Architecture* row() const { return row_; }  // null: not a known architecture
  const Family* base() const { return base_; }  // whose layers it builds; null: the generic one's
  bool latent() const;
  std::int64_t layers() const { return layers_; }
  void set_layers(std::int64_t count) { layers_ = count; }
  bool slides() const;  // whether any layer may have a window
  void nothing_slides();
  std::string rule() const { return "rule of " + reading_.family; }
  void not_read(std::string_view key) const;  // warns

  // --- the config.json; `said` is what messages call a value: the file's key, or a rule ---
  void spell(std::string_view name, std::string said);
  void put(std::string_view name, Json value, std::string said);
  void put_scaling(std::string_view name, Json value, std::string said);  // of rope_scaling
  void carry(const GgufKey& key);  // the same value under the other name
  void drop(std::string_view names) {
    std::erase_if(config_, [&](const JsonMember& each) { return contains_word(names, each.key); });
    std::erase_if(reading_.spelled,
                  [&](const auto& each) { return contains_word(names, each.first); });
  }

 protected:
  Reading& reading_;
  const Gguf& gguf_;
  std::string arch_;
  const Architecture* row_ = nullptr;
  const Family* base_ = nullptr;
  std::int64_t layers_ = 0;
  bool windows_off_ = false;
  Json::Object config_, scaling_;
};

// A number stored in single precision stands for the shortest decimal that rounds to it.
double meant(double stored);
Json json(const GgufValue& value);
// The number or flag that it is; nothing for words and lists.
std::optional<double> plain_number(const GgufValue& value);

}  // namespace posenc::detail
