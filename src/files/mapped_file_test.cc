#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "posenc/files.h"
#include "tests/paths.h"

namespace {

using namespace posenc;

class Mapped : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::string error_of(const std::string& path) const {
    const auto file = MappedFile::open(path);
    return file ? "" : file.error().message();
  }
  std::filesystem::path folder_ = test::temporary_path("mapped");
};

TEST_F(Mapped, HoldsTheFilesBytes) {
  std::ofstream(path("a"), std::ios::binary) << "abc";
  const auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->path(), path("a"));
  ASSERT_EQ(file->bytes().size(), 3u);
  EXPECT_EQ(file->bytes()[2], std::byte{'c'});
}

TEST_F(Mapped, CopiesOutliveTheOriginalAndTheFilesName) {
  std::ofstream(path("a"), std::ios::binary) << "abc";
  std::optional<MappedFile> copy;
  {
    const auto file = MappedFile::open(path("a"));
    ASSERT_TRUE(file);
    copy = *file;
  }
  std::filesystem::remove(path("a"));
  EXPECT_EQ(copy->bytes()[0], std::byte{'a'});
}

TEST_F(Mapped, AnEmptyFileHasNoBytes) {
  std::ofstream(path("a")).close();
  const auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(Mapped, ATerabyteIsOpenedWithoutBeingRead) {
  std::ofstream(path("a")).close();
  std::filesystem::resize_file(path("a"), std::uintmax_t{1} << 40);
  const auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->bytes().size(), std::size_t{1} << 40);
  EXPECT_EQ(file->bytes().back(), std::byte{0});
}

TEST_F(Mapped, FoldersPipesAndDevicesAreRefused) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(path("pipe")),
            path("pipe") +
                ": must be a regular file, got a pipe, socket or device; give the file itself");
  EXPECT_NE(error_of(folder_.string()).find("got a folder"), std::string::npos);
  EXPECT_NE(error_of("/dev/zero"), "");
}

TEST_F(Mapped, AMissingFileIsAnError) {
  EXPECT_NE(error_of(path("none")).find("No such file"), std::string::npos);
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of(std::string("/dev/null\0x", 11)), "");
}

}  // namespace
