// One request to one server, over HTTP/1.1: bounded in time and bytes. Nothing is followed
// elsewhere, and whatever comes back is bytes that somebody else chose.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

struct Url {
  std::string host = {}, port = {};
  std::string path = {};  // "" or "/v1", without a slash at its end
};
// "http://127.0.0.1:8000/v1", "127.0.0.1:8000", "http://[::1]:8000".
// Errors: https, which needs a tunnel; a user or password in it; no host, no such port.
Expected<Url> parse_url(std::string_view text);
bool is_loopback(const Url& url);  // by its name: localhost, ::1, 127.…

struct HttpLimits {
  double seconds = 300;  // of a whole request
  double connecting = 5;
  std::size_t bytes = std::size_t{32} << 20;  // of an answer
};

struct HttpAnswer {
  int status = 0;
  std::string body = {};
};
// GET where `body` is empty, else POST of JSON. `key` is sent as a bearer's and stands in no error.
// Errors: no connection, no answer in time, one that is cut short, too long or no HTTP, a redirect.
Expected<HttpAnswer> request(const Url& url, std::string_view path, std::string_view body,
                             std::string_view key, const HttpLimits& limits);

// Of the bytes of an answer: "" as long as more must come, else what is wrong with it, or its body
// in `answer`. `ended`: the server has closed.
enum class AnswerState { more, whole, damaged };
AnswerState read_answer(std::string_view bytes, bool ended, const HttpLimits& limits,
                        HttpAnswer& answer, std::string& why);

}  // namespace posenc::cli
