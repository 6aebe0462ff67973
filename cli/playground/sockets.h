// Sockets that never wait, and waiting for many of them: Linux and the BSDs have calls for it,
// macOS has what they replaced.
#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <vector>

namespace posenc::cli {

// A socket of the address family that neither waits nor is inherited; -1 with errno where none can
// be had.
int stream_socket(int family);

// The listener's next connection, likewise.
int next_connection(int listener);

// Waits for any of them, no longer than `longest`, with `signals` as the mask meanwhile; false with
// errno, EINTR where a signal came.
bool wait_for(std::vector<pollfd>& sockets, std::chrono::nanoseconds longest,
              const sigset_t& signals);

}  // namespace posenc::cli
