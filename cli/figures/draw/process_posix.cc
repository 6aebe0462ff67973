#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "cli/arguments/ending_signals.h"
#include "cli/figures/draw/process.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): macOS does not declare it

namespace posenc::cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string content(std::FILE* file) {
  std::string text;
  std::fseek(file, 0, SEEK_SET);
  char chunk[1 << 14];
  while (const std::size_t count = std::fread(chunk, 1, sizeof chunk, file))
    text.append(chunk, count);
  return text;
}

// The environment, but for the language: numbers and complaints are the same everywhere.
std::vector<char*> environment() {
  static char language[] = "LC_ALL=C.UTF-8";
  std::vector<char*> out{language};
  for (char** entry = environ; *entry; entry++)
    if (std::strncmp(*entry, "LC_", 3) != 0 && std::strncmp(*entry, "LANG", 4) != 0)
      out.push_back(*entry);
  out.push_back(nullptr);
  return out;
}

// What a handler reads: the gnuplot that runs, 0: none.
volatile std::sig_atomic_t running = 0;

void end_gnuplot(int signal) {
  if (running != 0) kill(static_cast<pid_t>(running), SIGKILL);
  std::raise(signal);  // its default again, which ends the program
}

// Starts it so that no signal comes between the start and `running`.
int start(pid_t& process, char* name, char* const* arguments, posix_spawn_file_actions_t& files) {
  const Postponed until_known;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &until_known.before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int refused =
      posix_spawnp(&process, name, &files, &attributes, arguments, environment().data());
  posix_spawnattr_destroy(&attributes);
  if (refused == 0) running = static_cast<std::sig_atomic_t>(process);
  return refused;
}

}  // namespace

Expected<Drawn> run_gnuplot(std::string_view script) {
  // Files and not pipes: neither side waits for the other, and an early end is no signal.
  const File in(std::tmpfile()), out(std::tmpfile()), words(std::tmpfile());
  if (!in || !out || !words)
    return fail("gnuplot", "needs room for temporary files", std::strerror(errno), "set TMPDIR");
  if (std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fflush(in.get()) != 0)
    return fail("gnuplot", "needs room for temporary files", std::strerror(errno));
  std::fseek(in.get(), 0, SEEK_SET);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(words.get()), STDERR_FILENO);
  char name[] = "gnuplot", defaults[] = "--default-settings";
  char* arguments[] = {name, defaults, nullptr};
  pid_t process = 0;
  const AtTheEnd ended(end_gnuplot);
  const int refused = start(process, name, arguments, files);
  posix_spawn_file_actions_destroy(&files);
  if (refused == ENOENT)
    return fail("gnuplot", "must be installed to draw pictures", "no such command",
                "apt-get install gnuplot-nox, or take the numbers with --csv and no picture");
  if (refused != 0) return fail("gnuplot", "cannot be started", std::strerror(refused));

  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  Drawn drawn{content(out.get()), content(words.get())};
  if (WIFEXITED(status)) drawn.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) drawn.signal = WTERMSIG(status);
  return drawn;
}

}  // namespace posenc::cli
