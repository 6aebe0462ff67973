// Listens, says where, opens a browser if asked to, and answers until a signal ends it.
#include "cli/playground/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pages/terminal.h"
#include "cli/playground/answer.h"
#include "cli/playground/connections.h"
#include "cli/playground/docs_folder.h"
#include "cli/playground/sockets.h"
#include "cli/system/system.h"
#include "src/core/try.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): macOS does not declare it

namespace posenc::cli {
namespace {

constexpr int next_ports = 16;
#ifdef __APPLE__
constexpr char browser_opener[] = "open";
#else
constexpr char browser_opener[] = "xdg-open";
#endif

struct Listener {
  int socket = -1, port = 0;
  bool is_taken = false;  // no socket, since another program has the port
};

// On the first of the host's addresses that can be had; its socket is -1 where none can.
Listener listening(const std::string& host, int port) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return {};
  Listener listener;
  for (const addrinfo* each = found; each && listener.socket < 0; each = each->ai_next) {
    const int one = stream_socket(each->ai_family);
    if (one < 0) continue;
    const int yes = 1, no = 0;
    setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (each->ai_family == AF_INET6) setsockopt(one, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    sockaddr_storage name = {};
    socklen_t size = sizeof name;
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    if (bind(one, each->ai_addr, each->ai_addrlen) == 0 && listen(one, SOMAXCONN) == 0 &&
        getsockname(one, address, &size) == 0) {
      char text[NI_MAXSERV] = "";
      getnameinfo(address, size, nullptr, 0, text, sizeof text, NI_NUMERICSERV);
      listener = {one, static_cast<int>(std::strtol(text, nullptr, 10))};
    } else {
      listener.is_taken = errno == EADDRINUSE;
      close(one);
    }
  }
  freeaddrinfo(found);
  return listener;
}

Expected<Listener> listening(const Serving& how) {
  const int last = how.exact || how.port == 0 ? how.port : std::min(how.port + next_ports, 65535);
  for (int port = how.port; port <= last; port++) {
    const Listener listener = listening(how.host, port);
    if (listener.socket >= 0) return listener;
    if (!listener.is_taken) break;  // nor would it be had on another port
  }
  if (how.port == 0)
    return fail("serve", "must be able to listen on --host", how.host, "127.0.0.1 is this machine");
  return fail("serve", "the port is taken, or --host is no address of this machine",
              fmt::format("{}:{}", how.host, how.port), "say --port 0 for any free port");
}

// `mask` is that of the shell: a browser that starts with the server's own could not be ended. Nor
// is a Ctrl-C here meant for it.
void open_browser(const std::string& address, const sigset_t& mask) {
  posix_spawnattr_t apart;
  posix_spawnattr_init(&apart);
  posix_spawnattr_setflags(&apart, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&apart, &mask);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  std::string program = browser_opener, page = address;
  char* arguments[] = {program.data(), page.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, browser_opener, &quiet, &apart, arguments, environ) != 0)
    write_error("posenc: there is no {} here; open the address in a browser\n", browser_opener);
  posix_spawn_file_actions_destroy(&quiet);
  posix_spawnattr_destroy(&apart);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Where `make docs-site` puts it beside a build, and `make install` beside the command.
Expected<DocsFolder> documents(const std::string& named) {
  namespace fs = std::filesystem;
  if (!named.empty()) return DocsFolder::read(named);
  std::error_code error;
  const fs::path self = fs::path(own_program()).parent_path();
  for (const char* place : {"../docs-site", "../share/doc/posenc/site"}) {
    const fs::path folder = (self / place).lexically_normal();
    if (self.empty() || !fs::is_regular_file(folder / "index.html", error)) continue;
    if (Expected<DocsFolder> docs = DocsFolder::read(folder)) return docs;
    write_error("posenc: warning: the documentation in {} could not be read\n", folder.string());
  }
  return DocsFolder();
}

volatile std::sig_atomic_t ended = 0;

}  // namespace

Expected<int> serve(const Serving& how) {
  POSENC_TRY(docs, documents(how.docs));
  POSENC_TRY(listener, listening(how));
  std::vector<SiteFile> files(site().begin(), site().end());
  files.insert(files.end(), docs.files().begin(), docs.files().end());

  // The signals come while the loop waits, and at no other time: none is missed.
  sigset_t ends, before, waiting;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM}) {
    sigaddset(&ends, signal);
    std::signal(signal, [](int) { ended = 1; });
  }
  pthread_sigmask(SIG_BLOCK, &ends, &before);
  waiting = before;
  for (const int signal : {SIGINT, SIGTERM}) sigdelset(&waiting, signal);

  const std::string name = how.host.contains(':') ? "[" + how.host + "]" : how.host;
  const std::string address = fmt::format("http://{}:{}/", name, listener.port);
  if (!is_loopback(how.host))
    write_error("posenc: warning: {} shows the playground to everyone who can reach it\n",
                how.host);
  write_out("{}\n", address);
  if (!docs.files().empty()) write_out("{}docs/\n", address);
  if (isatty(STDOUT_FILENO)) write_out("Ctrl-C ends it.\n");
  std::fflush(stdout);
  if (how.open) open_browser(address, before);

  const bool answered = answer_all(
      listener.socket, [&](std::string_view received) { return answer(received, how.host, files); },
      ended, waiting);
  if (!answered)
    return fail("serve", "must be given connections by the system", std::strerror(errno),
                "ulimit -n sets how many");
  return 0;
}

}  // namespace posenc::cli
