// Text that llama-eval-callback may have printed: what is read has a number for each entry, and
// what is told of it is text.
#include "posenc/identify.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const auto printed = read_eval_callback(fuzz::text_of({data, size}), "file.txt");
  if (!printed) {
    fuzz::check_error(printed.error());
    return 0;
  }
  for (const PrintedRotation& rotation : *printed) {
    const std::size_t count =
        rotation.heads.size() * rotation.tokens.size() * rotation.channels.size();
    fuzz::must(rotation.before.size() == count && rotation.after.size() == count,
               "a number for each head, token and channel");
    const auto found = identify(rotation);
    if (!found) {
      fuzz::check_error(found.error());
      continue;
    }
    for (const std::string& sentence : found->cannot_tell) fuzz::check_text(sentence);
    fuzz::check_json(to_json(*found));
  }
  return 0;
}
