// Addresses and answers as text: what has nothing to do with sockets.
#include "cli/probe/http.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "src/core/small_letters.h"
#include "src/core/trimmed.h"

namespace posenc::cli {
namespace {

using detail::small_letters;
using detail::trimmed;

constexpr std::size_t longest_head = std::size_t{64} << 10;

bool whole_number(std::string_view text, std::size_t& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Of a body in chunks; each has its size in front.
AnswerState unchunked(std::string_view rest, std::size_t most, std::string& body,
                      std::string& why) {
  for (;;) {
    const std::size_t line = rest.find("\r\n");
    if (line == rest.npos) return rest.size() > 1024 ? AnswerState::damaged : AnswerState::more;
    std::size_t size = 0;
    if (!whole_number(trimmed(rest.substr(0, std::min(line, rest.find(';')))), size, 16)) {
      why = "a chunk without its size";
      return AnswerState::damaged;
    }
    if (size > most || body.size() > most - size) {
      why = "more than " + std::to_string(most >> 20) + " MiB";
      return AnswerState::damaged;
    }
    rest.remove_prefix(line + 2);
    if (size == 0) return AnswerState::whole;
    if (rest.size() < size + 2) return AnswerState::more;
    body.append(rest.substr(0, size));
    if (rest.substr(size, 2) != "\r\n") {
      why = "a chunk longer than its size";
      return AnswerState::damaged;
    }
    rest.remove_prefix(size + 2);
  }
}

}  // namespace

Expected<Url> parse_url(std::string_view text) {
  const auto refuse = [&](std::string_view rule, std::string_view cure) {
    return fail("URL", rule, text.contains('@') ? "one with '@'" : text, cure);
  };
  std::string_view rest = text;
  if (small_letters(text.substr(0, 8)) == "https://")
    return refuse("must be http: posenc has no TLS of its own",
                  "open a tunnel to it (ssh -L 8000:HOST:8000), and give its local end");
  if (small_letters(text.substr(0, 7)) == "http://")
    rest.remove_prefix(7);
  else if (text.contains("://"))
    return refuse("must be of http", "write http://HOST:PORT");
  if (rest.contains('@')) return refuse("must have no user or password", "name a key by --key_env");
  for (const char c : rest)
    if (c <= ' ' || c == 0x7F || c == '?' || c == '#')
      return refuse("must have no blanks, queries or fragments", "write http://HOST:PORT/v1");
  Url url;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view place = rest.substr(0, slash);
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (place.starts_with('[')) {
    const std::size_t end = place.find(']');
    if (end == place.npos) return refuse("must close its bracket", "write http://[::1]:PORT");
    url.host = place.substr(1, end - 1);
    place.remove_prefix(end + 1);
  } else {
    const std::size_t colon = std::min(place.find(':'), place.size());
    url.host = place.substr(0, colon);
    place.remove_prefix(colon);
  }
  if (url.host.empty()) return refuse("must name a host", "write http://HOST:PORT");
  url.port = "80";
  if (!place.empty()) {
    std::size_t port = 0;
    if (place.front() != ':' || !whole_number(place.substr(1), port) || port < 1 || port > 65535)
      return refuse("must have a port from 1 to 65535", "write http://HOST:PORT");
    url.port = place.substr(1);
  }
  return url;
}

bool is_loopback(const Url& url) {
  return url.host == "localhost" || url.host == "::1" || url.host.starts_with("127.");
}

AnswerState read_answer(std::string_view bytes, bool ended, const HttpLimits& limits,
                        HttpAnswer& answer, std::string& why) {
  const auto damaged = [&](std::string text) {
    why = std::move(text);
    return AnswerState::damaged;
  };
  const std::string_view begin = "HTTP/1.";
  if (bytes.size() > 2 * limits.bytes + longest_head)
    return damaged("more than " + std::to_string(limits.bytes >> 20) + " MiB");
  // 100 and its kin say that the answer is yet to come.
  for (int before = 0; before < 8; ++before) {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == bytes.npos || !bytes.starts_with(begin) || bytes.size() < 12 || bytes[9] != '1')
      break;
    bytes.remove_prefix(end + 4);
  }
  if (!bytes.starts_with(begin.substr(0, std::min(bytes.size(), begin.size()))))
    return damaged("no HTTP");
  const std::size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == bytes.npos) {
    if (bytes.size() > longest_head) return damaged("a head without an end");
    if (ended) return damaged(bytes.empty() ? "nothing" : "an answer that ends within its head");
    return AnswerState::more;
  }
  std::string_view head = bytes.substr(0, head_end), body = bytes.substr(head_end + 4);
  std::size_t status = 0;
  if (head.size() < 12 || !whole_number(head.substr(9, 3), status) || status < 100)
    return damaged("no status");
  if (status < 200) return damaged("an answer that is always yet to come");
  answer.status = static_cast<int>(status);
  std::optional<std::size_t> length;
  bool chunked = false;
  for (std::size_t at = head.find("\r\n"); at != head.npos && at < head.size();) {
    at += 2;
    const std::size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view line = head.substr(at, end - at);
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string name = small_letters(trimmed(line.substr(0, colon)));
    const std::string_view value =
        colon < line.size() ? trimmed(line.substr(colon + 1)) : std::string_view();
    if (name == "content-length") {
      std::size_t said = 0;
      if (!whole_number(value, said)) return damaged("a length that is no number");
      if (said > limits.bytes)
        return damaged("more than " + std::to_string(limits.bytes >> 20) + " MiB");
      length = said;
    } else if (name == "transfer-encoding") {
      if (small_letters(value) != "chunked") return damaged("a coding that posenc does not know");
      chunked = true;
    } else if (name == "content-encoding" && small_letters(value) != "identity") {
      return damaged("a coding that nobody asked for");
    }
    at = end;
  }
  answer.body.clear();
  if (chunked) {
    const AnswerState read = unchunked(body, limits.bytes, answer.body, why);
    if (read == AnswerState::more && ended) return damaged("an answer that is cut short");
    if (read == AnswerState::damaged && why.empty()) why = "a chunk without its size";
    return read;
  }
  if (length) {
    if (body.size() < *length)
      return ended ? damaged("an answer that is cut short") : AnswerState::more;
    answer.body = body.substr(0, *length);
    return AnswerState::whole;
  }
  if (body.size() > limits.bytes)
    return damaged("more than " + std::to_string(limits.bytes >> 20) + " MiB");
  if (!ended) return AnswerState::more;
  answer.body = body;
  return AnswerState::whole;
}

}  // namespace posenc::cli
