// Cached keys that move, the kernels' text: turned once by the difference of two angles, which is
// one phase in fixed point. A thread owns what one of rotate's does.
#pragma once

#include "backends/cuda/rotate_kernel.h"

namespace posenc::cuda {

struct RekeyCall {
  // The keys are its first operand, its tokens are where they shall stand. With slots, which are
  // those of a call [batch][token], they lie in pages: in_batch and out_batch lead from page to
  // page, and a slot that there is not has no key.
  RotateCall rotation = {};
  Tokens stood = {};                 // where they stand
  std::int32_t from = 0, to = 0;     // which plan rotated them, and which shall have
  const double* one_over = nullptr;  // [plan], 1 / amplitude
};

// The token of a row, in pages too.
template <class T>
POSENC_DEVICE bool find_keys(const RekeyCall& call, std::int64_t row, Token<T>& out) {
  const RotateCall& rotation = call.rotation;
  const Operand& x = rotation.operands[0];
  if (rotation.slots == nullptr) return find_token(rotation, x, row, out);
  if (!find_row(rotation, x, row, out)) return false;
  const std::int64_t slot = rotation.slots[out.row];
  if (slot < 0 || slot >= rotation.slot_count) return false;
  const auto there = static_cast<std::uint32_t>(slot),
             size = static_cast<std::uint32_t>(rotation.page_size), page = there / size,
             token = there % size;
  out.in = static_cast<const T*>(x.in) + page * x.in_batch + token * x.in_token;
  out.out = static_cast<T*>(x.out) + page * x.out_batch + token * x.out_token;
  return true;
}

// By what `count` pairs from `pair` on turn.
template <class T, int count>
POSENC_DEVICE void moves(const RekeyCall& call, const Token<T>& token, std::int32_t head,
                         std::int32_t pair, CosSin<typename T::Real> (&out)[count]) {
  using Real = typename T::Real;
  const RotateCall& rotation = call.rotation;
  std::uint64_t phases[count] = {};
  // Forth, then back: a plan's turns at a time, as a thread has no registers for both.
  POSENC_ROLLED for (std::int32_t way = 0; way < 2 * rotation.axes; ++way) {
    const bool back = (way & 1) != 0;
    const std::int32_t axis = way >> 1;
    const Turns* turns = turns_of(rotation, back ? call.from : call.to, head, pair) +
                         static_cast<std::int64_t>(axis) * rotation.pairs;
    const std::int64_t position =
        position_of(back ? call.stood : rotation.tokens, axis, token.row, token.token);
    POSENC_UNROLL for (int i = 0; i < count; ++i) {
      const std::uint64_t phase = phase_of(position, turns[i]);
      phases[i] += back ? 0 - phase : phase;
    }
  }
  const bool amplified = rotation.operands[0].amplified && call.from != call.to;
  const auto amplitude =
      amplified ? static_cast<Real>(rotation.amplitude[call.to] * call.one_over[call.from])
                : Real{1};
  POSENC_UNROLL for (int i = 0; i < count; ++i) {
    const CosSin<Real> one = cos_sin<Real>(phases[i]);
    out[i] = {one.cos * amplitude, one.sin * amplitude};
  }
}

template <class T, bool interleaved>
POSENC_DEVICE void rekey_words(const RekeyCall& call, Place at) {
  constexpr int n = Word<T>::size;
  const RotateCall& rotation = call.rotation;
  const Operand& x = rotation.operands[0];
  Token<T> token{};
  if (!find_keys(call, at.row, token)) return;
  const auto group = static_cast<std::int32_t>(token.group),
             groups = static_cast<std::int32_t>(token.groups);
  const std::int32_t units = x.rotates ? rotation.pairs / n : 0;
  if (at.unit >= units) {
    const std::int32_t channel = unrotated_channel(rotation, x, token, (at.unit - units) * n);
    if (channel >= rotation.head_dim) return;
    copy_word(x, token, channel);
    return;
  }
  const std::int32_t pair = at.unit * n, channel = channel_of(rotation, pair),
                     other = channel + (interleaved ? n : rotation.block_pairs);
  CosSin<typename T::Real> by[n];
  moves<T, n>(call, token, group, pair, by);
  for (std::int32_t head = group; head < x.heads; head += groups) {
    if (rotation.frequency_heads > 1 && head != group) moves<T, n>(call, token, head, pair, by);
    const T* from = token.in + head * x.in_head;
    Word<T> a = load<Word<T>>(from + channel), b = load<Word<T>>(from + other);
    turn_words<T, interleaved>(a, b, by);
    store(x, token, head, channel, a);
    store(x, token, head, other, b);
  }
}

// Any strides, alignment and number of channels.
template <class T>
POSENC_DEVICE void rekey_elements(const RekeyCall& call, Place at) {
  const RotateCall& rotation = call.rotation;
  const Operand& x = rotation.operands[0];
  Token<T> token{};
  if (!find_keys(call, at.row, token)) return;
  const auto group = static_cast<std::int32_t>(token.group),
             groups = static_cast<std::int32_t>(token.groups);
  const bool rotates = x.rotates && at.unit < rotation.pairs;
  const std::int32_t units = x.rotates ? rotation.pairs : 0;
  const std::int32_t channel = rotates ? channel_of(rotation, at.unit)
                                       : unrotated_channel(rotation, x, token, at.unit - units);
  if (channel >= rotation.head_dim) return;
  const std::int32_t other = channel + (rotation.interleaved ? 1 : rotation.block_pairs);
  CosSin<typename T::Real> by[1] = {};
  POSENC_ROLLED for (std::int32_t head = group; head < x.heads; head += groups) {
    const T* from = token.in + head * x.in_head;
    T a = from[channel * x.in_channel];
    if (rotates) {
      T b = from[other * x.in_channel];
      if (rotation.frequency_heads > 1 || head == group)
        moves<T, 1>(call, token, head, at.unit, by);
      turn(a, b, by[0]);
      store(x, token, head, other, b);
    }
    store(x, token, head, channel, a);
  }
}

template <class T>
POSENC_DEVICE void rekey_at(const RekeyCall& call, Place at) {
  if (!call.rotation.wide)
    rekey_elements<T>(call, at);
  else if (call.rotation.interleaved)
    rekey_words<T, true>(call, at);
  else
    rekey_words<T, false>(call, at);
}

}  // namespace posenc::cuda
