// A state file of llama.cpp from anywhere: its keys are tensors of the file, and there is a
// position for each cell.
#include <cstring>

#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto state = parse_llama_state(file, "file.state");
  if (!state) {
    fuzz::check_error(state.error());
    return 0;
  }
  fuzz::must(is_llama_state(file), "what is read begins as a state file");
  for (const LlamaCache& cache : state->caches) {
    fuzz::must(cache.axes == 1 || cache.axes == 3, "positions have one axis or three");
    const std::size_t cells = cache.position.size() / static_cast<std::size_t>(cache.axes);
    fuzz::must(cache.place.size() == cells, "a place in the file for each cell");
    for (std::size_t cell = 0; cell < cells; ++cell) {
      fuzz::must(cache.place[cell] + 4 <= size, "the place is in the file");
      std::int32_t there = 0;
      std::memcpy(&there, data + cache.place[cell], sizeof there);
      fuzz::must(there == cache.position[cell], "the place has the position");
    }
    for (const StoredTensor& keys : cache.keys) {
      fuzz::check_tensor(keys, file);
      fuzz::must(keys.shape.size() == 2 && keys.shape[0] == static_cast<std::int64_t>(cells),
                 "a row for each cell");
      if (const auto numbers = floats_of(keys); !numbers) fuzz::check_error(numbers.error());
    }
  }
  return 0;
}
