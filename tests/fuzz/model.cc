// The bytes of a GGUF as a model: parsed, translated, compiled, explained at several lengths.
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const auto model = read_gguf(std::as_bytes(std::span(data, size)), "model.gguf");
  if (!model) {
    fuzz::check_error(model.error());
    return 0;
  }
  fuzz::check_model(*model);
  return 0;
}
