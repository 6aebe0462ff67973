// Answers GET and HEAD with the files of site.h and nothing else. One answer a connection: a request's
// body is never taken for the next request, and no idle connection holds the end up.
#include "cli/playground/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <semaphore>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/playground/site.h"

namespace posenc::cli {
namespace {

constexpr int most_connections = 32, next_ports = 16;
constexpr int seconds_to_begin = 2, seconds_to_go_on = 5;  // what a slow client is waited for
constexpr std::size_t largest_body = 64 * 1024;            // read only to be refused

// Connections beyond the limit wait with the kernel.
class BoundedQueue : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    free_.acquire();
    pool_.enqueue([this, task = std::move(task)] {
      task();
      free_.release();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  std::counting_semaphore<most_connections> free_{most_connections};
  httplib::ThreadPool pool_{most_connections};
};

const char* type_of(std::string_view path) {
  struct Row {
    std::string_view end;
    const char* type;
  };
  constexpr Row rows[] = {{".html", "text/html; charset=utf-8"},
                          {".js", "text/javascript; charset=utf-8"},
                          {".css", "text/css; charset=utf-8"},
                          {".wasm", "application/wasm"},
                          {".svg", "image/svg+xml"},
                          {".png", "image/png"},
                          {".ico", "image/x-icon"},
                          {".json", "application/json"},
                          {".webmanifest", "application/manifest+json"},
                          {".woff2", "font/woff2"},
                          {".txt", "text/plain; charset=utf-8"}};
  for (const Row& row : rows)
    if (path.ends_with(row.end)) return row.type;
  return "application/octet-stream";
}

// The host without its port: "[::1]", "localhost".
std::string_view name_of(std::string_view host) {
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return host.substr(0, std::min(colon, host.size()));
}

// A page elsewhere can make its own name mean this machine, but no number and not "localhost".
bool is_our_name(std::string_view host, std::string_view asked) {
  const std::string_view name = name_of(host);
  if (name.empty()) return false;
  if (name == "localhost" || name == asked || name.front() == '[') return true;
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Whether gzip may be sent: named, or by *, and not with q=0.
bool takes_gzip(std::string_view accept) {
  bool named = false, any = false, refused = false;
  while (!accept.empty()) {
    const std::size_t comma = std::min(accept.find(','), accept.size());
    std::string one;
    for (const char c : accept.substr(0, comma))
      if (c != ' ' && c != '\t')
        one += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    const std::string_view coding = std::string_view(one).substr(0, one.find(';'));
    const std::size_t q = one.find(";q=");
    const bool zero =
        q != std::string::npos &&
        std::string_view(one).substr(q + 3).find_first_not_of("0.") == std::string_view::npos;
    if (coding == "gzip") (zero ? refused : named) = true;
    if (coding == "*") any = !zero;
  }
  return !refused && (named || any);
}

void say(httplib::Response& response, int status, const std::string& sentence) {
  response.status = status;
  response.set_header("Cache-Control", "no-store");
  response.set_content(sentence + "\n", "text/plain; charset=utf-8");
}

void send_file(const SiteFile& file, const httplib::Request& request, httplib::Response& response) {
  const bool gzip = takes_gzip(request.get_header_value("Accept-Encoding"));
  const std::string_view bytes = (gzip ? file.gzip : file.plain).text();
  // A name under assets/ holds a hash of the bytes.
  const bool immutable = file.path.starts_with("/assets/");
  const std::string tag = fmt::format("\"{}{}\"", file.hash, gzip ? "-gzip" : "");
  response.set_header("Cache-Control",
                      immutable ? "public, max-age=31536000, immutable" : "no-cache");
  response.set_header("ETag", tag);
  response.set_header("Vary", "Accept-Encoding");
  if (request.get_header_value("If-None-Match").contains(tag)) {
    response.status = 304;
    return;
  }
  if (gzip) response.set_header("Content-Encoding", "gzip");
  // Of a provider the library compresses nothing anew.
  response.set_content_provider(
      bytes.size(), type_of(file.path),
      [bytes](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        return sink.write(bytes.data() + offset, length);
      });
}

void answer(const httplib::Request& request, httplib::Response& response) {
  const std::string_view path =
      request.path == "/" ? "/index.html" : std::string_view(request.path);
  const auto files = site();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const SiteFile& one) { return one.path == path; });
  if (file == files.end())
    say(response, 404, "There is no such page; the playground is at /.");
  else
    send_file(*file, request, response);
}

void refuse(const httplib::Request&, httplib::Response& response) {
  response.set_header("Allow", "GET, HEAD");
  say(response, 405, "The playground only answers GET and HEAD.");
}

void set_up(httplib::Server& server, const std::string& host) {
  server.new_task_queue = [] { return new BoundedQueue; };
  server.set_default_headers({
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
       "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; connect-src "
       "'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  });
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(seconds_to_begin);
  server.set_read_timeout(seconds_to_go_on);
  server.set_write_timeout(seconds_to_go_on);
  server.set_payload_max_length(largest_body);
  // The library would share a port with another server.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_pre_routing_handler(
      [host](const httplib::Request& request, httplib::Response& response) {
        if (is_our_name(request.get_header_value("Host"), host))
          return httplib::Server::HandlerResponse::Unhandled;
        say(response, 421,
            "posenc serve answers to localhost, to addresses in numbers, and to --host NAME.");
        return httplib::Server::HandlerResponse::Handled;
      });
  server.Get(".*", answer);
  server.Post(".*", refuse);
  server.Put(".*", refuse);
  server.Patch(".*", refuse);
  server.Delete(".*", refuse);
  server.Options(".*", refuse);
}

Expected<int> bind(httplib::Server& server, const Serving& how) {
  if (how.port == 0) {
    if (const int port = server.bind_to_any_port(how.host); port > 0) return port;
    return fail("serve", "must be able to listen on --host", how.host, "127.0.0.1 is this machine");
  }
  const int last = how.exact ? how.port : std::min(how.port + next_ports, 65535);
  for (int port = how.port; port <= last; port++)
    if (server.bind_to_port(how.host, port)) return port;
  return fail("serve", "the port is taken, or --host is no address of this machine",
              fmt::format("{}:{}", how.host, how.port), "say --port 0 for any free port");
}

// `mask` is that of the shell: a browser that starts with the server's own could not be ended. Nor is a
// Ctrl-C here meant for it.
void open_browser(const std::string& address, const sigset_t& mask) {
  posix_spawnattr_t apart;
  posix_spawnattr_init(&apart);
  posix_spawnattr_setflags(&apart,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&apart, &mask);
  sigset_t ignored;  // by the library
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  posix_spawnattr_setsigdefault(&apart, &ignored);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  std::string program = "xdg-open", page = address;
  char* arguments[] = {program.data(), page.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, "xdg-open", &quiet, &apart, arguments, environ) != 0)
    fmt::print(stderr, "posenc: there is no xdg-open here; open the address in a browser\n");
  posix_spawn_file_actions_destroy(&quiet);
  posix_spawnattr_destroy(&apart);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

Expected<int> serve(const Serving& how) {
  httplib::Server server;
  set_up(server, how.host);
  const Expected<int> port = bind(server, how);
  if (!port) return std::unexpected(port.error());

  // Threads inherit the mask, so that the signals come to sigwait() alone.
  sigset_t ends, before;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, &before);
  std::atomic<bool> listened = true, ended = false, stopping = false;
  std::thread listener([&, to = getpid()] {
    listened = server.listen_after_bind();
    ended = true;
    if (!stopping) kill(to, SIGTERM);  // wakes sigwait() where no signal did
  });
  while (!server.is_running() && !ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  const std::string name = how.host.contains(':') ? "[" + how.host + "]" : how.host;
  const std::string address = fmt::format("http://{}:{}/", name, *port);
  if (!is_loopback(how.host))
    fmt::print(stderr, "posenc: warning: {} shows the playground to everyone who can reach it\n",
               how.host);
  fmt::print("{}\n", address);
  if (isatty(STDOUT_FILENO)) fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  if (how.open) open_browser(address, before);

  int signal = 0;
  sigwait(&ends, &signal);
  const bool failed = ended && !listened;
  stopping = true;
  // A second Ctrl-C does not wait for slow clients.
  if (!ended) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  server.stop();
  listener.join();
  if (failed) return fail("serve", "the connection was lost", address, "start it again");
  return 0;
}

}  // namespace posenc::cli
