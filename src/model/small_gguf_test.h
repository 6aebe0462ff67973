// Models of eight layers as GGUF files without weights, and questions that tests of architectures
// ask.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "posenc/model.h"
#include "tests/gguf_bytes.h"

namespace posenc::test {

using LayerList = std::vector<int>;
using KeyValue = std::variant<int, double, bool, std::string, LayerList>;

// A model without tensors: eight layers, four heads of 64 channels.
class SmallGguf {
 public:
  explicit SmallGguf(std::string arch) : arch_(std::move(arch)) {
    set("block_count", 8).set("context_length", 4096).set("embedding_length", 256);
    set("attention.head_count", 4).set("attention.head_count_kv", 4);
    set("rope.freq_base", 500000.0);
  }
  SmallGguf& set(const std::string& key, KeyValue value) {
    keys_.insert_or_assign(key, std::move(value));
    return *this;
  }
  SmallGguf& sinks_in(int layer) {
    sinks_.push_back(layer);
    return *this;
  }

  Expected<Model> read() const {
    GgufBytes b;
    b.start(sinks_.size(), keys_.size() + 1);
    b.key("general.architecture", GgufBytes::string).word(arch_);
    for (const auto& [key, value] : keys_)
      std::visit([&](const auto& v) { put(b, arch_ + "." + key, v); }, value);
    for (std::size_t i = 0; i < sinks_.size(); ++i)
      b.tensor("blk." + std::to_string(sinks_[i]) + ".attn_sinks.weight", {4}, 0, 32 * i);
    b.pad();
    for (std::size_t i = 0; i < sinks_.size(); ++i) b.put(0.F).put(0.F).put(0.F).put(0.F).pad();
    return read_gguf(std::as_bytes(std::span(b.text)), "m.gguf");
  }
  Model model() const {
    auto model = read();
    if (!model) ADD_FAILURE() << arch_ << ": " << model.error().message();
    return model ? *std::move(model) : Model();
  }
  std::string error() const {
    const auto model = read();
    return model ? "" : model.error().message();
  }

 private:
  static void put(GgufBytes& b, const std::string& key, int v) {
    b.key(key, GgufBytes::u32).put(static_cast<std::uint32_t>(v));
  }
  static void put(GgufBytes& b, const std::string& key, double v) {
    b.key(key, GgufBytes::f32).put(static_cast<float>(v));
  }
  static void put(GgufBytes& b, const std::string& key, bool v) {
    b.key(key, GgufBytes::boolean).put(static_cast<std::uint8_t>(v));
  }
  static void put(GgufBytes& b, const std::string& key, const std::string& v) {
    b.key(key, GgufBytes::string).word(v);
  }
  static void put(GgufBytes& b, const std::string& key, const LayerList& v) {
    b.key(key, GgufBytes::array).put(std::uint32_t{GgufBytes::u32}).put(std::uint64_t{v.size()});
    for (const int each : v) b.put(static_cast<std::uint32_t>(each));
  }

  std::string arch_;
  std::map<std::string, KeyValue> keys_;
  std::vector<int> sinks_;
};

inline const LayerGroup& group_of(const Model& model, std::int64_t layer) {
  static const LayerGroup none{.schemes = {NoPe{}}};
  for (const Stack stack : {Stack::text, Stack::encoder, Stack::decoder})
    if (const LayerGroup* group = find_group(model, layer, stack)) return *group;
  ADD_FAILURE() << "no layer " << layer;
  return none;
}
inline const Rope& rope_of_layer(const Model& model, std::int64_t layer) {
  static const Rope none;
  const Rope* rope = std::get_if<Rope>(&group_of(model, layer).schemes.at(0));
  if (!rope) ADD_FAILURE() << "layer " << layer << " does not rotate";
  return rope ? *rope : none;
}
inline bool says(const Model& model, std::string_view code, std::string_view text = {}) {
  return std::ranges::any_of(model.warnings, [&](const Warning& warning) {
    return warning.code == code && warning.message.contains(text);
  });
}

// What a layer does with positions, as a letter: neighbours or halves rotate, nothing (o) does; a
// bias (a: ALiBi, b: buckets), a table (t); . has no attention. Upper case has a window.
inline char letter_of(const LayerGroup& group) {
  const Scheme& scheme = group.schemes.at(0);
  if (group.mixer != Mixer::attention) return '.';
  char letter = '?';
  if (const Rope* rope = std::get_if<Rope>(&scheme))
    letter = rope->pairing == Pairing::interleaved ? 'n' : 'h';
  if (std::holds_alternative<NoPe>(scheme)) letter = 'o';
  if (std::holds_alternative<Alibi>(scheme)) letter = 'a';
  if (std::holds_alternative<T5>(scheme)) letter = 'b';
  if (std::holds_alternative<Learned>(scheme)) letter = 't';
  return group.window ? static_cast<char>(std::toupper(letter)) : letter;
}
inline std::string letters_of(const Model& model) {
  std::string letters;
  for (std::int64_t layer = 0; layer < 8; ++layer) letters += letter_of(group_of(model, layer));
  return letters;
}

}  // namespace posenc::test
