#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/files.h"
#include "tests/paths.h"

namespace posenc::safetensors_test {
namespace {

std::string file(std::string_view header, std::size_t data = 0) {
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(text.data(), &length, sizeof length);
  text += header;
  return text + std::string(data, '\0');
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
// Over the bytes of `text`, which must outlive it.
Expected<Safetensors> parsed(std::string_view text) {
  return parse_safetensors(bytes_of(text), "x.safetensors");
}
std::string error_of(std::string_view text) {
  const auto read = parsed(text);
  return read ? "" : read.error().message();
}

constexpr const char* two = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F16","shape":[1,3],"data_offsets":[8,14]}})";

MappedFile written(const char* name) {
  const auto mapped = MappedFile::open(test::data_path("files/" + std::string(name)));
  return mapped ? *mapped : MappedFile();
}

TEST(Safetensors, EveryTypeOfTheOfficialWriterIsRead) {
  const MappedFile mapped = written("types.safetensors");
  const auto read = parse_safetensors(mapped.bytes(), "types.safetensors");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->tensors.size(), 9u);
  const auto numbers = [&](std::string_view name) {
    const StoredTensor* tensor = find_tensor(read->tensors, name);
    return tensor ? doubles_of(*tensor).value_or(std::vector<double>{1e300})
                  : std::vector<double>();
  };
  EXPECT_EQ(numbers("f64"), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers("f32"), (std::vector<double>{-2, -1, 0, 1, 2, 3}));
  EXPECT_EQ(numbers("f16"), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(numbers("bf16"), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(numbers("scalar"), std::vector<double>{2.5});
  EXPECT_EQ(numbers("empty"), std::vector<double>());
  EXPECT_EQ(numbers("i64"), std::vector<double>{1e300});  // no number posenc computes with
  const StoredTensor* f32 = find_tensor(read->tensors, "f32");
  EXPECT_EQ(f32->shape, (std::vector<std::int64_t>{3, 2}));
  ASSERT_TRUE(f32->view);
  EXPECT_EQ(f32->view.get(f32->view.offset(2, 1)), 3);
  EXPECT_FALSE(find_tensor(read->tensors, "five axes")->view);
}

TEST(Safetensors, MetadataKeepsItsWords) {
  const MappedFile mapped = written("types.safetensors");
  const auto read = parse_safetensors(mapped.bytes(), "types.safetensors");
  ASSERT_TRUE(read);
  std::vector<std::pair<std::string, std::string>> metadata = read->metadata;
  std::ranges::sort(metadata);
  EXPECT_EQ(metadata, (std::vector<std::pair<std::string, std::string>>{
                          {"format", "np"}, {"note", "NaN is a word here"}}));
}

TEST(Safetensors, AFileMayHoldNoTensor) {
  const MappedFile mapped = written("none.safetensors");
  const auto read = parse_safetensors(mapped.bytes(), "none.safetensors");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->tensors.empty());
}

TEST(Safetensors, TensorsAreListedByOffset) {
  const std::string text =
      file(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
           R"("none":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":null})",
           2);
  const auto read = parsed(text);
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->tensors.size(), 3u);
  EXPECT_EQ(read->tensors[0].name, "a");
  EXPECT_EQ(read->tensors[1].name, "none");
  EXPECT_EQ(read->tensors[2].name, "b");
}

TEST(Safetensors, AFileCutAtAnyByteIsAnError) {
  const std::string whole = file(two, 14);
  ASSERT_EQ(error_of(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_of(whole.substr(0, size)), "") << size;
  const MappedFile mapped = written("types.safetensors");
  for (std::size_t size = 0; size < mapped.bytes().size(); ++size)
    EXPECT_FALSE(parse_safetensors(mapped.bytes().first(size), "cut")) << size;
}

// Built with the sanitizers this reads nothing outside of the bytes.
TEST(Safetensors, AChangedHeaderByteNeverCrashes) {
  const std::string whole = file(two, 14);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size() - 14; ++at)
    for (const char byte : {'\0', '"', '{', ']', ',', '9', '-', '\xFF'}) {
      std::string text = whole;
      text[at] = byte;
      refused += parsed(text) ? 0 : 1;
    }
  EXPECT_GT(refused, 0u);
}

TEST(Safetensors, AHeaderLengthThatIsNotThereCostsNothing) {
  std::string text = file(two, 14);
  text.replace(0, 8, std::string("\0\0\0\0\0\1\0\0", 8));  // a terabyte
  EXPECT_EQ(
      error_of(text),
      "x.safetensors: the safetensors header must be at most 16 MiB, got 1099511627776 bytes; "
      "is it a safetensors file?");
  EXPECT_NE(error_of(std::string(8, '\xFF')), "");
  text.replace(0, 8, std::string("\0\0\1\0\0\0\0\0", 8));  // 64 KiB
  EXPECT_NE(error_of(text).find("must hold its header of 65536 bytes"), std::string::npos);
}

TEST(Safetensors, BytesBehindTheLastTensorAreAnError) {
  EXPECT_EQ(
      error_of(file(two, 15)),
      "x.safetensors: the file must end with its last tensor, 14 bytes of data, got 15 bytes; "
      "write the file anew");
  EXPECT_NE(error_of(file("{}", 1)), "");
}

TEST(Safetensors, HolesAndOverlapsAreErrors) {
  const auto pair = [](int a_begin, int a_end, int b_begin, int b_end) {
    const auto entry = [](const char* name, int begin, int end) {
      return "\"" + std::string(name) + R"(":{"dtype":"U8","shape":[)" +
             std::to_string(end - begin) + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
             std::to_string(end) + "]}";
    };
    return file("{" + entry("a", a_begin, a_end) + "," + entry("b", b_begin, b_end) + "}", 8);
  };
  EXPECT_EQ(error_of(pair(0, 4, 4, 8)), "");
  EXPECT_EQ(
      error_of(pair(0, 3, 4, 8)),
      "x.safetensors: tensor \"b\" must begin where the one before it ends, at byte 3, got 4; "
      "write the file anew");
  EXPECT_NE(error_of(pair(0, 5, 4, 8)), "");
  EXPECT_NE(error_of(pair(0, 8, 0, 8)), "");
  EXPECT_NE(error_of(pair(1, 4, 4, 8)), "");
}

TEST(Safetensors, BytesThatDoNotFitTheShapeAreAnError) {
  EXPECT_EQ(error_of(file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
            "x.safetensors: tensor \"a\" must have as many bytes as its dtype and shape need, 12, "
            "got 8; write the file anew");
  // Two to the byte; an odd number leaves half of one.
  EXPECT_EQ(error_of(file(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2)), "");
  EXPECT_NE(error_of(file(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1)), "");
}

TEST(Safetensors, SizesThatOverflowAreErrors) {
  for (const char* entry :
       {R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])",
        R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])",
        R"("dtype":"F32","shape":[9223372036854775807,2,0],"data_offsets":[0,0])",
        R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,0])",
        R"("dtype":"F32","shape":[-1],"data_offsets":[0,0])",
        R"("dtype":"F32","shape":[0.0],"data_offsets":[0,0])",
        R"("dtype":"F32","shape":[NaN],"data_offsets":[0,0])",
        R"("dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807])",
        R"("dtype":"U8","shape":[0],"data_offsets":[1,1])",
        R"("dtype":"U8","shape":[1],"data_offsets":[1,0])",
        R"("dtype":"U8","shape":[0],"data_offsets":[0])",
        R"("dtype":"U8","shape":[0],"data_offsets":"0,0")",
        R"("dtype":"U8","shape":0,"data_offsets":[0,0])", R"("dtype":"U8","data_offsets":[0,0])",
        R"("dtype":"U8","shape":[0])", R"("dtype":"Q4_K","shape":[0],"data_offsets":[0,0])",
        R"("dtype":7,"shape":[0],"data_offsets":[0,0])"})
    EXPECT_NE(error_of(file("{\"a\":{" + std::string(entry) + "}}")), "") << entry;
}

TEST(Safetensors, WhatIsNoHeaderIsAnError) {
  for (const char* header :
       {"", "[]", "null", "{", "{}}", " {}", "{} x", R"({"a":1})", R"({"a":null})",
        R"({"__metadata__":[]})", R"({"__metadata__":{"a":1}})", R"({"__metadata__":{"a":NaN}})",
        "{\"\xFF\":1}"})
    EXPECT_NE(error_of(file(header)), "") << header;
  EXPECT_EQ(error_of(file("{}      ")), "");
}

TEST(Safetensors, ANameTwiceIsAnError) {
  EXPECT_NE(error_of(file(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                          R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"))
                .find("'a' twice"),
            std::string::npos);
}

TEST(Safetensors, BombsOfDepthAndNumberAreErrors) {
  const std::string deep = R"({"a":)" + std::string(100'000, '[');
  EXPECT_NE(error_of(file(deep)).find("64 levels"), std::string::npos);
  std::string many = R"({"a":{"dtype":"U8","data_offsets":[0,0],"shape":[0)";
  for (int i = 0; i < 1 << 20; ++i) many += ",1";
  EXPECT_NE(error_of(file(many + "]}}")).find("a million values"), std::string::npos);
}

TEST(Safetensors, DataThatIsNotAlignedHasNoViewAndIsStillRead) {
  const std::string text = file(two, 14);
  for (std::size_t shift = 0; shift < 4; ++shift) {
    const std::string moved = std::string(shift, 'x') + text;
    const auto read = parse_safetensors(bytes_of(moved).subspan(shift), "x");
    ASSERT_TRUE(read) << read.error().message();
    const StoredTensor& a = read->tensors[0];
    EXPECT_EQ(static_cast<bool>(a.view), reinterpret_cast<std::uintptr_t>(a.bytes.data()) % 4 == 0);
    EXPECT_EQ(doubles_of(a), (std::vector<double>{0, 0}));
  }
}

}  // namespace
}  // namespace posenc::safetensors_test
