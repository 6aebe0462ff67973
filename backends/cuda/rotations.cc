// Plans brought to a device, and calls checked and put into the kernel's terms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "backends/cuda/calls.h"
#include "posenc/features.h"
#include "src/kernels/check.h"

namespace posenc::cuda {
namespace {

// One slice, one kind: what differs from plan to plan of a table is frequencies and amplitude.
bool same_geometry(Rotate a, Rotate b) {
  a.frequencies.radians = b.frequencies.radians = {};
  a.amplitude = b.amplitude = 1;
  return a == b;
}

Expected<void> check(const Plan& plan, const Rotate& first) {
  if (!plan.rotate)
    return fail(where, "a plan must rotate", "none", "posenc explain shows what it does");
  POSENC_CHECK(check_takes(rooms::cuda, plan, where));
  const Rotate& rotate = *plan.rotate;
  if (!same_geometry(rotate, first))
    return fail(
        where,
        "plans of one table must have one slice, pairing, heads, axes, growth and arithmetic",
        std::to_string(rotate.slice.rotary_dim) + " channels beside " +
            std::to_string(first.slice.rotary_dim),
        "make a table for each");
  for (const double f : rotate.frequencies.radians)
    if (!(std::abs(f) < 0x1p200))
      return fail(where, "a frequency must be below 2^200", std::to_string(f));
  return {};
}

// The engine's floats: Hugging Face's frequencies, of ggml which of them rotate.
std::vector<float> engine_frequencies(const Rotate& rotate) {
  std::vector<float> all;
  for (const double f : rotate.frequencies.radians)
    all.push_back(rotate.ggml() ? static_cast<float>(f != 0) : static_cast<float>(f));
  return all;
}

std::vector<double> growth_of(const XposDecay& growth) {
  std::vector<double> all;
  for (const double factor : growth.factor) all.push_back(std::log2(factor));
  return all;
}

}  // namespace

Expected<Rotations> Rotations::make(std::span<const Plan> plans, const Backend& backend) {
  if (plans.empty()) return fail(where, "there must be a plan", "none");
  const Rotate first = plans.front().rotate.value_or(Rotate{});
  if (first.ggml() && plans.size() > 1)
    return fail(where, "a table with ggml's angles must be of one plan",
                std::to_string(plans.size()), "make a table for each");
  Rotations made;
  std::vector<Turns> turns;
  std::vector<float> frequencies;
  std::vector<double> amplitude, inverse;
  for (const Plan& plan : plans) {
    POSENC_CHECK(check(plan, first));
    for (const double f : plan.rotate->frequencies.radians) {
      turns.push_back(posenc::turns_of(f));
      made.fastest_ = std::max(made.fastest_, std::abs(f));
    }
    const std::vector<float> engine = engine_frequencies(*plan.rotate);
    frequencies.insert(frequencies.end(), engine.begin(), engine.end());
    amplitude.push_back(first.ggml() ? first.ggml()->amplitude() : plan.rotate->amplitude);
    inverse.push_back(1 / amplitude.back());
  }
  POSENC_CHECK(check_device(backend));
  made.backend_ = &backend;
  made.rotation_ = first;
  made.count_ = static_cast<std::int64_t>(plans.size());
  POSENC_CHECK(bring(made.turns_, backend, turns));
  POSENC_CHECK(bring(made.amplitude_, backend, amplitude));
  POSENC_CHECK(bring(made.inverse_amplitude_, backend, inverse));
  if (first.growth()) POSENC_CHECK(bring(made.growth_, backend, growth_of(*first.growth())));
  if (first.angles() != Angles::exact)
    POSENC_CHECK(bring(made.engine_frequency_, backend, frequencies));
  if (first.ggml() && !first.ggml()->freq_factors.empty())
    POSENC_CHECK(bring(made.engine_factors_, backend, first.ggml()->freq_factors));
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
    POSENC_CHECK(set_sizes(q.with_rank(4)));
    POSENC_CHECK(add(q, q_out, 0, options_.side));
    POSENC_CHECK(detail::check_out(where, q.with_rank(4), q_out.with_rank(4)));
    keys_are_cached_ = static_cast<bool>(v);
    if (k) POSENC_CHECK(add(k, k_out, 1, Side::key));
    if (k && k_out) POSENC_CHECK(detail::check_out(where, k.with_rank(4), k_out.with_rank(4)));
    if (v) {
      POSENC_CHECK(add(v, {}, 2, Side::value));
      POSENC_CHECK(set_pages(pages, k.with_rank(4)));
    }
    POSENC_CHECK(set_rotation(positions));
    call_.wide = fits_words() && !call_.special.any;
    if (call_.tokens.batch == 0 || call_.tokens.count == 0) return {};
    return done(rotations_.backend_->rotate(call_, options_.stream));
  }

  Expected<void> run_frequencies(const Tensor& rotated, const Tensor& gradient,
                                 const DevicePositions& positions, const Tensor& workspace,
                                 const Tensor& out) {
    POSENC_CHECK(set_sizes(rotated.with_rank(4)));
    POSENC_CHECK(add(rotated, rotated, 0, Side::query));
    POSENC_CHECK(set_rotation(positions));
    const Tensor g = gradient.with_rank(4);
    if (!gradient || g.shape != rotated.with_rank(4).shape || g.dtype != rotated.dtype)
      return fail(where, "the gradient must have the shape and the type of what was rotated",
                  shape_text(gradient));
    if (rotation_.angles() != Angles::exact || positions.real_ids != nullptr)
      return fail(where, "a gradient of the frequencies needs exact angles at whole positions",
                  name(rotation_.angles()), "train with exact angles");
    const auto count = static_cast<std::int64_t>(rotation_.frequencies.radians.size());
    const auto dense = [](const Tensor& x, std::int64_t size) {
      std::int64_t step = 1;
      bool in_order = x && x.dtype == DType::f64 && x.size() == size;
      for (int axis = x.rank; axis-- > 0; step *= x.shape[static_cast<std::size_t>(axis)])
        in_order = in_order && x.stride[static_cast<std::size_t>(axis)] == step;
      return in_order;
    };
    const std::int64_t parts = workspace.rank == 2 ? workspace.shape[0] : 0;
    if (parts < 1 || !dense(workspace, parts * count) || !dense(out, count))
      return fail(where,
                  "workspace must be [parts, " + std::to_string(count) + "], and out " +
                      std::to_string(count) + ", dense doubles",
                  shape_text(workspace) + " and " + shape_text(out));
    return done(rotations_.backend_->frequencies({.rotation = call_,
                                                  .gradient = g.data,
                                                  .gradient_batch = g.stride[0],
                                                  .gradient_head = g.stride[1],
                                                  .gradient_token = g.stride[2],
                                                  .gradient_channel = g.stride[3],
                                                  .parts = parts,
                                                  .partial = static_cast<double*>(workspace.data),
                                                  .out = static_cast<double*>(out.data)},
                                                 options_.stream));
  }

  // Of pages the keys are a batch of them, and slots say which tokens of them the call has.
  Expected<void> run_rekey(const Tensor& keys, const DevicePositions& stood,
                           const DevicePositions& stands, const Tensor& out,
                           const RekeyOptions& rekey) {
    POSENC_CHECK(set_sizes(keys.with_rank(4)));
    POSENC_CHECK(add(keys, out, 0, rekey.side));
    POSENC_CHECK(detail::check_out(where, keys.with_rank(4), out.with_rank(4)));
    return move(stood, stands, rekey);
  }
  Expected<void> run_rekey_pages(const Tensor& pages, const std::int64_t* slots, std::int64_t batch,
                                 std::int64_t tokens, const DevicePositions& stood,
                                 const DevicePositions& stands, const RekeyOptions& rekey) {
    if (!pages || pages.rank != 4 || pages.shape[2] < 1 || slots == nullptr)
      return fail(where, "pages must be [page, kv_head, token, head_dim], and slots given",
                  slots == nullptr ? "no slots" : shape_text(pages));
    POSENC_CHECK(set_sizes(pages));
    POSENC_CHECK(add(pages, pages, 0, rekey.side));
    POSENC_CHECK(detail::check_distinct(where, pages));
    if (batch < 0 || tokens < 0 || pages.shape[0] > INT32_MAX / pages.shape[2] ||
        (tokens > 0 && batch > INT32_MAX / tokens) ||
        batch * tokens > INT32_MAX / std::max<std::int64_t>(pages.shape[1], 1))
      return fail(where, "a call may have 2^31 tokens times heads, and pages as many slots",
                  shape_text(pages), "move them in parts");
    call_.tokens.batch = batch;
    call_.tokens.count = tokens;
    call_.slots = slots;
    call_.page_size = static_cast<std::int32_t>(pages.shape[2]);
    call_.slot_count = pages.shape[0] * pages.shape[2];
    return move(stood, stands, rekey);
  }

 private:
  Expected<void> move(const DevicePositions& stood, const DevicePositions& stands,
                      const RekeyOptions& rekey) {
    const bool engine = rotation_.angles() != Angles::exact;
    if (engine || rotation_.growth() || stood.real_ids != nullptr || stands.real_ids != nullptr)
      return fail(where, "keys move here by the difference of exact angles at whole positions",
                  engine               ? std::string(name(rotation_.angles()))
                  : rotation_.growth() ? "xPos' growth"
                                       : "real ids",
                  "posenc::rekey() on the host does more");
    for (const std::int64_t plan : {rekey.from, rekey.to})
      if (plan < 0 || plan >= rotations_.count_)
        return fail(where, "a table must have the plans by which keys move", std::to_string(plan),
                    "it has " + std::to_string(rotations_.count_));
    if (rekey.side == Side::query)
      return fail(where, "what is cached moves: keys, or values", "queries", "rotate() queries");
    POSENC_CHECK(set_rotation(stands));
    POSENC_TRY(before, tokens_of(stood, call_.tokens.batch, call_.tokens.count));
    if (rotation_.frequencies.axes > 1 && before.shared())
      return fail(where, "positions of several axes must be ids", "a range");
    call_.wide = fits_words();
    if (call_.tokens.batch == 0 || call_.tokens.count == 0) return {};
    return done(rotations_.backend_->rekey(
        {.rotation = call_,
         .stood = before,
         .from = static_cast<std::int32_t>(rekey.from),
         .to = static_cast<std::int32_t>(rekey.to),
         .one_over = static_cast<const double*>(rotations_.inverse_amplitude_.get())},
        rekey.stream));
  }

  Expected<void> set_sizes(const Tensor& q) {
    if (rotations_.backend_ == nullptr) return fail(where, "rotations must have been made", "none");
    call_.tokens.batch = q.shape[0];
    call_.tokens.count = q.shape[2];
    call_.head_dim = static_cast<std::int32_t>(q.shape[3]);
    call_.number = static_cast<Number>(q.dtype);
    if (q.shape[3] > INT32_MAX ||
        q.shape[3] < rotation_.slice.first_dim + rotation_.slice.rotary_dim)
      return fail(where, "head_dim must hold the channels that rotate, and be below 2^31",
                  std::to_string(q.shape[3]));
    if (options_.heads_at_once < 0)
      return fail(where, "heads_at_once must be 0 or more", std::to_string(options_.heads_at_once));
    call_.heads_at_once = options_.heads_at_once == 0 ? heads_for(q) : options_.heads_at_once;
    return {};
  }

  // As many heads as leave a large device enough threads: the more share a pair's cosines, the less
  // there is to compute. On an H200 a rotation of four heads a thread takes 1.4 times the memory's
  // time, and of all of them 1.1.
  static int heads_for(const Tensor& q) {
    constexpr std::int64_t enough_threads = std::int64_t{1} << 16, units_of_a_head = 8;
    const std::int64_t heads = std::max<std::int64_t>(q.shape[1], 1),
                       threads = q.shape[0] * q.shape[2] * units_of_a_head,
                       groups = std::clamp<std::int64_t>(
                           enough_threads / std::max<std::int64_t>(threads, 1), 1, heads);
    return static_cast<int>(
        std::min<std::int64_t>((heads + groups - 1) / groups, std::numeric_limits<int>::max()));
  }

  Expected<void> add(const Tensor& in, const Tensor& out, std::size_t index, Side side) {
    // What goes to a cache alone has no out.
    const bool cached = index == 2 || (index == 1 && !out && keys_are_cached_);
    const Tensor x = in.with_rank(4), y = cached ? x : out.with_rank(4);
    const bool absent = (!in || (!out && !cached)) && x.size() != 0;
    if (in.rank > 4 || in.rank < 2 || absent || x.shape != y.shape || in.dtype != y.dtype)
      return fail(where, "out must have the shape and the type of its input", shape_text(out));
    if (x.shape[0] != call_.tokens.batch || x.shape[2] != call_.tokens.count ||
        x.shape[3] != call_.head_dim || static_cast<Number>(in.dtype) != call_.number)
      return fail(where, "keys must have the tokens, the head_dim and the type of queries",
                  shape_text(in));
    if (x.shape[1] > INT32_MAX ||
        (rotation_.frequencies.heads > 1 && x.shape[1] != rotation_.frequencies.heads))
      return fail(where, "heads must be those of the frequencies", std::to_string(x.shape[1]));
    if (call_.tokens.batch * call_.tokens.count > INT32_MAX / std::max<std::int64_t>(x.shape[1], 1))
      return fail(where, "a call may have 2^31 tokens times heads", shape_text(in),
                  "rotate it in parts");
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
                             .rotates = side != Side::value || rotation_.rotates_values(),
                             .amplified = side != Side::value,
                             .shrinks = side == Side::key};
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
      POSENC_CHECK(detail::check_distinct(where, cache));
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

  Expected<void> set_rotation(const DevicePositions& positions) {
    POSENC_TRY(tokens, tokens_of(positions, call_.tokens.batch, call_.tokens.count));
    call_.tokens = tokens;
    if (rotation_.frequencies.axes > 1 && tokens.shared())
      return fail(where, "positions of several axes must be ids", "a range");
    call_.plan_ids = options_.plan_ids;
    call_.early = options_.ids_ready;
    call_.interleaved = rotation_.slice.pairing == Pairing::interleaved;
    call_.backwards = options_.action != Action::forward;
    call_.inverse = options_.action == Action::inverse;
    call_.first_dim = static_cast<std::int32_t>(rotation_.slice.first_dim);
    call_.pairs = static_cast<std::int32_t>(rotation_.pairs());
    call_.block_pairs = static_cast<std::int32_t>(rotation_.pairs() / rotation_.slice.blocks);
    call_.axes = static_cast<std::int32_t>(rotation_.frequencies.axes);
    call_.frequency_heads = static_cast<std::int32_t>(rotation_.frequencies.heads);
    call_.turns = static_cast<const Turns*>(rotations_.turns_.get());
    // An engine's matrix is inverted as a whole.
    const bool divides = call_.inverse && rotation_.angles() == Angles::exact;
    call_.amplitude = static_cast<const double*>(
        (divides ? rotations_.inverse_amplitude_ : rotations_.amplitude_).get());
    return set_special(positions);
  }

  Expected<void> set_special(const DevicePositions& positions) {
    const bool real = positions.real_ids != nullptr, engine = rotation_.angles() != Angles::exact;
    if (real && (engine || rotations_.fastest_ >= std::numbers::pi))
      return fail(
          where, "real positions need exact angles and frequencies below pi",
          engine ? std::string(name(rotation_.angles())) : number_text(rotations_.fastest_));
    Special& special = call_.special;
    special.any = real || engine || rotation_.growth();
    special.arithmetic = static_cast<Arithmetic>(rotation_.angles());
    if (rotation_.growth()) {
      special.growth = static_cast<const double*>(rotations_.growth_.get());
      special.centre = rotation_.growth()->centre;
      special.steps = rotation_.growth()->scale;
    }
    if (!engine) return {};
    const std::int64_t last = positions.first + call_.tokens.count;
    if (call_.tokens.shared() && positions.cu_seqlens == nullptr &&
        (positions.first <= -float_positions || last > float_positions))
      return fail(where, "with an engine's angles positions must stay below 2^24",
                  std::to_string(last - 1), "use exact angles");
    special.frequency = static_cast<const float*>(rotations_.engine_frequency_.get());
    special.freq_factors = static_cast<const float*>(rotations_.engine_factors_.get());
    if (!rotation_.ggml()) return {};
    const GgmlRope& ggml = *rotation_.ggml();
    special.theta_scale = ggml.theta_scale;
    special.freq_scale = ggml.freq_scale;
    special.ext_factor = ggml.ext_factor;
    special.ramp_low = ggml.ramp_low;
    special.ramp_high = ggml.ramp_high;
    special.restart = ggml.restart;
    return {};
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

Expected<void> rotate_frequency_gradient(const Rotations& rotations, const Tensor& rotated,
                                         const Tensor& rotated_gradient,
                                         const DevicePositions& positions, const Tensor& workspace,
                                         const Tensor& out, void* stream) {
  const RotateOptions options{.stream = stream};
  return RotateOnDevice(rotations, options)
      .run_frequencies(rotated, rotated_gradient, positions, workspace, out);
}

Expected<void> rekey(const Rotations& rotations, const Tensor& keys, const DevicePositions& stood,
                     const DevicePositions& stands, const Tensor& out,
                     const RekeyOptions& options) {
  const RotateOptions how{.side = options.side, .heads_at_once = options.heads_at_once};
  return RotateOnDevice(rotations, how).run_rekey(keys, stood, stands, out, options);
}

Expected<void> rekey_pages(const Rotations& rotations, const Tensor& pages,
                           const std::int64_t* slots, std::int64_t batch, std::int64_t tokens,
                           const DevicePositions& stood, const DevicePositions& stands,
                           const RekeyOptions& options) {
  const RotateOptions how{.side = options.side, .heads_at_once = options.heads_at_once};
  return RotateOnDevice(rotations, how)
      .run_rekey_pages(pages, slots, batch, tokens, stood, stands, options);
}

Expected<void> rotate_and_append(const Rotations& rotations, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const DevicePositions& positions,
                                 const Tensor& q_out, const Tensor& k_out, const DevicePages& pages,
                                 const RotateOptions& options) {
  if (!k || !v) return fail(where, "keys and values must be given", "none");
  return RotateOnDevice(rotations, options).run(q, k, v, positions, q_out, k_out, pages);
}

}  // namespace posenc::cuda
