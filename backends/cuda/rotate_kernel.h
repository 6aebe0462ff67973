// Rotation, the kernels' text. One thread owns both channels of some pairs of one token, in some
// heads: threads share nothing and wait for nobody, so that in place is safe, and a loop over the
// grid on the host (emulated.cc) is the kernel, bit for bit.
#pragma once

#include "backends/cuda/special.h"
#include "backends/cuda/tokens.h"

namespace posenc::cuda {

// One of the tensors of a call, [batch][head][token][channel], strides in elements.
struct Operand {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t in_batch = 0, in_head = 0, in_token = 0, in_channel = 0;
  std::int64_t out_batch = 0, out_head = 0, out_token = 0, out_channel = 0;
  std::int32_t heads = 0;
  bool rotates = true;    // else copied, as values are that the plan does not rotate
  bool amplified = true;  // by the plan's amplitude and growth; values are not
  bool shrinks = false;   // by xPos' growth to the negative power, as keys are
  // Pages of a cache that it is written to as well: [page][head][token in page][channel].
  void* cache = nullptr;
  std::int64_t cache_page = 0, cache_head = 0, cache_token = 0, cache_channel = 0;
};

struct RotateCall {
  Operand operands[3] = {};  // queries, keys and values; heads 0: absent
  Number number = Number::f32;
  bool interleaved = false;  // else halves of each block
  bool wide = false;         // vectors of 16 bytes, nothing special; else element by element
  bool copies = false;       // some out is other memory, where channels that do not rotate go too
  bool backwards = false;    // the transpose and the inverse
  bool inverse = false;      // the inverse
  bool early = false;        // angles are made while the kernel before still runs
  std::int32_t head_dim = 0, first_dim = 0, pairs = 0, block_pairs = 0, axes = 1;
  std::int32_t frequency_heads = 1;  // 1: shared by all
  std::int32_t heads_at_once = 1;    // that a thread takes, one after another, by the same cosines

  Tokens tokens = {};

  // Where a token goes in the pages of a cache, [batch][token]: page · page_size + token in page;
  // others than 0 to slot_count − 1: nowhere.
  const std::int64_t* slots = nullptr;
  std::int64_t slot_count = 0;
  std::int32_t page_size = 1;

  // Of several plans alike: which one a token uses, [batch][token]; absent: the first.
  const std::int32_t* plan_ids = nullptr;
  const Turns* turns = nullptr;       // [plan][frequency head][axis][pair]
  const double* amplitude = nullptr;  // [plan]; of the inverse: 1 over it
  Special special = {};
};

// --- rotate --------------------------------------------------------------------------------------

// What a thread works on: a unit of channels, a token and a group of heads of it (row), an operand.
struct Place {
  std::int32_t unit = 0;
  std::int64_t row = 0;
  std::int32_t operand = 0;
};

// A token of a call, its group of heads, and where its first head lies. Numbers of 32 bits, as a
// device divides those alone by an instruction or few: rotate() holds a call to 2^31 of them.
template <class T>
struct Token {
  std::uint32_t row, token, group, groups;
  const T* in;
  T *out, *cache;  // nullptr: not there
};
template <class T>
POSENC_DEVICE bool find_row(const RotateCall& call, const Operand& x, std::int64_t row,
                            Token<T>& out) {
  const auto groups = static_cast<std::uint32_t>((x.heads + call.heads_at_once - 1) /
                                                 call.heads_at_once),
             tokens = static_cast<std::uint32_t>(call.tokens.count);
  if (row >= call.tokens.batch * call.tokens.count * groups) return false;
  const auto at = static_cast<std::uint32_t>(row);
  out.groups = groups;
  out.row = at / groups;
  out.group = at % groups;
  out.token = out.row % tokens;
  out.cache = nullptr;
  return true;
}
template <class T>
POSENC_DEVICE bool find_token(const RotateCall& call, const Operand& x, std::int64_t row,
                              Token<T>& out) {
  if (!find_row(call, x, row, out)) return false;
  const std::uint32_t batch = out.row / static_cast<std::uint32_t>(call.tokens.count);
  out.in = static_cast<const T*>(x.in) + batch * x.in_batch + out.token * x.in_token;
  out.out = x.out == nullptr
                ? nullptr
                : static_cast<T*>(x.out) + batch * x.out_batch + out.token * x.out_token;
  if (x.cache == nullptr) return true;
  const std::int64_t slot = call.slots[out.row];
  if (slot < 0 || slot >= call.slot_count) return true;
  const auto there = static_cast<std::uint32_t>(slot),
             size = static_cast<std::uint32_t>(call.page_size);
  out.cache = static_cast<T*>(x.cache) + there / size * x.cache_page + there % size * x.cache_token;
  return true;
}

// A word, or a number, wherever the token goes.
template <class T, class Piece>
POSENC_DEVICE void store(const Operand& x, const Token<T>& token, std::int32_t head,
                         std::int64_t channel, Piece piece) {
  if (token.out != nullptr) store(token.out + head * x.out_head + channel * x.out_channel, piece);
  if (token.cache != nullptr)
    store(token.cache + head * x.cache_head + channel * x.cache_channel, piece);
}

// A pair's turns on the first axis; those on the next lie `pairs` on.
POSENC_DEVICE const Turns* turns_of(const RotateCall& call, std::int64_t plan, std::int32_t head,
                                    std::int32_t pair) {
  const std::int32_t frequency_head = call.frequency_heads == 1 ? 0 : head;
  return call.turns + (plan * call.frequency_heads + frequency_head) * call.axes * call.pairs +
         pair;
}
template <class T>
POSENC_DEVICE std::int64_t plan_of(const RotateCall& call, const Token<T>& token) {
  return call.plan_ids == nullptr ? 0 : call.plan_ids[token.row];
}

// Cosines and sines of `count` pairs from `pair` on, the second half of them so many pairs further.
template <class T, int count>
POSENC_DEVICE void angles(const RotateCall& call, const Operand& x, const Token<T>& token,
                          std::int32_t head, std::int32_t pair,
                          CosSin<typename T::Real> (&out)[count], std::int32_t gap = 0) {
  using Real = typename T::Real;
  const std::int64_t plan = plan_of(call, token);
  const Turns* turns = turns_of(call, plan, head, pair);
  std::uint64_t phases[count] = {};
  POSENC_ROLLED for (std::int32_t axis = 0; axis < call.axes; ++axis, turns += call.pairs) {
    const std::int64_t position = position_of(call.tokens, axis, token.row, token.token);
    POSENC_UNROLL for (int i = 0; i < count; ++i) phases[i] +=
        phase_of(position, turns[2 * i < count ? i : i + gap]);
  }
  const auto amplitude = x.amplified ? static_cast<Real>(call.amplitude[plan]) : Real{1};
  POSENC_UNROLL for (int i = 0; i < count; ++i) {
    const CosSin<Real> one = cos_sin<Real>(call.backwards ? 0 - phases[i] : phases[i]);
    out[i] = {one.cos * amplitude, one.sin * amplitude};
  }
}

template <class T>
POSENC_DEVICE void turn(T& a, T& b, CosSin<typename T::Real> by) {
  const typename T::Real x = real(a), y = real(b);
  put(a, fused(x, by.cos, -(y * by.sin)));
  put(b, fused(x, by.sin, y * by.cos));
}

// A pair, exactly, where xPos grows or positions are real.
template <class T>
POSENC_DEVICE void turn_exactly(const RotateCall& call, const Operand& x, const Token<T>& token,
                                std::int32_t head, std::int32_t pair, T& a, T& b) {
  using Real = typename T::Real;
  const std::int64_t plan = plan_of(call, token);
  const Turns* turns = turns_of(call, plan, head, pair);
  const double* at = call.tokens.real_ids;
  std::uint64_t phase = 0;
  bool sure = true;
  for (std::int32_t axis = 0; axis < call.axes; ++axis, turns += call.pairs) {
    bool finite = true;
    phase += at == nullptr
                 ? phase_of(position_of(call.tokens, axis, token.row, token.token), *turns)
                 : phase_of(at[axis * call.tokens.batch * call.tokens.count + token.row], *turns,
                            finite);
    sure = sure && finite;
  }
  double by = x.amplified ? call.amplitude[plan] : 1;
  if (x.amplified && call.special.growth != nullptr) {
    const double position =
        at != nullptr ? at[token.row]
                      : static_cast<double>(position_of(call.tokens, 0, token.row, token.token));
    by *= growth_of(call.special, position, x.shrinks != call.inverse, pair);
  }
  const CosSin<Real> one = cos_sin<Real>(call.backwards ? 0 - phase : phase);
  const double nothing = by * 1e300 * 1e300;
  if (!sure) by = nothing - nothing;  // NaN
  turn(a, b, {static_cast<Real>(one.cos * by), static_cast<Real>(one.sin * by)});
}

template <class T>
POSENC_DEVICE void turn_as_engine(const RotateCall& call, const Operand& x, const Token<T>& token,
                                  std::int32_t pair, T& a, T& b) {
  const Special& special = call.special;
  const std::int64_t plan = plan_of(call, token);
  const bool hf = special.arithmetic == Arithmetic::hf_float;
  const float angle =
      hf ? hf_angle(special, call.tokens, token.row, token.token, plan, call.axes, call.pairs, pair)
         : ggml_angle(special, call.tokens, token.row, token.token, call.axes, call.pairs, pair);
  const CosSin<double> exact = cos_sin_of_angle(angle);
  const auto amplitude = x.amplified ? static_cast<float>(call.amplitude[plan]) : 1.0f;
  float cosine = static_cast<float>(exact.cos) * amplitude,
        sine = static_cast<float>(exact.sin) * amplitude;
  if constexpr (sizeof(T) == 2) {
    cosine = hf ? kept<T>(cosine) : cosine;
    sine = hf ? kept<T>(sine) : sine;
  }
  if (call.inverse)
    turn_back<T>(a, b, cosine, sine);
  else
    turn_as<T>(special.arithmetic, a, b, cosine, call.backwards ? -sine : sine);
}

// The first channel of a pair, and how far the second is from it.
POSENC_DEVICE std::int32_t channel_of(const RotateCall& call, std::int32_t pair) {
  const std::int32_t block = pair / call.block_pairs, in_block = pair % call.block_pairs;
  return call.first_dim + 2 * block * call.block_pairs +
         (call.interleaved ? 2 * in_block : in_block);
}

// The channels that an operand does not rotate, those before and behind the slice, as if they were
// in one row; head_dim where there is none of that index or nobody wants them.
template <class T>
POSENC_DEVICE std::int32_t unrotated_channel(const RotateCall& call, const Operand& x,
                                             const Token<T>& token, std::int32_t index) {
  if (token.cache == nullptr && (token.out == nullptr || token.out == token.in))
    return call.head_dim;
  return !x.rotates || index < call.first_dim ? index : index + 2 * call.pairs;
}

// Programmatic dependent launch: a kernel may begin while the one before it in the stream still
// runs, and waits for it before it touches what that one writes. Where neither is launched so, both
// are nothing. On the host emulated.cc stands for the kernel before.
#ifdef __CUDA_ARCH__
POSENC_DEVICE void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Whether cosines and sines are there: they are, but the wait comes behind a branch by their bits,
// as a compiler would move arithmetic alone behind it.
POSENC_DEVICE std::uint32_t bits_of(float x) { return __float_as_uint(x); }
POSENC_DEVICE std::uint32_t bits_of(double x) {
  return static_cast<std::uint32_t>(__double2hiint(x));
}
template <class Real, int count>
POSENC_DEVICE bool there(const CosSin<Real> (&angles)[count]) {
  std::uint32_t common = ~std::uint32_t{0};
  POSENC_UNROLL for (int i = 0; i < count; ++i) common &=
      bits_of(angles[i].cos) & bits_of(angles[i].sin);
  return common != ~std::uint32_t{0};  // which would be NaN, all of them
}
POSENC_DEVICE void let_kernel_after_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#else
#ifdef __HIP__
POSENC_DEVICE void wait_for_kernel_before() {}
#else
void wait_for_kernel_before();
#endif
template <class Real, int count>
POSENC_DEVICE bool there(const CosSin<Real> (&)[count]) {
  return true;
}
POSENC_DEVICE void let_kernel_after_begin() {}
#endif

// A word of an operand that is not rotated, or lies beside what is, in a thread's heads.
template <class T>
POSENC_DEVICE void copy_word(const Operand& x, const Token<T>& token, std::int32_t channel) {
  const auto group = static_cast<std::int32_t>(token.group),
             groups = static_cast<std::int32_t>(token.groups);
  for (std::int32_t head = group; head < x.heads; head += groups)
    store(x, token, head, channel, load<Word<T>>(token.in + head * x.in_head + channel));
}

template <class T, bool interleaved>
POSENC_DEVICE void turn_words(Word<T>& a, Word<T>& b,
                              const CosSin<typename T::Real> (&by)[Word<T>::size]) {
  constexpr int n = Word<T>::size;
  POSENC_UNROLL for (int i = 0; i < n; ++i) {
    if constexpr (interleaved)
      turn(2 * i < n ? a.at[2 * i] : b.at[2 * i - n],
           2 * i < n ? a.at[2 * i + 1] : b.at[2 * i + 1 - n], by[i]);
    else
      turn(a.at[i], b.at[i], by[i]);
  }
}

// Heads whose words a thread asks for before it turns and stores any: a store might write what the
// next load reads, for all that a compiler knows, and memory would be waited for head by head.
constexpr std::int32_t heads_in_flight = 2;

template <class T, bool interleaved, bool early>
POSENC_DEVICE void rotate_words(const RotateCall& call, Place at) {
  using Real = typename T::Real;
  constexpr int n = Word<T>::size;
  const Operand& x = call.operands[at.operand];
  Token<T> token{};
  if (!find_token(call, x, at.row, token)) return;
  const auto group = static_cast<std::int32_t>(token.group),
             groups = static_cast<std::int32_t>(token.groups);

  if (!x.rotates) {
    // Two words a thread, as there are two where pairs are.
    const std::int32_t words = call.head_dim / n, half = (words + 1) / 2;
    if (at.unit >= half) return;
    if constexpr (early) wait_for_kernel_before();
    copy_word(x, token, at.unit * n);
    if (at.unit + half < words) copy_word(x, token, (at.unit + half) * n);
    return;
  }
  const std::int32_t units = call.pairs / n;
  if (at.unit >= units) {
    const std::int32_t channel = unrotated_channel(call, x, token, (at.unit - units) * n);
    if (channel >= call.head_dim) return;
    if constexpr (early) wait_for_kernel_before();
    copy_word(x, token, channel);
    return;
  }
  // Two words half a block apart, of neighbours too: threads side by side then load side by side.
  const std::int32_t at_pair = at.unit * n, block = at_pair / call.block_pairs,
                     in_block = at_pair % call.block_pairs,
                     channel = call.first_dim + 2 * block * call.block_pairs + in_block,
                     other = channel + call.block_pairs,
                     pair = interleaved ? block * call.block_pairs + in_block / 2 : at_pair,
                     gap = interleaved ? (call.block_pairs - n) / 2 : 0;
  CosSin<Real> by[n];
  if constexpr (early) {
    angles<T, n>(call, x, token, group, pair, by, gap);
    if (!there(by)) return;
    wait_for_kernel_before();
  }
  if (call.frequency_heads > 1) {
    POSENC_ROLLED for (std::int32_t head = group; head < x.heads; head += groups) {
      angles<T, n>(call, x, token, head, pair, by, gap);
      const T* from = token.in + head * x.in_head;
      Word<T> a = load<Word<T>>(from + channel), b = load<Word<T>>(from + other);
      turn_words<T, interleaved>(a, b, by);
      store(x, token, head, channel, a);
      store(x, token, head, other, b);
    }
  } else {
    POSENC_ROLLED for (std::int32_t first = group; first < x.heads;
                       first += heads_in_flight * groups) {
      Word<T> a[heads_in_flight], b[heads_in_flight];
      POSENC_UNROLL for (std::int32_t i = 0; i < heads_in_flight; ++i) {
        const std::int32_t head = first + i * groups;
        if (head >= x.heads) break;
        const T* from = token.in + head * x.in_head;
        a[i] = load<Word<T>>(from + channel);
        b[i] = load<Word<T>>(from + other);
      }
      // Behind what was asked for, which is on its way meanwhile.
      if constexpr (!early)
        if (first == group) angles<T, n>(call, x, token, group, pair, by, gap);
      POSENC_UNROLL for (std::int32_t i = 0; i < heads_in_flight; ++i) {
        const std::int32_t head = first + i * groups;
        if (head >= x.heads) break;
        turn_words<T, interleaved>(a[i], b[i], by);
        store(x, token, head, channel, a[i]);
        store(x, token, head, other, b[i]);
      }
    }
  }
  if constexpr (early) let_kernel_after_begin();
}

// Any strides, alignment and number of channels: a pair or a channel a thread.
template <class T, bool special>
POSENC_DEVICE void rotate_elements(const RotateCall& call, Place at) {
  using Real = typename T::Real;
  const Operand& x = call.operands[at.operand];
  Token<T> token{};
  if (!find_token(call, x, at.row, token)) return;
  const auto group = static_cast<std::int32_t>(token.group),
             groups = static_cast<std::int32_t>(token.groups);
  const bool rotates = x.rotates && at.unit < call.pairs;
  const std::int32_t units = x.rotates ? call.pairs : 0;
  const std::int32_t channel =
      rotates ? channel_of(call, at.unit) : unrotated_channel(call, x, token, at.unit - units);
  if (channel >= call.head_dim) return;
  const std::int32_t other = channel + (call.interleaved ? 1 : call.block_pairs);
  CosSin<Real> by[1] = {};
  POSENC_ROLLED for (std::int32_t head = group; head < x.heads; head += groups) {
    const T* from = token.in + head * x.in_head;
    T a = from[channel * x.in_channel];
    if (rotates) {
      T b = from[other * x.in_channel];
      if constexpr (special) {
        if (call.special.arithmetic == Arithmetic::exact)
          turn_exactly<T>(call, x, token, head, at.unit, a, b);
        else
          turn_as_engine<T>(call, x, token, at.unit, a, b);
      } else {
        if (call.frequency_heads > 1 || head == group)
          angles<T, 1>(call, x, token, head, at.unit, by);
        turn(a, b, by[0]);
      }
      store(x, token, head, other, b);
    }
    store(x, token, head, channel, a);
  }
}

template <class T>
POSENC_DEVICE void rotate_at(const RotateCall& call, Place at) {
  if (call.special.any)
    rotate_elements<T, true>(call, at);
  else if (!call.wide)
    rotate_elements<T, false>(call, at);
  else if (call.interleaved)
    call.early ? rotate_words<T, true, true>(call, at) : rotate_words<T, true, false>(call, at);
  else
    call.early ? rotate_words<T, false, true>(call, at) : rotate_words<T, false, false>(call, at);
}

// --- the grid ------------------------------------------------------------------------------------

// Threads of a block: units side by side, so that neighbours load what lies side by side; then
// rows.
struct Grid {
  std::int64_t blocks = 0;
  std::int32_t operands = 0;
  std::int32_t units = 0;                    // all of them; a thread takes every units_at_once-th
  std::int32_t units_at_once = 1, rows = 1;  // of a block
};
inline Grid grid_of(const RotateCall& call) {
  constexpr std::int32_t threads = 128;
  const std::int32_t copied = call.copies ? call.head_dim - 2 * call.pairs : 0;
  Grid grid;
  const std::int32_t rotated = call.pairs + copied;
  // Values are two words a unit, or a channel: as many units as pairs have where all channels rotate,
  // so that no thread of theirs is idle.
  const std::int32_t shift = call.wide ? word_shift(call.number) : 0;
  grid.units = rotated >> shift;
  if (call.operands[2].heads > 0) {
    const std::int32_t values = call.wide ? ((call.head_dim >> shift) + 1) / 2 : call.head_dim;
    grid.units = values > grid.units ? values : grid.units;
  }
  if (grid.units == 0) return grid;
  grid.units_at_once = grid.units < threads ? grid.units : threads;
  grid.rows = threads / grid.units_at_once;
  for (std::int32_t i = 0; i < 3; ++i) {
    const Operand& one = call.operands[i];
    if (one.heads == 0) continue;
    grid.operands = i + 1;  // queries may have no head, and keys some
    const std::int64_t groups = (one.heads + call.heads_at_once - 1) / call.heads_at_once,
                       blocks = (call.tokens.batch * call.tokens.count * groups + grid.rows - 1) /
                                grid.rows;
    grid.blocks = blocks > grid.blocks ? blocks : grid.blocks;
  }
  return grid;
}

}  // namespace posenc::cuda
