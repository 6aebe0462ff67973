#include "cli/figures/draw/gnuplot.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cli/arguments/ending_signals.h"

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

// The complaint without the script's lines around it.
std::string complaint(const std::string& words) {
  std::string out;
  for (std::size_t at = 0, end; at < words.size() && out.size() < 500; at = end + 1) {
    end = std::min(words.find('\n', at), words.size());
    std::string line = words.substr(at, end - at);
    line.erase(0, line.find_first_not_of(" \t^"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.starts_with("gnuplot>")) continue;
    out += (out.empty() ? "" : " | ") + line;
  }
  return out;
}

// The length of the UTF-8 sequence that `text` begins with, 0 if it begins with none.
std::size_t sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                             : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                             : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; i++)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  while (!text.empty()) {
    const std::size_t length = sequence(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      out += length == 0 ? "\uFFFD" : " ";
    } else if (first == '\'') {
      out += "''";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + "'";
}

Expected<std::string> gnuplot(std::string_view script) {
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
  std::string picture = content(out.get());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !picture.empty()) return picture;
  std::string said = complaint(content(words.get()));
  if (WIFSIGNALED(status))
    said += (said.empty() ? "" : " | ") + ("ended by signal " + std::to_string(WTERMSIG(status)));
  if (said.empty()) said = "exit code " + std::to_string(WEXITSTATUS(status));
  return fail("gnuplot", "drew no picture", said, "gnuplot 5.2 or newer with cairo is needed");
}

}  // namespace posenc::cli
