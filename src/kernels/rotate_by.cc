// Rotation by angles that the caller gives, and its gradient by them.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/apply.h"
#include "posenc/features.h"
#include "posenc/gradients.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/rotate.h"
#include "src/kernels/rotation.h"
#include "src/kernels/threads.h"

namespace posenc {
namespace {

using detail::Action;

// What of the plan's rotation holds for angles that do not come from its frequencies.
Expected<Rotate> slice_of(std::string_view where, const Plan& plan, Side side, std::int64_t heads,
                          std::int64_t head_dim) {
  if (!plan.rotate || (side == Side::value && !plan.rotate->rotates_values())) {
    return fail(where, "the plan must rotate this side", "none", "compile RoPE or one of its kin");
  }
  const Rotate& whole = *plan.rotate;
  POSENC_CHECK(check_takes(rooms::rotate_by, plan, where));
  const Phase* const phase = whole.phase();
  if (detail::shifts(whole, side) && phase->heads != 1 && phase->heads != heads) {
    return fail(where, "heads must match the plan's phases of " + std::to_string(phase->heads),
                std::to_string(heads), "give a phase for each head, or one for all");
  }
  POSENC_CHECK(
      detail::check_rotation(where, whole, Side::value, whole.frequencies.heads, head_dim));
  return Rotate{.slice = whole.slice, .amplitude = whole.amplitude, .kind = whole.kind};
}

// The angles are [batch or 1, head or 1, seq, pair] of what they rotate.
Expected<Tensor> viewed_angles(std::string_view where, std::string_view name, const Tensor& given,
                               const Tensor& x, std::int64_t pairs) {
  POSENC_TRY(angles, detail::viewed(where, name, given, 4));
  const auto fits = [&](std::size_t axis) {
    return angles.shape[axis] == x.shape[axis] || (axis < 2 && angles.shape[axis] == 1);
  };
  if (fits(0) && fits(1) && fits(2) && angles.shape[3] == pairs) return angles;
  return fail(where,
              std::string(name) + " must be [batch or 1, head or 1, seq, pair] of " +
                  shape_text(x) + " with " + std::to_string(pairs) + " pairs",
              shape_text(given), "see rotation_angles()");
}

// Where angle [b, h, t] of all sequences and heads stands; those that share one have it at the same
// place.
std::int64_t shared_offset(const Tensor& angles, std::int64_t b, std::int64_t h, std::int64_t t) {
  return angles.offset(angles.shape[0] == 1 ? 0 : b, angles.shape[1] == 1 ? 0 : h, t);
}

#if !POSENC_SIMD

void rotate_plainly(const Rotate& how, const Tensor& x, const Tensor& angles, Side side,
                    Action action, const Tensor& out) {
  const double whole = side == Side::value ? 1 : how.amplitude;
  const double amplitude = action == Action::inverse ? 1 / whole : whole;
  const double sign = action == Action::forward ? 1 : -1;
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    for (std::int64_t h = 0; h < x.shape[1]; ++h) {
      for (std::int64_t t = 0; t < x.shape[2]; ++t) {
        const std::int64_t from = x.offset(b, h, t), to = out.offset(b, h, t);
        for (std::int64_t c = 0; x.data != out.data && c < x.shape[3]; ++c)
          detail::copy(x, from + c * x.stride[3], out, to + c * out.stride[3]);
        for (std::int64_t r = 0; r < how.pairs(); ++r) {
          const auto [one, two] = detail::channels(how, r);
          const double angle =
              sign * (angles.get(shared_offset(angles, b, h, t) + r * angles.stride[3]) +
                      detail::phase(how, side, h, r));
          const double cosine = amplitude * std::cos(angle), sine = amplitude * std::sin(angle);
          const double a = x.get(from + one * x.stride[3]), c = x.get(from + two * x.stride[3]);
          out.set(to + one * out.stride[3], a * cosine - c * sine);
          out.set(to + two * out.stride[3], a * sine + c * cosine);
        }
      }
    }
  }
}

#endif

Expected<void> rotated_by(std::string_view where, const Plan& plan, const Tensor& x_view,
                          const Tensor& given, Side side, const Tensor& out_view, Action action,
                          [[maybe_unused]] Threads threads) {
  POSENC_TRY(x, detail::viewed(where, "x", x_view, 4));
  POSENC_TRY(out, detail::viewed(where, "out", out_view, 4));
  POSENC_CHECK(detail::check_out(where, x, out));
  const std::int64_t pairs = plan.rotate ? plan.rotate->pairs() : 0;
  POSENC_TRY(how, slice_of(where, plan, side, x.shape[1], x.shape[3]));
  POSENC_TRY(angles, viewed_angles(where, "angles", given, x, pairs));
  how.frequencies.heads = angles.shape[1];
  if (x.size() == 0) return {};
#if POSENC_SIMD
  const int count = detail::thread_count(threads, detail::bytes_of(x));
  const detail::RotateJob job{
      .plan = &how,
      .rule = detail::CosSinRule::of_angles(how, how.frequencies.heads, side, action),
      .angles = angles,
      .count = 1,
      .x = {x},
      .out = {out},
      .shared = angles.shape[0] == 1 && x.shape[2] >= count};
  detail::share_out(job.tokens(), count, [&](std::int64_t first, std::int64_t last) {
    detail::rotate_tokens(job, first, last);
  });
#else
  rotate_plainly(how, x, angles, side, action, out);
#endif
  return {};
}

}  // namespace

Expected<void> rotate_by(const Plan& plan, const Tensor& x, const Tensor& angles, Side side,
                         const Tensor& out, Threads threads) {
  return rotated_by("rotate_by", plan, x, angles, side, out, Action::forward, threads);
}

Expected<void> rotate_by_transpose(const Plan& plan, const Tensor& x, const Tensor& angles,
                                   Side side, const Tensor& out, Threads threads) {
  return rotated_by("rotate_by_transpose", plan, x, angles, side, out, Action::transpose, threads);
}

Expected<void> rotate_by_inverse(const Plan& plan, const Tensor& x, const Tensor& angles, Side side,
                                 const Tensor& out, Threads threads) {
  return rotated_by("rotate_by_inverse", plan, x, angles, side, out, Action::inverse, threads);
}

Expected<void> angle_gradient(const Plan& plan, const Tensor& rotated,
                              const Tensor& rotated_gradient, const Tensor& out_view) {
  constexpr std::string_view where = "angle_gradient";
  POSENC_TRY(x, detail::viewed(where, "rotated", rotated, 4));
  POSENC_TRY(gradient, detail::viewed(where, "rotated_gradient", rotated_gradient, 4));
  POSENC_CHECK(detail::check_shape(where, "rotated_gradient", gradient, x));
  // A side's phases change nothing: what was rotated is given.
  Plan plain = plan;
  if (plain.rotate && plain.rotate->phase()) plain.rotate->kind = Plain{};
  POSENC_TRY(how, slice_of(where, plain, Side::query, 1, x.shape[3]));
  POSENC_TRY(out, viewed_angles(where, "out", out_view, x, how.pairs()));
  POSENC_CHECK(detail::check_distinct(where, out));

  // A pair (a, b) is what its angle φ made of it: ∂(a, b)/∂φ = (−b, a). Sums are formed in double.
  std::vector<double> numbers(static_cast<std::size_t>(out.size()));
  const Tensor sum =
      Tensor::dense(numbers.data(), {out.shape[0], out.shape[1], out.shape[2], out.shape[3]});
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    for (std::int64_t h = 0; h < x.shape[1]; ++h) {
      for (std::int64_t t = 0; t < x.shape[2]; ++t) {
        const std::int64_t to = shared_offset(sum, b, h, t);
        for (std::int64_t r = 0; r < how.pairs(); ++r) {
          const auto [one, two] = detail::channels(how, r);
          const auto at = [&](const Tensor& from, std::int64_t c) {
            return from.get(from.offset(b, h, t, c));
          };
          const double by_a = at(gradient, one), by_b = at(gradient, two);
          if (by_a == 0 && by_b == 0) continue;  // a hidden token may hold NaN
          numbers[static_cast<std::size_t>(to + r)] += by_b * at(x, one) - by_a * at(x, two);
        }
      }
    }
  }
  for (std::int64_t b = 0; b < out.shape[0]; ++b)
    for (std::int64_t h = 0; h < out.shape[1]; ++h)
      for (std::int64_t t = 0; t < out.shape[2]; ++t)
        for (std::int64_t r = 0; r < how.pairs(); ++r)
          out.set(out.offset(b, h, t, r), sum.get(sum.offset(b, h, t, r)));
  return {};
}

}  // namespace posenc
