// Sockets that never wait, and a clock.
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "cli/probe/http.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

using Clock = std::chrono::steady_clock;

#ifndef MSG_NOSIGNAL
constexpr int no_signal = 0;
#else
constexpr int no_signal = MSG_NOSIGNAL;
#endif

class Socket {
 public:
  explicit Socket(int handle) : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (handle_ >= 0) close(handle_);
  }
  int get() const { return handle_; }

 private:
  int handle_;
};

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Whether it can be read or written before then.
bool ready(int socket, short what, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd one{.fd = socket, .events = what, .revents = 0};
    const int found =
        poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000)));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
    if (Clock::now() >= until) return false;
  }
}

std::string place(const Url& url) { return url.host + ":" + url.port; }

Expected<Socket> connected(const Url& url, double seconds) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(url.host.c_str(), url.port.c_str(), &wanted, &found) != 0)
    return fail("probe", "the host must have an address", url.host, "is its name right?");
  const Clock::time_point until = after(seconds);
  bool waited = false;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Socket one(socket(each->ai_family, SOCK_STREAM, 0));
    if (one.get() < 0) continue;
    fcntl(one.get(), F_SETFD, FD_CLOEXEC);
    fcntl(one.get(), F_SETFL, fcntl(one.get(), F_GETFL) | O_NONBLOCK);
#ifdef SO_NOSIGPIPE
    const int yes = 1;
    setsockopt(one.get(), SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
    int error = 0;
    if (connect(one.get(), each->ai_addr, each->ai_addrlen) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        if (!ready(one.get(), POLLOUT, until)) {
          waited = true;
          continue;
        }
        getsockopt(one.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error != 0) continue;
    freeaddrinfo(found);
    return one;
  }
  freeaddrinfo(found);
  return fail("probe",
              waited ? "the server must take a connection in time" : "a server must listen",
              place(url), "is it running, and is this its port?");
}

}  // namespace

Expected<HttpAnswer> request(const Url& url, std::string_view path, std::string_view body,
                             std::string_view key, const HttpLimits& limits) {
  const Clock::time_point until = after(limits.seconds);
  POSENC_TRY(socket, connected(url, std::min(limits.connecting, limits.seconds)));
  const std::string host = url.host.contains(':') ? "[" + url.host + "]" : url.host;
  std::string text = std::string(body.empty() ? "GET " : "POST ") + std::string(path) +
                     " HTTP/1.1\r\nHost: " + host + ":" + url.port +
                     "\r\nUser-Agent: posenc\r\nAccept: application/json\r\nConnection: close\r\n";
  if (!key.empty()) text += "Authorization: Bearer " + std::string(key) + "\r\n";
  if (!body.empty())
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n";
  text += body;
  const auto late = [&] {
    return fail("probe", "the server must answer in time",
                "nothing for " + std::to_string(static_cast<int>(limits.seconds)) + " s",
                "raise --timeout, or lower --at");
  };
  for (std::string_view left = text; !left.empty();) {
    if (!ready(socket.get(), POLLOUT, until)) return late();
    const ssize_t sent = send(socket.get(), left.data(), left.size(), no_signal);
    if (sent > 0)
      left.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      break;  // its answer may tell why it closed
  }
  std::string bytes;
  for (;;) {
    if (!ready(socket.get(), POLLIN, until)) return late();
    char some[16384];
    const ssize_t got = recv(socket.get(), some, sizeof some, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got > 0) bytes.append(some, static_cast<std::size_t>(got));
    HttpAnswer answer;
    std::string why;
    // A whole answer of this size is parsed once for each MiB at most: the end of a head or of a
    // body is what is looked for.
    if (got > 0 && bytes.size() > (std::size_t{1} << 20) &&
        bytes.size() % (std::size_t{1} << 20) > static_cast<std::size_t>(got) &&
        ready(socket.get(), POLLIN, Clock::now()))
      continue;
    switch (read_answer(bytes, got <= 0, limits, answer, why)) {
      case AnswerState::damaged:
        return fail("probe", "the server must answer in HTTP", why,
                    "is " + place(url) + " the server?");
      case AnswerState::whole:
        if (answer.status >= 300 && answer.status < 400)
          return fail("probe", "a redirect is not followed", std::to_string(answer.status),
                      "name the server that it leads to");
        return answer;
      case AnswerState::more: break;
    }
  }
}

}  // namespace posenc::cli
