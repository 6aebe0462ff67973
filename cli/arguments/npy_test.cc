#include "cli/arguments/npy.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

using namespace posenc;
using namespace posenc::cli;

class NpyFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_ = posenc::test::temporary_path("npy");
};

TEST(Npy, AnOutputNoMemoryHoldsIsAnError) {
  EXPECT_FALSE(make_array(NpyType::f64, {std::int64_t{1} << 40, std::int64_t{1} << 40}));
  EXPECT_FALSE(make_array(NpyType::f64, {std::int64_t{1} << 59}));
}

TEST(Npy, Uint16NeedsToBeCalledBfloat16) {
  Array array{NpyType::u16, {2}, std::vector<std::byte>(4)};
  EXPECT_FALSE(tensor_of(array, "", "x.npy"));
  const Expected<Tensor> tensor = tensor_of(array, "bfloat16", "x.npy");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->dtype, DType::bf16);
}

TEST(Npy, ADtypeThatIsNotTheFilesIsAnError) {
  Array array{NpyType::f32, {1}, std::vector<std::byte>(4)};
  EXPECT_FALSE(tensor_of(array, "float64", "x.npy"));
  EXPECT_FALSE(tensor_of(array, "float23", "x.npy"));
  EXPECT_TRUE(tensor_of(array, "float32", "x.npy"));
}

TEST(Npy, IntegersAreReadFromAllTheirTypes) {
  Array array{NpyType::i32, {1}, std::vector<std::byte>(4, std::byte{0xFF})};
  EXPECT_EQ(integers_of(array, "x"), std::vector<std::int64_t>{-1});
  array.type = NpyType::u8;
  array.shape = {4};
  EXPECT_EQ(integers_of(array, "x"), std::vector<std::int64_t>(4, 255));
  array.type = NpyType::f32;
  array.shape = {1};
  EXPECT_FALSE(integers_of(array, "x"));
}

TEST_F(NpyFile, WhatIsWrittenReadsBack) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {3}, {2, 3}, {2, 1, 3}, {1, 2, 3, 4}, {0, 3}}) {
    Expected<Array> array = make_array(NpyType::f64, shape);
    ASSERT_TRUE(array);
    for (std::size_t i = 0; i < array->data.size(); i++) array->data[i] = std::byte(i);
    ASSERT_TRUE(write_npy(path("a.npy"), *array));
    const Expected<Array> back = read_array(path("a.npy"));
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->shape, shape);
    EXPECT_EQ(back->data, array->data);
  }
}

TEST_F(NpyFile, TheHeaderIsAMultipleOf64Bytes) {
  const Expected<Array> array = make_array(NpyType::f32, {2});
  ASSERT_TRUE(write_npy(path("a.npy"), *array));
  EXPECT_EQ(std::filesystem::file_size(path("a.npy")) % 64, 8u);
}

TEST_F(NpyFile, NothingElseIsLeftBeside) {
  ASSERT_TRUE(write_npy(path("a.npy"), *make_array(NpyType::f32, {2})));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) files++;
  EXPECT_EQ(files, 1u);
}

TEST_F(NpyFile, AnOutputThatIsNoRegularFileIsRefused) {
  EXPECT_FALSE(write_npy(folder_.string(), *make_array(NpyType::f32, {2})));
  EXPECT_FALSE(write_npy("/dev/null", *make_array(NpyType::f32, {2})));
}

TEST_F(NpyFile, AFolderThatIsMissingIsAnError) {
  const auto written = write_npy(path("none/a.npy"), *make_array(NpyType::f32, {2}));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find("No such file"), std::string::npos);
}

TEST_F(NpyFile, MoreThanFourAxesAreRefused) {
  ASSERT_TRUE(write_npy(path("a.npy"), *make_array(NpyType::f32, {1, 1, 1, 1, 1})));
  EXPECT_NE(read_array(path("a.npy")).error().message().find("at most 4 axes, got 5"),
            std::string::npos);
}

TEST_F(NpyFile, AMissingFileIsAnError) { EXPECT_FALSE(read_array(path("none.npy"))); }

// Each would be read for ever, or whole, before its first bytes were looked at.
TEST_F(NpyFile, PipesDevicesAndHugeFilesOfAnotherKindAreRefused) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_array(path("pipe")));
  EXPECT_FALSE(read_array("/dev/zero"));
  EXPECT_FALSE(read_array(folder_.string()));
  std::ofstream(path("zeros.npy")).close();
  std::filesystem::resize_file(path("zeros.npy"), std::uintmax_t{1} << 40);
  EXPECT_FALSE(read_array(path("zeros.npy")));
}

TEST_F(NpyFile, SafetensorsReadBackInEveryType) {
  for (const NpyType type : {NpyType::f64, NpyType::f32, NpyType::f16, NpyType::u16, NpyType::i64,
                             NpyType::i32, NpyType::u8, NpyType::boolean, NpyType::bf16}) {
    Expected<Array> array = make_array(type, {2, 3});
    for (std::size_t i = 0; i < array->data.size(); i++) array->data[i] = std::byte(i);
    ASSERT_TRUE(write_array(path("a.safetensors:x.weight"), *array));
    const Expected<Array> back = read_array(path("a.safetensors:x.weight"));
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->type, type);
    EXPECT_EQ(back->shape, array->shape);
    EXPECT_EQ(back->data, array->data);
  }
}

TEST_F(NpyFile, Uint16ThatIsCalledBfloat16IsWrittenSo) {
  ASSERT_TRUE(write_array(path("a.safetensors"), *make_array(NpyType::u16, {2}), "bfloat16"));
  EXPECT_EQ(read_array(path("a.safetensors"))->type, NpyType::bf16);
}

TEST_F(NpyFile, NumbersOfSafetensorsBeginAtAMultipleOfEightBytes) {
  for (const std::string name : {"a", "ab", "abc", "\"quoted\""}) {
    ASSERT_TRUE(write_array(path("a.safetensors:") + name, *make_array(NpyType::f64, {1})));
    EXPECT_EQ(std::filesystem::file_size(path("a.safetensors")) % 8, 0u);
    EXPECT_TRUE(read_array(path("a.safetensors:") + name));
  }
}

TEST(Npy, AnArrayIsNamedByItsFileOrItsFileAndTensor) {
  EXPECT_EQ(array_name("dir:a/m.safetensors:q.0").file, "dir:a/m.safetensors");
  EXPECT_EQ(array_name("dir:a/m.safetensors:q.0").tensor, "q.0");
  EXPECT_EQ(array_name("C:x.npy").file, "C:x.npy");
  EXPECT_TRUE(names_array("ids.npy") && names_array("m.safetensors") && names_array("m.gguf:q"));
  EXPECT_FALSE(names_array("0:4096") || names_array("0,2,4"));
}

TEST_F(NpyFile, ALinkKeepsPointingAtItsTarget) {
  ASSERT_TRUE(write_npy(path("target.npy"), *make_array(NpyType::f32, {2})));
  std::filesystem::create_symlink(path("target.npy"), path("link.npy"));
  ASSERT_TRUE(write_npy(path("link.npy"), *make_array(NpyType::f32, {5})));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.npy")));
  EXPECT_EQ(read_array(path("target.npy"))->shape, std::vector<std::int64_t>{5});
}

}  // namespace
