// Rotation on NVIDIA's devices, of tensors that lie there. Plans are compiled on the host and brought to the device once; a call
// then reads positions, and which plan each token goes by, on the device itself: nothing waits for the host, and calls may stand in
// a CUDA graph.
//
// Angles are exact at every position, as on the host (docs/cuda.md): turns in fixed point, no table, no bound. float64 is computed
// in double and the others in float, 16-bit types are rounded once. A float cosine or sine is within 2^-23.7 of the exact one
// (the host's: 2^-25), a double one within 2^-51.7.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "posenc/apply.h"

namespace [[gnu::visibility("default")]] posenc {
namespace cuda {

struct Backend;

// What a device rotates by: one plan, or several that differ in frequencies and amplitude alone, so that tokens of requests
// with different scalings go by theirs in one call.
class Rotations {
 public:
  // Errors: no plan, one without a rotation, plans of another geometry than the first (slice, pairing, heads or axes of their
  // frequencies), xPos' growth, an engine's angles, a frequency from 2^200 on, no device, its memory full.
  static Expected<Rotations> make(std::span<const Plan> plans);
  static Expected<Rotations> make(std::span<const Plan> plans, const Backend& backend);

  std::int64_t size() const { return count_; }

 private:
  friend class RotateOnDevice;
  const Backend* backend_ = nullptr;
  Rotate rotation_ = {};  // the first plan's
  std::int64_t count_ = 0;
  std::shared_ptr<void> turns_ = {}, amplitude_ = {}, inverse_amplitude_ = {};
};

// Where tokens stand: in a range, at ids on the device, [axis, batch, seq] dense, or in packed texts.
struct DevicePositions {
  std::int64_t first = 0;                   // of a range, where there is nothing of the rest
  const std::int64_t* ids = nullptr;        // or:
  const std::int32_t* short_ids = nullptr;  // the same of 32 bits
  // Or bounds of packed texts on the device, cu_seqlens [texts + 1], in tensors of batch 1, and how many tokens of each are in a
  // cache before [texts] (absent: none). Each text counts from there.
  const std::int32_t* cu_seqlens = nullptr;
  const std::int32_t* cached = nullptr;
  int texts = 0;
};

enum class Turn { forward, transpose, inverse };  // rotate, rotate_transpose, rotate_inverse

struct RotateOptions {
  Turn turn = Turn::forward;
  const std::int32_t* plan_ids = nullptr;  // [batch, seq] on the device: 0 to size() - 1; absent: 0
  void* stream = nullptr;                  // cudaStream_t
  int heads_at_once = 4;                   // that a thread rotates by the same cosines
};

// Queries [batch, head, seq, head_dim] and keys [batch, kv_head, seq, head_dim] of the same tokens, on the device; k may be absent.
// Out is the same view (in place) or memory apart from it. Returns when the work is in the stream. Ids and plan ids are not
// checked: a plan that there is not is a read beyond a table.
// Errors: shapes, types or out that do not match, heads that the frequencies do not have, ids missing where there are several
// axes, what the driver says.
Expected<void> rotate(const Rotations& rotations, const Tensor& q, const Tensor& k,
                      const DevicePositions& positions, const Tensor& q_out, const Tensor& k_out,
                      const RotateOptions& options = {});

// A cache in pages, [page, kv_head, token in page, head_dim] in any order in memory (NHD, HND), and where each token of a call
// goes: slots [batch, seq] on the device, page · page size + token in page. Slots below 0 and behind the last page are
// padding: the token is written nowhere, and its query is rotated all the same.
struct DevicePages {
  Tensor keys, values;
  const std::int64_t* slots = nullptr;
};

// rotate(), and in the same pass rotated keys and values as they are into the pages. k_out may be absent: the keys go to the pages
// alone. Errors: those of rotate, pages or values of other heads, head_dim or type than the keys, 2^31 slots.
Expected<void> rotate_and_append(const Rotations& rotations, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const DevicePositions& positions,
                                 const Tensor& q_out, const Tensor& k_out, const DevicePages& pages,
                                 const RotateOptions& options = {});

}  // namespace cuda
}  // namespace posenc
