// A .npy file: one tensor, which is all of the bytes behind the header.
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto tensor = parse_npy(file, "file.npy");
  if (!tensor) {
    fuzz::check_error(tensor.error());
    return 0;
  }
  fuzz::check_tensor(*tensor, file);
  const std::span<const std::byte> end = file.last(tensor->bytes.size());
  fuzz::must(tensor->bytes.empty() || tensor->bytes.data() == end.data(),
             "the array is the rest of the file");
  fuzz::check_doubles(*tensor);
  return 0;
}
