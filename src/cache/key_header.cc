// The header of keys that travel (posenc/key_header.h): little-endian at fixed offsets, whatever
// the machine, and fingerprints by FNV-1a, which any language has in three lines.
#include "posenc/key_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "posenc/features.h"
#include "src/core/try.h"

namespace posenc {
namespace {

constexpr std::string_view magic = "poskeys";  // and a zero byte
constexpr std::uint16_t version = 1;
constexpr std::uint16_t consecutive_flag = 1;
constexpr std::string_view type_names[] = {"float64", "float32", "float16", "bfloat16",
                                           "e4m3",    "int8",    "q8_0"};

class Fnv {
 public:
  void add(std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      hash_ ^= number >> (8 * i) & 0xff;
      hash_ *= 0x100000001b3;
    }
  }
  // As float32, so that two libraries whose last bits of a double differ agree.
  void add(double number) { add(std::bit_cast<std::uint32_t>(static_cast<float>(number)), 4); }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

std::uint64_t fingerprint_of(const Rotate& rotate) {
  Fnv hash;
  hash.add(rotate.amplitude);
  hash.add(static_cast<std::uint64_t>(rotate.slice.blocks), 4);
  hash.add(static_cast<std::uint64_t>(rotate.frequencies.heads), 4);
  hash.add(static_cast<std::uint64_t>(rotate.frequencies.axes), 4);
  hash.add(static_cast<std::uint64_t>(rotate.pairs()), 4);
  for (const double each : rotate.frequencies.radians) hash.add(each);
  return hash.hash();
}

// Calls act(at, member, bytes) for each field behind the version: the layout of the spec.
template <class Header, class Act>
void each_field(Header& header, const Act& act) {
  act(10, header.type, 1);
  act(11, header.pairing, 1);
  act(12, header.side, 1);
  act(13, header.axes, 1);
  act(14, header.consecutive, 2);
  act(16, header.first, 8);
  act(24, header.tokens, 8);
  act(32, header.layer, 4);
  act(36, header.kv_heads, 4);
  act(40, header.head_dim, 4);
  act(44, header.first_dim, 2);
  act(46, header.rotary_dim, 2);
  act(48, header.rotation, 8);
  act(56, header.positions, 8);
}

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, int count) {
  std::uint64_t number = 0;
  for (int i = 0; i < count; ++i)
    number |= std::to_integer<std::uint64_t>(bytes[at + static_cast<std::size_t>(i)]) << (8 * i);
  return number;
}

// The header's sides are 0 for keys and 1 for values.
template <class T>
std::uint64_t number_of(const T& member) {
  if constexpr (std::is_same_v<T, Side>)
    return member == Side::value ? 1 : 0;
  else
    return static_cast<std::uint64_t>(member);
}

std::string side_text(Side side) { return side == Side::value ? "values" : "keys"; }

std::string pairing_text(std::uint8_t pairing) {
  return pairing == 0 ? "halves" : pairing == 1 ? "interleaved" : "not rotated";
}

}  // namespace

std::string_view name(KeyType type) { return type_names[static_cast<std::size_t>(type)]; }

Expected<KeyHeader> key_header(const Stand& stand, std::span<const std::int64_t> shape,
                               KeyType type, Side side, std::uint32_t layer) {
  if (!stand.plan || shape.size() != 4)
    return fail("key_header", "needs a plan and the keys' [batch, kv_head, seq, head_dim]", "",
                "give both");
  if (side == Side::query) return fail("key_header", "is of keys or values", "queries");
  POSENC_CHECK(check_takes(rooms::key_header, *stand.plan));
  constexpr std::int64_t most = std::numeric_limits<std::uint16_t>::max();
  if (std::ranges::any_of(shape, [](std::int64_t n) { return n < 0; }) || shape[1] > most ||
      shape[3] > most || stand.at.axes() > 255)
    return fail("key_header", "heads and channels must be below 65536", "", "cut the tensor");
  if (stand.at.size() != shape[2])
    return fail("key_header", "a position for each token",
                std::to_string(stand.at.size()) + " for " + std::to_string(shape[2]));
  KeyHeader out{.type = type,
                .side = side,
                .axes = static_cast<std::uint8_t>(stand.at.axes()),
                .tokens = static_cast<std::uint64_t>(shape[2]),
                .layer = layer,
                .kv_heads = static_cast<std::uint32_t>(shape[1]),
                .head_dim = static_cast<std::uint32_t>(shape[3])};
  const std::optional<Rotate>& rotate = stand.plan->rotate;
  if (rotate && (side == Side::key || rotate->rotates_values())) {
    out.pairing = static_cast<std::uint8_t>(rotate->slice.pairing == Pairing::interleaved);
    out.first_dim = static_cast<std::uint16_t>(rotate->slice.first_dim);
    out.rotary_dim = static_cast<std::uint16_t>(rotate->slice.rotary_dim);
    out.rotation = fingerprint_of(*rotate);
  }
  out.first = shape[2] > 0 ? stand.at.at(0) : 0;
  Fnv ids;
  for (std::int64_t axis = 0; axis < stand.at.axes(); ++axis)
    for (std::int64_t b = 0; b < stand.at.batch(); ++b)
      for (std::int64_t t = 0; t < shape[2]; ++t) {
        const std::int64_t id = stand.at.at(t, b, axis);
        ids.add(static_cast<std::uint64_t>(id), 8);
        out.consecutive &= id == out.first + t;
      }
  out.positions = ids.hash();
  return out;
}

std::array<std::byte, KeyHeader::bytes> to_bytes(const KeyHeader& header) {
  std::array<std::byte, KeyHeader::bytes> out{};
  const auto put = [&](std::size_t at, std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(number >> (8 * i) & 0xff);
  };
  std::memcpy(out.data(), magic.data(), magic.size());
  put(8, version, 2);
  each_field(header, [&](std::size_t at, const auto& member, int bytes) {
    put(at, number_of(member), bytes);
  });
  return out;
}

Expected<KeyHeader> parse_key_header(std::span<const std::byte> bytes, std::string_view where) {
  if (bytes.size() < KeyHeader::bytes || std::to_integer<int>(bytes[magic.size()]) != 0 ||
      std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return fail(where, "a header of keys must have 64 bytes and begin with \"poskeys\"",
                std::to_string(bytes.size()) + " bytes", "write it with posenc rekey");
  if (const std::uint64_t found = number_at(bytes, 8, 2); found != version)
    return fail(where, "the version of a header must be 1", std::to_string(found),
                "read it with a newer posenc");
  const std::uint64_t flags = number_at(bytes, 14, 2);
  if (number_at(bytes, 10, 1) >= std::size(type_names) || number_at(bytes, 12, 1) > 1 ||
      (number_at(bytes, 11, 1) > 1 && number_at(bytes, 11, 1) != KeyHeader::unrotated) ||
      number_at(bytes, 13, 1) == 0 || flags > consecutive_flag)
    return fail(where, "type, pairing, side, axes and flags must be those of version 1", "others",
                "the header is damaged: write it again");
  KeyHeader out;
  each_field(out, [&](std::size_t at, auto& member, int count) {
    using Member = std::remove_reference_t<decltype(member)>;
    const std::uint64_t number = number_at(bytes, at, count);
    if constexpr (std::is_same_v<Member, Side>)
      member = number == 1 ? Side::value : Side::key;
    else
      member = static_cast<Member>(number);
  });
  return out;
}

Expected<void> check_key_header(const KeyHeader& found, const KeyHeader& expected,
                                std::string_view where) {
  const auto refused = [&](std::string_view what, const std::string& is, const std::string& asked,
                           std::string_view cure) {
    return fail(where,
                "keys must have the " + std::string(what) + " that their reader takes, " + asked,
                is, cure);
  };
  const auto number = [](auto value) { return std::to_string(value); };
  if (found.side != expected.side)
    return refused("kind", side_text(found.side), side_text(expected.side),
                   "name the other tensor");
  if (found.type != expected.type)
    return refused("type", std::string(name(found.type)), std::string(name(expected.type)),
                   "convert them first");
  if (found.kv_heads != expected.kv_heads || found.head_dim != expected.head_dim ||
      found.tokens != expected.tokens)
    return refused(
        "shape",
        number(found.kv_heads) + " × " + number(found.tokens) + " × " + number(found.head_dim),
        number(expected.kv_heads) + " × " + number(expected.tokens) + " × " +
            number(expected.head_dim),
        "the header is of other keys");
  if (found.layer != expected.layer && found.layer != KeyHeader::any_layer &&
      expected.layer != KeyHeader::any_layer)
    return refused("layer", number(found.layer), number(expected.layer), "name that layer");
  if (found.pairing != expected.pairing)
    return refused("pairing", pairing_text(found.pairing), pairing_text(expected.pairing),
                   "read them by the plan that rotated them, then rekey to the other pairing");
  if (found.first_dim != expected.first_dim || found.rotary_dim != expected.rotary_dim)
    return refused("rotated channels",
                   number(found.rotary_dim) + " from " + number(found.first_dim) + " on",
                   number(expected.rotary_dim) + " from " + number(expected.first_dim) + " on",
                   "read them by the plan that rotated them");
  if (found.rotation != expected.rotation)
    return refused("rotation", "another fingerprint", "the plan's",
                   "another base, scaling or length: read them by the plan that rotated them, then "
                   "rekey to this one");
  if (found.axes != expected.axes || found.positions != expected.positions)
    return refused(
        "positions",
        (found.consecutive ? "consecutive ones from " : "others, the first ") + number(found.first),
        (expected.consecutive ? "consecutive ones from " : "others, the first ") +
            number(expected.first),
        "say where they stand, then rekey");
  return {};
}

}  // namespace posenc
