// What is to be put right before a signal ends the program.
#pragma once

#include <signal.h>

#include <cstddef>
#include <iterator>

namespace posenc::cli {

inline constexpr int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};

// While it lives the signals that would end the program call `handler` first, which raises the
// signal again: its default is back by then. Signals that are ignored (nohup) stay so.
class AtTheEnd {
 public:
  explicit AtTheEnd(void (*handler)(int)) {
    struct sigaction first = {};
    first.sa_handler = handler;
    first.sa_flags = static_cast<int>(SA_RESETHAND);
    for (std::size_t i = 0; i < std::size(ending_signals); i++) {
      sigaction(ending_signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_DFL) sigaction(ending_signals[i], &first, nullptr);
    }
  }
  ~AtTheEnd() {
    for (std::size_t i = 0; i < std::size(ending_signals); i++)
      sigaction(ending_signals[i], &before_[i], nullptr);
  }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;

 private:
  struct sigaction before_[std::size(ending_signals)];
};

// Keeps these signals waiting.
class Postponed {
 public:
  Postponed() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : ending_signals) sigaddset(&ending, signal);
    sigprocmask(SIG_BLOCK, &ending, &before_);
  }
  ~Postponed() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Postponed(const Postponed&) = delete;
  Postponed& operator=(const Postponed&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace posenc::cli
