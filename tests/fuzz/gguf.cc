// A GGUF file: what it lists lies in its bytes, or is counted as missing.
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = parse_gguf(bytes, "file.gguf");
  if (!file) {
    fuzz::check_error(file.error());
    return 0;
  }
  for (const auto& [key, value] : file->metadata)
    fuzz::must(file->find(key) == &value, "a key finds its value", key);
  fuzz::check_tensors(file->tensors, bytes);
  return 0;
}
