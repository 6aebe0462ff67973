// A safetensors file: its tensors cover the bytes behind the header, one after the other.
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = parse_safetensors(bytes, "file.safetensors");
  if (!file) {
    fuzz::check_error(file.error());
    return 0;
  }
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
