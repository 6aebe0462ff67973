// GGUF files made byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "posenc/files.h"

namespace posenc::test {

// A file's bytes, field by field.
struct GgufBytes {
  enum Kind : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    string,
    array,
    u64,
    i64,
    f64
  };

  std::string text;

  template <class T>
  GgufBytes& put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    text.append(raw, sizeof(T));
    return *this;
  }
  GgufBytes& word(std::string_view word) {
    put(std::uint64_t{word.size()});
    text += word;
    return *this;
  }
  GgufBytes& start(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    text += "GGUF";
    return put(version).put(tensors).put(keys);
  }
  GgufBytes& key(std::string_view name, Kind kind) {
    return word(name).put(static_cast<std::uint32_t>(kind));
  }
  GgufBytes& tensor(std::string_view name, std::initializer_list<std::uint64_t> extents,
                    std::uint32_t type, std::uint64_t offset) {
    word(name).put(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) put(extent);
    return put(type).put(offset);
  }
  GgufBytes& pad(std::size_t to = 32) {
    while (text.size() % to != 0) text += '\0';
    return *this;
  }
  Expected<Gguf> parse() const { return parse_gguf(std::as_bytes(std::span(text)), "m.gguf"); }
};

}  // namespace posenc::test
