// GGUF files made byte by byte, most of them wrong; tests/data/files has some of the official
// writer.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "posenc/files.h"
#include "tests/gguf_bytes.h"
#include "tests/paths.h"

namespace posenc {
namespace {

using Bytes = test::GgufBytes;
using Kind = Bytes::Kind;
using enum Bytes::Kind;

std::string error_of(const Bytes& bytes) {
  const auto gguf = bytes.parse();
  return gguf ? "" : gguf.error().message();
}
bool has(const std::string& text, std::string_view part) { return text.contains(part); }

TEST(Gguf, KeepsEveryKindOfValue) {
  Bytes b;
  b.start(0, 12);
  b.key("u8", u8).put(std::uint8_t{200});
  b.key("i8", i8).put(std::int8_t{-3});
  b.key("u16", u16).put(std::uint16_t{60000});
  b.key("i16", i16).put(std::int16_t{-4});
  b.key("u32", u32).put(std::uint32_t{4000000000});
  b.key("i32", i32).put(std::int32_t{-5});
  b.key("f32", f32).put(0.5F);
  b.key("yes", boolean).put(std::uint8_t{1});
  b.key("word", string).word("halves");
  b.key("u64", u64).put(std::uint64_t{1} << 63);
  b.key("i64", i64).put(std::int64_t{-6});
  b.key("f64", f64).put(1e300);
  const auto gguf = b.parse();
  ASSERT_TRUE(gguf) << gguf.error().message();
  const auto is = [&](std::string_view key, const GgufValue& value) {
    return gguf->find(key) && *gguf->find(key) == value;
  };
  EXPECT_TRUE(is("u8", std::uint64_t{200}));
  EXPECT_TRUE(is("i8", std::int64_t{-3}));
  EXPECT_TRUE(is("u16", std::uint64_t{60000}));
  EXPECT_TRUE(is("i16", std::int64_t{-4}));
  EXPECT_TRUE(is("u32", std::uint64_t{4000000000}));
  EXPECT_TRUE(is("i32", std::int64_t{-5}));
  EXPECT_TRUE(is("f32", 0.5));
  EXPECT_TRUE(is("yes", true));
  EXPECT_TRUE(is("word", std::string("halves")));
  EXPECT_TRUE(is("u64", std::uint64_t{1} << 63));
  EXPECT_TRUE(is("i64", std::int64_t{-6}));
  EXPECT_TRUE(is("f64", 1e300));
  EXPECT_EQ(gguf->find("none"), nullptr);
}

TEST(Gguf, KeepsNumbersAndStringsOfArrays) {
  Bytes b;
  b.start(0, 4);
  b.key("ints", array).put(std::uint32_t{i32}).put(std::uint64_t{2});
  b.put(std::int32_t{-1}).put(std::int32_t{7});
  b.key("flags", array).put(std::uint32_t{boolean}).put(std::uint64_t{2});
  b.put(std::uint8_t{1}).put(std::uint8_t{0});
  b.key("reals", array).put(std::uint32_t{f32}).put(std::uint64_t{1}).put(0.25F);
  b.key("words", array).put(std::uint32_t{string}).put(std::uint64_t{2}).word("a").word("bc");
  const auto gguf = b.parse();
  ASSERT_TRUE(gguf) << gguf.error().message();
  EXPECT_EQ(*gguf->find("ints"), (GgufValue(std::vector<std::int64_t>{-1, 7})));
  EXPECT_EQ(*gguf->find("flags"), (GgufValue(std::vector<std::int64_t>{1, 0})));
  EXPECT_EQ(*gguf->find("reals"), (GgufValue(std::vector<double>{0.25})));
  const auto* words = std::get_if<GgufStrings>(gguf->find("words"));
  ASSERT_TRUE(words);
  EXPECT_EQ(words->count, 2u);
  EXPECT_EQ(words->texts(), (std::vector<std::string_view>{"a", "bc"}));
}

TEST(Gguf, ListsTensorsWithTheContiguousAxisLast) {
  Bytes b;
  b.start(2, 0).tensor("a", {3, 2}, 0, 0).tensor("b", {32}, 8, 32).pad();
  for (int i = 0; i < 6; ++i) b.put(static_cast<float>(i));
  b.pad().text.append(34, 'q');
  const auto gguf = b.parse();
  ASSERT_TRUE(gguf) << gguf.error().message();
  EXPECT_EQ(gguf->missing_bytes, 0u);
  const StoredTensor* a = find_tensor(gguf->tensors, "a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(*doubles_of(*a), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(find_tensor(gguf->tensors, "b")->bytes.size(), 34u);
  EXPECT_EQ(find_tensor(gguf->tensors, "b")->type, "Q8_0");
}

TEST(Gguf, AlignmentMovesTheData) {
  Bytes b;
  b.start(1, 1).key("general.alignment", u32).put(std::uint32_t{256});
  b.tensor("a", {1}, 0, 0).pad(256).put(7.0F);
  const auto gguf = b.parse();
  ASSERT_TRUE(gguf) << gguf.error().message();
  EXPECT_EQ(*doubles_of(gguf->tensors[0]), std::vector<double>{7});
}

TEST(Gguf, VersionTwoIsReadAlike) { EXPECT_EQ(Bytes().start(0, 0, 2).parse()->version, 2u); }

TEST(Gguf, ATensorOfATypeStillToComeKeepsItsName) {
  Bytes b;
  b.start(1, 0).tensor("a", {8}, 99, 0).pad().put(1.0F);
  const auto gguf = b.parse();
  ASSERT_TRUE(gguf) << gguf.error().message();
  EXPECT_EQ(gguf->tensors[0].type, "ggml type 99");
  EXPECT_TRUE(gguf->tensors[0].bytes.empty());
}

TEST(Gguf, MissingTensorDataIsCounted) {
  Bytes b;
  b.start(2, 0).tensor("a", {1}, 0, 0).tensor("b", {1000}, 0, 32).pad().put(7.0F);
  const auto gguf = b.parse();
  ASSERT_TRUE(gguf) << gguf.error().message();
  EXPECT_EQ(gguf->missing_bytes, 32u - 4 + 4000);
  EXPECT_EQ(gguf->tensors[0].bytes.size(), 4u);
  EXPECT_TRUE(gguf->tensors[1].bytes.empty());
}

// --- refused -------------------------------------------------------------------------------------

TEST(GgufRefuses, AnotherMagic) {
  Bytes b;
  b.text = "GGML and more";
  EXPECT_TRUE(has(error_of(b), "m.gguf: must be a GGUF file"));
}
TEST(GgufRefuses, AnEmptyFile) { EXPECT_TRUE(has(error_of(Bytes()), "must be a GGUF file")); }
TEST(GgufRefuses, BigEndianByName) {
  EXPECT_TRUE(has(error_of(Bytes().start(0, 0, 3u << 24)), "big-endian"));
}
TEST(GgufRefuses, VersionOneAndFour) {
  EXPECT_TRUE(has(error_of(Bytes().start(0, 0, 1)), "version 2 or 3, got 1"));
  EXPECT_TRUE(has(error_of(Bytes().start(0, 0, 4)), "got 4"));
}
TEST(GgufRefuses, CountsBeyondReason) {
  EXPECT_TRUE(has(error_of(Bytes().start(~0ull, 0)), "tensors"));
  EXPECT_TRUE(has(error_of(Bytes().start(0, ~0ull)), "metadata keys"));
}
TEST(GgufRefuses, AKeyTwice) {
  Bytes b;
  b.start(0, 2).key("a", u8).put(std::uint8_t{1}).key("a", u8).put(std::uint8_t{2});
  EXPECT_TRUE(has(error_of(b), "a: each key must stand once"));
}
TEST(GgufRefuses, AnUnknownKindOfValue) {
  EXPECT_TRUE(has(error_of(Bytes().start(0, 1).key("a", static_cast<Kind>(13))), "unknown kind"));
}
TEST(GgufRefuses, ABooleanThatIsTwo) {
  Bytes b;
  b.start(0, 1).key("a", boolean).put(std::uint8_t{2});
  EXPECT_TRUE(has(error_of(b), "must be 0 or 1"));
}
TEST(GgufRefuses, ArraysOfArraysHoweverDeep) {
  Bytes b;
  b.start(0, 1).key("a", array);
  for (int i = 0; i < 100'000; ++i) b.put(std::uint32_t{array}).put(std::uint64_t{1});
  EXPECT_TRUE(has(error_of(b), "array of arrays"));
}
TEST(GgufRefuses, MoreEntriesThanBytes) {
  for (const std::uint64_t count : {std::uint64_t{9}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    for (const Kind kind : {u8, f64, string}) {
      Bytes b;
      b.start(0, 1).key("a", array).put(static_cast<std::uint32_t>(kind)).put(count);
      b.put(std::uint64_t{0});
      EXPECT_TRUE(has(error_of(b), "a: ")) << count;
    }
  }
}
TEST(GgufRefuses, ATextLongerThanTheFile) {
  Bytes b;
  b.start(0, 1).key("a", string).put(~std::uint64_t{0});
  EXPECT_TRUE(has(error_of(b), "ends within its header"));
}
TEST(GgufRefuses, AlignmentsThatAreNoPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 24u, 1u << 31}) {
    Bytes b;
    b.start(0, 1).key("general.alignment", u32).put(alignment);
    EXPECT_TRUE(has(error_of(b), "power of two")) << alignment;
  }
}
TEST(GgufRefuses, ATensorTwice) {
  Bytes b;
  b.start(2, 0).tensor("a", {1}, 0, 0).tensor("a", {1}, 0, 32);
  EXPECT_TRUE(has(error_of(b), "a: each tensor must stand once"));
}
TEST(GgufRefuses, FiveAxes) {
  EXPECT_TRUE(has(error_of(Bytes().start(1, 0).tensor("a", {1, 1, 1, 1, 1}, 0, 0)), "4 axes"));
}
TEST(GgufRefuses, SizesThatOverflow) {
  const std::uint64_t half = std::uint64_t{1} << 32;
  EXPECT_TRUE(has(error_of(Bytes().start(1, 0).tensor("a", {half, half}, 0, 0)), "63 bits"));
  EXPECT_TRUE(
      has(error_of(Bytes().start(1, 0).tensor("a", {half / 2, half / 2}, 0, 0)), "63 bits"));
  EXPECT_TRUE(has(error_of(Bytes().start(1, 0).tensor("a", {~0ull}, 0, 0)), "63 bits"));
}
TEST(GgufRefuses, AnEndBeyondTheAddressSpace) {
  const std::uint64_t last = ~std::uint64_t{0} - 31;
  EXPECT_TRUE(has(error_of(Bytes().start(1, 0).tensor("a", {64}, 0, last)), "64 bits"));
}
TEST(GgufRefuses, RowsThatAreNoWholeBlocks) {
  EXPECT_TRUE(has(error_of(Bytes().start(1, 0).tensor("a", {33}, 8, 0)), "multiple of 32"));
}
TEST(GgufRefuses, OffsetsThatAreNotAligned) {
  EXPECT_TRUE(has(error_of(Bytes().start(1, 0).tensor("a", {1}, 0, 4)), "multiple of 32"));
}
TEST(GgufRefuses, TensorsThatOverlap) {
  Bytes b;
  b.start(2, 0).tensor("a", {32}, 0, 0).tensor("b", {1}, 0, 32);
  EXPECT_TRUE(has(error_of(b), "b: tensors must not overlap"));
}

// --- damaged and big files -----------------------------------------------------------------------

TEST(GgufDamaged, EveryPrefixOfTheHeaderIsAnErrorAndOfTheDataACount) {
  for (const auto& entry : std::filesystem::directory_iterator(test::data_path("files"))) {
    if (entry.path().extension() != ".gguf") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(parse_gguf(bytes, "whole")) << entry.path();
    bool header = true;  // once the header is whole, every longer prefix is read
    for (std::size_t length = 0; length < text.size(); ++length) {
      const auto gguf = parse_gguf(bytes.first(length), "cut");
      header = header && !gguf;
      EXPECT_EQ(header, !gguf) << entry.path() << " at " << length;
      if (gguf && !gguf->tensors.empty()) {
        EXPECT_GT(gguf->missing_bytes, 0u) << length;
      }
    }
  }
}

TEST(GgufDamaged, AnyByteChangedIsReadOrRefused) {
  for (const auto& entry : std::filesystem::directory_iterator(test::data_path("files"))) {
    if (entry.path().extension() != ".gguf") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char before = text[at];
      for (const char bad : {'\xff', '\x00', '\x7f', '\x01'}) {
        text[at] = bad;
        const auto gguf = parse_gguf(std::as_bytes(std::span(text)), "bad");
        EXPECT_TRUE(gguf || !gguf.error().rule.empty());
      }
      text[at] = before;
    }
  }
}

// A terabyte of tensor data, none of it stored: the header alone is touched.
TEST(GgufBig, OnlyTheHeaderIsTouched) {
  Bytes b;
  constexpr std::uint64_t elements = std::uint64_t{1} << 36;
  b.start(1, 1).key("general.architecture", string).word("llama");
  b.tensor("token_embd.weight", {elements}, 0, 0).pad();
  const std::string path = test::temporary_path("big").string();
  std::ofstream(path, std::ios::binary) << b.text;
  if (truncate(path.c_str(), static_cast<off_t>(b.text.size() + 4 * elements)) != 0) {
    std::filesystem::remove(path);
    GTEST_SKIP() << "the file system holds no such file";
  }
  const auto began = std::chrono::steady_clock::now();
  const auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(file) << file.error().message();
  const auto gguf = parse_gguf(file->bytes(), path);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  ASSERT_TRUE(gguf) << gguf.error().message();
  EXPECT_EQ(gguf->missing_bytes, 0u);
  EXPECT_LT(seconds.count(), 1.0);
  std::size_t touched = 0;  // pages of the mapping that are in memory, of the first gigabyte
  std::vector<unsigned char> pages((std::size_t{1} << 30) / 4096);
  auto* start = const_cast<std::byte*>(file->bytes().data());
  ASSERT_EQ(mincore(start, std::size_t{1} << 30, pages.data()), 0);
  for (const unsigned char page : pages) touched += page & 1;
  EXPECT_LT(touched, 64u);  // a page, and what the kernel reads ahead
}

}  // namespace
}  // namespace posenc
