// Cached keys that move: to other positions, to another plan's rotation, or both. Whether a model's
// keys may is said by reuse.h.
#pragma once

#include "posenc/apply.h"

namespace [[gnu::visibility("default")]] posenc {

// A rotation and where tokens stand in it.
struct Stand {
  const Plan* plan = nullptr;
  Positions at = Positions::range(0, 0);
};

// Keys x [batch, kv_head, seq, head_dim] that stand rotated by `from` become keys rotated by `to`,
// as if the unrotated ones had been rotated anew: out is x itself, or memory apart. Where the two
// plans rotate alike, each token is rotated once by the difference of its positions; where
// frequencies or the amplitude differ, once by the difference of the two angles; else back and anew
// in double. Each is rounded once. side: Side::value for the values of a plan that rotates them.
// Errors: those of rotate(); a rotation without an inverse or that depends on the query (mixtures,
// polar pairs, two angles, regions), which is named; heads or axes that differ.
Expected<void> rekey(const Stand& from, const Stand& to, const Tensor& x, const Tensor& out,
                     Side side = Side::key, Threads threads = {});

}  // namespace posenc
