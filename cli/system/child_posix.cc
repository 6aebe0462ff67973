#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "cli/system/child.h"

namespace posenc::cli {
namespace {

constexpr std::size_t longest_line = std::size_t{64} << 20;

class Process final : public Child {
 public:
  Process(std::string name, pid_t pid, int to, int from)
      : name_(std::move(name)), pid_(pid), to_(to), from_(from) {}
  // An adapter ends where its input does; one that hangs is ended.
  ~Process() override {
    close(to_);
    close(from_);
    for (int tried = 0; tried < 20; ++tried) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
      usleep(50'000);
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  Expected<std::string> ask(std::string_view line, double seconds) override {
    const auto end = deadline(seconds);
    std::string text(line);
    text += '\n';
    for (std::size_t done = 0; done < text.size();) {
      if (!ready(to_, POLLOUT, end)) return silent(seconds);
      const ssize_t wrote = write(to_, text.data() + done, text.size() - done);
      if (wrote < 0 && errno != EAGAIN && errno != EINTR)
        break;  // it ended; it may have spoken first
      if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
    return read_line(seconds, end);
  }

  Expected<std::string> more(double seconds) override {
    return read_line(seconds, deadline(seconds));
  }

 private:
  using Clock = std::chrono::steady_clock;

  static Clock::time_point deadline(double seconds) {
    return Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  static bool ready(int file, short what, Clock::time_point end) {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left <= 0) return false;
      pollfd asked{file, what, 0};
      const int got = poll(&asked, 1, static_cast<int>(left));
      if (got > 0) return true;
      if (got < 0 && errno != EINTR) return true;  // the call that follows tells
    }
  }

  Expected<std::string> read_line(double seconds, Clock::time_point end) {
    while (true) {
      if (const std::size_t stop = rest_.find('\n'); stop != std::string::npos) {
        std::string line = rest_.substr(0, stop);
        rest_.erase(0, stop + 1);
        return line;
      }
      if (rest_.size() > longest_line)
        return fail(name_, "must answer in lines of at most 64 MiB", "a longer one",
                    "print what is no answer to standard error");
      if (!ready(from_, POLLIN, end)) return silent(seconds);
      char bytes[65536];
      const ssize_t got = read(from_, bytes, sizeof bytes);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return ended();
      if (got > 0) rest_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  std::unexpected<Error> silent(double seconds) {
    return fail(name_, "must answer each request with a line",
                "none within " + number_text(seconds) + " s",
                "flush standard output behind each answer, or give it longer by --timeout");
  }
  std::unexpected<Error> ended() {
    int state = 0;
    std::string how = "it closed its output";
    pid_t gone = 0;
    for (int tried = 0; gone == 0 && tried < 40;
         ++tried) {  // its end comes behind that of its output
      gone = waitpid(pid_, &state, WNOHANG);
      if (gone == 0) usleep(5'000);
    }
    if (gone > 0)
      how = WIFSIGNALED(state) ? "signal " + std::to_string(WTERMSIG(state)) + " ended it"
                               : "it exited with " + std::to_string(WEXITSTATUS(state));
    return fail(name_, "must answer each request with a line", how,
                "what it wrote to standard error stands above");
  }

  std::string name_, rest_;
  pid_t pid_;
  int to_, from_;
};

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    // No other child may hold an end, or this one would never see the end of its input.
    if (pipe(ends) != 0) return false;
    read = ends[0], write = ends[1];
    return fcntl(read, F_SETFD, FD_CLOEXEC) == 0 && fcntl(write, F_SETFD, FD_CLOEXEC) == 0;
  }
};

}  // namespace

Expected<std::unique_ptr<Child>> Child::start(const std::vector<std::string>& command) {
  std::signal(SIGPIPE, SIG_IGN);  // a program that is gone is an error of write()
  Pipe in, out, failed;
  if (!in.open() || !out.open() || !failed.open())
    return fail("conform", "needs pipes", std::strerror(errno), "close some programs");
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0)
    return fail("conform", "needs a process", std::strerror(errno), "close some programs");
  if (pid == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    dup2(in.read, STDIN_FILENO);
    dup2(out.write, STDOUT_FILENO);
    execvp(words[0], words.data());
    const int why = errno;
    (void)!write(failed.write, &why, sizeof why);
    _exit(127);
  }
  close(in.read), close(out.write), close(failed.write);
  int why = 0;
  const bool started = read(failed.read, &why, sizeof why) <= 0;
  close(failed.read);
  if (!started) {
    close(in.write), close(out.read);
    waitpid(pid, nullptr, 0);
    return fail("conform", "starts the program that is behind --",
                command.front() + ": " + std::strerror(why),
                "give its path and arguments: posenc conform -- python3 adapter.py");
  }
  fcntl(in.write, F_SETFL, O_NONBLOCK);  // a child that does not read must not hold us
  return std::make_unique<Process>(command.front(), pid, in.write, out.read);
}

}  // namespace posenc::cli
