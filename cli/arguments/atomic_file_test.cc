#include "cli/arguments/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/paths.h"

namespace {

using posenc::cli::write_whole;
namespace files = std::filesystem;

class WriteWhole : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = posenc::test::temporary_path(test->name());
    files::create_directories(folder_);
  }
  void TearDown() override {
    files::permissions(folder_, files::perms::owner_all);
    files::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void make(const std::string& name, mode_t mode) const {
    std::ofstream(path(name)) << "old";
    chmod(path(name).c_str(), mode);
  }
  std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  mode_t mode(const std::string& name) const {
    struct stat status = {};
    return stat(path(name).c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  std::ptrdiff_t count() const { return std::distance(files::directory_iterator(folder_), {}); }
  std::string error(const std::string& name) const {
    const auto written = write_whole(path(name), {"new"});
    return written ? "" : written.error().message();
  }

  // Writes beyond the size that the system allows, and says what came of it.
  [[noreturn]] void write_too_much(void (*handler)(int)) const {
    const rlimit none = {0, 0}, most = {50000, 50000};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &most);
    std::signal(SIGXFSZ, handler);
    const auto written = write_whole(path("out"), {std::string(100000, 'x')});
    std::fputs(written ? "written" : written.error().message().c_str(), stderr);
    std::_Exit(2);
  }

  files::path folder_;
};

int brought = 0;
void bring(int) { std::raise(brought); }

TEST_F(WriteWhole, PartsFollowOneAnother) {
  EXPECT_EQ(write_whole(path("out"), {"a", "", "bc"}).has_value(), true);
  EXPECT_EQ(text("out"), "abc");
  EXPECT_EQ(count(), 1);
}

TEST_F(WriteWhole, ANewFileHasTheModeThatAnyHas) {
  const mode_t before = umask(027);
  EXPECT_EQ(error("out"), "");
  umask(before);
  EXPECT_EQ(mode("out"), 0640u);
}

TEST_F(WriteWhole, OverwritingKeepsTheMode) {
  for (const mode_t each : {0600u, 0640u, 0755u, 0666u}) {
    make("out", each);
    EXPECT_EQ(error("out"), "");
    EXPECT_EQ(mode("out"), each);
    EXPECT_EQ(text("out"), "new");
  }
}

TEST_F(WriteWhole, OverwritingKeepsTheOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  make("out", 0660);
  ASSERT_EQ(chown(path("out").c_str(), 65534, 65533), 0);
  EXPECT_EQ(error("out"), "");
  struct stat status = {};
  ASSERT_EQ(stat(path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534u);
  EXPECT_EQ(status.st_gid, 65533u);
  EXPECT_EQ(mode("out"), 0660u);
}

TEST_F(WriteWhole, AWriteProtectedFileIsRefused) {
  make("out", 0444);
  EXPECT_EQ(error("out"), path("out") +
                              ": the file that is there must be writable, got mode 444; "
                              "chmod u+w, or name another");
  EXPECT_EQ(text("out"), "old");
  EXPECT_EQ(mode("out"), 0444u);
}

// The whole file comes by a rename, which the folder must allow.
TEST_F(WriteWhole, AFolderThatIsWriteProtectedIsRefusedWithASentence) {
  make("out", 0666);
  files::permissions(folder_, files::perms(0555));
  EXPECT_EXIT(
      {
        (void)!setuid(65534);  // of root, who may write anywhere
        std::fputs(error("out").c_str(), stderr);
        std::_Exit(2);
      },
      testing::ExitedWithCode(2), "its folder must be writable.*copy it");
  EXPECT_EQ(text("out"), "old");
}

// SIGXFSZ comes in the middle of the writing, and brings the other.
TEST_F(WriteWhole, ASignalThatEndsTheProgramLeavesNothing) {
  if (posenc::test::threads_sanitized)
    GTEST_SKIP() << "that sanitizer keeps a signal back until the write that raised it has failed";
  make("out", 0644);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ}) {
    brought = signal;
    std::signal(signal, SIG_DFL);
    EXPECT_EXIT(write_too_much(signal == SIGXFSZ ? SIG_DFL : bring),
                testing::KilledBySignal(signal), "");
    EXPECT_EQ(count(), 1) << signal;
    EXPECT_EQ(text("out"), "old") << signal;
  }
}

TEST_F(WriteWhole, ASignalThatIsIgnoredStaysSo) {
  EXPECT_EXIT(write_too_much(SIG_IGN), testing::ExitedWithCode(2),
              "cannot be written, got File too large");
  EXPECT_EQ(count(), 0);
}

TEST_F(WriteWhole, SignalsAreTheProgramsOwnAgainAfterwards) {
  const auto mine = [](int) {};
  const auto before = std::signal(SIGTERM, mine);
  EXPECT_EQ(error("out"), "");
  EXPECT_EQ(std::signal(SIGTERM, before), +mine);
}

TEST_F(WriteWhole, ALinkThatLeadsNowhereYetIsWrittenThrough) {
  files::create_directory(folder_ / "far");
  files::create_symlink("far/second", folder_ / "first");
  files::create_symlink("../out", folder_ / "far/second");
  EXPECT_EQ(error("first"), "");
  EXPECT_TRUE(files::is_symlink(folder_ / "first"));
  EXPECT_TRUE(files::is_symlink(folder_ / "far/second"));
  EXPECT_EQ(text("out"), "new");
}

TEST_F(WriteWhole, LinksInACircleAreAnError) {
  files::create_symlink("b", folder_ / "a");
  files::create_symlink("a", folder_ / "b");
  EXPECT_NE(error("a").find("cannot be written"), std::string::npos);
  EXPECT_EQ(count(), 2);
}

TEST_F(WriteWhole, OtherNamesOfAFileKeepWhatItHeld) {
  make("out", 0644);
  files::create_hard_link(path("out"), path("other"));
  EXPECT_EQ(error("out"), "");
  EXPECT_EQ(text("out"), "new");
  EXPECT_EQ(text("other"), "old");
}

TEST_F(WriteWhole, NamesMayBeAsLongAsTheSystemTakes) {
  for (const std::size_t length : {1u, 245u, 246u, 255u}) {
    const std::string name(length, 'n');
    EXPECT_EQ(error(name), "") << length;
    EXPECT_EQ(text(name), "new") << length;
  }
  EXPECT_NE(error(std::string(256, 'n')).find("File name too long"), std::string::npos);
}

// As containers that share a folder have processes of one number.
TEST_F(WriteWhole, AnUnfinishedFileOfAnotherIsNotTouched) {
  const std::string others = ".posenc-" + std::to_string(getpid()) + "-0";
  make(others, 0600);
  EXPECT_EQ(error("out"), "");
  EXPECT_EQ(text("out"), "new");
  EXPECT_EQ(text(others), "old");
}

}  // namespace
