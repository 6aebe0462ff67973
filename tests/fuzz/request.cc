// What anyone who reaches `posenc serve` may send: one answer, whatever comes behind the head of
// the request.
#include <string>

#include "cli/playground/answer.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  static constexpr char page[] = "page", packed[] = "packed";
  static constexpr cli::SiteFile files[] = {
      {"/index.html", "0123", {page, page + 4}, {packed, packed + 6}}};
  const auto answer = [&](std::string_view text) { return cli::answer(text, "my.host", files); };

  const std::string_view text = fuzz::text_of({data, size});
  const std::string more = std::string(text) + std::string(cli::longest_head, 'a');
  const auto now = answer(text), later = answer(more);
  fuzz::must(later.has_value(), "a request that is too long is refused", text);
  fuzz::must(!now || (now->head == later->head && now->body == later->body),
             "what comes behind the head changes nothing", text);
  for (std::size_t length = 0; !now && length < size; length++)
    fuzz::must(!answer(text.substr(0, length)), "there is no answer to half of a head", text);

  const std::string_view head = later->head;
  fuzz::must(head.starts_with("HTTP/1.1 ") && head.find("\r\n\r\n") == head.size() - 4,
             "an answer is one head", head);
  fuzz::must(
      head.starts_with("HTTP/1.1 200 ") || later->body.ends_with('\n') || later->body.empty(),
      "only the site's own files are sent", later->body);
  return 0;
}
