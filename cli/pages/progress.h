// How far long work has come: one line on the terminal, rewritten; nothing elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

namespace posenc::cli {

class Progress {
 public:
  Progress(std::string_view work, std::size_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void tell(std::size_t at, std::string_view what);  // the one begun now, from 0
  // So much of all is done, 0 to 1, and as much as it takes is left to wait: the time so far says
  // how long.
  void tell_share(double done, std::string_view what);
  void tell_time(std::string_view what);  // how long it has taken

 private:
  void show(std::string line);

  std::string work_, shown_ = {};
  std::size_t all_;
  bool on_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The same of work that tells nothing, or its share now and then: a line from the third second on,
// until the end of this.
class Waiting {
 public:
  Waiting(std::string_view work, std::string_view what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  void share(double done) { done_ = done; }  // 0 to 1

 private:
  void watch(Progress& progress);

  std::string what_;
  std::atomic<double> done_ = -1;
  std::atomic<bool> over_ = false;
  std::thread watcher_;
};

std::string time_text(double seconds);  // "40 s", "24 min", "3.5 h"

// "[#####---------------]", twenty cells.
std::string bar(std::size_t done, std::size_t all);

}  // namespace posenc::cli
