#include "cli/pages/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/pages/terminal.h"

namespace posenc::cli {

Progress::Progress(std::string_view work, std::size_t all)
    : work_(work), all_(all), on_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (on_) std::fputs("\r\x1b[K", stderr);
}

void Progress::tell(std::size_t at, std::string_view what) {
  if (!on_) return;
  const std::string line =
      fmt::format("{} {} {} of {}: {}", work_, bar(at, all_), at + 1, all_, cut(what, 50));
  if (line == shown_) return;
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);
  shown_ = line;
  std::fflush(stderr);
}

std::string bar(std::size_t done, std::size_t all) {
  constexpr std::size_t cells = 20;
  const std::size_t full = all == 0 ? cells : std::min(cells, cells * done / all);
  return "[" + std::string(full, '#') + std::string(cells - full, '-') + "]";
}

}  // namespace posenc::cli
