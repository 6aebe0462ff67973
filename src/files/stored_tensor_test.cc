#include "src/files/stored_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace posenc;
using namespace posenc::detail;

template <class T, std::size_t n>
std::vector<std::byte> bytes_of(const std::array<T, n>& numbers, std::size_t before = 0) {
  std::vector<std::byte> bytes(before + sizeof numbers);
  std::memcpy(bytes.data() + before, numbers.data(), sizeof numbers);
  return bytes;
}

TEST(StoredTensor, IsFoundByItsWholeName) {
  const std::vector<StoredTensor> tensors = {{.name = "wpe.weight"}, {.name = "wte.weight"}};
  EXPECT_EQ(find_tensor(tensors, "wte.weight"), &tensors[1]);
  EXPECT_EQ(find_tensor(tensors, "wte"), nullptr);
  EXPECT_EQ(find_tensor({}, "wte"), nullptr);
}

TEST(StoredTensor, AnyFloatTypeIsReadAsDoubles) {
  const auto numbers = [](std::string type, const std::vector<std::byte>& bytes) {
    const auto size = type == "F64" ? 8u : type == "<f4" ? 4u : 2u;
    return doubles_of({.type = std::move(type),
                       .shape = {static_cast<std::int64_t>(bytes.size() / size)},
                       .bytes = bytes});
  };
  const std::vector<double> expected = {1.5, -2};
  EXPECT_EQ(numbers("F64", bytes_of(std::array{1.5, -2.0})), expected);
  EXPECT_EQ(numbers("<f4", bytes_of(std::array{1.5F, -2.0F})), expected);
  EXPECT_EQ(numbers("F16", bytes_of(std::array<std::uint16_t, 2>{0x3E00, 0xC000})), expected);
  EXPECT_EQ(numbers("BF16", bytes_of(std::array<std::uint16_t, 2>{0x3FC0, 0xC000})), expected);
  const auto whole = numbers("I64", bytes_of(std::array<std::int64_t, 1>{1}));
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().got, "I64");
}

TEST(StoredTensor, UnalignedBytesHaveNoViewAndAreStillRead) {
  const std::vector<std::byte> bytes = bytes_of(std::array{3.25F, 4.0F}, 1);
  const auto unaligned = std::span(bytes).subspan(1);
  const std::array<std::int64_t, 1> shape = {2};
  EXPECT_FALSE(view_of(unaligned, DType::f32, shape));
  EXPECT_EQ(doubles_of({.type = "F32", .shape = {2}, .bytes = unaligned}),
            (std::vector<double>{3.25, 4}));
}

// A file cut short lists tensors whose bytes it has not.
TEST(StoredTensor, NumbersThatTheFileHasNotAreAnError) {
  const auto cut = doubles_of({.name = "wpe.weight", .type = "F32", .shape = {4, 4}});
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().where, "wpe.weight");
  EXPECT_TRUE(doubles_of({.type = "F32", .shape = {0, 4}}));
}

TEST(StoredTensor, AlignedBytesAreSeenInPlace) {
  const std::vector<std::byte> bytes = bytes_of(std::array{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
  const std::array<std::int64_t, 2> shape = {2, 3};
  const Tensor view = view_of(bytes, DType::f32, shape);
  ASSERT_TRUE(view);
  EXPECT_EQ(shape_text(view), "[2, 3]");
  EXPECT_EQ(view.get(view.offset(1, 2)), 6);
}

TEST(StoredTensor, ElementsAreCountedWithoutOverflow) {
  const auto count = [](const std::vector<std::int64_t>& shape) { return element_count(shape); };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(count({2, 3}), 6);
  EXPECT_EQ(count({0, most}), 0);
  EXPECT_EQ(count({most}), most);
  EXPECT_FALSE(count({most, 2}));
  EXPECT_FALSE(count({most, 2, 0}));
  EXPECT_FALSE(count({2, -1}));
}

}  // namespace
