// Runs the built command as a user does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace posenc::test {

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr bool threads_sanitized = true;
#else
inline constexpr bool threads_sanitized = false;
#endif
// Whether a sanitizer's own memory comes on top: its shadow is larger than any limit, and it keeps
// what was freed.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = threads_sanitized;
#endif

struct Outcome {
  int code = -1;  // 128 + the signal where one ended it
  std::string out, err;
};

// A folder of its own, removed at the end.
class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');  // of a test with parameters
    folder_ = test::temporary_path(name);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // `arguments` as a shell reads them.
  Outcome posenc(const std::string& arguments) const {
    return run("'" + test::command_path() + "' " + arguments);
  }
  Outcome run(const std::string& line) const {
    const std::string command = "cd '" + folder_.string() + "' && " + line + " > '" +
                                path("stdout") + "' 2> '" + path("stderr") + "'";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("stdout"),
            text("stderr")};
  }

  std::string text(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  std::filesystem::path folder_;
};

inline bool has(const std::string& text, const std::string& part) { return text.contains(part); }

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace posenc::test
