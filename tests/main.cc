// main() of posenc_tests. Tests share a process: one that crashes, hangs or is skipped is named, as
// one that fails is.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace {

// Seconds of a test, of which the slowest takes a few where nothing else runs; with sanitizers,
// beside other programs, some took more than 300.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned longest = 1500;
#elif defined(__has_feature)
constexpr unsigned longest =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ? 1500 : 300;
#else
constexpr unsigned longest = 300;
#endif

char running[512];  // the test's name, for a signal handler may not ask gtest

void name_the_test(int signal) {
  const auto say = [](const char* text) { (void)!write(STDOUT_FILENO, text, std::strlen(text)); };
  say("[  FAILED  ] ");
  say(running);
  say(signal == SIGALRM ? " did not end\n" : " crashed\n");
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Names : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(running, sizeof running, "%s.%s", test.test_suite_name(), test.name());
    alarm(longest);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    alarm(0);
    const testing::TestResult& result = *test.result();
    if (!result.Skipped()) return;
    for (int part = 0; part < result.total_part_count(); ++part)
      std::printf("skipped: %s: %s\n", running, result.GetTestPartResult(part).summary());
    std::fflush(stdout);
  }
};

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  testing::UnitTest::GetInstance()->listeners().Append(new Names);  // gtest deletes it
  for (const int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction before;  // a sanitizer's own handlers say more
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_DFL) std::signal(signal, name_the_test);
  }
  return RUN_ALL_TESTS();
}
