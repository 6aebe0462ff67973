#include "cli/playground/answer.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using posenc::cli::answer;
using posenc::cli::Answer;
using posenc::cli::longest_head;
using posenc::cli::SiteFile;

constexpr char page[] = "page", small[] = "small";
const SiteFile files[] = {{"/index.html", "0123", {page, page + 4}, {small, small + 5}}};

std::string answered(const std::string& request, const std::string& host = "127.0.0.1") {
  const auto out = answer(request, host, files);
  return out ? out->head + std::string(out->body) : "none yet";
}
std::string status(const std::string& request, const std::string& host = "127.0.0.1") {
  const std::string all = answered(request, host);
  return all.starts_with("HTTP/1.1 ") ? all.substr(9, 3) : all;
}
std::string asked(const std::string& line, const std::string& headers = "Host: localhost\r\n") {
  return line + "\r\n" + headers + "\r\n";
}

TEST(ServeAnswer, ComesWithTheEndOfTheHeadAndNotBefore) {
  const std::string request = asked("GET / HTTP/1.1", "Host: localhost\r\nX: y\r\n");
  for (std::size_t length = 0; length < request.size(); length++)
    EXPECT_EQ(answered(request.substr(0, length)), "none yet") << length;
  const std::string all = answered(request);
  EXPECT_TRUE(all.starts_with("HTTP/1.1 200 OK\r\n")) << all;
  EXPECT_TRUE(all.ends_with("Content-Length: 4\r\n\r\npage")) << all;
  EXPECT_EQ(answered(request + "GET /none HTTP/1.1\r\n\r\n"), all);
}

TEST(ServeAnswer, LinesMayEndAsTheyDoInATerminal) {
  EXPECT_EQ(status("GET / HTTP/1.0\nHost: localhost\n\n"), "200");
}

TEST(ServeAnswer, NamesOfHeadersHaveNoCaseAndTheirValuesNoSpacesAround) {
  EXPECT_EQ(status(asked("GET / HTTP/1.1", "hOST:\t localhost \r\n")), "200");
  EXPECT_EQ(status(asked("GET / HTTP/1.1", "HOST:localhost\r\n")), "200");
}

TEST(ServeAnswer, OnlyAPageThatAsksForItMayStandInAFrame) {
  const auto unframed = [](const std::string& target) {
    return answered(asked("GET " + target + " HTTP/1.1")).contains("frame-ancestors 'none'");
  };
  for (const char* target : {"/?embed=1", "/?embed=1&figure=2", "/?figure=2&embed=1"})
    EXPECT_FALSE(unframed(target)) << target;
  for (const char* target : {"/", "/?", "/?embed=0", "/?embed=11", "/?xembed=1", "/?x=embed=1",
                             "/#?embed=1", "/none?embed=1"})
    EXPECT_TRUE(unframed(target)) << target;
}

TEST(ServeAnswer, AFileThatIsNotKeptCompressedIsSentAsItIs) {
  const SiteFile plain[] = {{"/docs/index.html", "4567", {page, page + 4}, {}}};
  const auto out = answer(
      asked("GET /docs/ HTTP/1.1", "Host: localhost\r\nAccept-Encoding: gzip\r\n"), "", plain);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->body, "page");
  EXPECT_FALSE(out->head.contains("Content-Encoding")) << out->head;
  EXPECT_TRUE(out->head.contains("\"4567\"")) << out->head;
}

TEST(ServeAnswer, HeadIsGetWithoutTheBody) {
  const std::string whole = answered(asked("GET / HTTP/1.1"));
  EXPECT_EQ(answered(asked("HEAD / HTTP/1.1")), whole.substr(0, whole.size() - 4));
}

TEST(ServeAnswer, NamesOfHostsHaveNoCaseAndMayEndWithADot) {
  for (const char* host : {"localhost", "LOCALHOST", "LocalHost.", "localhost.:8137", "127.0.0.1",
                           "127.0.0.1.", "[::1]:8137", "My.Host", "my.host.:80"})
    EXPECT_EQ(status(asked("GET / HTTP/1.1", "Host: " + std::string(host) + "\r\n"), "my.HOST"),
              "200")
        << host;
  for (const char* host : {"", ".", "my.host..", "localhost.evil.example", "evil.example",
                           "127.0.0.1.evil.example", ":8137", "other"})
    EXPECT_EQ(status(asked("GET / HTTP/1.1", "Host: " + std::string(host) + "\r\n"), "my.HOST"),
              "421")
        << host;
  EXPECT_EQ(status(asked("GET / HTTP/1.1", "")), "421");
}

TEST(ServeAnswer, OfTwoHostsTheFirstCounts) {
  EXPECT_EQ(status(asked("GET / HTTP/1.1", "Host: evil.example\r\nHost: localhost\r\n")), "421");
}

TEST(ServeAnswer, WhatIsNoRequestIsRefused) {
  for (const char* line : {"nonsense", "GET /", "GET HTTP/1.1", " / HTTP/1.1", "GET / HTTP/2", "",
                           "GET  HTTP/1.1", "GET / HTTP/1.1 "})
    EXPECT_EQ(status(asked(line)), "400") << line;
  for (const char* header : {"no colon", ": no name", " folded: line", "a space: x"})
    EXPECT_EQ(status(asked("GET / HTTP/1.1", "Host: localhost\r\n" + std::string(header) + "\r\n")),
              "400")
        << header;
}

TEST(ServeAnswer, OtherMethodsAreRefusedWhateverFollows) {
  for (const char* method : {"POST", "PUT", "get", "BREW"}) {
    const std::string all = answered(asked(std::string(method) + " / HTTP/1.1"));
    EXPECT_TRUE(all.starts_with("HTTP/1.1 405 ")) << all;
    EXPECT_NE(all.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
  }
}

TEST(ServeAnswer, AHeadIsOfSomeLengthAtMost) {
  const std::string line = "GET /" + std::string(longest_head, 'a');
  EXPECT_EQ(status(line.substr(0, longest_head - 1)), "none yet");
  EXPECT_EQ(status(line), "414");
  std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  while (request.size() < longest_head) request += "X: y\r\n";
  EXPECT_EQ(status(request), "431");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(longest_head, 'x')), "431");
  std::string fits = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
  fits += std::string(longest_head - fits.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(status(fits), "200");
}

TEST(ServeAnswer, AFileThatTheClientHasIsNotSentAgain) {
  const std::string all =
      answered(asked("GET / HTTP/1.1", "Host: localhost\r\nIf-None-Match: W/\"0123\"\r\n"));
  EXPECT_TRUE(all.starts_with("HTTP/1.1 304 ")) << all;
  EXPECT_TRUE(all.ends_with("\r\n\r\n")) << all;
  EXPECT_EQ(status(asked("GET / HTTP/1.1", "Host: localhost\r\nIf-None-Match: \"9\"\r\n")), "200");
}

}  // namespace
