#include "cli/pages/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace {

using namespace posenc::cli;
using namespace std::chrono_literals;

// What is written on standard error while it is a terminal.
class OnATerminal {
 public:
  OnATerminal() {
    int slave = -1;
    EXPECT_EQ(openpty(&master_, &slave, nullptr, nullptr, nullptr), 0);
    fcntl(master_, F_SETFL, O_NONBLOCK);
    before_ = dup(STDERR_FILENO);
    dup2(slave, STDERR_FILENO);
    close(slave);
  }
  ~OnATerminal() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(master_);
  }
  std::string text() const {
    char bytes[4096];
    const ssize_t count = read(master_, bytes, sizeof bytes);
    return {bytes, static_cast<std::size_t>(count > 0 ? count : 0)};
  }

 private:
  int master_ = -1, before_ = -1;
};

TEST(Waiting, ShortWorkSaysNothing) {
  const OnATerminal terminal;
  {
    const Waiting waiting("rotate", "q.npy");
  }
  EXPECT_EQ(terminal.text(), "");
}

TEST(Waiting, WorkThatTellsNothingShowsItsTime) {
  const OnATerminal terminal;
  {
    const Waiting waiting("attend", "q.npy");
    std::this_thread::sleep_for(2200ms);
    EXPECT_TRUE(terminal.text().contains("attend 2 s: q.npy"));
  }
  EXPECT_NE(terminal.text(), "");  // the line is taken back
}

TEST(Waiting, WorkThatTellsItsShareShowsABar) {
  const OnATerminal terminal;
  Waiting waiting("rotate", "q.npy");
  waiting.share(0.5);
  std::this_thread::sleep_for(2200ms);
  const std::string text = terminal.text();
  EXPECT_TRUE(text.contains("rotate [##########----------] 50 %")) << text;
  EXPECT_TRUE(text.contains("2 s left: q.npy")) << text;
}

TEST(Waiting, AFileHasNoLines) {
  const OnATerminal terminal;
  const int file = open("/dev/null", O_WRONLY);
  dup2(file, STDERR_FILENO);
  close(file);
  const Waiting waiting("rotate", "q.npy");
  EXPECT_EQ(terminal.text(), "");
}

}  // namespace
