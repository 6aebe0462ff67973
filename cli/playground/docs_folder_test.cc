#include "cli/playground/docs_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/playground/answer.h"
#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;
using posenc::cli::answer;
using posenc::cli::DocsFolder;

class Docs : public testing::Test {
 protected:
  Docs() {
    folder_ =
        posenc::test::temporary_path(testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "site/scheme");
    write("site/index.html", "first page");
    write("site/scheme/rope.html", "rope");
    write("secret.txt", "secret");
  }
  ~Docs() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string ask(const std::string& target) const {
    const auto docs = DocsFolder::read(folder_ / "site");
    EXPECT_TRUE(docs) << docs.error().message();
    const auto out =
        answer("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
               "127.0.0.1", docs->files());
    return out->head.substr(9, 3) + " " + std::string(out->body);
  }

  fs::path folder_;
};

TEST_F(Docs, StandBelowTheirNameAndAFolderIsItsIndex) {
  for (const char* path : {"/docs/", "/docs/index.html", "/docs/?x=1"})
    EXPECT_EQ(ask(path), "200 first page") << path;
  EXPECT_EQ(ask("/docs/scheme/rope.html"), "200 rope");
}

TEST_F(Docs, NothingBesideThemCanBeAskedFor) {
  for (const char* path :
       {"/docs", "/docs/../secret.txt", "/docs/scheme/../../secret.txt", "/docs/%2e%2e/secret.txt",
        "/docs/..%2fsecret.txt", "/docs//etc/passwd", "/docs/scheme", "/docs/scheme/",
        "/docs/./index.html", "/docs/index.html/", "/docs/index.html%00", "/index.html",
        "/docs/..\\secret.txt"})
    EXPECT_EQ(ask(path).substr(0, 3), "404") << path;
}

TEST_F(Docs, LinksAreNotFollowed) {
  fs::create_symlink(folder_ / "secret.txt", folder_ / "site/link.txt");
  fs::create_directory_symlink(folder_, folder_ / "site/up");
  const auto docs = DocsFolder::read(folder_ / "site");
  ASSERT_TRUE(docs);
  EXPECT_EQ(docs->files().size(), 2u);
  EXPECT_EQ(ask("/docs/link.txt").substr(0, 3), "404");
  EXPECT_EQ(ask("/docs/up/secret.txt").substr(0, 3), "404");
}

TEST_F(Docs, WhatIsNoSiteIsRefused) {
  for (const fs::path& other : {folder_, folder_ / "none", folder_ / "secret.txt"})
    EXPECT_FALSE(DocsFolder::read(other)) << other;
}

TEST_F(Docs, AreOfSomeSizeAtMost) {
  for (std::size_t i = 0; i < DocsFolder::most_files; ++i)
    write("site/scheme/" + std::to_string(i), "");
  const auto docs = DocsFolder::read(folder_ / "site");
  ASSERT_FALSE(docs);
  EXPECT_NE(docs.error().message().find("at most"), std::string::npos) << docs.error().message();
}

TEST_F(Docs, TheirTagsFollowTheirBytes) {
  const auto tag = [&] {
    const auto docs = DocsFolder::read(folder_ / "site");
    return std::string(docs->files()[0].hash);
  };
  const std::string before = tag();
  EXPECT_EQ(before, tag());
  write("site/index.html", "first pagf");
  EXPECT_NE(before, tag());
}

}  // namespace
