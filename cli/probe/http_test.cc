// Addresses, answers that somebody hostile wrote, and servers that close, stall and lie.
#include "cli/probe/http.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#ifndef _WIN32
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "cli/probe/apis.h"
#endif

namespace posenc::cli {
namespace {

TEST(ProbeUrl, IsReadAsPeopleWriteIt) {
  const auto url = parse_url("http://127.0.0.1:8000/v1/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "127.0.0.1");
  EXPECT_EQ(url->port, "8000");
  EXPECT_EQ(url->path, "/v1");
  EXPECT_EQ(parse_url("localhost:81")->port, "81");
  EXPECT_EQ(parse_url("http://[::1]:9")->host, "::1");
  EXPECT_EQ(parse_url("http://box")->port, "80");
  EXPECT_TRUE(is_loopback(*parse_url("http://localhost")));
  EXPECT_FALSE(is_loopback(*parse_url("http://10.0.0.1")));
}

TEST(ProbeUrl, RefusesWhatItCannotReach) {
  for (const char* bad :
       {"https://a", "ftp://a", "http://", "http://u:p@a", "http://a:0", "http://a:99999",
        "http://a:b", "http://a b", "http://a/\r\nX: y", "http://[::1", "http://a?x", ""})
    EXPECT_FALSE(parse_url(bad)) << bad;
  EXPECT_EQ(parse_url("http://user:secret@a").error().message().find("secret"), std::string::npos);
}

AnswerState read(const std::string& bytes, bool ended, std::string& body) {
  HttpAnswer answer;
  std::string why;
  const AnswerState made = read_answer(bytes, ended, {.bytes = 1 << 20}, answer, why);
  body = made == AnswerState::damaged ? why : answer.body;
  return made;
}

TEST(ProbeAnswer, IsReadByLengthByChunksAndToTheEnd) {
  std::string body;
  const std::string head = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(read(head + "Content-Length: 2\r\n\r\nhi", false, body), AnswerState::whole);
  EXPECT_EQ(body, "hi");
  EXPECT_EQ(read(head + "Content-Length: 3\r\n\r\nhi", false, body), AnswerState::more);
  EXPECT_EQ(read(head + "transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\n\r\n",
                 false, body),
            AnswerState::whole);
  EXPECT_EQ(body, "hi!");
  EXPECT_EQ(read(head + "\r\nhi", true, body), AnswerState::whole);
  EXPECT_EQ(body, "hi");
  EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\n" + head + "Content-Length: 0\r\n\r\n", false, body),
            AnswerState::whole);
}

TEST(ProbeAnswer, SaysWhatIsWrongWithIt) {
  std::string why;
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const std::string& bad :
       {std::string("SSH-2.0-x\r\n"), std::string("HTTP/1.1 2xx\r\n\r\n"),
        head + "Content-Length: -1\r\n\r\n", head + "Content-Length: 99999999999999999999\r\n\r\n",
        head + "Content-Length: 9999999\r\n\r\n", head + "Content-Encoding: gzip\r\n\r\n",
        head + "Transfer-Encoding: gzip\r\n\r\n", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc"}) {
    EXPECT_EQ(read(bad, false, why), AnswerState::damaged) << bad;
    EXPECT_FALSE(why.empty());
  }
  EXPECT_EQ(read(head + "Content-Length: 3\r\n\r\nhi", true, why), AnswerState::damaged);
  EXPECT_EQ(why, "an answer that is cut short");
  EXPECT_EQ(read(head + "Content-Le", true, why), AnswerState::damaged);
  EXPECT_EQ(read("", true, why), AnswerState::damaged);
  std::string waits;
  for (int i = 0; i < 10000; ++i) waits += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(read(waits, false, why), AnswerState::damaged);
  EXPECT_EQ(read(std::string(1 << 17, 'x'), false, why), AnswerState::damaged);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n" + std::string(1 << 17, 'x'), false, why),
            AnswerState::damaged);
}

#ifndef _WIN32

// Answers each connection by what `say` makes of the request; "" holds it open.
class Server {
 public:
  explicit Server(std::function<std::string(const std::string&)> say) : say_(std::move(say)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name);
    listen(listener_, 16);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
    port = ntohs(name.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    over_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    for (const int one : held_) close(one);
  }
  int port = 0;
  std::atomic<int> asked = 0;

 private:
  void serve() {
    while (!over_) {
      const int one = accept(listener_, nullptr, nullptr);
      if (one < 0) break;
      std::string got;
      char some[4096];
      // A head, and the body that it tells of.
      for (;;) {
        const ssize_t count = recv(one, some, sizeof some, 0);
        if (count <= 0) break;
        got.append(some, static_cast<std::size_t>(count));
        const std::size_t head = got.find("\r\n\r\n"), length = got.find("Content-Length: ");
        if (head == got.npos) continue;
        const std::size_t body = length == got.npos ? 0 : std::stoul(got.substr(length + 16));
        if (got.size() >= head + 4 + body) break;
      }
      ++asked;
      const std::string text = say_(got);
      if (text.empty()) {
        held_.push_back(one);
        continue;
      }
      if (text != "close") send(one, text.data(), text.size(), MSG_NOSIGNAL);
      close(one);
    }
  }
  std::function<std::string(const std::string&)> say_;
  int listener_ = -1;
  std::atomic<bool> over_ = false;
  std::vector<int> held_;
  std::thread thread_;
};

std::string json(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

Error refusal(std::function<std::string(const std::string&)> say, std::string key = {}) {
  Server server(std::move(say));
  ServerQuery asking{.url = *parse_url("http://127.0.0.1:" + std::to_string(server.port)),
                     .key = std::move(key)};
  asking.limits.seconds = 0.5;
  asking.retries = 0;
  const auto found = HttpScorer::find(asking, nullptr);
  if (found) return {};
  return found.error();
}

TEST(ProbeServer, ThatSaysNothingUsefulIsOneSentence) {
  using Request = const std::string&;
  EXPECT_EQ(refusal([](Request) { return json("{}"); }).rule,
            "the server must tell log-probabilities");
  EXPECT_EQ(refusal([](Request) { return json("[[[[", "200 OK"); }).rule,
            "the server must tell log-probabilities");
  EXPECT_EQ(refusal([](Request) { return json("no", "404 Not Found"); }).rule,
            "the server must tell log-probabilities");
  EXPECT_EQ(refusal([](Request) { return std::string("close"); }).rule,
            "the server must answer in HTTP");
  EXPECT_EQ(refusal([](Request) { return std::string("\0\1\2garbage", 10); }).rule,
            "the server must answer in HTTP");
  EXPECT_EQ(refusal([](Request) { return std::string(); }).rule, "the server must answer in time");
  EXPECT_EQ(
      refusal([](Request) { return json("{}", "302 Found\r\nLocation: http://10.0.0.1/"); }).rule,
      "a redirect is not followed");
  EXPECT_EQ(refusal([](Request) { return json("{}", "401 Unauthorized"); }).rule,
            "the server wants a key");
}

TEST(ProbeServer, NeverHearsOrShowsAKeyElsewhere) {
  std::string heard;
  const Error error = refusal(
      [&](const std::string& request) {
        heard = request;
        return json("{\"error\": \"bad\"}", "403 Forbidden");
      },
      "sk-very-secret");
  EXPECT_NE(heard.find("Authorization: Bearer sk-very-secret\r\n"), std::string::npos);
  EXPECT_EQ(error.message().find("secret"), std::string::npos);
}

// Of a prompt [a, b, …] in a body.
std::vector<int> prompt_of(const std::string& request) {
  std::vector<int> made;
  std::size_t at = request.find("\"prompt\":[");
  if (at == request.npos) return made;
  for (at += 10; at < request.size() && request[at] != ']';) {
    std::size_t used = 0;
    made.push_back(std::stoi(request.substr(at, 12), &used));
    at += used + (request[at + used] == ',' ? 1 : 0);
  }
  return made;
}

TEST(ProbeServer, IsReadInVllmsWay) {
  Server server([](const std::string& request) {
    if (!request.starts_with("POST"))
      return json("{\"data\": [{\"id\": \"m\", \"max_model_len\": 2048}]}");
    std::string list = "null";
    const std::vector<int> prompt = prompt_of(request);
    for (std::size_t i = 1; i < prompt.size(); ++i)
      list += ", {\"7\": {\"logprob\": -0.5}, \"" + std::to_string(prompt[i]) +
              "\": {\"logprob\": -" + std::to_string(i) + ".25}}";
    return json("{\"choices\": [{\"prompt_logprobs\": [" + list + "]}]}");
  });
  const auto found = HttpScorer::find(
      {.url = *parse_url("127.0.0.1:" + std::to_string(server.port) + "/v1")}, nullptr);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ((*found)->api(), Api::prompt_logprobs);
  EXPECT_EQ((*found)->context(), 2048);
  EXPECT_EQ((*found)->model(), "m");
  const auto seen = (*found)->score("", {3, 4, 5}, 0);
  ASSERT_TRUE(seen) << seen.error().message();
  ASSERT_EQ(seen->seen.size(), 2u);
  EXPECT_EQ(seen->seen[1].read, 2);
  EXPECT_EQ(seen->seen[1].chances[0].token, 5);  // the text's own first
  EXPECT_FLOAT_EQ(seen->seen[1].chances[0].log_probability, -2.25F);
  EXPECT_EQ(seen->seen[1].chances[1].token, 7);
}

TEST(ProbeServer, IsReadInLlamaCppsWay) {
  Server server([](const std::string& request) {
    if (request.starts_with("GET /props"))
      return json("{\"default_generation_settings\": {\"n_ctx\": 512}}");
    if (request.starts_with("GET")) return json("{}", "404 Not Found");
    return json("{\"tokens_evaluated\": " + std::to_string(prompt_of(request).size()) +
                ", \"completion_probabilities\": [{\"id\": 9, \"logprob\": -0.5, \"top_logprobs\": "
                "[{\"id\": 9, \"logprob\": -0.5}, {\"id\": 2, \"logprob\": -1.5}]}]}");
  });
  const auto found =
      HttpScorer::find({.url = *parse_url("127.0.0.1:" + std::to_string(server.port))}, nullptr);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ((*found)->api(), Api::llama_cpp);
  EXPECT_EQ((*found)->context(), 512);
  EXPECT_FALSE((*found)->scores_prompts());
  const auto seen = (*found)->score("", {3, 4, 5}, 1);
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->seen.size(), 1u);
  EXPECT_EQ(seen->seen[0].read, 3);
  EXPECT_EQ(seen->seen[0].chances.size(), 2u);
  EXPECT_EQ(seen->tokens.back(), 9);
}

TEST(ProbeServer, ThatReadsOtherTokensIsRefused) {
  Server server([](const std::string& request) {
    if (request.starts_with("GET /props")) return json("{\"default_generation_settings\": {}}");
    return json(request.find("[10,") != request.npos
                    ? "{\"completion_probabilities\": [{\"id\": 9, \"logprob\": -0.5}]}"
                    : "{\"tokens_evaluated\": 99, \"completion_probabilities\": [{\"id\": 9, "
                      "\"logprob\": -0.5}]}");
  });
  const auto found =
      HttpScorer::find({.url = *parse_url("127.0.0.1:" + std::to_string(server.port))}, nullptr);
  ASSERT_TRUE(found) << found.error().message();
  const auto seen = (*found)->score("", {3, 4, 5}, 1);
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().rule, "the server must read a text as FILE's tokenizer does");
}

TEST(ProbeServer, WhoseNumbersAreNoneTellsNothing) {
  for (const char* number : {"\"x\"", "1.5", "null", "-1e999", "[]"}) {
    Server server([&](const std::string& request) {
      if (request.starts_with("GET /props")) return json("{\"default_generation_settings\": {}}");
      return json("{\"completion_probabilities\": [{\"id\": 9, \"logprob\": " +
                  std::string(number) + "}]}");
    });
    EXPECT_FALSE(
        HttpScorer::find({.url = *parse_url("127.0.0.1:" + std::to_string(server.port))}, nullptr))
        << number;
  }
}

#endif

}  // namespace
}  // namespace posenc::cli
