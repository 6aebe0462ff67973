#include "posenc/key_header.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/schemes.h"

namespace posenc::key_header_of {
namespace {

constexpr std::int64_t shape[] = {1, 2, 5, 16};

Plan plan_of(const Scheme& scheme) {
  return compile(scheme, {.heads = 2, .kv_heads = 2, .head_dim = 16}).value();
}

KeyHeader header_of(const Plan& plan, const Positions& at = Positions::range(100, 5)) {
  return key_header({&plan, at}, shape, KeyType::bf16, Side::key, 3).value();
}

std::string text_of(const KeyHeader& header) {
  std::string text;
  for (const std::byte byte : to_bytes(header)) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) / 16];
    text += digits[std::to_integer<unsigned>(byte) % 16];
  }
  return text;
}

// The bytes of spec/position.md, which no version changes.
TEST(KeyHeader, BytesAreThoseOfTheSpec) {
  EXPECT_EQ(text_of(header_of(plan_of(Rope{}))),
            "706f736b65797300"    // magic
            "0100"                // version
            "030000010100"        // bfloat16, halves, keys, one axis, consecutive
            "6400000000000000"    // the first at 100
            "0500000000000000"    // tokens
            "03000000"            // layer
            "0200000010000000"    // heads and channels
            "00001000"            // the first and the count of those that rotate
            "d3475e7f6308068e"    // the rotation
            "2dbc0eb39649c700");  // the positions
}

TEST(KeyHeader, ReadsBackWhatItWrites) {
  const Plan part = plan_of(Rope{
                 .pairing = Pairing::interleaved, .rotary_dim = 8, .slice = SliceEnd::trailing}),
             none = plan_of(NoPe{});
  const std::vector<std::int64_t> ids = {4, 2, 0, 9, 1};
  for (const KeyHeader& header :
       {header_of(part), header_of(none), header_of(part, Positions::ids(ids).value())}) {
    const auto read = parse_key_header(to_bytes(header), "k");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, header);
  }
  const KeyHeader said = header_of(part);
  EXPECT_EQ(said.pairing, 1);
  EXPECT_EQ(said.first_dim, 8);
  EXPECT_EQ(said.first, 100);
  EXPECT_TRUE(said.consecutive);
  EXPECT_FALSE(header_of(part, Positions::ids(ids).value()).consecutive);
  EXPECT_EQ(header_of(none).pairing, KeyHeader::unrotated);
}

TEST(KeyHeader, OtherKeysAreRefusedByWhatDiffers) {
  const Plan rope = plan_of(Rope{});
  const KeyHeader expected = header_of(rope);
  EXPECT_TRUE(check_key_header(expected, expected, "k"));
  const auto refused = [&](const KeyHeader& found, std::string_view word) {
    const auto checked = check_key_header(found, expected, "k.safetensors");
    ASSERT_FALSE(checked) << word;
    EXPECT_NE(checked.error().message().find(word), std::string::npos) << checked.error().message();
    EXPECT_FALSE(checked.error().cure.empty());
  };
  refused(header_of(plan_of(Rope{.rope_theta = 500000})), "rotation");
  refused(header_of(
              plan_of(Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 64}})),
          "rotation");
  refused(header_of(plan_of(Rope{.pairing = Pairing::interleaved})), "pairing");
  refused(header_of(plan_of(Rope{.rotary_dim = 8})), "rotated channels");
  refused(header_of(plan_of(NoPe{})), "pairing");
  refused(header_of(rope, Positions::range(99, 5)), "consecutive ones from 99");
  KeyHeader other = expected;
  other.layer = 4;
  refused(other, "layer");
  other.layer = KeyHeader::any_layer;
  EXPECT_TRUE(check_key_header(other, expected, "k"));
  other.type = KeyType::e4m3;
  refused(other, "e4m3");
  other = expected;
  other.kv_heads = 8;
  refused(other, "shape");
  other.side = Side::value;
  refused(other, "kind");
}

// Frequencies whose last bits differ, as those of another library do, are the same rotation.
TEST(KeyHeader, TheFingerprintForgivesLastBits) {
  const Plan rope = plan_of(Rope{});
  Plan near = rope;
  for (double& each : near.rotate->frequencies.radians) each *= 1 + 0x1p-52;
  EXPECT_EQ(header_of(near).rotation, header_of(rope).rotation);
}

TEST(KeyHeader, DamagedBytesAreRefused) {
  const auto bytes = to_bytes(header_of(plan_of(Rope{})));
  EXPECT_FALSE(parse_key_header(std::span(bytes).first(63), "k"));
  for (const std::size_t at : {0, 7, 8, 10, 11, 12, 13, 15}) {
    auto damaged = bytes;
    damaged[at] = at == 13 ? std::byte{0} : std::byte{77};
    EXPECT_FALSE(parse_key_header(damaged, "k")) << at;
  }
}

TEST(KeyHeader, ARotationWithoutOneIsNamed) {
  const Plan grows = plan_of(XPos{});
  const auto made = key_header({&grows, Positions::range(0, 5)}, shape, KeyType::f32);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("growth"), std::string::npos) << made.error().message();
}

}  // namespace
}  // namespace posenc::key_header_of
