#include "cli/pages/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/pages/terminal.h"

namespace posenc::cli {

Progress::Progress(std::string_view work, std::size_t all)
    : work_(work), all_(all), on_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (on_ && !shown_.empty()) clear_line();
}

void Progress::tell(std::size_t at, std::string_view what) {
  if (!on_) return;
  show(fmt::format("{} {} {} of {}: {}", work_, bar(at, all_), at + 1, all_, what));
}

void Progress::tell_share(double done, std::string_view what) {
  if (!on_) return;
  // Before that the time says nothing.
  constexpr double first_seconds = 2;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
  std::string left;
  if (done > 0 && spent.count() > first_seconds)
    left = ", " + time_text(spent.count() * (1 / done - 1)) + " left";
  constexpr std::size_t thousandths = 1000;
  show(fmt::format("{} {} {:.0f} %{}: {}", work_,
                   bar(static_cast<std::size_t>(done * thousandths), thousandths), 100 * done, left,
                   what));
}

void Progress::tell_time(std::string_view what) {
  if (!on_) return;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
  show(fmt::format("{} {}: {}", work_, time_text(spent.count()), what));
}

Waiting::Waiting(std::string_view work, std::string_view what) : what_(what) {
  if (isatty(STDERR_FILENO) == 0) return;
  watcher_ = std::thread([this, work = std::string(work)] {
    Progress progress(work, 1);
    watch(progress);
  });
}

Waiting::~Waiting() {
  over_ = true;
  if (watcher_.joinable()) watcher_.join();
}

void Waiting::watch(Progress& progress) {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  for (; !over_; std::this_thread::sleep_for(20ms)) {
    if (std::chrono::steady_clock::now() - begin < 2s) continue;
    const double done = done_;
    // Behind the last part stands the writing, which tells nothing.
    done < 0 || done >= 1 ? progress.tell_time(what_) : progress.tell_share(done, what_);
  }
}

// A line that the terminal would break could not be taken back.
void Progress::show(std::string line) {
  line = cut(line, page_width() - 1);
  if (line == shown_) return;
  clear_line();
  write_error("{}", line);
  std::fflush(stderr);
  shown_ = std::move(line);
}

std::string time_text(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < 1.5 * minute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 1.5 * hour) return fmt::format("{:.0f} min", seconds / minute);
  return fmt::format("{:.1f} h", seconds / hour);
}

std::string bar(std::size_t done, std::size_t all) {
  constexpr std::size_t cells = 20;
  const std::size_t full = all == 0 ? cells : std::min(cells, cells * done / all);
  return "[" + std::string(full, '#') + std::string(cells - full, '-') + "]";
}

}  // namespace posenc::cli
