// The shift test: RoPE's scores depend on distances alone, so that a text moved far out has the
// losses it had, as far as the arithmetic of the angles lets it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evidence/lab/model/llama.h"

namespace posenc::lab {

struct ShiftedLoss {
  Angles angles = Angles::exact;
  std::int64_t first = 0;  // position of the first token
  double mean = 0, rms = 0,
         most = 0;  // of the tokens' losses minus those of exact angles at position 0, nats
};

// Errors: those of Passage; a position that the angles refuse.
Expected<std::vector<ShiftedLoss>> shifted_losses(const Llama& model,
                                                  std::span<const std::int32_t> tokens,
                                                  std::span<const Angles> angles,
                                                  std::span<const std::int64_t> first);

}  // namespace posenc::lab
