// A position.json from anywhere is read or refused; what is read is written and read the same.
#include "posenc/position.h"

#include <string>

#include "posenc/tools.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::string_view text = fuzz::text_of({data, size});
  is_position(text);
  const auto file = read_position(text);
  if (!file) {
    fuzz::check_error(file.error());
    return 0;
  }
  const std::string written = to_json(*file);
  fuzz::check_json(written);
  const auto again = read_position(written);
  fuzz::must(again.has_value() && to_json(*again) == written,
             "what is read is written and read the same", written);
  const auto found = differences(*file, *again);
  fuzz::must(found.has_value(), "and can be compared", written);
  return 0;
}
