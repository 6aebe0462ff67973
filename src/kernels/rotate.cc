// The rotation kernel. For a block of tokens it makes rows of cos and sin in a buffer that stays in the
// first cache, then rotates every head of every token by them, in the order of memory: no table over
// positions exists, and what is read and written is the tensor alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/rotate.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hwy/highway.h"
#include "src/kernels/cos_sin_rows-inl.h"
#include "src/kernels/elements-inl.h"
#include "src/kernels/rotate.h"
#include "src/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Padding after each row, in pairs, so that the last vector may overrun it.
constexpr std::int64_t overrun = CosSinRows::lanes;

// How far ahead of its use memory is asked for, see Fetch().
constexpr std::int64_t ahead_bytes = 4096;

// Rotates pairs (a[i], b[i]) by cos c[i] and sin s[i].
template <class T>
HWY_INLINE void RotateHalves(const T* a, const T* b, T* a_out, T* b_out, const Compute<T>* c,
                             const Compute<T>* s, std::int64_t pairs, std::int64_t ahead) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto rotate = [&](const T* from_a, const T* from_b, T* to_a, T* to_b, std::int64_t i)
                          HWY_ATTR {
                            const auto x = LoadElements(d, from_a), y = LoadElements(d, from_b);
                            const auto cosine = hn::LoadU(d, c + i), sine = hn::LoadU(d, s + i);
                            StoreElements(hn::NegMulAdd(y, sine, hn::Mul(x, cosine)), d, to_a);
                            StoreElements(hn::MulAdd(x, sine, hn::Mul(y, cosine)), d, to_b);
                          };
  std::int64_t i = 0;
  if constexpr (sizeof(T) < sizeof(Compute<T>)) {
    // 16-bit elements two vectors at a time: a cache line with AVX-512.
    for (; i + 2 * lanes <= pairs; i += 2 * lanes) {
      Fetch(a_out + i + ahead);
      Fetch(b_out + i + ahead);
      const auto x = LoadElements(d, a + i), y = LoadElements(d, b + i);
      const auto next_x = LoadElements(d, a + i + lanes), next_y = LoadElements(d, b + i + lanes);
      const auto cosine = hn::LoadU(d, c + i), sine = hn::LoadU(d, s + i);
      const auto next_cosine = hn::LoadU(d, c + i + lanes);
      const auto next_sine = hn::LoadU(d, s + i + lanes);
      StoreTwo(hn::NegMulAdd(y, sine, hn::Mul(x, cosine)),
               hn::NegMulAdd(next_y, next_sine, hn::Mul(next_x, next_cosine)), d, a_out + i);
      StoreTwo(hn::MulAdd(x, sine, hn::Mul(y, cosine)),
               hn::MulAdd(next_x, next_sine, hn::Mul(next_y, next_cosine)), d, b_out + i);
    }
  }
  for (; i + lanes <= pairs; i += lanes) {
    Fetch(a_out + i + ahead);
    Fetch(b_out + i + ahead);
    rotate(a + i, b + i, a_out + i, b_out + i, i);
  }
  if (i == pairs) return;
  T x[hn::MaxLanes(d)] = {}, y[hn::MaxLanes(d)] = {};
  const auto bytes = static_cast<std::size_t>(pairs - i) * sizeof(T);
  std::memcpy(x, a + i, bytes);
  std::memcpy(y, b + i, bytes);
  rotate(x, y, x, y, i);
  std::memcpy(a_out + i, x, bytes);
  std::memcpy(b_out + i, y, bytes);
}

// Rotates pairs (x[2i], x[2i + 1]). Cos and sin stand doubled, c c and −s s, so that one exchange of
// neighbours and one multiply-add do for both channels.
template <class T>
HWY_INLINE void RotateInterleaved(const T* x, T* out, const Compute<T>* c, const Compute<T>* s,
                                  std::int64_t channels, [[maybe_unused]] std::int64_t ahead) {
#if HWY_TARGET == HWY_SCALAR
  // A vector of one lane has no neighbour to exchange with.
  const hn::CappedTag<Compute<T>, 1> d;
  for (std::int64_t i = 0; i < channels; i += 2) {
    const auto a = LoadElements(d, x + i), b = LoadElements(d, x + i + 1);
    const auto cosine = hn::Set(d, c[i]), sine = hn::Set(d, s[i + 1]);
    StoreElements(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, out + i);
    StoreElements(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, out + i + 1);
  }
#else
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto rotated = [&](const T* from, std::int64_t i) HWY_ATTR {
    const auto v = LoadElements(d, from);
    const auto cosine = hn::LoadU(d, c + i), sine = hn::LoadU(d, s + i);
    return hn::MulAdd(hn::Reverse2(d, v), sine, hn::Mul(v, cosine));
  };
  std::int64_t i = 0;
  if constexpr (sizeof(T) < sizeof(Compute<T>)) {
    for (; i + 2 * lanes <= channels; i += 2 * lanes) {
      Fetch(out + i + ahead);
      const auto v = rotated(x + i, i), next = rotated(x + i + lanes, i + lanes);
      StoreTwo(v, next, d, out + i);
    }
  }
  for (; i + lanes <= channels; i += lanes) {
    Fetch(out + i + ahead);
    StoreElements(rotated(x + i, i), d, out + i);
  }
  if (i == channels) return;
  T rest[hn::MaxLanes(d)] = {};
  const auto bytes = static_cast<std::size_t>(channels - i) * sizeof(T);
  std::memcpy(rest, x + i, bytes);
  StoreElements(rotated(rest, i), d, rest);
  std::memcpy(out + i, rest, bytes);
#endif
}

// The heads of a token, which share a row of cos and sin.
template <class T>
struct Heads {
  const T* x;
  T* out;
  std::int64_t count, x_step, out_step;
};

#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SCALAR

// No vectors to keep in registers: all is left to RotateHalves() and RotateInterleaved().
template <class T>
HWY_INLINE std::int64_t RotateHeadsHalves(const Heads<T>&, const Compute<T>*, const Compute<T>*,
                                          std::int64_t) {
  return 0;
}
template <class T>
HWY_INLINE std::int64_t RotateHeadsInterleaved(const Heads<T>&, const Compute<T>*,
                                               const Compute<T>*, std::int64_t) {
  return 0;
}

#else

// Cos and sin of some pairs, kept in registers across heads: reloading costs 10 %, because the loads
// alias (4 KiB) with the stores just made.
template <class C, int count>
struct RowPart {
  static constexpr hn::ScalableTag<C> d = {};
  static constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  static constexpr std::int64_t size = count * lanes;
  hn::Vec<hn::ScalableTag<C>> c[count], s[count];

  HWY_INLINE RowPart(const C* cosine, const C* sine) {
    for (int r = 0; r < count; ++r) {
      c[r] = hn::LoadU(d, cosine + r * lanes);
      s[r] = hn::LoadU(d, sine + r * lanes);
    }
  }
};

// Calls act(x, out) for every head, of which `channels` lie in one piece.
template <class T, class Act>
HWY_INLINE void ForHeads(const Heads<T>& heads, std::int64_t channels, const Act& act) {
  constexpr std::int64_t line = 64 / sizeof(T), ahead = ahead_bytes / sizeof(T);
  const T* x = heads.x;
  T* out = heads.out;
  for (std::int64_t h = 0; h < heads.count; ++h, x += heads.x_step, out += heads.out_step) {
    for (std::int64_t i = 0; i < channels; i += line) Fetch(out + ahead + i);
    act(x, out);
  }
}

// Both return how many pairs, or channels, are done: the rest does not fill a RowPart.
template <class T>
HWY_INLINE std::int64_t RotateHeadsHalves(const Heads<T>& heads, const Compute<T>* cosine,
                                          const Compute<T>* sine, std::int64_t pairs) {
  constexpr int count = 4;
  using Row = RowPart<Compute<T>, count>;
  constexpr auto d = Row::d;
  std::int64_t i = 0;
  for (; i + Row::size <= pairs; i += Row::size) {
    const Row row(cosine + i, sine + i);
    ForHeads(heads, i == 0 ? 2 * pairs : 0, [&](const T* x, T* out) HWY_ATTR {
      const T* const y = x + i + pairs;
      T* const y_out = out + i + pairs;
      x += i;
      out += i;
#pragma GCC unroll 8
      for (int r = 0; r < count; r += 2) {
        const std::int64_t at = r * Row::lanes, next = at + Row::lanes;
        const auto a = LoadElements(d, x + at), b = LoadElements(d, y + at);
        const auto e = LoadElements(d, x + next), f = LoadElements(d, y + next);
        StoreTwo(hn::NegMulAdd(b, row.s[r], hn::Mul(a, row.c[r])),
                 hn::NegMulAdd(f, row.s[r + 1], hn::Mul(e, row.c[r + 1])), d, out + at);
        StoreTwo(hn::MulAdd(a, row.s[r], hn::Mul(b, row.c[r])),
                 hn::MulAdd(e, row.s[r + 1], hn::Mul(f, row.c[r + 1])), d, y_out + at);
      }
    });
  }
  return i;
}

template <class T>
HWY_INLINE std::int64_t RotateHeadsInterleaved(const Heads<T>& heads, const Compute<T>* cosine,
                                               const Compute<T>* sine, std::int64_t channels) {
  // Two vectors each: cos and sin take 16 of AVX-512's 32 registers, or 8 of 16.
  constexpr int count = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
  using Row = RowPart<Compute<T>, count>;
  constexpr auto d = Row::d;
  std::int64_t i = 0;
  for (; i + Row::size <= channels; i += Row::size) {
    const Row row(cosine + i, sine + i);
    ForHeads(heads, i == 0 ? channels : 0, [&](const T* x, T* out) HWY_ATTR {
      x += i;
      out += i;
#pragma GCC unroll 8
      for (int r = 0; r < count; r += 2) {
        const std::int64_t at = r * Row::lanes, next = at + Row::lanes;
        const auto a = LoadElements(d, x + at), b = LoadElements(d, x + next);
        StoreTwo(hn::MulAdd(hn::Reverse2(d, a), row.s[r], hn::Mul(a, row.c[r])),
                 hn::MulAdd(hn::Reverse2(d, b), row.s[r + 1], hn::Mul(b, row.c[r + 1])), d,
                 out + at);
      }
    });
  }
  return i;
}

#endif

// Rotates a tensor of elements T by rows that are made already.
template <class T>
class Rotator {
 public:
  using C = Compute<T>;
  // `sines`: the distance from a row's cos to its sin.
  Rotator(const RotateJob& job, int which, std::int64_t sines)
      : x_(job.x[which]),
        out_(job.out[which]),
        shared_(job.shared),
        interleaved_(job.plan->pairing == Pairing::interleaved),
        neighbours_(x_.stride[3] == 1 && out_.stride[3] == 1),
        in_place_(x_.data == out_.data),
        first_(job.plan->first_dim),
        rotary_(job.plan->rotary_dim),
        last_(x_.shape[3] - first_ - rotary_),
        blocks_(job.plan->blocks),
        block_pairs_(job.plan->pairs() / blocks_),
        sines_(sines),
        apart_(job.rule.heads_with_rows()),
        head_step_(apart_ == 1 ? 0 : job.plan->pairs() * (interleaved_ ? 2 : 1)),
        slice_(static_cast<std::size_t>(neighbours_ ? 0 : rotary_)) {}

  // Rotates tokens [start, start + count), the rows of which lie `row_size` apart.
  HWY_INLINE void operator()(std::int64_t start, std::int64_t count, const C* rows,
                             std::int64_t row_size) {
    const std::int64_t batch = x_.shape[0], heads = x_.shape[1], seq = x_.shape[2];
    // Query heads share the mixture of their key head.
    const std::int64_t group = apart_ > 1 && apart_ < heads ? heads / apart_ : 1;
    for (std::int64_t sequence = 0; sequence < (shared_ ? batch : 1); ++sequence) {
      const auto b_of = [&](std::int64_t i) { return shared_ ? sequence : (start + i) / seq; };
      const auto t_of = [&](std::int64_t i) { return shared_ ? start + i : (start + i) % seq; };
      if (std::abs(x_.stride[1]) <= std::abs(x_.stride[2])) {
        // Heads lie within tokens: all heads of a token together, by one row.
        for (std::int64_t i = 0; i < count; ++i) {
          const C* const row = rows + i * row_size;
          if (group == 1) {
            Vectors(b_of(i), 0, t_of(i), 1, heads, row, head_step_);
            continue;
          }
          for (std::int64_t a = 0; a < apart_; ++a)
            Vectors(b_of(i), a * group, t_of(i), 1, group, row + a * head_step_, 0);
        }
        continue;
      }
      // Tokens lie within heads: of a head all tokens that one stride connects, each by its own row.
      const std::int64_t connected = shared_ || seq == 1 ? count : 1;
      const std::size_t axis = shared_ || seq > 1 ? 2 : 0;
      for (std::int64_t h = 0; h < heads; ++h) {
        const C* const row = rows + h / group * head_step_;
        for (std::int64_t i = 0; i < count; i += connected)
          Vectors(b_of(i), h, t_of(i), axis, connected, row + i * row_size, row_size);
      }
    }
  }

 private:
  // Rotates `count` vectors from (b, h, t) on along an axis, each by the row `row_step` further on.
  // Out of line: inlined at both calls, all kernels below would be compiled twice, and the loops around
  // the calls would take registers from theirs.
  HWY_NOINLINE void Vectors(std::int64_t b, std::int64_t h, std::int64_t t, std::size_t axis,
                            std::int64_t count, const C* row, std::int64_t row_step) {
    const T* x = static_cast<const T*>(x_.data) + x_.offset(b, h, t);
    T* out = static_cast<T*>(out_.data) + out_.offset(b, h, t);
    if (row_step == 0 && neighbours_ && count > 1) {
      return SameRow({x, out, count, x_.stride[axis], out_.stride[axis]}, row);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (neighbours_) {
        CopyBeside(x, out);
        Slice(x + first_, out + first_, row, ahead_bytes / static_cast<std::int64_t>(sizeof(T)));
      } else {
        Scattered(x, out, row);
      }
      x += x_.stride[axis];
      out += out_.stride[axis];
      row += row_step;
    }
  }

  // Copies the channels beside the rotated slice.
  HWY_INLINE void CopyBeside(const T* x, T* out) {
    if (in_place_) return;
    std::memcpy(out, x, static_cast<std::size_t>(first_) * sizeof(T));
    std::memcpy(out + first_ + rotary_, x + first_ + rotary_,
                static_cast<std::size_t>(last_) * sizeof(T));
  }

  HWY_INLINE void SameRow(Heads<T> heads, const C* row) {
    const auto each = [&heads](const auto& act) HWY_ATTR {
      for (std::int64_t h = 0; h < heads.count; ++h) {
        act(heads.x + h * heads.x_step, heads.out + h * heads.out_step);
      }
    };
    each([this](const T* x, T* out) HWY_ATTR { CopyBeside(x, out); });
    heads.x += first_;
    heads.out += first_;
    if (interleaved_) {
      const std::int64_t done = RotateHeadsInterleaved(heads, row, row + sines_, rotary_);
      if (done == rotary_) return;
      return each([&](const T* x, T* out) HWY_ATTR {
        RotateInterleaved(x + done, out + done, row + done, row + sines_ + done, rotary_ - done, 0);
      });
    }
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const C* const cosine = row + block * block_pairs_;
      const std::int64_t done = RotateHeadsHalves(heads, cosine, cosine + sines_, block_pairs_);
      const std::int64_t a = done, b = done + block_pairs_;
      if (done < block_pairs_) {
        each([&](const T* x, T* out) HWY_ATTR {
          RotateHalves(x + a, x + b, out + a, out + b, cosine + a, cosine + a + sines_,
                       block_pairs_ - done, 0);
        });
      }
      heads.x += 2 * block_pairs_;
      heads.out += 2 * block_pairs_;
    }
  }

  HWY_INLINE void Slice(const T* x, T* out, const C* row, std::int64_t ahead) {
    if (interleaved_) return RotateInterleaved(x, out, row, row + sines_, rotary_, ahead);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const std::int64_t a = 2 * block * block_pairs_, b = a + block_pairs_;
      const C* const cosine = row + block * block_pairs_;
      RotateHalves(x + a, x + b, out + a, out + b, cosine, cosine + sines_, block_pairs_, ahead);
    }
  }

  // Rotates a vector whose channels are not neighbours, by way of a buffer where they are.
  HWY_NOINLINE void Scattered(const T* x, T* out, const C* row) {
    const std::int64_t from = x_.stride[3], to = out_.stride[3];
    if (!in_place_) {
      for (std::int64_t i = 0; i < first_; ++i) out[i * to] = x[i * from];
      for (std::int64_t i = first_ + rotary_; i < x_.shape[3]; ++i) out[i * to] = x[i * from];
    }
    T* const slice = slice_.data();
    for (std::int64_t i = 0; i < rotary_; ++i) slice[i] = x[(first_ + i) * from];
    Slice(slice, slice, row, 0);
    for (std::int64_t i = 0; i < rotary_; ++i) out[(first_ + i) * to] = slice[i];
  }

  const Tensor x_, out_;
  const bool shared_, interleaved_, neighbours_, in_place_;
  const std::int64_t first_, rotary_, last_, blocks_, block_pairs_, sines_;
  const std::int64_t apart_, head_step_;  // heads that have rows of their own, and from row to row
  std::vector<T> slice_;
};

// The given angles of a token, of all heads that have their own; −angles to rotate back.
inline void ReadAngles(const RotateJob& job, std::int64_t token, double* angle) {
  const Tensor& from = job.angles;
  const std::int64_t seq = from.shape[2];
  const std::int64_t b = job.shared || from.shape[0] == 1 ? 0 : token / seq;
  for (std::int64_t h = 0; h < job.rule.rows; ++h) {
    for (std::int64_t r = 0; r < from.shape[3]; ++r) {
      const double radians =
          from.get(from.offset(b, from.shape[1] == 1 ? 0 : h, job.shared ? token : token % seq, r));
      *angle++ = job.rule.backward ? -radians : radians;
    }
  }
}

// Rows of angles that are given: a loop of its own, since the one over positions slows with all that is in it.
template <class C, class Put>
HWY_NOINLINE void MakeGivenRows(const RotateJob& job, std::int64_t first_token, std::int64_t count,
                                CosSinRows& cos_sin, double* angle, std::int64_t row_size,
                                Put put) {
  for (std::int64_t i = 0; i < count; ++i) {
    ReadAngles(job, first_token + i, angle);
    PutRow<C>(cos_sin, FactorsOfAngles(cos_sin, angle), 0, cos_sin.size,
              Put{put.cosine + i * row_size, put.sine + i * row_size});
  }
}

// Tokens whose sums are formed side by side.
constexpr std::int64_t mixed_tokens = 4;

// Sums of one vector of columns of a mixture, whose rows lie `step` apart, for up to mixed_tokens tokens, whose cosines, and
// then sines behind them by `size`, lie 2·size apart. They go to pair `to` of rows row_size apart.
template <class C, class Put>
HWY_INLINE void MixColumns(const double* cosine, const double* sine, std::int64_t step,
                           std::int64_t inputs, const double* base, std::int64_t size,
                           std::int64_t count, std::int64_t to, std::int64_t row_size,
                           const Put& put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const double *const b1 = base + (count > 1 ? 2 * size : 0),
                      *const b2 = base + (count > 2 ? 4 * size : 0),
                      *const b3 = base + (count > 3 ? 6 * size : 0);
  auto c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0, s0 = c0, s1 = c0, s2 = c0, s3 = c0;
  for (std::int64_t u = 0; u < inputs; ++u, cosine += step, sine += step) {
    const auto by_cosine = hn::LoadU(d, cosine), by_sine = hn::LoadU(d, sine);
    c0 = hn::MulAdd(hn::Set(d, base[u]), by_cosine, c0);
    s0 = hn::MulAdd(hn::Set(d, base[size + u]), by_sine, s0);
    c1 = hn::MulAdd(hn::Set(d, b1[u]), by_cosine, c1);
    s1 = hn::MulAdd(hn::Set(d, b1[size + u]), by_sine, s1);
    c2 = hn::MulAdd(hn::Set(d, b2[u]), by_cosine, c2);
    s2 = hn::MulAdd(hn::Set(d, b2[size + u]), by_sine, s2);
    c3 = hn::MulAdd(hn::Set(d, b3[u]), by_cosine, c3);
    s3 = hn::MulAdd(hn::Set(d, b3[size + u]), by_sine, s3);
  }
  const auto write = [&](std::int64_t token, auto c, auto s) HWY_ATTR {
    if (token >= count) return;
    Put{put.cosine + token * row_size, put.sine + token * row_size}(dc, to, As(d, C(), c),
                                                                    As(d, C(), s));
  };
  write(0, c0, s0);
  write(1, c1, s1);
  write(2, c2, s2);
  write(3, c3, s3);
}

// Rows of mixtures, of `count` tokens whose own cosines and sines are `base`. What a vector writes beyond its columns
// is written again by what comes behind it.
template <class C, class Put>
HWY_NOINLINE void MixRows(const CosSinRule& rule, const double* base, std::int64_t size,
                          std::int64_t count, std::int64_t row_size, Put put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Mix& mix = *rule.mix;
  const auto rest_cosine = As(d, C(), hn::Set(d, rule.amplitude));
  const auto rest_sine =
      As(d, C(), hn::Set(d, rule.amplitude * (rule.backward ? -mix.rest_sine : mix.rest_sine)));
  Scratch scratch;
  const std::int64_t of_head = mix.inputs * mix.outputs;
  // Less than a vector of columns is made one. The last vector of more begins where it ends with them.
  const bool narrow = mix.outputs < lanes;
  const std::int64_t step = narrow ? lanes : mix.outputs;
  double* const wide = narrow ? scratch.take_zeros<double>(2 * mix.inputs * step) : nullptr;
  for (std::int64_t h = 0; h < rule.mix_heads; ++h) {
    const std::int64_t head = mix.heads == 1 ? 0 : rule.mix_first + h, to = h * rule.pairs;
    const double* cosine = mix.cosine.data() + head * of_head;
    const double* sine = mix.sine.data() + head * of_head;
    if (narrow) {
      for (std::int64_t u = 0; u < mix.inputs; ++u) {
        std::copy_n(cosine + u * mix.outputs, mix.outputs, wide + u * step);
        std::copy_n(sine + u * mix.outputs, mix.outputs, wide + (mix.inputs + u) * step);
      }
      cosine = wide;
      sine = wide + mix.inputs * step;
    }
    for (std::int64_t done = 0; done < mix.outputs; done += lanes) {
      const std::int64_t i = narrow ? 0 : std::min(done, mix.outputs - lanes);
      for (std::int64_t t = 0; t < count; t += mixed_tokens)
        MixColumns<C>(cosine + i, sine + i, step, mix.inputs, base + t * 2 * size, size,
                      std::min(mixed_tokens, count - t), to + i, row_size,
                      Put{put.cosine + t * row_size, put.sine + t * row_size});
    }
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t i = mix.outputs; i < rule.pairs; i += lanes)
        Put{put.cosine + t * row_size, put.sine + t * row_size}(dc, to + i, rest_cosine, rest_sine);
  }
}

// Rows of mixtures of the cosines and sines at positions_of(i), a number an axis.
template <class C, class Put, class PositionsOf>
HWY_NOINLINE void MakeMixedRows(CosSinRows& cos_sin, std::int64_t count, double* base,
                                std::int64_t row_size, Put put, const PositionsOf& positions_of) {
  const std::int64_t size = cos_sin.size;
  for (std::int64_t i = 0; i < count; ++i) {
    double* const row = base + i * 2 * size;
    MakeRow<double>(cos_sin, positions_of(i), 0, size, Apart<double>{row, row + size});
  }
  MixRows<C>(cos_sin.rule, base, size, count, row_size, put);
}

template <class C>
void RotateAll(const RotateJob& job, std::int64_t first_token, std::int64_t last_token) {
  const Rotate& plan = *job.plan;
  CosSinRows cos_sin(job.rule);
  const bool doubled = plan.pairing == Pairing::interleaved;
  const Mix* const mix = job.rule.mix;
  const std::int64_t apart = job.rule.heads_with_rows() * job.rule.pairs;
  const std::int64_t sines =
      (doubled ? 2 : 1) * ((apart + overrun - 1) / overrun * overrun) + overrun;
  const std::int64_t row_size = 2 * sines;
  // As many rows as take half of a first cache of 32 KiB: the tensor passes through the other half.
  constexpr std::int64_t most_tokens = 16;
  constexpr auto room = static_cast<std::int64_t>(16 * 1024 / sizeof(C));
  const std::int64_t fitting =
      mix != nullptr ? most_tokens : std::clamp(room / row_size, std::int64_t{1}, most_tokens);
  const std::int64_t block = std::min(fitting, last_token - first_token);
  Scratch scratch;
  C* const rows = scratch.take_zeros<C>(block * row_size);

  const std::int64_t seq = job.x[0].shape[2];
  std::int64_t* const position = scratch.take<std::int64_t>(plan.axes);
  const bool given = static_cast<bool>(job.angles);
  double* const angle = given ? scratch.take_zeros<double>(cos_sin.size) : nullptr;
  double* const base =
      mix != nullptr ? scratch.take_zeros<double>(block * 2 * cos_sin.size) : nullptr;

  for (std::int64_t start = first_token; start < last_token; start += block) {
    const std::int64_t count = std::min(block, last_token - start);
    const auto position_of = [&](std::int64_t i, std::int64_t axis) {
      const std::int64_t b = job.shared ? 0 : (start + i) / seq;
      return job.positions->at(job.shared ? start + i : (start + i) % seq, b, axis);
    };
    // Inlined: a call that reads the captured numbers from memory cost one head 5 % of its speed.
    const auto make = [&]<class Put>(Put put) HWY_ATTR __attribute__((always_inline)) {
      const auto row = [&](std::int64_t i) {
        return Put{put.cosine + i * row_size, put.sine + i * row_size};
      };
      for (std::int64_t i = 0; i < count;) {
        for (std::int64_t a = 0; a < plan.axes; ++a) position[a] = position_of(i, a);
        const std::int64_t p = position[0];
        if (plan.axes == 1 && (p & 3) == 0 && count - i >= 4 && position_of(i + 1, 0) == p + 1 &&
            position_of(i + 2, 0) == p + 2 && position_of(i + 3, 0) == p + 3) {
          const Put puts[] = {row(i), row(i + 1), row(i + 2), row(i + 3)};
          MakeFourRows<C>(cos_sin, p, 0, cos_sin.size, puts);
          i += 4;
        } else {
          MakeRow<C>(cos_sin, position, 0, cos_sin.size, row(i));
          ++i;
        }
      }
    };
    const Doubled<C> doubled_rows{rows, rows + sines};
    const Apart<C> apart_rows{rows, rows + sines};
    if (given) {
      doubled ? MakeGivenRows<C>(job, start, count, cos_sin, angle, row_size, doubled_rows)
              : MakeGivenRows<C>(job, start, count, cos_sin, angle, row_size, apart_rows);
    } else if (mix != nullptr) {
      const auto positions_of = [&](std::int64_t i) {
        for (std::int64_t a = 0; a < plan.axes; ++a) position[a] = position_of(i, a);
        return position;
      };
      doubled ? MakeMixedRows<C>(cos_sin, count, base, row_size, doubled_rows, positions_of)
              : MakeMixedRows<C>(cos_sin, count, base, row_size, apart_rows, positions_of);
    } else if (doubled) {
      make(doubled_rows);
    } else {
      make(apart_rows);
    }
    for (int which = 0; which < job.count; ++which) {
      const Tensor& x = job.x[which];
      const auto act = [&]<class T>(T*) HWY_ATTR {
        Rotator<T>(job, which, sines)(start, count, rows, row_size);
      };
      if constexpr (sizeof(C) == sizeof(double)) {
        act(static_cast<double*>(nullptr));
      } else if (x.dtype == DType::f32) {
        act(static_cast<float*>(nullptr));
      } else if (x.dtype == DType::f16) {
        act(static_cast<Half*>(nullptr));
      } else {
        act(static_cast<BFloat16*>(nullptr));
      }
    }
  }
}

void RotateTokens(const RotateJob& job, std::int64_t first, std::int64_t last) {
  if (computes_in_double(job.x[0].dtype)) return RotateAll<double>(job, first, last);
  return RotateAll<float>(job, first, last);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(RotateTokens);

void rotate_tokens(const RotateJob& job, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(RotateTokens)(job, first, last);
}

}  // namespace posenc::detail
#endif
