#include "backends/cuda/calls.h"

#include <cstdint>

namespace posenc::cuda {

Expected<Tokens> tokens_of(const DevicePositions& positions, std::int64_t batch,
                           std::int64_t count) {
  if (positions.cu_seqlens != nullptr && (batch != 1 || positions.texts < 1))
    return fail(where, "packed texts must be 1 or more, in tensors of batch 1",
                std::to_string(positions.texts) + " texts, batch " + std::to_string(batch));
  return Tokens{.batch = batch,
                .count = count,
                .first = positions.first,
                .ids = positions.ids,
                .short_ids = positions.short_ids,
                .real_ids = positions.real_ids,
                .bounds = positions.cu_seqlens,
                .before = positions.cached,
                .texts = positions.texts};
}

bool in_words(const Tensor& x) {
  const auto n = 16 / static_cast<std::int64_t>(size_of(x.dtype));
  const auto last = static_cast<std::size_t>(x.rank - 1);
  if (reinterpret_cast<std::uintptr_t>(x.data) % 16 != 0 || x.stride[last] != 1) return false;
  for (std::size_t axis = 0; axis < last; ++axis)
    if (x.stride[axis] % n != 0) return false;
  return true;
}

}  // namespace posenc::cuda
