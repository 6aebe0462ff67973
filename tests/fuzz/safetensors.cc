// A safetensors file: its tensors cover the bytes behind the header, one after the other.
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = parse_safetensors(bytes, "file.safetensors");
  if (!file) {
    fuzz::check_error(file.error());
    return 0;
  }
  fuzz::check_tensors(file->tensors, bytes);
  return 0;
}
