// Another program that is asked a line and answers a line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace posenc::cli {

class Child {
 public:
  // A program by its path or a name on PATH. Its standard error is ours. Errors: it cannot be
  // started, or this system has no such programs (Windows).
  static Expected<std::unique_ptr<Child>> start(const std::vector<std::string>& command);
  virtual ~Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The line is written with its end, and the next line of the answer comes back without. Errors:
  // no answer within so many seconds, the program has ended, a line beyond 64 MiB.
  virtual Expected<std::string> ask(std::string_view line, double seconds) = 0;
  // The next line without asking, of a program that says more than it is asked.
  virtual Expected<std::string> more(double seconds) = 0;

 protected:
  Child() = default;
};

}  // namespace posenc::cli
