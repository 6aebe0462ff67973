#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <climits>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "cli/system/system.h"

namespace posenc::cli {
namespace {

// A file that is cut short while it is mapped, or whose disk fails, is a signal and no error.
void tell_lost_file(int) {
  constexpr char text[] =
      "posenc: a file was cut short or lost while it was read; try again when nothing writes it\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(2);
}

}  // namespace

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

std::size_t terminal_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size.ws_col;
  return 0;
}

bool speaks_utf8() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

std::string own_program() {
#ifdef __APPLE__
  char path[PATH_MAX];
  std::uint32_t size = sizeof path;
  return _NSGetExecutablePath(path, &size) == 0 ? path : "";
#else
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
#endif
}

std::vector<std::string> arguments_of(int argc, char** argv) { return {argv + 1, argv + argc}; }

void begin() { std::signal(SIGBUS, tell_lost_file); }

}  // namespace posenc::cli
