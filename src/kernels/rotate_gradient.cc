// Gradients by what rotations learn. A pair (a, b) is what its angle φ made of it, so ∂(a, b)/∂φ =
// (−b, a) and ∂L/∂φ = b' a − a' b for its gradient (a', b'); φ is linear in each frequency.
#include "src/kernels/rotate_gradient.h"

#include <string>

#include "posenc/features.h"
#include "posenc/gradients.h"
#include "src/core/try.h"
#include "src/kernels/arguments.h"
#include "src/kernels/check.h"
#include "src/kernels/rotation.h"

namespace posenc {
namespace detail {

namespace {

// Calls act(b, h, r, t, ∂L/∂angle) for every angle that some gradient reaches.
template <class Act>
void each_angle(const Rotate& rotate, const Tensor& rotated, const Tensor& gradient,
                const Act& act) {
  for (std::int64_t b = 0; b < rotated.shape[0]; ++b) {
    for (std::int64_t h = 0; h < rotated.shape[1]; ++h) {
      for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
        const Channels pair = channels(rotate, r);
        for (std::int64_t t = 0; t < rotated.shape[2]; ++t) {
          const auto at = [&](const Tensor& x, std::int64_t c) {
            return x.get(x.offset(b, h, t, c));
          };
          const double by_a = at(gradient, pair.a), by_b = at(gradient, pair.b);
          if (by_a == 0 && by_b == 0) continue;  // a hidden token may hold NaN
          act(b, h, r, t, by_b * at(rotated, pair.a) - by_a * at(rotated, pair.b));
        }
      }
    }
  }
}

}  // namespace

void add_frequency_gradient(const Rotate& rotate, const Positions& positions, const Tensor& rotated,
                            const Tensor& gradient, double sign, std::vector<double>& sum) {
  each_angle(rotate, rotated, gradient,
             [&](std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t t, double by_angle) {
               const std::int64_t row =
                   (rotate.frequencies.heads == 1 ? 0 : h) * rotate.frequencies.axes;
               for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis)
                 sum[static_cast<std::size_t>((row + axis) * rotate.pairs() + r)] +=
                     sign * by_angle * static_cast<double>(positions.at(t, b, axis));
             });
}

void add_phase_gradient(const Rotate& rotate, const Tensor& rotated, const Tensor& gradient,
                        std::vector<double>& sum) {
  each_angle(rotate, rotated, gradient,
             [&](std::int64_t, std::int64_t h, std::int64_t r, std::int64_t, double by_angle) {
               const std::int64_t row = rotate.phase()->heads == 1 ? 0 : h;
               sum[static_cast<std::size_t>(row * rotate.pairs() + r)] += by_angle;
             });
}

// (a, b) became (a c − b s, a s + b c), so that ∂L/∂c = a' a + b' b and ∂L/∂s = b' a − a' b for its
// gradient (a', b').
void add_mix_gradient(const Rotate& rotate, const Positions& positions, const Tensor& x,
                      const Tensor& gradient, const MixSums& sums) {
  const Mix& mix = *rotate.mix();
  const auto inputs = static_cast<std::size_t>(mix.inputs);
  const auto outputs = static_cast<std::size_t>(mix.outputs);
  std::vector<double> cosine(inputs), sine(inputs), by_cosine(outputs), by_sine(outputs);
  const auto token = [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    bool any = false;
    for (std::size_t r = 0; r < outputs; ++r) {
      const Channels pair = channels(rotate, static_cast<std::int64_t>(r));
      const auto at = [&](const Tensor& from, std::int64_t c) {
        return from.get(from.offset(b, h, t, c));
      };
      const double by_a = at(gradient, pair.a), by_b = at(gradient, pair.b);
      by_cosine[r] = by_sine[r] = 0;
      if (by_a == 0 && by_b == 0) continue;  // a hidden token may hold NaN
      const double a = at(x, pair.a), other = at(x, pair.b);
      by_cosine[r] = by_a * a + by_b * other;
      by_sine[r] = by_b * a - by_a * other;
      any = true;
    }
    if (!any) return;
    const auto head = static_cast<std::size_t>(h * mix.heads / x.shape[1]);
    for (std::size_t u = 0; u < inputs; ++u) {
      const std::size_t first = (head * inputs + u) * outputs;
      double by_angle = 0;
      for (std::size_t r = 0; r < outputs; ++r) {
        if (sums.cosine) (*sums.cosine)[first + r] += cosine[u] * by_cosine[r];
        if (sums.sine) (*sums.sine)[first + r] += sine[u] * by_sine[r];
        by_angle += cosine[u] * mix.sine[first + r] * by_sine[r] -
                    sine[u] * mix.cosine[first + r] * by_cosine[r];
      }
      for (std::int64_t axis = 0; sums.frequency && axis < rotate.frequencies.axes; ++axis)
        (*sums.frequency)[static_cast<std::size_t>(axis * rotate.pairs()) + u] +=
            by_angle * static_cast<double>(positions.at(t, b, axis));
    }
  };
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    for (std::int64_t t = 0; t < x.shape[2]; ++t) {
      for (std::size_t u = 0; u < inputs; ++u) {
        const Angle own = angle(rotate, positions, t, b, 0, static_cast<std::int64_t>(u));
        cosine[u] = rotate.amplitude * own.cosine();
        sine[u] = rotate.amplitude * own.sine();
      }
      for (std::int64_t h = 0; h < x.shape[1]; ++h) token(b, h, t);
    }
  }
}

}  // namespace detail

Expected<void> rotate_frequency_gradient(const Plan& plan, const Tensor& rotated,
                                         const Tensor& rotated_gradient, const Positions& positions,
                                         const Tensor& frequency_gradient) {
  constexpr std::string_view where = "rotate_frequency_gradient";
  if (!plan.rotate) return fail(where, "the plan must rotate", "none", "compile a rotary scheme");
  const Rotate& part = *plan.rotate;
  POSENC_CHECK(check_takes(rooms::frequency_gradient, plan, where));
  POSENC_TRY(x, detail::viewed(where, "rotated", rotated, 4));
  POSENC_TRY(gradient, detail::viewed(where, "rotated_gradient", rotated_gradient, 4));
  POSENC_CHECK(detail::check_shape(where, "rotated_gradient", gradient, x));
  POSENC_CHECK(
      detail::check_positions(where, positions, x.shape[0], x.shape[2], part.frequencies.axes));
  POSENC_CHECK(
      detail::check_rotation(where, part, Side::value, x.shape[1], x.shape[3] - part.widening()));
  POSENC_TRY(out, detail::viewed(where, "frequency_gradient", frequency_gradient, 3));
  const Tensor like = Tensor::dense(out.data, out.dtype,
                                    {part.frequencies.heads, part.frequencies.axes, part.pairs()});
  POSENC_CHECK(detail::check_shape(where, "frequency_gradient", out, like));
  POSENC_CHECK(detail::check_distinct(where, out));

  std::vector<double> sum(part.frequencies.radians.size());
  detail::add_frequency_gradient(part, positions, x, gradient, 1, sum);
  std::size_t next = 0;
  for (std::int64_t h = 0; h < part.frequencies.heads; ++h) {
    for (std::int64_t axis = 0; axis < part.frequencies.axes; ++axis) {
      for (std::int64_t r = 0; r < part.pairs(); ++r) out.set(out.offset(h, axis, r), sum[next++]);
    }
  }
  return {};
}

}  // namespace posenc
