// ggml's blocks of quantized numbers, as gguf-py restores them.
#include <cstddef>
#include <string>
#include <vector>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

class Quantized : public testing::TestWithParam<Json> {};
INSTANTIATE_TEST_SUITE_P(Ggml, Quantized, testing::ValuesIn(records("quantized")),
                         [](const auto& one) {
                           return one.param.at("type").template get<std::string>();
                         });

TEST_P(Quantized, IsRestoredBitForBit) {
  const std::vector<std::byte> bytes = from_hex(GetParam().at("bytes"));
  const auto wanted = numbers<float>(GetParam().at("numbers_f32"));
  const StoredTensor tensor{
      .type = GetParam().at("type"), .shape = {std::ssize(wanted)}, .bytes = bytes};
  const auto found = floats_of(tensor);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(*found, wanted);
}

TEST_P(Quantized, IsRefusedWhereBytesAreMissing) {
  const std::vector<std::byte> bytes = from_hex(GetParam().at("bytes"));
  const StoredTensor tensor{.type = GetParam().at("type"),
                            .shape = {std::ssize(GetParam().at("numbers_f32"))},
                            .bytes = std::span(bytes).first(bytes.size() - 1)};
  EXPECT_FALSE(floats_of(tensor));
}

TEST(Quantized, OfAnotherTypeIsRefusedByName) {
  const auto found = floats_of({.name = "blk.0.attn_q.weight", .type = "IQ2_XS", .shape = {256}});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message().find("got IQ2_XS"), std::string::npos);
}

}  // namespace
}  // namespace posenc::golden
