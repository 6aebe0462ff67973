// Reads the head of a request and finds the file that it names. One answer a connection: what
// follows a request is never taken for the next.
#include "cli/playground/answer.h"

#include <algorithm>

#include "src/core/small_letters.h"
#include "src/core/trimmed.h"

namespace posenc::cli {
namespace {

constexpr std::string_view always =
    "Connection: close\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

// Of several policies each is kept to. A page stands in no frame of another, but for one that asks
// to, by ?embed=1.
constexpr std::string_view unframed = "Content-Security-Policy: frame-ancestors 'none'\r\n";

std::string header(std::string_view name, std::string_view value) {
  return std::string(name).append(": ").append(value).append("\r\n");
}

Answer made(std::string_view status, std::string_view headers, std::string_view body,
            bool embed = false) {
  std::string head = std::string("HTTP/1.1 ").append(status).append("\r\n").append(always);
  if (!embed) head.append(unframed);
  return {head.append(headers).append("\r\n"), body};
}

Answer say(std::string_view status, std::string_view sentence, std::string_view more = "") {
  return made(status,
              std::string(more) + header("Cache-Control", "no-store") +
                  header("Content-Type", "text/plain; charset=utf-8") +
                  header("Content-Length", std::to_string(sentence.size())),
              sentence);
}

struct Request {
  std::string_view method, path;
  bool embed = false;
  std::string_view host, accept_encoding, if_none_match;  // headers; of several the first
};

// Takes the next line off, without its end.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// "?embed=1", beside whatever else.
bool asks_to_be_embedded(std::string_view query) {
  while (!query.empty()) {
    query.remove_prefix(1);
    const std::size_t end = std::min(query.find('&'), query.size());
    if (query.substr(0, end) == "embed=1") return true;
    query.remove_prefix(end);
  }
  return false;
}

std::optional<Request> read_head(std::string_view head) {
  Request request;
  const std::string_view line = next_line(head);
  const std::size_t target = line.find(' ') + 1, version = line.rfind(' ') + 1;
  if (target <= 1 || version <= target + 1 || !line.substr(version).starts_with("HTTP/1."))
    return {};
  request.method = line.substr(0, target - 1);
  request.path = line.substr(target, version - 1 - target);
  const std::size_t query = std::min(request.path.find('?'), request.path.size());
  request.embed = asks_to_be_embedded(request.path.substr(query));
  request.path = request.path.substr(0, query);
  while (!head.empty()) {
    const std::string_view header = next_line(head);
    if (header.empty()) break;
    const std::size_t colon = header.find(':');
    const std::string name = detail::small_letters(header.substr(0, colon));
    if (colon == header.npos || name.empty() || name.find_first_of(" \t") != name.npos) return {};
    std::string_view* const value = name == "host"              ? &request.host
                                    : name == "accept-encoding" ? &request.accept_encoding
                                    : name == "if-none-match"   ? &request.if_none_match
                                                                : nullptr;
    if (value && value->empty()) *value = detail::trimmed(header.substr(colon + 1), " \t");
  }
  return request;
}

// A host as names are compared: without its port, without case, without the dot that a name may end
// with.
std::string name_of(std::string_view host) {
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
  std::string name = detail::small_letters(host.substr(0, colon));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

// A page elsewhere can make its own name mean this machine, but no number and not "localhost".
bool is_our_name(std::string_view host, std::string_view asked) {
  const std::string name = name_of(host);
  if (name.empty()) return false;
  if (name == "localhost" || name == name_of(asked) || name.front() == '[') return true;
  return name.find_first_not_of("0123456789.") == name.npos;
}

// Whether gzip may be sent: named, or by *, and not with q=0.
bool takes_gzip(std::string_view header) {
  std::string list = detail::small_letters(header);
  std::erase_if(list, [](char c) { return c == ' ' || c == '\t'; });
  std::string_view accept = list;
  bool named = false, any = false, refused = false;
  while (!accept.empty()) {
    const std::string_view one = accept.substr(0, accept.find(','));
    accept.remove_prefix(std::min(one.size() + 1, accept.size()));
    const std::string_view coding = one.substr(0, one.find(';'));
    const std::size_t q = one.find(";q=");
    const bool zero = q != one.npos && one.find_first_not_of("0.", q + 3) == one.npos;
    if (coding == "gzip") (zero ? refused : named) = true;
    if (coding == "*") any = !zero;
  }
  return !refused && (named || any);
}

std::string_view type_of(std::string_view path) {
  struct Row {
    std::string_view end, type;
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
                          {".md", "text/plain; charset=utf-8"},
                          {".txt", "text/plain; charset=utf-8"}};
  for (const Row& row : rows)
    if (path.ends_with(row.end)) return row.type;
  return "application/octet-stream";
}

Answer send(const SiteFile& file, const Request& request) {
  const bool gzip = !file.gzip.text().empty() && takes_gzip(request.accept_encoding);
  // A name under assets/ holds a hash of the bytes.
  const bool immutable = file.path.starts_with("/assets/");
  const std::string tag = '"' + std::string(file.hash) + (gzip ? "-gzip\"" : "\"");
  std::string headers =
      header("Cache-Control", immutable ? "public, max-age=31536000, immutable" : "no-cache") +
      header("ETag", tag) + header("Vary", "Accept-Encoding");
  if (request.if_none_match.contains(tag))
    return made("304 Not Modified", headers, "", request.embed);
  const std::string_view body = (gzip ? file.gzip : file.plain).text();
  if (gzip) headers += header("Content-Encoding", "gzip");
  headers += header("Content-Type", type_of(file.path)) +
             header("Content-Length", std::to_string(body.size()));
  return made("200 OK", headers, body, request.embed);
}

Answer answer_head(std::string_view head, std::string_view host, std::span<const SiteFile> files) {
  const std::optional<Request> request = read_head(head);
  if (!request) return say("400 Bad Request", "This is no request of HTTP/1.1.\n");
  if (!is_our_name(request->host, host))
    return say("421 Misdirected Request",
               "posenc serve answers to localhost, to addresses in numbers, and to --host NAME.\n");
  if (request->method != "GET" && request->method != "HEAD")
    return say("405 Method Not Allowed", "The playground only answers GET and HEAD.\n",
               header("Allow", "GET, HEAD"));
  std::string path(request->path);
  if (path.ends_with('/')) path += "index.html";
  const auto file = std::ranges::find(files, path, &SiteFile::path);
  Answer answer = file == files.end()
                      ? say("404 Not Found", "There is no such page; the playground is at /.\n")
                      : send(*file, *request);
  if (request->method == "HEAD") answer.body = "";
  return answer;
}

}  // namespace

std::optional<Answer> answer(std::string_view received, std::string_view host,
                             std::span<const SiteFile> files) {
  received = received.substr(0, longest_head);
  std::size_t line = received.find('\n');
  const bool in_first_line = line == received.npos;
  for (; line != received.npos; line = received.find('\n', line + 1)) {
    const std::string_view rest = received.substr(line + 1);
    if (rest.starts_with('\n') || rest.starts_with("\r\n"))
      return answer_head(received.substr(0, line + 1), host, files);
  }
  if (received.size() < longest_head) return {};
  return in_first_line ? say("414 URI Too Long", "No page here has such a long name.\n")
                       : say("431 Request Header Fields Too Large",
                             "The head of a request must be at most 8 KiB.\n");
}

}  // namespace posenc::cli
