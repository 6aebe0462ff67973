// Position vectors by vectors: waves made or learned rows gathered, alone or added to an embedding.
#pragma once

#include <cstdint>

#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::detail {

struct AddJob {
  const Add* part = nullptr;
  const Positions* positions = nullptr;
  Tensor x = {}, out = {};  // [batch, seq, width]; x absent where only the vectors are wanted
  bool shared = false;      // as in RotateJob
  std::int64_t axis = 0;    // of the positions, that the waves read
  Tensor at = {};           // [axis][batch][seq], real positions instead

  std::int64_t tokens() const { return shared ? out.shape[1] : out.shape[0] * out.shape[1]; }
};

// Whether the kernel takes the job. false for Ramp plans, for mixed float64/other dtypes and for
// whole positions of waves that are not of one axis and one block (pieces_of in waves.h): those use
// the reference.
bool adds(const AddJob& job);

// Writes tokens [first, last).
void add_tokens(const AddJob& job, std::int64_t first, std::int64_t last);

}  // namespace posenc::detail
