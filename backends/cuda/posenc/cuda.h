// Plans acting on tensors that lie on an NVIDIA device: rotation, with the keys' way to a paged
// cache, position vectors, biases by distance. Plans are compiled on the host and brought to the
// device once; a call then reads positions, and which plan each token uses, on the device
// itself: nothing waits for the host, and calls may stand in a CUDA graph.
//
// Angles are exact at every position, as on the host (docs/cuda.md): turns in fixed point, no
// table, no bound. float64 is computed in double and the others in float, 16-bit types are rounded
// once. A float cosine or sine is within 2^-24.95 of the exact one (the host's: 2^-25), a double one
// within 2^-51.7. With an engine's angles (Rotate::angles) a call computes as that engine does.
// What lies on the device is not checked: an id beyond 2^62, or with an engine's angles beyond
// 2^24, gives angles that say nothing, a plan id that there is not reads beyond a table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "posenc/apply.h"
#include "posenc/device_bias.h"

namespace [[gnu::visibility("default")]] posenc {
namespace cuda {

struct Backend;

// What a device rotates by: one plan, or several that differ in frequencies and amplitude alone, so
// that tokens of requests with different scalings use theirs in one call.
class Rotations {
 public:
  // Errors: no plan, one without a rotation, plans of another geometry than the first (slice,
  // pairing, heads or axes of their frequencies, xPos' growth, whose arithmetic), several with
  // ggml's angles, a frequency from 2^200 on, no device, its memory full.
  static Expected<Rotations> make(std::span<const Plan> plans);
  static Expected<Rotations> make(std::span<const Plan> plans, const Backend& backend);

  std::int64_t size() const { return count_; }

 private:
  friend class RotateOnDevice;
  const Backend* backend_ = nullptr;
  Rotate rotation_ = {};  // the first plan's
  std::int64_t count_ = 0;
  double fastest_ = 0;  // radians per position
  std::shared_ptr<void> turns_ = {}, amplitude_ = {}, inverse_amplitude_ = {};
  std::shared_ptr<void> growth_ = {}, engine_frequency_ = {}, engine_factors_ = {};
};

// Where tokens stand: in a range, at ids on the device, [axis, batch, seq] dense, or in packed
// texts.
struct DevicePositions {
  std::int64_t first = 0;                   // of a range, where there is nothing of the rest
  const std::int64_t* ids = nullptr;        // or:
  const std::int32_t* short_ids = nullptr;  // the same of 32 bits, or:
  const double* real_ids = nullptr;  // of rotations alone, of less than π radians per position
  // Or bounds of packed texts on the device, cu_seqlens [texts + 1], in tensors of batch 1, and how
  // many tokens of each are in a cache before [texts] (absent: none). Each text counts from there.
  const std::int32_t* cu_seqlens = nullptr;
  const std::int32_t* cached = nullptr;
  int texts = 0;
};

enum class Action { forward, transpose, inverse };  // rotate, rotate_transpose, rotate_inverse

struct RotateOptions {
  Action action = Action::forward;
  Side side = Side::query;                 // of the first tensor; the second has keys
  const std::int32_t* plan_ids = nullptr;  // [batch, seq] on the device: 0 to size() - 1; absent: 0
  void* stream = nullptr;                  // cudaStream_t
  // That a thread rotates by the same cosines. 0: four; one where tokens are few, as in decoding.
  int heads_at_once = 0;
  // Nothing of positions, plan_ids and slots is written by the kernel before this one in the stream
  // (they came with the step, not from sampling). Then angles are made while that kernel still
  // runs, where rows are read by 16 bytes, by programmatic dependent launch from compute capability
  // 9.0 on; elsewhere it changes nothing. The bits are the same.
  bool ids_ready = false;
};

// Queries [batch, head, seq, head_dim] and keys [batch, kv_head, seq, head_dim] of the same tokens,
// on the device; k may be absent. Out is the same view (in place) or memory apart from it. Returns
// when the work is in the stream. Values of a plan that rotates them are the first tensor, with
// side value, and the attention's output is rotated back by Action::transpose.
// Errors: shapes, types or out that do not match, heads that the frequencies do not have, ids
// missing where there are several axes, real ids with an engine's angles or frequencies from π on,
// what the driver says.
Expected<void> rotate(const Rotations& rotations, const Tensor& q, const Tensor& k,
                      const DevicePositions& positions, const Tensor& q_out, const Tensor& k_out,
                      const RotateOptions& options = {});

// A cache in pages, [page, kv_head, token in page, head_dim] in any order in memory (NHD, HND), and
// where each token of a call goes: slots [batch, seq] on the device, page · page size + token in
// page. Slots below 0 and behind the last page are padding: the token is written nowhere, and its
// query is rotated all the same.
struct DevicePages {
  Tensor keys, values;
  const std::int64_t* slots = nullptr;
};

// rotate(), and in the same pass rotated keys, and values as they are or rotated where the plan
// does so, into the pages. k_out may be absent: the keys go to the pages alone. Errors: those of
// rotate, pages or values of other heads, head_dim or type than the keys, 2^31 slots.
Expected<void> rotate_and_append(const Rotations& rotations, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const DevicePositions& positions,
                                 const Tensor& q_out, const Tensor& k_out, const DevicePages& pages,
                                 const RotateOptions& options = {});

struct RekeyOptions {
  std::int64_t from = 0, to = 0;  // of the table: which plan rotated the keys, and which shall have
  Side side = Side::key;          // Side::value for the values of a plan that rotates them
  void* stream = nullptr;         // cudaStream_t
  int heads_at_once = 0;          // as in RotateOptions
};

// posenc::rekey() there: cached keys [batch, kv_head, seq, head_dim] that stand at some positions
// become keys that stand at others, turned once by the difference of the two angles and rounded
// once. Out is the same view or memory apart from it. Errors: those of rotate, plans that the table
// does not have, and what has no difference of angles: xPos' growth, an engine's arithmetic, real
// ids.
Expected<void> rekey(const Rotations& rotations, const Tensor& keys, const DevicePositions& stood,
                     const DevicePositions& stands, const Tensor& out,
                     const RekeyOptions& options = {});
// The same in place in the pages of a cache, [page, kv_head, token in page, head_dim] in any order
// in memory: slots [batch, seq] on the device say where the keys of a call lie, as in DevicePages.
// A slot that stands twice is turned twice, or by two threads at once.
Expected<void> rekey_pages(const Rotations& rotations, const Tensor& pages,
                           const std::int64_t* slots, std::int64_t batch, std::int64_t tokens,
                           const DevicePositions& stood, const DevicePositions& stands,
                           const RekeyOptions& options = {});

// The gradient of learned frequencies, as rotate_frequency_gradient() of posenc/gradients.h: from
// rotated [batch, head, seq, head_dim] and its gradient, of the first plan. Adds up in doubles, in
// an order that workspace [parts, heads · axes · pairs] of doubles on the device gives: the same
// bits for the same parts (a few hundred keep a device busy). out [heads, axes, pairs], doubles,
// dense. Errors: those of rotate, angles that are not exact, another workspace or out.
Expected<void> rotate_frequency_gradient(const Rotations& rotations, const Tensor& rotated,
                                         const Tensor& rotated_gradient,
                                         const DevicePositions& positions, const Tensor& workspace,
                                         const Tensor& out, void* stream = nullptr);

// What is added to embeddings: a plan's waves, its learned table, which is brought to the device in
// its own type, or its ramp.
class Additions {
 public:
  // Errors: a plan that adds nothing, no table given, no device, its memory full.
  static Expected<Additions> make(const Plan& plan);
  static Expected<Additions> make(const Plan& plan, const Backend& backend);

 private:
  friend class AddOnDevice;
  const Backend* backend_ = nullptr;
  Add part_ = {};
  std::shared_ptr<void> numbers_ = {};  // turns, or a table
  DType table_type_ = DType::f32;
};

// embedding [batch, seq, width] · embedding_scale + position vectors -> out, in place or to memory
// apart. A position whose row a learned table has not gives NaN. Errors: shapes or types that do
// not match, real ids, 2^31 channels, what the driver says.
Expected<void> add(const Additions& additions, const Tensor& embedding,
                   const DevicePositions& positions, const Tensor& out, void* stream = nullptr);
// The vectors alone (no embedding scale).
Expected<void> position_vectors(const Additions& additions, const DevicePositions& positions,
                                const Tensor& out, void* stream = nullptr);

// A plan's bias by distance.
class Biases {
 public:
  // Errors: a plan without a bias, no table given, a distance from the first to the last of 2^24 or
  // more, no device.
  static Expected<Biases> make(const Plan& plan);
  static Expected<Biases> make(const Plan& plan, const Backend& backend);

  // For kernels on the device, while this lives.
  DeviceBias<float> in_float() const;
  DeviceBias<double> in_double() const;

 private:
  friend Expected<void> bias(const Biases&, const DevicePositions&, const DevicePositions&,
                             const Tensor&, void*);
  const Backend* backend_ = nullptr;
  std::int64_t heads_ = 1;  // 1: any number
  bool by_slopes_ = false, absolute_ = false, saturates_ = true;
  std::int64_t first_ = 0, last_ = -1;
  std::shared_ptr<void> doubles_ = {}, floats_ = {};
};

// What is added to the logits by distance, written out: out [head, query, key], computed in double
// and rounded once. A distance that the table does not reach gives NaN. Errors: heads or sizes that
// do not match, real ids, what the driver says.
Expected<void> bias(const Biases& biases, const DevicePositions& queries,
                    const DevicePositions& keys, const Tensor& out, void* stream = nullptr);

}  // namespace cuda
}  // namespace posenc
