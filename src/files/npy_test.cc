#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/files.h"
#include "tests/paths.h"

namespace {

using namespace posenc;

std::string header(std::string dictionary, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  dictionary += '\n';
  for (int byte = 0; byte < (version == 1 ? 2 : 4); byte++)
    text += static_cast<char>((dictionary.size() >> (8 * byte)) & 0xFF);
  return text + dictionary;
}

std::string floats(std::size_t count) { return std::string(4 * count, '\0'); }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
// Over the bytes of `text`, which must outlive it.
Expected<StoredTensor> parsed(std::string_view text) { return parse_npy(bytes_of(text), "x.npy"); }

std::string error_of(std::string_view text) {
  const Expected<StoredTensor> array = parsed(text);
  return array ? "" : array.error().message();
}

constexpr const char* two_by_three = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

TEST(Npy, ReadsVersionsOneAndTwo) {
  for (const char version : {1, 2}) {
    const std::string text = header(two_by_three, version) + floats(6);
    const Expected<StoredTensor> array = parsed(text);
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_EQ(array->type, "<f4");
    EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(array->bytes.size(), 24u);
  }
}

TEST(Npy, ReadsKeysInAnyOrderAndQuotes) {
  EXPECT_TRUE(parsed(header("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<i8\"}") +
                     std::string(8, '\0')));
}

TEST(Npy, ReadsScalarsAndEmptyArrays) {
  EXPECT_TRUE(
      parsed(header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }") + floats(1)));
  EXPECT_TRUE(parsed(header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }")));
}

TEST(Npy, AFileCutAtAnyByteIsAnError) {
  const std::string whole = header(two_by_three) + floats(6);
  for (std::size_t size = 0; size < whole.size(); size++)
    EXPECT_FALSE(parsed(whole.substr(0, size))) << size;
}

TEST(Npy, AChangedHeaderByteNeverCrashes) {
  const std::string whole = header(two_by_three) + floats(6);
  for (std::size_t at = 0; at < whole.size() - 24; at++)
    for (const char byte : {'\0', '\'', '(', ')', ',', '9', '-', '\xFF'}) {
      std::string text = whole;
      text[at] = byte;
      (void)parsed(text);
    }
}

TEST(Npy, MoreBytesThanTheShapeNeedsAreAnError) {
  EXPECT_EQ(error_of(header(two_by_three) + floats(7)),
            "x.npy: the file must end with the array, got 4 bytes more; save one array to a file");
}

TEST(Npy, FortranOrderIsRefused) {
  const auto text =
      header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }") + floats(6);
  EXPECT_NE(error_of(text).find("must be in C order"), std::string::npos);
}

TEST(Npy, BigEndianIsRefused) {
  const auto text =
      header("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }") + floats(6);
  EXPECT_NE(error_of(text).find("must be little endian, got >f4"), std::string::npos);
}

TEST(Npy, UnknownTypesAreRefused) {
  for (const char* descr : {"'<c8'", "'<U5'", "'|O'", "'<f16'", "[('x', '<f4')]", "''"}) {
    const std::string dictionary =
        "{'descr': " + std::string(descr) + ", 'fortran_order': False, 'shape': (2, 3), }";
    EXPECT_NE(error_of(header(dictionary) + floats(6)), "") << descr;
  }
}

TEST(Npy, AShapeThatOverflowsIsAnError) {
  for (const char* shape : {"(4294967296, 4294967296)", "(9223372036854775807,)",
                            "(99999999999999999999,)", "(-1,)", "(2, -3)"}) {
    const std::string dictionary =
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape) + ", }";
    EXPECT_NE(error_of(header(dictionary) + floats(6)), "") << shape;
  }
}

TEST(Npy, EveryTypeOfNumPyIsRead) {
  const struct {
    const char* file;
    const char* type;
    std::vector<std::int64_t> shape;
  } rows[] = {{"f8", "<f8", {2, 3}},   {"f4", "<f4", {1, 2, 3}}, {"f2", "<f2", {2}},
              {"u2", "<u2", {2}},      {"i8", "<i8", {2}},       {"i4", "<i4", {1, 1}},
              {"u1", "|u1", {2}},      {"b1", "|b1", {2}},       {"scalar", "<f8", {}},
              {"empty", "<f4", {0, 3}}};
  for (const auto& [file, type, shape] : rows) {
    const auto mapped = MappedFile::open(test::data_path("files/" + std::string(file) + ".npy"));
    ASSERT_TRUE(mapped) << mapped.error().message();
    const auto array = parse_npy(mapped->bytes(), file);
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_EQ(array->type, type);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(static_cast<bool>(array->view), type[1] == 'f' && array->bytes.size() > 0) << file;
    if (std::string_view(file) == "f2") {
      EXPECT_EQ(doubles_of(*array), (std::vector<double>{1.5, -2}));
    }
  }
}

TEST(Npy, AHeaderLengthThatIsNotThereIsAnError) {
  std::string text = header(two_by_three, 2) + floats(6);
  text.replace(8, 4, "\xFF\xFF\xFF\x7F");
  EXPECT_EQ(error_of(text),
            "x.npy: the .npy header must be at most 64 KiB, got 2147483647 bytes; write the file "
            "with numpy.save");
}

TEST(Npy, AKeyTwiceAndTextBehindTheDictionaryAreErrors) {
  for (const char* dictionary :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} + 1",
        "{'descr': '<f4' 'fortran_order': False 'shape': (2, 3)}"})
    EXPECT_NE(error_of(header(dictionary) + floats(6)), "") << dictionary;
}

TEST(Npy, AnyNumberOfAxesIsListedAndUpToFourAreAView) {
  std::string text = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1), }");
  text += floats(1);
  const auto five = parsed(text);
  ASSERT_TRUE(five) << five.error().message();
  EXPECT_EQ(five->shape.size(), 5u);
  EXPECT_FALSE(five->view);
  std::string many = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < 65; axis++) many += "1, ";
  EXPECT_NE(error_of(header(many + ")}") + floats(1)), "");
}

}  // namespace
