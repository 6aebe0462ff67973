// A config.json from anywhere is read or refused; what is read compiles and explains.
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const auto model = read_config(fuzz::text_of({data, size}), "config.json");
  if (!model) {
    fuzz::check_error(model.error());
    return 0;
  }
  fuzz::check_model(*model);
  return 0;
}
