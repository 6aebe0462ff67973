// What few models ask for, and the fast kernels have not: xPos' growth, the engines' arithmetic,
// real positions. Text for the host and for the device.
#pragma once

#include "backends/cuda/tokens.h"

namespace posenc::cuda {

enum class Arithmetic : std::int32_t { exact, hf_float, ggml_float };  // as posenc::Angles

struct Special {
  bool any = false;
  Arithmetic arithmetic = Arithmetic::exact;
  // xPos: 2^(growth[pair] · (position − centre) / steps), by the first axis.
  const double* growth = nullptr;
  double centre = 0, steps = 1;
  // The engines' floats, radians per position: [plan][axis][pair]; of ggml's only whether they are
  // 0.
  const float* frequency = nullptr;
  const float* freq_factors = nullptr;  // [pair]; absent: all 1
  float theta_scale = 1, freq_scale = 1, ext_factor = 0, ramp_low = 0, ramp_high = 0;
  bool restart = false;
};

// The angle of a pair as Hugging Face forms it: float positions by float frequencies, added up in
// float.
POSENC_DEVICE float hf_angle(const Special& special, const Tokens& tokens, std::int64_t row,
                             std::int64_t token, std::int64_t plan, std::int32_t axes,
                             std::int32_t pairs, std::int32_t pair) {
  float sum = 0;
  for (std::int32_t axis = 0; axis < axes; ++axis) {
    const auto position = static_cast<float>(position_of(tokens, axis, row, token));
    sum = sum + position * special.frequency[(plan * axes + axis) * pairs + pair];
  }
  return sum;
}

// And as ggml does: for each axis a chain of float products, a factor for each pair (GgmlRope of
// posenc/plan.h).
POSENC_DEVICE float ggml_angle(const Special& special, const Tokens& tokens, std::int64_t row,
                               std::int64_t token, std::int32_t axes, std::int32_t pairs,
                               std::int32_t pair) {
  for (std::int32_t axis = axes - 1; axis >= 0; --axis) {
    const float* frequency = special.frequency + static_cast<std::int64_t>(axis) * pairs;
    if (frequency[pair] == 0) continue;
    std::int32_t first = 0;
    if (special.restart)
      for (first = pair; first > 0 && frequency[first - 1] != 0;) --first;
    auto theta = static_cast<float>(position_of(tokens, axis, row, token));
    for (std::int32_t r = first; r < pair; ++r) theta = theta * special.theta_scale;
    const float extrapolated =
        special.freq_factors == nullptr ? theta : theta / special.freq_factors[pair];
    const float interpolated = special.freq_scale * extrapolated;
    if (special.ext_factor == 0) return interpolated;
    const float width = special.ramp_high - special.ramp_low;
    const float at =
        (static_cast<float>(pair) - special.ramp_low) / (width > 0.001f ? width : 0.001f);
    const float mix = (1 - (at < 0 ? 0 : at > 1 ? 1 : at)) * special.ext_factor;
    return fused(interpolated, 1 - mix, extrapolated * mix);
  }
  return 0;
}

// What xPos multiplies a pair by.
POSENC_DEVICE double growth_of(const Special& special, double position, bool shrinks,
                               std::int32_t pair) {
  const double power = (position - special.centre) / special.steps;
  return exp2_of((shrinks ? -power : power) * special.growth[pair]);
}

// A number as a tensor of this type holds it.
template <class T>
POSENC_DEVICE float kept(float value) {
  T stored{};
  put(stored, value);
  return real(stored);
}

// A pair as an engine rotates it in this type: Hugging Face rounds cosine and sine, each product
// and the sum to it, ggml what comes out. A pair of doubles is rotated in double.
template <class T>
POSENC_DEVICE void turn_as(Arithmetic arithmetic, T& a, T& b, float cosine, float sine) {
  if constexpr (sizeof(T) == 8) {
    const double x = a.value, y = b.value, c = cosine, s = sine;
    a.value = x * c - y * s;
    b.value = x * s + y * c;
  } else {
    const float x = real(a), y = real(b);
    if (arithmetic == Arithmetic::ggml_float) {
      put(a, x * cosine - y * sine);
      put(b, x * sine + y * cosine);
      return;
    }
    put(a, kept<T>(x * cosine) - kept<T>(y * sine));
    put(b, kept<T>(x * sine) + kept<T>(y * cosine));
  }
}

// The inverse of the matrix that an engine has multiplied by, in double: no engine rotates back.
template <class T>
POSENC_DEVICE void turn_back(T& a, T& b, double cosine, double sine) {
  using Real = typename T::Real;
  const double x = real(a), y = real(b), determinant = cosine * cosine + sine * sine;
  put(a, static_cast<Real>((x * cosine + y * sine) / determinant));
  put(b, static_cast<Real>((y * cosine - x * sine) / determinant));
}

}  // namespace posenc::cuda
