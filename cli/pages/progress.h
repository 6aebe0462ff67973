// How far long work has come: one line on the terminal, rewritten; nothing elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace posenc::cli {

class Progress {
 public:
  Progress(std::string_view work, std::size_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void tell(std::size_t at, std::string_view what);  // the one begun now, from 0

 private:
  std::string work_, shown_ = {};
  std::size_t all_;
  bool on_;
};

// "[#####---------------]", twenty cells.
std::string bar(std::size_t done, std::size_t all);

}  // namespace posenc::cli
