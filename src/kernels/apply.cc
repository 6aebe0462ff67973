// The verbs of apply.h but bias: checks the arguments, then calls the kernel that takes them, or
// the reference where none does.
#include "posenc/apply.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "src/core/some_heads.h"
#include "src/core/try.h"
#include "src/kernels/add.h"
#include "src/kernels/arguments.h"
#include "src/kernels/elements.h"
#include "src/kernels/polar.h"
#include "src/kernels/reference.h"
#include "src/kernels/rotate.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/threads.h"
#include "src/kernels/waves.h"

namespace posenc {
namespace {

using detail::Action;
using detail::AddArguments;
using detail::RotateArguments;

#if POSENC_SIMD

// The channels of a tensor [batch, seq, width] that are a piece's.
Tensor channels_of(Tensor tensor, const detail::WavePiece& piece) {
  if (!tensor) return tensor;
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  tensor.data = static_cast<char*>(tensor.data) + piece.first_channel * tensor.stride[2] * bytes;
  tensor.shape[2] = piece.waves.width;
  return tensor;
}

// By the kernel; false where it does not take the part. Real positions, or whole ones where `at` is
// absent.
bool added_by_kernel(const Add& part, const Positions* positions, const Tensor& at,
                     const AddArguments& arguments, Threads threads) {
  const int count = detail::thread_count(threads, detail::bytes_of(arguments.out));
  const detail::AddJob whole{
      .part = &part,
      .positions = positions,
      .x = arguments.x,
      .out = arguments.out,
      .shared = positions != nullptr && positions->batch() == 1 && arguments.out.shape[1] >= count,
      .at = at};
  const auto share = [&](std::span<const detail::AddJob> jobs) {
    detail::share_out(whole.tokens(), count, [&](std::int64_t first, std::int64_t last) {
      for (const detail::AddJob& job : jobs) detail::add_tokens(job, first, last);
    });
  };
  if (detail::adds(whole)) {
    share({&whole, 1});
    return true;
  }
  const auto* waves = std::get_if<Waves>(&part.kind);
  const auto pieces = waves != nullptr ? detail::pieces_of(*waves) : std::nullopt;
  if (!pieces) return false;
  std::vector<Add> parts;
  parts.reserve(pieces->size());
  std::vector<detail::AddJob> jobs(pieces->size(), whole);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const detail::WavePiece& piece = (*pieces)[i];
    jobs[i].part = &parts.emplace_back(piece.waves, part.embedding_scale);
    jobs[i].axis = piece.axis;
    jobs[i].x = channels_of(whole.x, piece);
    jobs[i].out = channels_of(whole.out, piece);
  }
  share(jobs);
  return true;
}

#endif

Expected<void> added(const Plan& plan, const Tensor* embedding, const Positions& positions,
                     const Tensor& out, [[maybe_unused]] Threads threads) {
  POSENC_TRY(arguments, detail::add_arguments(plan, embedding, positions, out));
  if (arguments.out.size() == 0) return {};
#if POSENC_SIMD
  if (added_by_kernel(*plan.add, &positions, {}, arguments, threads)) return {};
#endif
  detail::reference::add(plan, positions, arguments);
  return {};
}

Expected<void> added(const Plan& plan, const Tensor* embedding, const Tensor& at, const Tensor& out,
                     [[maybe_unused]] Threads threads) {
  POSENC_TRY(arguments, detail::add_arguments(plan, embedding, at, out));
  if (arguments.tensors.out.size() == 0) return {};
#if POSENC_SIMD
  if (added_by_kernel(*plan.add, nullptr, arguments.at, arguments.tensors, threads)) return {};
#endif
  detail::reference::add(plan, arguments);
  return {};
}

#if POSENC_SIMD

// Rotates tensors of one batch and one seq, alike in both, by the same rows of cos and sin.
void rotate_together(const Rotate& rotate, const detail::CosSinRule& rule,
                     const Positions& positions, std::span<const RotateArguments> tensors,
                     Threads threads) {
  detail::RotateJob job{.plan = &rotate, .rule = rule, .positions = &positions};
  std::int64_t bytes = 0;
  for (const RotateArguments& each : tensors) {
    if (each.x.size() == 0) continue;
    const auto next = static_cast<std::size_t>(job.count++);
    job.x[next] = each.x;
    job.out[next] = each.out;
    bytes += detail::bytes_of(each.x);
  }
  if (job.count == 0) return;
  const int count = detail::thread_count(threads, bytes);
  job.shared = positions.batch() == 1 && job.x[0].shape[2] >= count;
  detail::share_out(job.tokens(), count, [&](std::int64_t first, std::int64_t last) {
    detail::rotate_tokens(job, first, last);
  });
}

#endif

// `rotation` may be null where the arguments' side is not rotated.
void rotated(const Rotate* rotation, const Positions& positions, Side side, Action action,
             const RotateArguments& arguments, [[maybe_unused]] Threads threads) {
  if (arguments.x.size() == 0) return;
  if (!arguments.rotates && arguments.x.data == arguments.out.data) return;
#if POSENC_SIMD
  static const Rotate nothing;  // no channels: the kernel copies
  const Rotate& rotate = arguments.rotates ? *rotation : nothing;
  if (rotate.polar()) return detail::rotate_polar(rotate, arguments, positions, side, threads);
  if (detail::is_by_rows(rotate)) {
    rotate_together(rotate, detail::CosSinRule::of(rotate, side, action), positions,
                    {&arguments, 1}, threads);
    return;
  }
#endif
  detail::reference::rotate(rotation, positions, side, action, arguments);
}

#if !POSENC_SIMD

// The rotation of some heads of a side, of rows that are wide already where it is polar.
Rotate of_heads(const Rotate& rotate, Side side, detail::Heads heads) {
  const bool other_heads = side == Side::query && !rotate.mix();  // than the keys' phases have
  return detail::some_heads(detail::of_wide_rows(rotate), heads,
                            other_heads ? detail::Heads{0, 1} : heads);
}

#endif

const Rotate* rotation_of(const Plan& plan) { return plan.rotate ? &*plan.rotate : nullptr; }

Expected<void> rotated(const Room& room, const Plan& plan, const Tensor& x,
                       const Positions& positions, Side side, const Tensor& out, Action action,
                       Threads threads) {
  POSENC_TRY(arguments, detail::rotate_arguments(room, plan, x, positions, side, out));
  rotated(rotation_of(plan), positions, side, action, arguments, threads);
  return {};
}

}  // namespace

namespace detail {

void rotate_checked(const Rotate* rotate, const Tensor& x, const Positions& positions, Side side,
                    Action action, const Tensor& out, Threads threads) {
  const bool rotates = rotate != nullptr && (side != Side::value || rotate->rotates_values());
  if (!rotates || !rotate->polar())
    return rotated(rotate, positions, side, action, {x, out, rotates}, threads);
  const Rotate widened = detail::of_wide_rows(*rotate);
  rotated(&widened, positions, side, action, {x, out, rotates}, threads);
}

void rotate_heads(const Rotate& rotate, std::int64_t first_head, const Tensor& x,
                  const Positions& positions, Side side, Action action) {
  const RotateArguments arguments{.x = x, .out = x, .rotates = true};
#if POSENC_SIMD
  if (detail::is_by_rows(rotate)) {
    const CosSinRule rule = CosSinRule::of(rotate, side, action).of_heads(first_head, x.shape[1]);
    return rotate_together(rotate, rule, positions, {&arguments, 1}, Threads{1});
  }
  rotated(&rotate, positions, side, action, arguments, Threads{1});  // engines' heads are alike
#else
  const Rotate part = of_heads(rotate, side, {first_head, x.shape[1]});
  rotated(&part, positions, side, action, arguments, Threads{1});
#endif
}

}  // namespace detail

Expected<void> add(const Plan& plan, const Tensor& embedding, const Positions& positions,
                   const Tensor& out, Threads threads) {
  return added(plan, &embedding, positions, out, threads);
}

Expected<void> position_vectors(const Plan& plan, const Positions& positions, const Tensor& out,
                                Threads threads) {
  return added(plan, nullptr, positions, out, threads);
}

Expected<void> add(const Plan& plan, const Tensor& embedding, const Tensor& at, const Tensor& out,
                   Threads threads) {
  return added(plan, &embedding, at, out, threads);
}

Expected<void> position_vectors(const Plan& plan, const Tensor& at, const Tensor& out,
                                Threads threads) {
  return added(plan, nullptr, at, out, threads);
}

Expected<void> rotate(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                      const Tensor& out, Threads threads) {
  return rotated(rooms::rotate, plan, x, positions, side, out, Action::forward, threads);
}

Expected<void> rotate(const Plan& plan, const Tensor& q, const Tensor& k,
                      const Positions& positions, const Tensor& q_out, const Tensor& k_out,
                      Threads threads) {
  POSENC_TRY(query,
             detail::rotate_arguments(rooms::rotate, plan, q, positions, Side::query, q_out));
  POSENC_TRY(key, detail::rotate_arguments(rooms::rotate, plan, k, positions, Side::key, k_out));
  if (query.x.shape[0] != key.x.shape[0]) {
    return fail(
        "rotate",
        "q and k must be of the same batch of " + std::to_string(query.x.shape[0]) + " sequences",
        std::to_string(key.x.shape[0]), "rotate them one by one");
  }
#if POSENC_SIMD
  // Rows of queries that grow and keys that shrink differ, and so do those of a side that has
  // phases, and those of double, float and 16 bits.
  const bool alike = query.rotates && !plan.rotate->growth() && !plan.rotate->phase() &&
                     !plan.rotate->polar() && detail::is_by_rows(*plan.rotate);
  if (alike && size_of(query.x.dtype) == size_of(key.x.dtype)) {
    const std::array both = {query, key};
    rotate_together(*plan.rotate,
                    detail::CosSinRule::of(*plan.rotate, Side::query, Action::forward), positions,
                    both, threads);
    return {};
  }
#endif
  rotated(rotation_of(plan), positions, Side::query, Action::forward, query, threads);
  rotated(rotation_of(plan), positions, Side::key, Action::forward, key, threads);
  return {};
}

Expected<void> rotate_transpose(const Plan& plan, const Tensor& x, const Positions& positions,
                                Side side, const Tensor& out, Threads threads) {
  return rotated(rooms::rotate_transpose, plan, x, positions, side, out, Action::transpose,
                 threads);
}

Expected<void> rotate_inverse(const Plan& plan, const Tensor& x, const Positions& positions,
                              Side side, const Tensor& out, Threads threads) {
  return rotated(rooms::rotate_inverse, plan, x, positions, side, out, Action::inverse, threads);
}

}  // namespace posenc
