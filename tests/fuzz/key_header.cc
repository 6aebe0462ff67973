// A header of keys that travel from anywhere: what is read is written back byte by byte.
#include "posenc/key_header.h"

#include <algorithm>

#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto header = parse_key_header(bytes, "keys");
  if (!header) {
    fuzz::check_error(header.error());
    return 0;
  }
  fuzz::must(std::ranges::equal(to_bytes(*header), bytes.first(KeyHeader::bytes)),
             "what is read is written back");
  fuzz::must(bool(check_key_header(*header, *header, "keys")), "a header agrees with itself");
  KeyHeader other = *header;
  other.rotation += 1;
  const auto checked = check_key_header(other, *header, "keys");
  fuzz::must(!checked, "another rotation is refused");
  fuzz::check_error(checked.error());
  return 0;
}
