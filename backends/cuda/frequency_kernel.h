// The gradient of learned frequencies, the kernels' text. A pair (a, b) is what its angle made of
// it, so that the gradient by the angle is b' a − a' b for its gradient (a', b'), and by a
// frequency the sum of that times the position. One thread owns a frequency head and a pair in one
// part of the tokens, another adds the parts up in their order: no atomics, the same bits every
// time.
#pragma once

#include "backends/cuda/rotate_kernel.h"

namespace posenc::cuda {

struct FrequencyCall {
  RotateCall rotation = {};        // what was rotated, in its first operand
  const void* gradient = nullptr;  // of that, [batch][head][token][channel], strides in elements
  std::int64_t gradient_batch = 0, gradient_head = 0, gradient_token = 0, gradient_channel = 0;
  std::int64_t parts = 1;
  double* partial = nullptr;  // [part][frequency head][axis][pair]
  double* out = nullptr;      // [frequency head][axis][pair]
};

POSENC_DEVICE std::int64_t frequencies_of(const FrequencyCall& call) {
  return static_cast<std::int64_t>(call.rotation.frequency_heads) * call.rotation.axes *
         call.rotation.pairs;
}

// Of one axis: others read the same again, which models with learned frequencies have two or three
// of.
template <class T>
POSENC_DEVICE void add_part(const FrequencyCall& call, std::int64_t part, std::int64_t frequency) {
  const RotateCall& rotation = call.rotation;
  const Operand& x = rotation.operands[0];
  if (part >= call.parts || frequency >= frequencies_of(call)) return;
  const auto row = static_cast<std::int32_t>(frequency) / rotation.pairs,
             pair = static_cast<std::int32_t>(frequency) % rotation.pairs,
             axis = row % rotation.axes, of_head = row / rotation.axes;
  const std::int32_t a = channel_of(rotation, pair),
                     b = a + (rotation.interleaved ? 1 : rotation.block_pairs),
                     first_head = rotation.frequency_heads == 1 ? 0 : of_head,
                     last_head = rotation.frequency_heads == 1 ? x.heads : of_head + 1;
  const Tokens& tokens = rotation.tokens;
  const std::int64_t all = tokens.batch * tokens.count,
                     each = static_cast<std::uint32_t>(all + call.parts - 1) /
                            static_cast<std::uint32_t>(call.parts),
                     first = part * each, last = first + each < all ? first + each : all;
  double sum = 0;
  for (std::int64_t at = first; at < last; ++at) {
    const auto row_here = static_cast<std::uint32_t>(at),
               count = static_cast<std::uint32_t>(tokens.count), batch = row_here / count,
               token = row_here % count;
    const T* rotated = static_cast<const T*>(x.in) + batch * x.in_batch + token * x.in_token;
    const T* gradient = static_cast<const T*>(call.gradient) + batch * call.gradient_batch +
                        token * call.gradient_token;
    double by_angle = 0;
    for (std::int32_t head = first_head; head < last_head; ++head) {
      const T* from = gradient + head * call.gradient_head;
      const double by_a = real(from[a * call.gradient_channel]),
                   by_b = real(from[b * call.gradient_channel]);
      if (by_a == 0 && by_b == 0) continue;  // a hidden token may hold NaN
      const T* to = rotated + head * x.in_head;
      by_angle += by_b * real(to[a * x.in_channel]) - by_a * real(to[b * x.in_channel]);
    }
    if (by_angle != 0)
      sum = fused(by_angle, static_cast<double>(position_of(tokens, axis, at, token)), sum);
  }
  call.partial[part * frequencies_of(call) + frequency] = sum;
}

POSENC_DEVICE void add_parts_up(const FrequencyCall& call, std::int64_t frequency) {
  if (frequency >= frequencies_of(call)) return;
  double sum = 0;
  for (std::int64_t part = 0; part < call.parts; ++part)
    sum += call.partial[part * frequencies_of(call) + frequency];
  call.out[frequency] = sum;
}

}  // namespace posenc::cuda
