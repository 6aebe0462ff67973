// Plans brought to a device, and calls checked and put into the kernel's terms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/backend.h"
#include "cuda/fixed_point.h"
#include "posenc/cuda.h"
#include "src/core/try.h"

namespace posenc::cuda {
namespace {

constexpr std::string_view where = "cuda";

Expected<void> done(const char* error) {
  if (error == nullptr) return {};
  return fail(where, "the device must do what it is asked", error);
}

bool same_geometry(const Rotate& a, const Rotate& b) {
  return a.pairing == b.pairing && a.first_dim == b.first_dim && a.rotary_dim == b.rotary_dim &&
         a.blocks == b.blocks && a.heads == b.heads && a.axes == b.axes;
}

Expected<void> check(const Plan& plan, const Rotate& first) {
  if (!plan.rotate)
    return fail(where, "a plan must rotate", "none", "posenc explain shows what it does");
  const Rotate& rotate = *plan.rotate;
  if (!same_geometry(rotate, first))
    return fail(
        where, "plans of one table must have one slice, pairing, heads and axes",
        std::to_string(rotate.rotary_dim) + " channels beside " + std::to_string(first.rotary_dim),
        "make a table for each");
  if (rotate.growth) return fail(where, "the device has no xPos yet", "xpos", "rotate on the host");
  if (rotate.angles != Angles::exact)
    return fail(where, "the device's angles are exact", name(rotate.angles), "rotate on the host");
  for (const double f : rotate.frequency)
    if (!(std::abs(f) < 0x1p200))
      return fail(where, "a frequency must be below 2^200", std::to_string(f));
  return {};
}

template <class T>
Expected<std::shared_ptr<void>> brought(const Backend& backend, const std::vector<T>& list) {
  const std::size_t bytes = list.size() * sizeof(T);
  void* memory = nullptr;
  POSENC_CHECK(done(backend.allocate(bytes, &memory)));
  std::shared_ptr<void> owned(memory, backend.release);
  POSENC_CHECK(done(backend.copy_in(memory, list.data(), bytes)));
  return owned;
}

}  // namespace

Expected<Rotations> Rotations::make(std::span<const Plan> plans, const Backend& backend) {
  if (plans.empty()) return fail(where, "there must be a plan", "none");
  std::vector<Turns> turns;
  std::vector<double> amplitude, inverse;
  for (const Plan& plan : plans) {
    POSENC_CHECK(check(plan, plans.front().rotate.value_or(Rotate{})));
    for (const double f : plan.rotate->frequency) turns.push_back(turns_of(f));
    amplitude.push_back(plan.rotate->amplitude);
    inverse.push_back(1 / plan.rotate->amplitude);
  }
  POSENC_CHECK(done(backend.find()));
  Rotations made;
  made.backend_ = &backend;
  made.rotation_ = *plans.front().rotate;
  made.count_ = static_cast<std::int64_t>(plans.size());
  POSENC_TRY(turns_there, brought(backend, turns));
  POSENC_TRY(amplitude_there, brought(backend, amplitude));
  POSENC_TRY(inverse_there, brought(backend, inverse));
  made.turns_ = std::move(turns_there);
  made.amplitude_ = std::move(amplitude_there);
  made.inverse_amplitude_ = std::move(inverse_there);
  return made;
}

// A call as the kernel has it.
class RotateOnDevice {
 public:
  RotateOnDevice(const Rotations& rotations, const RotateOptions& options)
      : rotations_(rotations), rotation_(rotations.rotation_), options_(options) {}

  // v and pages: absent, or the keys are there too.
  Expected<void> run(const Tensor& q, const Tensor& k, const Tensor& v,
                     const DevicePositions& positions, const Tensor& q_out, const Tensor& k_out,
                     const DevicePages& pages) {
    if (rotations_.backend_ == nullptr) return fail(where, "rotations must have been made", "none");
    POSENC_CHECK(set_sizes(q.with_rank(4)));
    POSENC_CHECK(add(q, q_out, 0));
    keys_are_cached_ = static_cast<bool>(v);
    if (k) POSENC_CHECK(add(k, k_out, 1));
    if (v) {
      POSENC_CHECK(add(v, {}, 2));
      POSENC_CHECK(set_pages(pages, k.with_rank(4)));
    }
    POSENC_CHECK(set_positions(positions));
    set_rotation();
    call_.wide = fits_words();
    if (call_.batch == 0 || call_.tokens == 0) return {};
    for (const Operand& x : call_.operands)
      if (call_.batch * call_.tokens > INT32_MAX / std::max(x.heads, 1))
        return fail(where, "a call may have 2^31 tokens times heads",
                    std::to_string(call_.batch * call_.tokens) + " x " + std::to_string(x.heads),
                    "rotate it in parts");
    return done(rotations_.backend_->rotate(call_, options_.stream));
  }

 private:
  Expected<void> set_sizes(const Tensor& q) {
    call_.batch = q.shape[0];
    call_.tokens = q.shape[2];
    call_.head_dim = static_cast<std::int32_t>(q.shape[3]);
    call_.number = static_cast<Number>(q.dtype);
    if (q.shape[3] > INT32_MAX || q.shape[3] < rotation_.first_dim + rotation_.rotary_dim)
      return fail(where, "head_dim must hold the channels that rotate, and be below 2^31",
                  std::to_string(q.shape[3]));
    if (options_.heads_at_once < 1)
      return fail(where, "heads_at_once must be 1 or more", std::to_string(options_.heads_at_once));
    call_.heads_at_once = options_.heads_at_once;
    return {};
  }

  Expected<void> add(const Tensor& in, const Tensor& out, std::size_t index) {
    // What goes to a cache alone has no out.
    const bool cached = index == 2 || (index == 1 && !out && keys_are_cached_);
    const Tensor x = in.with_rank(4), y = cached ? x : out.with_rank(4);
    if (in.rank > 4 || in.rank < 2 || !in || x.shape != y.shape || in.dtype != y.dtype ||
        (!out && !cached))
      return fail(where, "out must have the shape and the type of its input", shape_text(out));
    if (x.shape[0] != call_.batch || x.shape[2] != call_.tokens || x.shape[3] != call_.head_dim ||
        static_cast<Number>(in.dtype) != call_.number)
      return fail(where, "keys must have the tokens, the head_dim and the type of queries",
                  shape_text(in));
    if (x.shape[1] > INT32_MAX || (rotation_.heads > 1 && x.shape[1] != rotation_.heads))
      return fail(where, "heads must be those of the frequencies", std::to_string(x.shape[1]));
    call_.copies |= cached || x.data != y.data;
    call_.operands[index] = {.in = x.data,
                             .out = cached ? nullptr : y.data,
                             .in_batch = x.stride[0],
                             .in_head = x.stride[1],
                             .in_token = x.stride[2],
                             .in_channel = x.stride[3],
                             .out_batch = y.stride[0],
                             .out_head = y.stride[1],
                             .out_token = y.stride[2],
                             .out_channel = y.stride[3],
                             .heads = static_cast<std::int32_t>(x.shape[1]),
                             .rotates = index < 2};
    return {};
  }

  Expected<void> set_pages(const DevicePages& pages, const Tensor& k) {
    const Tensor* caches[] = {&pages.keys, &pages.values};
    if (pages.slots == nullptr) return fail(where, "slots must be given", "none");
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor& cache = *caches[i];
      if (!cache || cache.rank != 4 || cache.dtype != k.dtype || cache.shape[1] != k.shape[1] ||
          cache.shape[3] != k.shape[3] || cache.shape != pages.keys.shape)
        return fail(where, "pages must be [page, kv_head, token, head_dim] of the keys' type",
                    shape_text(cache));
      Operand& x = call_.operands[i + 1];
      x.cache = cache.data;
      x.cache_page = cache.stride[0];
      x.cache_head = cache.stride[1];
      x.cache_token = cache.stride[2];
      x.cache_channel = cache.stride[3];
    }
    if (call_.operands[2].heads != call_.operands[1].heads)
      return fail(where, "values must have the heads of the keys",
                  std::to_string(call_.operands[2].heads));
    const std::int64_t size = pages.keys.shape[2];
    if (size < 1 || pages.keys.shape[0] > INT32_MAX / size)
      return fail(where, "pages must hold from 1 to 2^31 slots", shape_text(pages.keys));
    call_.slots = pages.slots;
    call_.page_size = static_cast<std::int32_t>(size);
    call_.slot_count = pages.keys.shape[0] * size;
    call_.copies = true;
    return {};
  }

  Expected<void> set_positions(const DevicePositions& positions) {
    const bool listed = positions.ids != nullptr || positions.short_ids != nullptr;
    if (rotation_.axes > 1 && !listed)
      return fail(where, "positions of several axes must be ids", "a range");
    if (positions.cu_seqlens != nullptr && (call_.batch != 1 || positions.texts < 1))
      return fail(where, "packed texts must be 1 or more, in tensors of batch 1",
                  std::to_string(positions.texts) + " texts, batch " + std::to_string(call_.batch));
    call_.bounds = positions.cu_seqlens;
    call_.before = positions.cached;
    call_.texts = positions.texts;
    call_.first = positions.first;
    call_.ids = positions.ids;
    call_.short_ids = positions.short_ids;
    call_.plan_ids = options_.plan_ids;
    return {};
  }

  void set_rotation() {
    call_.interleaved = rotation_.pairing == Pairing::interleaved;
    call_.backwards = options_.turn != Turn::forward;
    call_.first_dim = static_cast<std::int32_t>(rotation_.first_dim);
    call_.pairs = static_cast<std::int32_t>(rotation_.pairs());
    call_.block_pairs = static_cast<std::int32_t>(rotation_.pairs() / rotation_.blocks);
    call_.axes = static_cast<std::int32_t>(rotation_.axes);
    call_.frequency_heads = static_cast<std::int32_t>(rotation_.heads);
    call_.turns = static_cast<const Turns*>(rotations_.turns_.get());
    const auto& amplitude =
        options_.turn == Turn::inverse ? rotations_.inverse_amplitude_ : rotations_.amplitude_;
    call_.amplitude = static_cast<const double*>(amplitude.get());
  }

  // Whether every unit of channels is a vector of 16 bytes, where the tensors lie.
  bool fits_words() const {
    const auto size = static_cast<std::int64_t>(size_of(static_cast<DType>(call_.number)));
    const std::int64_t n = 16 / size;
    const auto whole = [&](std::int64_t count) { return count % n == 0; };
    if (!whole(call_.first_dim) || !whole(call_.block_pairs) ||
        (call_.copies && !whole(call_.head_dim)))
      return false;
    for (const Operand& x : call_.operands) {
      if (x.heads == 0) continue;
      const bool aligned =
          (reinterpret_cast<std::uintptr_t>(x.in) | reinterpret_cast<std::uintptr_t>(x.out)) % 16 ==
          0;
      if (!aligned || x.in_channel != 1 || x.out_channel != 1 ||
          (x.cache != nullptr && x.cache_channel != 1))
        return false;
      for (const std::int64_t stride : {x.in_batch, x.in_head, x.in_token, x.out_batch, x.out_head,
                                        x.out_token, x.cache_page, x.cache_head, x.cache_token})
        if (!whole(stride)) return false;
    }
    return true;
  }

  bool keys_are_cached_ = false;
  const Rotations& rotations_;
  const Rotate& rotation_;
  const RotateOptions& options_;
  RotateCall call_ = {};
};

Expected<void> rotate(const Rotations& rotations, const Tensor& q, const Tensor& k,
                      const DevicePositions& positions, const Tensor& q_out, const Tensor& k_out,
                      const RotateOptions& options) {
  return RotateOnDevice(rotations, options).run(q, k, {}, positions, q_out, k_out, {});
}

Expected<void> rotate_and_append(const Rotations& rotations, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const DevicePositions& positions,
                                 const Tensor& q_out, const Tensor& k_out, const DevicePages& pages,
                                 const RotateOptions& options) {
  if (!k || !v) return fail(where, "keys and values must be given", "none");
  return RotateOnDevice(rotations, options).run(q, k, v, positions, q_out, k_out, pages);
}

}  // namespace posenc::cuda
