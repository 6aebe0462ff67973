// posenc serve, asked over raw sockets.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/command.h"

namespace {

using posenc::test::has;
using posenc::test::sanitized;

// A running server; its address is what it printed first.
class Serve : public posenc::test::CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    start({"--port", "0"});
    if (address_.empty() && has(text("stderr"), "make serve"))
      GTEST_SKIP() << "the playground is not within this build";
    ASSERT_FALSE(address_.empty()) << text("stderr");
  }
  void TearDown() override {
    if (pid_ > 0) stop(SIGKILL);
    CommandTest::TearDown();
  }

  void start(std::vector<std::string> flags) {
    int out[2];
    ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, path("stderr").c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::string command = posenc::test::command_path(), verb = "serve";
    std::vector<char*> arguments = {command.data(), verb.data()};
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, command.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    address_.clear();
    char byte = 0;
    while (read(out[0], &byte, 1) == 1 && byte != '\n') address_ += byte;
    close(out[0]);
    const std::size_t colon = address_.rfind(':');
    if (colon != std::string::npos) port_ = std::stoi(address_.substr(colon + 1));
  }

  // Its exit code, or 128 + the signal that ended it.
  int stop(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  int connected() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return socket;
    close(socket);
    return -1;
  }

  // Whether the server still takes it.
  static bool say(int socket, const std::string& bytes) {
    return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // All that comes back until the server closes.
  static std::string received(int socket) {
    std::string all;
    pollfd wait{socket, POLLIN, 0};
    while (poll(&wait, 1, 30000) == 1) {
      char part[4096];
      const ssize_t count = recv(socket, part, sizeof part, 0);
      if (count <= 0) break;
      all.append(part, static_cast<std::size_t>(count));
    }
    close(socket);
    return all;
  }
  std::string raw(const std::string& bytes) const {
    const int socket = connected();
    EXPECT_TRUE(say(socket, bytes));
    return received(socket);
  }
  std::string ask(const std::string& method, const std::string& target,
                  const std::string& headers = "", const std::string& host = "localhost") const {
    return raw(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n");
  }
  static std::string body(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }
  static std::string header(const std::string& answer, const std::string& name) {
    const std::size_t at = answer.find("\r\n" + name + ": ");
    if (at == std::string::npos || at > answer.find("\r\n\r\n")) return "";
    const std::size_t from = at + name.size() + 4;
    return answer.substr(from, answer.find("\r\n", from) - from);
  }
  static int status(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
  }
  void fs_create(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  // The most that the server ever held, in KiB.
  long peak_memory() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
    return 0;
  }
  // The script's path, as the page names it.
  std::string script() const {
    const std::string page = body(ask("GET", "/"));
    const std::size_t at = page.find("assets/");
    return at == std::string::npos ? "" : "/" + page.substr(at, page.find('"', at) - at);
  }

  pid_t pid_ = 0;
  int port_ = 0;
  std::string address_;
};

TEST_F(Serve, ShowsThePageWithStrictHeaders) {
  EXPECT_TRUE(address_.starts_with("http://127.0.0.1:")) << address_;
  const std::string answer = ask("GET", "/");
  EXPECT_EQ(status(answer), 200) << answer;
  EXPECT_TRUE(has(body(answer), "<title>posenc playground</title>"));
  EXPECT_EQ(header(answer, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_TRUE(has(header(answer, "Content-Security-Policy"),
                  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'"));
  EXPECT_TRUE(has(answer, "Content-Security-Policy: frame-ancestors 'none'\r\n"));
  EXPECT_EQ(header(answer, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header(answer, "Referrer-Policy"), "no-referrer");
  EXPECT_EQ(header(answer, "Cross-Origin-Opener-Policy"), "same-origin");
  EXPECT_EQ(header(answer, "Cross-Origin-Resource-Policy"), "same-origin");
  EXPECT_EQ(header(answer, "Cache-Control"), "no-cache");
}

TEST_F(Serve, KeepsHashedFilesForeverAndPagesByTheirTag) {
  const std::string asset = ask("GET", script());
  EXPECT_EQ(status(asset), 200) << script();
  EXPECT_EQ(header(asset, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header(asset, "Content-Length"), std::to_string(body(asset).size()));
  const std::string tag = header(ask("GET", "/"), "ETag");
  const std::string again = ask("GET", "/", "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(status(again), 304);
  EXPECT_EQ(body(again), "");
}

TEST_F(Serve, CompressesOnlyWhereTheClientAccepts) {
  const std::string path = script(), plain = ask("GET", path);
  EXPECT_EQ(header(plain, "Content-Encoding"), "");
  for (const char* accept : {"gzip", "br;q=1, GZIP;q=0.5", "*"}) {
    const std::string small = ask("GET", path, "Accept-Encoding: " + std::string(accept) + "\r\n");
    EXPECT_EQ(header(small, "Content-Encoding"), "gzip") << accept;
    EXPECT_EQ(body(small).substr(0, 2), "\x1f\x8b");
    EXPECT_LT(body(small).size() * 2, body(plain).size());
  }
  for (const char* accept : {"br", "gzip;q=0", "*, gzip;q=0.0", "identity"})
    EXPECT_EQ(body(ask("GET", path, "Accept-Encoding: " + std::string(accept) + "\r\n")),
              body(plain))
        << accept;
}

TEST_F(Serve, GivesTheEngineAsWebAssembly) {
  const std::string code = body(ask("GET", script()));
  const std::size_t end = code.find(".wasm"), start = code.rfind("posenc-", end);
  ASSERT_NE(end, std::string::npos);
  const std::string answer = ask("GET", "/assets/" + code.substr(start, end + 5 - start));
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(header(answer, "Content-Type"), "application/wasm");
  EXPECT_EQ(body(answer).substr(0, 4), std::string("\0asm", 4));
}

TEST_F(Serve, AnswersHeadWithoutABody) {
  const std::string head = ask("HEAD", "/"), whole = ask("GET", "/");
  EXPECT_EQ(status(head), 200);
  EXPECT_EQ(body(head), "");
  EXPECT_EQ(header(head, "Content-Length"), header(whole, "Content-Length"));
}

TEST_F(Serve, RefusesAllOtherMethods) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    const std::string answer = ask(method, "/", "Content-Length: 4\r\n\r\nabcd");
    EXPECT_EQ(status(answer), 405) << method << "\n" << answer;
    EXPECT_EQ(header(answer, "Allow"), "GET, HEAD");
    EXPECT_FALSE(header(answer, "Content-Security-Policy").empty());
  }
  EXPECT_EQ(status(ask("OPTIONS", "/")), 405);
  EXPECT_EQ(status(ask("BREW", "/")), 405);
}

TEST_F(Serve, KnowsNoFileButItsOwn) {
  for (const char* path : {"/nothing", "/../../etc/passwd", "/assets/../../etc/passwd",
                           "//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd",
                           "/assets/", "/index.html/", "/index.html%00.js"}) {
    const std::string answer = ask("GET", path);
    EXPECT_EQ(status(answer), 404) << path;
    EXPECT_FALSE(has(answer, "root:"));
    EXPECT_FALSE(header(answer, "Content-Security-Policy").empty());
  }
  EXPECT_EQ(status(ask("GET", "/index.html?x=1")), 200);
}

TEST_F(Serve, ShowsTheDocsOfAFolderAndNothingBesideIt) {
  stop(SIGKILL);
  fs_create("site/index.html", "the docs");
  fs_create("site/page.html", "a page");
  fs_create("secret.html", "secret");
  start({"--port", "0", "--docs", path("site")});
  ASSERT_FALSE(address_.empty()) << text("stderr");
  EXPECT_EQ(body(ask("GET", "/docs/")), "the docs");
  const std::string page = ask("GET", "/docs/page.html", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(body(page), "a page");
  EXPECT_TRUE(has(header(page, "Content-Security-Policy"), "script-src 'self'"));
  EXPECT_TRUE(has(header(page, "Content-Security-Policy"), "frame-src 'self'"));
  EXPECT_EQ(header(page, "Content-Type"), "text/html; charset=utf-8");
  for (const char* target : {"/docs/../secret.html", "/docs/%2e%2e/secret.html",
                             "/docs/..%2fsecret.html", "/docs//etc/passwd", "/page.html"})
    EXPECT_EQ(status(ask("GET", target)), 404) << target;
  EXPECT_TRUE(has(body(ask("GET", "/")), "<title>posenc playground</title>"));
}

TEST_F(Serve, RefusesDocsThatAreNone) {
  const auto done = posenc("serve --port 0 --docs " + path("none"));
  EXPECT_EQ(done.code, 2);
  EXPECT_TRUE(has(done.err, "make docs-site")) << done.err;
}

TEST_F(Serve, AnswersOnlyToNamesThatNoOtherPageCanTake) {
  for (const char* host : {"localhost", "localhost:9000", "LOCALHOST", "localhost.:9000",
                           "127.0.0.1:8137", "[::1]:8137"})
    EXPECT_EQ(status(ask("GET", "/", "", host)), 200) << host;
  for (const char* host : {"evil.example", "evil.example:8137", "localhost.evil.example",
                           "127.0.0.1.evil.example", ""}) {
    const std::string answer = ask("GET", "/", "", host);
    EXPECT_EQ(status(answer), 421) << host;
    EXPECT_FALSE(has(answer, "<title>"));
  }
  EXPECT_EQ(status(raw("GET / HTTP/1.1\r\n\r\n")), 421);
}

TEST_F(Serve, RefusesWhatIsTooLongOrNoRequest) {
  EXPECT_EQ(status(ask("GET", "/" + std::string(10000, 'a'))), 414);
  EXPECT_EQ(status(raw("nonsense\r\n\r\n")), 400);
  EXPECT_EQ(status(ask("POST", "/", "Content-Length: 99999999\r\n")), 405);
  EXPECT_EQ(status(ask("GET", "/")), 200);
}

TEST_F(Serve, StandsManyConnectionsThatSayNothing) {
  std::vector<int> silent;
  for (int i = 0; i < 40; i++) silent.push_back(connected());
  EXPECT_EQ(status(ask("GET", "/")), 200);
  for (const int socket : silent) close(socket);
}

// Bytes without end, in each place where a client may put some.
TEST_F(Serve, TakesNoMoreMemoryThanARequestNeeds) {
  const std::string get = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  const std::string much(1 << 20, 'a'), chunk = "100000\r\n" + much + "\r\n";
  std::string headers;
  while (headers.size() < much.size()) headers += "X: y\r\n";
  const struct {
    std::string begin, again;
    int status;
  } floods[] = {{post + chunked, chunk, 405},
                {get + chunked, chunk, 200},
                {post + "Content-Length: 99999999\r\n\r\n", much, 405},
                {get + "X: ", much, 431},
                {get, headers, 431},
                {"GET /", much, 414}};
  ask("GET", "/");
  const long before = peak_memory();
  for (const auto& [begin, again, expected] : floods) {
    const int socket = connected();
    bool open = say(socket, begin);
    for (int i = 0; i < 32 && open; i++) open = say(socket, again);
    EXPECT_EQ(status(received(socket)), expected) << begin;
  }
  EXPECT_LT(peak_memory() - before, sanitized ? 32768 : 4096) << "KiB";
  EXPECT_EQ(status(ask("GET", "/")), 200);
}

// Some send a byte now and then, others ask and do not read: more of them than the server has
// places.
TEST_F(Serve, LetsNoSlowClientKeepOthersOut) {
  const std::string request = "GET " + script() + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<int> slow;
  for (int i = 0; i < 300; i++) {
    slow.push_back(connected());
    if (i % 2 != 0) say(slow.back(), request);
  }
  std::jthread drip([&slow](const std::stop_token& enough) {
    for (; !enough.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(100)))
      for (std::size_t i = 0; i < slow.size(); i += 2) say(slow[i], "a");
  });
  for (int i = 0; i < 3; i++) EXPECT_EQ(status(ask("GET", "/")), 200);
  // The next byte always came in time, the whole did not.
  EXPECT_EQ(status(received(slow[0])), 0);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(stop(SIGTERM), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2));
  drip.request_stop();
  drip.join();
  for (std::size_t i = 1; i < slow.size(); i++) close(slow[i]);
}

TEST_F(Serve, AnswersHundredsAtOnce) {
  std::vector<int> all;
  for (int i = 0; i < 500; i++) {
    all.push_back(connected());
    say(all.back(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  for (const int socket : all) EXPECT_EQ(status(received(socket)), 200);
}

TEST_F(Serve, EndsCleanlyAtASignalAndWithClientsThere) {
  const int idle = connected();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(stop(SIGINT), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2));
  close(idle);
  start({"--port", "0"});
  EXPECT_EQ(stop(SIGTERM), 0);
}

// Signals blocked or ignored by the server would be so in the browser, and its socket would stay
// open there.
TEST_F(Serve, LeavesNothingOfItsOwnToTheBrowser) {
  EXPECT_EQ(stop(SIGTERM), 0);
  write(
      "xdg-open",
      "#!/bin/sh\n{ echo $1; grep -E 'SigBlk|SigIgn' /proc/self/status; ls -l /proc/self/fd; } >" +
          path("new") + "\nmv " + path("new") + " " + path("seen") + "\n");
  std::filesystem::permissions(path("xdg-open"), std::filesystem::perms::owner_all);
  const std::string before = getenv("PATH");
  setenv("PATH", (folder_.string() + ":" + before).c_str(), 1);
  start({"--port", "0", "--open"});
  setenv("PATH", before.c_str(), 1);
  for (int i = 0; i < 1000 && !std::filesystem::exists(path("seen")); i++) usleep(10000);
  const std::string seen = text("seen");
  EXPECT_TRUE(seen.starts_with(address_)) << seen;
  EXPECT_FALSE(has(seen, "socket:")) << seen;
  const auto is_in = [&](const std::string& set, int signal) {
    const std::size_t at = seen.find(set);
    return at == std::string::npos ||
           (std::stoull(seen.substr(at + set.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
  };
  EXPECT_FALSE(is_in("SigBlk:", SIGINT) || is_in("SigBlk:", SIGTERM)) << seen;
  EXPECT_FALSE(is_in("SigIgn:", SIGPIPE)) << seen;
}

TEST_F(Serve, SaysThatAPortIsTaken) {
  const auto done = posenc("serve --port " + std::to_string(port_));
  EXPECT_EQ(done.code, 2);
  EXPECT_TRUE(has(done.err, "the port is taken")) << done.err;
  EXPECT_TRUE(has(done.err, "--port 0")) << done.err;
}

class ServeWithout : public posenc::test::CommandTest {};

TEST_F(ServeWithout, ThePlaygroundSaysHowToGetIt) {
  // An address that is nobody's, so that a posenc with the playground does not stay.
  const auto done = posenc("serve --host 203.0.113.7 --port 8137");
  EXPECT_EQ(done.code, 2);
  EXPECT_TRUE(has(done.err, "make serve") || has(done.err, "no address of this machine"))
      << done.err;
}

}  // namespace
