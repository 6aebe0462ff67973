// 64 bytes that travel with cached keys and say by which rotation, and where, they stand
// (spec/position.md, C3 to C5): who reads keys of another refuses them before they give garbage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/rekey.h"

namespace [[gnu::visibility("default")]] posenc {

// How the numbers of keys are kept, as the header counts the ways.
enum class KeyType : std::uint8_t { f64, f32, f16, bf16, e4m3, int8, q8_0 };
std::string_view name(KeyType type);
constexpr KeyType key_type(DType dtype) { return static_cast<KeyType>(dtype); }

// What the bytes say.
struct KeyHeader {
  static constexpr std::size_t bytes = 64;
  static constexpr std::uint8_t unrotated = 255;            // in the place of a pairing
  static constexpr std::uint32_t any_layer = 0xffff'ffffU;  // nobody said which

  KeyType type = KeyType::f32;
  std::uint8_t pairing = unrotated;  // 0 halves, 1 interleaved
  Side side = Side::key;             // key, or value
  std::uint8_t axes = 1;             // of positions
  bool consecutive = true;           // positions are first, first + 1, … on every axis
  std::int64_t first = 0;            // position of the first token, on the first axis
  std::uint64_t tokens = 0;          // of a sequence
  std::uint32_t layer = any_layer, kv_heads = 0, head_dim = 0;
  std::uint16_t first_dim = 0, rotary_dim = 0;  // the channels that rotate
  std::uint64_t rotation = 0;                   // fingerprint of frequencies and amplitude
  std::uint64_t positions = 0;                  // fingerprint of all ids

  bool operator==(const KeyHeader&) const = default;
};

// That of keys [batch, kv_head, seq, head_dim]. Errors: a rotation that has no header, which is
// named (growth, phases, mixtures, an engine's angles); queries; sizes beyond the header's fields.
Expected<KeyHeader> key_header(const Stand& stand, std::span<const std::int64_t> shape,
                               KeyType type, Side side = Side::key,
                               std::uint32_t layer = KeyHeader::any_layer);

std::array<std::byte, KeyHeader::bytes> to_bytes(const KeyHeader& header);

// `where` is what errors begin with: the file's name. Errors: fewer bytes, no such header, another
// version, a field that this version does not have.
Expected<KeyHeader> parse_key_header(std::span<const std::byte> bytes, std::string_view where);

// Whether keys whose header is `found` are those that the reader takes them for. Errors: the first
// member that differs, by name, both values, and what to do.
Expected<void> check_key_header(const KeyHeader& found, const KeyHeader& expected,
                                std::string_view where);

}  // namespace posenc
