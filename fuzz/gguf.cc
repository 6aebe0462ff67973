// A GGUF file: what it lists lies in its bytes, or is counted as missing.
#include "fuzz/check.h"

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
  std::size_t covered = 0;
  for (const StoredTensor& tensor : file->tensors) {
    fuzz::check_tensor(tensor, bytes);
    fuzz::check_doubles(tensor);
    fuzz::must(find_tensor(file->tensors, tensor.name) == &tensor, "a name is one tensor's",
               tensor.name);
    covered += tensor.bytes.size();
  }
  fuzz::must(covered <= size, "no byte belongs to two tensors");
  return 0;
}
