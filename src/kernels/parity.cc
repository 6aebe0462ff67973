// What an engine does to a pair of channels, operation by operation in its own precision.
//
// Hugging Face (modeling_llama.py and its many copies, eager): angle = float(p)·f rounded to float;
// cos and sin of it, times the attention factor, in float; both are cast to the tensor's dtype, and
//   x·cos + rotate_half(x)·sin
// rounds each product and the sum to that dtype. A float64 tensor is thus rotated in double by cos
// and sin that are floats. (Some families convert queries to float first, as Cohere, Llama 4 and
// the vision towers; in 16 bits they round once where Llama rounds three times.)
//
// ggml (CPU, rope_f32 and rope_f16): the angle steps from pair to pair by a float product, cos and
// sin are floats, and the pair is rotated in float and rounded once to the tensor's type.
//
// torch's and libm's float cosines are within an ulp of ours, which are rounded correctly.
// Compilers fuse a product of ggml's into the sum behind it where the machine can: in YaRN's angle
// that is seen from far, and done here too; in the rotation itself it changes the last place, and
// is left out.
#include "src/kernels/parity.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace posenc::detail {
namespace {

// θ of ggml_rope_cache_init and its kin: one chain of products for each axis.
void ggml_angles(const Rotate& rotate, const Positions& positions, std::int64_t token,
                 std::int64_t sequence, std::span<float> angle) {
  const GgmlRope& ggml = *rotate.ggml();
  std::ranges::fill(angle, 0.0f);
  for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis) {
    const auto position = static_cast<float>(positions.at(token, sequence, axis));
    float theta = position;
    bool inside = false;
    for (std::int64_t pair = 0; pair < rotate.pairs(); ++pair) {
      const auto r = static_cast<std::size_t>(pair);
      const bool rotates = rotate.at(0, axis, pair) != 0;
      if (ggml.restart && rotates && !inside) theta = position;
      inside = rotates;
      if (rotates) {
        const float extrapolated = ggml.freq_factors.empty() ? theta : theta / ggml.freq_factors[r];
        const float interpolated = ggml.freq_scale * extrapolated;
        angle[r] = interpolated;
        if (ggml.ext_factor != 0) {
          const float at = (static_cast<float>(pair) - ggml.ramp_low) /
                           std::max(0.001f, ggml.ramp_high - ggml.ramp_low);
          const float mix = (1 - std::clamp(at, 0.0f, 1.0f)) * ggml.ext_factor;
          angle[r] = std::fma(interpolated, 1 - mix, extrapolated * mix);
        }
      }
      theta *= ggml.theta_scale;
    }
  }
}

// A float as a tensor of this type holds it.
float kept(DType dtype, float value) {
  switch (dtype) {
    case DType::f16: return half_to_float(float_to_half(value));
    case DType::bf16: return bfloat16_to_float(float_to_bfloat16(value));
    case DType::f32:
    case DType::f64:
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;
  }
  return value;
}

struct Pair {
  double a, b;
};

// (a cos − b sin, a sin + b cos), with the rounding that the engine does in this dtype.
Pair rotated(Angles angles, DType dtype, Pair x, float cosine, float sine) {
  if (dtype == DType::f64) {
    const double c = cosine, s = sine;
    return {x.a * c - x.b * s, x.a * s + x.b * c};
  }
  // Elements of the other types are floats.
  const auto a = static_cast<float>(x.a), b = static_cast<float>(x.b);
  if (angles == Angles::ggml_float) return {a * cosine - b * sine, a * sine + b * cosine};
  const auto times = [dtype](float left, float right) { return kept(dtype, left * right); };
  return {kept(dtype, times(a, cosine) - times(b, sine)),
          kept(dtype, times(a, sine) + times(b, cosine))};
}

// No engine rotates back: the inverse of the matrix that was applied, in double.
Pair rotated_back(Pair x, double cosine, double sine) {
  const double determinant = cosine * cosine + sine * sine;
  return {(x.a * cosine + x.b * sine) / determinant, (x.b * cosine - x.a * sine) / determinant};
}

}  // namespace

Expected<void> check_engine(std::string_view where, const Rotate& rotate,
                            const Positions& positions) {
  if (rotate.angles() == Angles::exact) return {};
  for (std::int64_t axis = 0; axis < positions.axes(); ++axis) {
    for (std::int64_t b = 0; b < positions.batch(); ++b) {
      for (std::int64_t t = 0; t < positions.size(); ++t) {
        const std::int64_t p = positions.at(t, b, axis);
        if (-float_positions < p && p < float_positions) continue;
        return fail(
            where,
            "with " + std::string(name(rotate.angles())) +
                " angles positions must stay below 2^24 = 16777216, where a float no longer "
                "holds them",
            std::to_string(p), "use exact angles");
      }
    }
  }
  return {};
}

void engine_angles(const Rotate& rotate, const Positions& positions, std::int64_t token,
                   std::int64_t sequence, std::span<float> angle) {
  if (rotate.angles() == Angles::ggml_float) {
    return ggml_angles(rotate, positions, token, sequence, angle);
  }
  for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
    float sum = 0;
    for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis) {
      sum += static_cast<float>(positions.at(token, sequence, axis)) *
             static_cast<float>(rotate.at(0, axis, r));
    }
    angle[static_cast<std::size_t>(r)] = sum;
  }
}

void engine_row(const Rotate& rotate, const Positions& positions, std::int64_t token,
                std::int64_t sequence, Side side, std::span<float> cosine, std::span<float> sine) {
  engine_angles(rotate, positions, token, sequence, sine);
  float amplitude = 1;
  if (side != Side::value) {
    amplitude = rotate.ggml() ? rotate.ggml()->amplitude() : static_cast<float>(rotate.amplitude);
  }
  for (std::size_t r = 0; r < sine.size(); ++r) {
    const double angle = sine[r];
    cosine[r] = static_cast<float>(std::cos(angle)) * amplitude;
    sine[r] = static_cast<float>(std::sin(angle)) * amplitude;
  }
}

void engine_rotated(const Rotate& rotate, const Tensor& x, const Positions& positions, Side side,
                    const Tensor& out, Action action) {
  const std::int64_t batch = x.shape[0], heads = x.shape[1], seq = x.shape[2], dim = x.shape[3];
  const auto pairs = static_cast<std::size_t>(rotate.pairs());
  std::vector<float> cosine(pairs), sine(pairs);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      engine_row(rotate, positions, t, b, side, cosine, sine);
      if (rotate.angles() == Angles::hf_float) {
        for (std::size_t r = 0; r < pairs; ++r) {
          cosine[r] = kept(x.dtype, cosine[r]);
          sine[r] = kept(x.dtype, sine[r]);
        }
      }
      for (std::int64_t h = 0; h < heads; ++h) {
        const auto from = [&](std::int64_t channel) { return x.offset(b, h, t, channel); };
        const auto to = [&](std::int64_t channel) { return out.offset(b, h, t, channel); };
        if (x.data != out.data) {
          for (std::int64_t c = 0; c < dim; ++c) copy(x, from(c), out, to(c));
        }
        for (std::size_t r = 0; r < pairs; ++r) {
          const Channels pair = channels(rotate, static_cast<std::int64_t>(r));
          const Pair in = {x.get(from(pair.a)), x.get(from(pair.b))};
          const float s = action == Action::transpose ? -sine[r] : sine[r];
          const Pair result = action == Action::inverse
                                  ? rotated_back(in, cosine[r], sine[r])
                                  : rotated(rotate.angles(), x.dtype, in, cosine[r], s);
          out.set(to(pair.a), result.a);
          out.set(to(pair.b), result.b);
        }
      }
    }
  }
}

}  // namespace posenc::detail
