#include "cli/playground/sockets.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace posenc::cli {

#ifdef __APPLE__

namespace {

int never_waiting(int socket) {
  if (socket >= 0) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
  }
  return socket;
}

}  // namespace

int stream_socket(int family) { return never_waiting(socket(family, SOCK_STREAM, 0)); }

int next_connection(int listener) { return never_waiting(accept(listener, nullptr, nullptr)); }

bool wait_for(std::vector<pollfd>& sockets, std::chrono::nanoseconds longest,
              const sigset_t& signals) {
  // A signal between the two calls is seen by the next wait: hence none is long.
  using namespace std::chrono_literals;
  const auto most = std::chrono::ceil<std::chrono::milliseconds>(
      std::min<std::chrono::nanoseconds>(longest, 200ms));
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &signals, &before);
  const int ready =
      poll(sockets.data(), static_cast<nfds_t>(sockets.size()), static_cast<int>(most.count()));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ready >= 0;
}

#else

int stream_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int next_connection(int listener) {
  return accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

bool wait_for(std::vector<pollfd>& sockets, std::chrono::nanoseconds longest,
              const sigset_t& signals) {
  const auto left = std::max(longest, std::chrono::nanoseconds::zero()).count();
  const timespec timeout = {static_cast<time_t>(left / 1'000'000'000),
                            static_cast<long>(left % 1'000'000'000)};
  return ppoll(sockets.data(), sockets.size(), &timeout, &signals) >= 0;
}

#endif

}  // namespace posenc::cli
