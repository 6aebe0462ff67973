// The rotation kernel. For a block of tokens it makes rows of cos and sin in a buffer that stays in
// the first cache, then rotates every head of every token by them, in the order of memory: no table
// over positions exists, and what is read and written is the tensor alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/rotate.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "hwy/highway.h"
#include "src/kernels/ahead.h"
#include "src/kernels/cos_sin_rows-inl.h"
#include "src/kernels/elements-inl.h"
#include "src/kernels/mixed_rows-inl.h"
#include "src/kernels/rotate.h"
#include "src/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Padding after each row, in pairs, so that the last vector may overrun it.
constexpr std::int64_t overrun = CosSinRows<double>::lanes;

// Asks for what lies Ahead::distance behind these elements.
template <class T>
HWY_INLINE void FetchAhead(const T* from, std::int64_t count, Ask ask) {
  if (ask == Ask::no) return;
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(T));
  from += Ahead::distance / static_cast<std::int64_t>(sizeof(T));
  if (ask == Ask::first) {
    for (std::int64_t i = 0; i < count; i += line) Fetch(from + i);
  } else {
    for (std::int64_t i = 0; i < count; i += line) FetchToSecond(from + i);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Rotates interleaved pairs of bfloat16, as many as a vector of floats has lanes.
template <class D, class V>
HWY_INLINE void RotateWords(D d, const BFloat16* from, BFloat16* to, V c, V s) {
  V a, b;
  LoadPairs(d, from, a, b);
  StorePairs(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d, to);
}
#endif

// Rotates pairs (a[i], b[i]) by cos c[i] and sin s[i].
template <class T>
HWY_INLINE void RotateHalves(const T* a, const T* b, T* a_out, T* b_out, const Compute<T>* c,
                             const Compute<T>* s, std::int64_t pairs) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto rotate = [&](const T* from_a, const T* from_b, T* to_a, T* to_b, std::int64_t i)
                          HWY_ATTR {
                            const auto x = LoadElements(d, from_a), y = LoadElements(d, from_b);
                            const auto cosine = hn::LoadU(d, c + i), sine = hn::LoadU(d, s + i);
                            StoreResult(hn::NegMulAdd(y, sine, hn::Mul(x, cosine)), d, to_a);
                            StoreResult(hn::MulAdd(x, sine, hn::Mul(y, cosine)), d, to_b);
                          };
  std::int64_t i = 0;
  if constexpr (sizeof(T) < sizeof(Compute<T>)) {
    // 16-bit elements two vectors at a time: a cache line with AVX-512.
    for (; i + 2 * lanes <= pairs; i += 2 * lanes) {
      const auto x = LoadElements(d, a + i), y = LoadElements(d, b + i);
      const auto next_x = LoadElements(d, a + i + lanes), next_y = LoadElements(d, b + i + lanes);
      const auto cosine = hn::LoadU(d, c + i), sine = hn::LoadU(d, s + i);
      const auto next_cosine = hn::LoadU(d, c + i + lanes);
      const auto next_sine = hn::LoadU(d, s + i + lanes);
      StoreTwoResults(hn::NegMulAdd(y, sine, hn::Mul(x, cosine)),
                      hn::NegMulAdd(next_y, next_sine, hn::Mul(next_x, next_cosine)), d, a_out + i);
      StoreTwoResults(hn::MulAdd(x, sine, hn::Mul(y, cosine)),
                      hn::MulAdd(next_x, next_sine, hn::Mul(next_y, next_cosine)), d, b_out + i);
    }
  }
  for (; i + lanes <= pairs; i += lanes) {
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

// Rotates pairs (x[2i], x[2i + 1]) by cos c[i] and sin s[i], `channels` of them: with each cos and
// sin standing twice, one exchange of neighbours and one multiply-add do for both channels.
template <class T>
HWY_INLINE void RotateInterleaved(const T* x, T* out, const Compute<T>* c, const Compute<T>* s,
                                  std::int64_t channels) {
#if HWY_TARGET == HWY_SCALAR
  // A vector of one lane has no neighbour to exchange with.
  const hn::CappedTag<Compute<T>, 1> d;
  for (std::int64_t i = 0; i < channels; i += 2) {
    const auto a = LoadElements(d, x + i), b = LoadElements(d, x + i + 1);
    const auto cosine = hn::Set(d, c[i / 2]), sine = hn::Set(d, s[i / 2]);
    StoreResult(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, out + i);
    StoreResult(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, out + i + 1);
  }
#else
  using D = hn::ScalableTag<Compute<T>>;
  constexpr D d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto rotate = [&](const T* from, T* to, std::int64_t i) HWY_ATTR {
    if constexpr (words_are_pairs<T>)
      return RotateWords(d, from, to, hn::LoadU(d, c + i / 2), hn::LoadU(d, s + i / 2));
    const EachTwice<D, hn::Vec<D>> row(d, hn::LoadU(d, c + i / 2), hn::LoadU(d, s + i / 2));
    const auto a = LoadElements(d, from), b = LoadElements(d, from + lanes);
    StoreTwoResults(hn::MulAdd(hn::Reverse2(d, a), row.s[0], hn::Mul(a, row.c[0])),
                    hn::MulAdd(hn::Reverse2(d, b), row.s[1], hn::Mul(b, row.c[1])), d, to);
  };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= channels; i += 2 * lanes) rotate(x + i, out + i, i);
  if (i == channels) return;
  T rest[2 * lanes] = {};
  const auto bytes = static_cast<std::size_t>(channels - i) * sizeof(T);
  std::memcpy(rest, x + i, bytes);
  rotate(rest, rest, i);
  std::memcpy(out + i, rest, bytes);
#endif
}

// The heads of a token, which share a row of cos and sin.
template <class T>
struct Heads {
  const T* x;
  T* out;
  std::int64_t count, x_step, out_step;
  Ask ask;  // for memory ahead
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

// In which order cos and sin of pairs stand in registers.
enum class Order { given, twice, words };

// Cos and sin of some pairs, kept in registers across heads: reloading costs 10 %, because the
// loads alias (4 KiB) with the stores just made.
template <class C, int count>
struct RowPart {
  static constexpr hn::ScalableTag<C> d = {};
  static constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  static constexpr std::int64_t size = count * lanes;
  hn::Vec<hn::ScalableTag<C>> c[count], s[count];

  // Of `count` vectors of pairs or, where each stands twice, of half as many. By words: even pairs,
  // then odd ones.
  HWY_INLINE RowPart(const C* cosine, const C* sine, Order order) {
    for (int r = 0; r < count && order == Order::given; ++r) {
      c[r] = hn::LoadU(d, cosine + r * lanes);
      s[r] = hn::LoadU(d, sine + r * lanes);
    }
    for (int r = 0; r < count && order == Order::words; r += 2) {
      hn::LoadInterleaved2(d, cosine + r * lanes, c[r], c[r + 1]);
      hn::LoadInterleaved2(d, sine + r * lanes, s[r], s[r + 1]);
    }
    for (int r = 0; r < count && order == Order::twice; r += 2) {
      const EachTwice<hn::ScalableTag<C>, hn::Vec<hn::ScalableTag<C>>> both(
          d, hn::LoadU(d, cosine + r * lanes / 2), hn::LoadU(d, sine + r * lanes / 2));
      for (int half = 0; half < 2; ++half) {
        c[r + half] = both.c[half];
        s[r + half] = both.s[half];
      }
    }
  }
};

// Calls act(x, out) for every head, and asks for `channels` of each ahead.
template <class T, class Act>
HWY_INLINE void ForHeads(const Heads<T>& heads, std::int64_t channels, const Act& act) {
  const T* x = heads.x;
  T* out = heads.out;
  for (std::int64_t h = 0; h < heads.count; ++h, x += heads.x_step, out += heads.out_step) {
    FetchAhead(out, channels, heads.ask);
    act(x, out);
  }
}

// Two vectors of elements that follow each other, in the order that suits their width: that of
// Order::words, or as given.
template <class T, class D, class V>
HWY_INLINE void LoadBoth(D d, const T* from, V& first, V& second) {
  if constexpr (words_are_pairs<T>) {
    LoadPairs(d, from, first, second);
  } else {
    first = LoadElements(d, from);
    second = LoadElements(d, from + hn::Lanes(d));
  }
}
template <class T, class D, class V>
HWY_INLINE void StoreBoth(V first, V second, D d, T* to) {
  if constexpr (words_are_pairs<T>) {
    StorePairs(first, second, d, to);
  } else {
    StoreTwoResults(first, second, d, to);
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
    const Row row(cosine + i, sine + i, words_are_pairs<T> ? Order::words : Order::given);
    ForHeads(heads, i == 0 ? 2 * pairs : 0, [&](const T* x, T* out) HWY_ATTR {
      const T* const y = x + i + pairs;
      T* const y_out = out + i + pairs;
      x += i;
      out += i;
#pragma GCC unroll 8
      for (int r = 0; r < count; r += 2) {
        const std::int64_t at = r * Row::lanes;
        hn::Vec<decltype(d)> a, b, e, f;
        LoadBoth(d, x + at, a, e);
        LoadBoth(d, y + at, b, f);
        StoreBoth(hn::NegMulAdd(b, row.s[r], hn::Mul(a, row.c[r])),
                  hn::NegMulAdd(f, row.s[r + 1], hn::Mul(e, row.c[r + 1])), d, out + at);
        StoreBoth(hn::MulAdd(a, row.s[r], hn::Mul(b, row.c[r])),
                  hn::MulAdd(e, row.s[r + 1], hn::Mul(f, row.c[r + 1])), d, y_out + at);
      }
    });
  }
  return i;
}

template <class T>
HWY_INLINE std::int64_t RotateHeadsInterleaved(const Heads<T>& heads, const Compute<T>* cosine,
                                               const Compute<T>* sine, std::int64_t channels) {
  if constexpr (words_are_pairs<T>) {
    constexpr int count = 4;
    using Row = RowPart<Compute<T>, count>;
    constexpr auto d = Row::d;
    std::int64_t i = 0;
    for (; i + 2 * Row::size <= channels; i += 2 * Row::size) {
      const Row row(cosine + i / 2, sine + i / 2, Order::given);
      ForHeads(heads, i == 0 ? channels : 0, [&](const T* x, T* out) HWY_ATTR {
#pragma GCC unroll 4
        for (int r = 0; r < count; ++r) {
          const std::int64_t at = i + 2 * r * Row::lanes;
          RotateWords(d, x + at, out + at, row.c[r], row.s[r]);
        }
      });
    }
    return i;
  }
  // Two vectors each: cos and sin take 16 of AVX-512's 32 registers, or 8 of 16.
  constexpr int count = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
  using Row = RowPart<Compute<T>, count>;
  constexpr auto d = Row::d;
  std::int64_t i = 0;
  for (; i + Row::size <= channels; i += Row::size) {
    const Row row(cosine + i / 2, sine + i / 2, Order::twice);
    ForHeads(heads, i == 0 ? channels : 0, [&](const T* x, T* out) HWY_ATTR {
      x += i;
      out += i;
#pragma GCC unroll 8
      for (int r = 0; r < count; r += 2) {
        const std::int64_t at = r * Row::lanes, next = at + Row::lanes;
        const auto a = LoadElements(d, x + at), b = LoadElements(d, x + next);
        StoreTwoResults(hn::MulAdd(hn::Reverse2(d, a), row.s[r], hn::Mul(a, row.c[r])),
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
  // `sines`: the distance from a row's cos to its sin. `ask`: for memory ahead.
  Rotator(const RotateJob& job, int which, std::int64_t sines, Ask ask)
      : x_(job.x[which]),
        out_(job.out[which]),
        shared_(job.shared),
        interleaved_(job.plan->slice.pairing == Pairing::interleaved),
        neighbours_(x_.stride[3] == 1 && out_.stride[3] == 1),
        in_place_(x_.data == out_.data),
        ask_(ask),
        first_(job.plan->slice.first_dim),
        rotary_(job.plan->slice.rotary_dim),
        last_(x_.shape[3] - first_ - rotary_),
        blocks_(job.plan->slice.blocks),
        block_pairs_(job.plan->pairs() / blocks_),
        sines_(sines),
        apart_(job.rule.heads_with_rows()),
        head_step_(apart_ == 1 ? 0 : job.plan->pairs()),
        far_(x_.size() * static_cast<std::int64_t>(sizeof(T)) >= Ahead::least_bytes),
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
      if (heads > 1 && std::abs(x_.stride[1]) <= std::abs(x_.stride[2])) {
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
      // Tokens lie within heads: of a head all tokens that one stride connects, each by its own
      // row.
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
  // Out of line: inlined at both calls, all kernels below would be compiled twice, and the loops
  // around the calls would take registers from theirs.
  HWY_NOINLINE void Vectors(std::int64_t b, std::int64_t h, std::int64_t t, std::size_t axis,
                            std::int64_t count, const C* row, std::int64_t row_step) {
    const T* x = static_cast<const T*>(x_.data) + x_.offset(b, h, t);
    T* out = static_cast<T*>(out_.data) + out_.offset(b, h, t);
    if (row_step == 0 && neighbours_ && count > 1) {
      return SameRow({x, out, count, x_.stride[axis], out_.stride[axis], ask_}, row);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (neighbours_) {
        CopyBeside(x, out);
        FetchAhead(out + first_, rotary_, ask_);
        Slice(x + first_, out + first_, row);
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
    // Of narrow vectors registers hold so few pairs twice that a head would be read in four parts.
    if constexpr (HWY_TARGET > HWY_AVX3 && HWY_ARCH_X86 && sizeof(T) == sizeof(C)) {
      if (far_ && interleaved_) {
        return each([&](const T* x, T* out) HWY_ATTR {
          CopyBeside(x, out);
          FetchAhead(out + first_, rotary_, heads.ask);
          Slice(x + first_, out + first_, row);
        });
      }
    }
    each([this](const T* x, T* out) HWY_ATTR { CopyBeside(x, out); });
    heads.x += first_;
    heads.out += first_;
    if (interleaved_) {
      const std::int64_t done = RotateHeadsInterleaved(heads, row, row + sines_, rotary_);
      if (done == rotary_) return;
      return each([&](const T* x, T* out) HWY_ATTR {
        RotateInterleaved(x + done, out + done, row + done / 2, row + sines_ + done / 2,
                          rotary_ - done);
      });
    }
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const C* const cosine = row + block * block_pairs_;
      const std::int64_t done = RotateHeadsHalves(heads, cosine, cosine + sines_, block_pairs_);
      const std::int64_t a = done, b = done + block_pairs_;
      if (done < block_pairs_) {
        each([&](const T* x, T* out) HWY_ATTR {
          RotateHalves(x + a, x + b, out + a, out + b, cosine + a, cosine + a + sines_,
                       block_pairs_ - done);
        });
      }
      heads.x += 2 * block_pairs_;
      heads.out += 2 * block_pairs_;
    }
  }

  HWY_INLINE void Slice(const T* x, T* out, const C* row) {
    if (interleaved_) return RotateInterleaved(x, out, row, row + sines_, rotary_);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const std::int64_t a = 2 * block * block_pairs_, b = a + block_pairs_;
      const C* const cosine = row + block * block_pairs_;
      RotateHalves(x + a, x + b, out + a, out + b, cosine, cosine + sines_, block_pairs_);
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
    Slice(slice, slice, row);
    for (std::int64_t i = 0; i < rotary_; ++i) out[(first_ + i) * to] = slice[i];
  }

  const Tensor x_, out_;
  const bool shared_, interleaved_, neighbours_, in_place_;
  const Ask ask_;
  const std::int64_t first_, rotary_, last_, blocks_, block_pairs_, sines_;
  const std::int64_t apart_, head_step_;  // heads that have rows of their own, and from row to row
  const bool far_;                        // in memory, beyond the caches
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

// Rows of angles that are given: a loop of its own, since the one over positions slows with all
// that is in it.
template <class C>
HWY_NOINLINE void MakeGivenRows(const RotateJob& job, std::int64_t first_token, std::int64_t count,
                                CosSinRows<double>& cos_sin, double* angle, C* rows,
                                std::int64_t row_size) {
  for (std::int64_t i = 0; i < count; ++i) {
    ReadAngles(job, first_token + i, angle);
    PutRow<C>(cos_sin, FactorsOfAngles(cos_sin, angle), 0, cos_sin.size,
              Apart<C>{rows + i * row_size, rows + i * row_size + row_size / 2});
  }
}

// Computes in C, with rows whose factors are F.
template <class C, class F>
void RotateAll(const RotateJob& job, std::int64_t first_token, std::int64_t last_token) {
  const Rotate& plan = *job.plan;
  CosSinRows<F> cos_sin(job.rule);
  const Mix* const mix = job.rule.mix;
  const std::int64_t apart = job.rule.heads_with_rows() * job.rule.pairs;
  const std::int64_t sines = (apart + overrun - 1) / overrun * overrun + overrun;
  const std::int64_t row_size = 2 * sines;
  // As many rows as take half of a first cache of 32 KiB, eight rather than a few less: the tensor
  // passes through the other half.
  constexpr auto room = static_cast<std::int64_t>(16 * 1024 / sizeof(C));
  const std::int64_t fit = mix != nullptr ? 16 : std::max(room / row_size, std::int64_t{1});
  const std::int64_t block = std::min(fit >= 16  ? std::int64_t{16}
                                      : fit >= 6 ? std::int64_t{8}
                                                 : fit,
                                      last_token - first_token);
  Scratch scratch;
  C* const rows = scratch.take_zeros<C>(block * row_size);

  const std::int64_t seq = job.x[0].shape[2];
  std::int64_t* const position = scratch.take<std::int64_t>(plan.frequencies.axes);
  const bool given = static_cast<bool>(job.angles);
  double* const angle = given ? scratch.take_zeros<double>(cos_sin.size) : nullptr;
  double* const base =
      mix != nullptr ? scratch.take_zeros<double>(block * 2 * cos_sin.size) : nullptr;

  Ahead ahead(Loop::rotation, (last_token - first_token) * job.token_bytes());
  for (std::int64_t start = first_token, count; start < last_token; start += count) {
    const auto position_of = [&](std::int64_t i, std::int64_t axis) {
      const std::int64_t b = job.shared ? 0 : (start + i) / seq;
      return job.positions->at(job.shared ? start + i : (start + i) % seq, b, axis);
    };
    // A range is cut so that the next blocks are whole eights.
    count = std::min(block, last_token - start);
    if (!given && plan.frequencies.axes == 1 && count == block && block >= 8)
      if (const std::int64_t lead = (5 - position_of(0, 0)) & 7; lead > 0) count -= 8 - lead;
    const auto row = [&](std::int64_t i) {
      return Apart<C>{rows + i * row_size, rows + i * row_size + sines};
    };
    if (given) {
      if constexpr (sizeof(F) == sizeof(double))
        MakeGivenRows<C>(job, start, count, cos_sin, angle, rows, row_size);
    } else if (mix != nullptr) {
      const auto positions_of = [&](std::int64_t i) {
        for (std::int64_t a = 0; a < plan.frequencies.axes; ++a) position[a] = position_of(i, a);
        return position;
      };
      if constexpr (sizeof(F) == sizeof(double))
        MakeMixedRows<C>(cos_sin, count, base, row_size, row(0), positions_of);
    }
    for (std::int64_t i = 0, together; i < count && !given && mix == nullptr; i += together) {
      together = 1;
      if (plan.frequencies.axes == 1)
        together = RowsTogether(count - i, [&](std::int64_t r) { return position_of(i + r, 0); });
      for (std::int64_t a = 0; a < plan.frequencies.axes; ++a) position[a] = position_of(i, a);
      if (together == 1) {
        MakeRow<C>(cos_sin, position, 0, cos_sin.size, row(i));
        continue;
      }
      const Apart<C> put[] = {row(i),     row(i + 1), row(i + 2), row(i + 3),
                              row(i + 4), row(i + 5), row(i + 6), row(i + 7)};
      MakeEightRows<C>(cos_sin, position[0], 0, cos_sin.size, put);
    }
    const Ask ask = ahead(count * job.token_bytes());
    for (int which = 0; which < job.count; ++which) {
      const Tensor& x = job.x[which];
      const auto act = [&]<class T>(T*) HWY_ATTR {
        Rotator<T>(job, which, sines, ask)(start, count, rows, row_size);
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

#if HWY_TARGET != HWY_SCALAR

// Rotates pairs by cos and sin as they are made. In the order of operations of RotateHalves() and
// RotateInterleaved(), since a number must not depend on how many heads there are.
template <class T, bool interleaved>
struct Rotated {
  const T* x;
  T* out;
  std::int64_t pairs;
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    const auto next = static_cast<std::int64_t>(hn::Lanes(d));
    if constexpr (interleaved && words_are_pairs<T>) {
      RotateWords(d, x + 2 * i, out + 2 * i, c, s);
    } else if constexpr (interleaved) {
      const EachTwice<D, V> twice(d, c, s);
      const auto a = LoadElements(d, x + 2 * i), b = LoadElements(d, x + 2 * i + next);
      StoreTwoResults(hn::MulAdd(hn::Reverse2(d, a), twice.s[0], hn::Mul(a, twice.c[0])),
                      hn::MulAdd(hn::Reverse2(d, b), twice.s[1], hn::Mul(b, twice.c[1])), d,
                      out + 2 * i);
    } else {
      const auto a = LoadElements(d, x + i), b = LoadElements(d, x + pairs + i);
      StoreResult(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, out + i);
      StoreResult(hn::MulAdd(a, s, hn::Mul(b, c)), d, out + pairs + i);
    }
  }
};

// Halves of bfloat16: one shuffle packs two vectors.
template <class T>
struct WideRotated : Rotated<T, false> {
  static constexpr bool wide = true;
  using Rotated<T, false>::operator();
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s, V next_c, V next_s) const {
    const auto further = i + static_cast<std::int64_t>(hn::Lanes(d));
    const T* const y = this->x + this->pairs;
    const auto a = LoadElements(d, this->x + i), b = LoadElements(d, y + i);
    const auto e = LoadElements(d, this->x + further), f = LoadElements(d, y + further);
    StoreTwoResults(hn::NegMulAdd(b, s, hn::Mul(a, c)),
                    hn::NegMulAdd(f, next_s, hn::Mul(e, next_c)), d, this->out + i);
    StoreTwoResults(hn::MulAdd(a, s, hn::Mul(b, c)), hn::MulAdd(e, next_s, hn::Mul(f, next_c)), d,
                    this->out + this->pairs + i);
  }
};

// Whether each row serves one vector alone: then it goes from registers to the rotation and is
// never stored.
HWY_INLINE bool rotates_directly(const RotateJob& job) {
  const Rotate& plan = *job.plan;
  const Tensor &x = job.x[0], &out = job.out[0];
  return job.count == 1 && x.shape[1] == 1 && job.rule.rows == 1 && job.rule.mix == nullptr &&
         plan.frequencies.axes == 1 && !job.angles && plan.slice.blocks == 1 &&
         plan.pairs() % CosSinRows<float>::lanes == 0 && plan.pairs() > 0 && x.stride[3] == 1 &&
         out.stride[3] == 1 && (x.data == out.data || plan.slice.rotary_dim == x.shape[3]) &&
         (!job.shared || x.shape[0] == 1);
}

template <class T, class F, bool interleaved>
void RotateDirectly(const RotateJob& job, std::int64_t first_token, std::int64_t last_token) {
  using Put =
      std::conditional_t<sizeof(T) == 2 && !interleaved, WideRotated<T>, Rotated<T, interleaved>>;
  const Rotate& plan = *job.plan;
  const Tensor &x = job.x[0], &out = job.out[0];
  const std::int64_t seq = x.shape[2], pairs = plan.pairs();
  CosSinRows<F> cos_sin(job.rule);
  Ahead ahead(Loop::rotation, (last_token - first_token) * job.token_bytes());
  // A division by seq takes as long as eight pairs: one sequence needs none.
  const auto b_of = [&](std::int64_t token) { return job.shared ? 0 : token / seq; };
  const auto position_of = [&](std::int64_t token) {
    const std::int64_t b = b_of(token);
    return job.positions->at(token - b * seq, b, 0);
  };
  const auto put_of = [&](std::int64_t token) {
    const std::int64_t b = b_of(token), t = token - b * seq;
    return Put{static_cast<const T*>(x.data) + x.offset(b, 0, t) + plan.slice.first_dim,
               static_cast<T*>(out.data) + out.offset(b, 0, t) + plan.slice.first_dim, pairs};
  };
  for (std::int64_t token = first_token, count; token < last_token; token += count) {
    count =
        RowsTogether(last_token - token, [&](std::int64_t r) { return position_of(token + r); });
    const Ask ask = ahead(count * job.token_bytes());
    for (std::int64_t r = 0; ask != Ask::no && r < count; ++r)
      FetchAhead(put_of(token + r).out, plan.slice.rotary_dim, ask);
    const std::int64_t position = position_of(token);
    if (count == 1) {
      MakeRow<float>(cos_sin, &position, 0, pairs, put_of(token));
      continue;
    }
    const Put put[] = {put_of(token),     put_of(token + 1), put_of(token + 2), put_of(token + 3),
                       put_of(token + 4), put_of(token + 5), put_of(token + 6), put_of(token + 7)};
    MakeEightRows<float>(cos_sin, position, 0, pairs, put);
  }
}

#endif

void FloatRows(const CosSinRule& rule, std::span<const std::int64_t> positions, float* to) {
  CosSinRows<float> cos_sin(rule);
  for (const std::int64_t position : positions) {
    MakeRow<float>(cos_sin, &position, 0, cos_sin.size, Apart<float>{to, to + cos_sin.size});
    to += 2 * cos_sin.size;
  }
}

void RotateTokens(const RotateJob& job, std::int64_t first, std::int64_t last) {
  const DType dtype = job.x[0].dtype;
  if (computes_in_double(dtype)) return RotateAll<double, double>(job, first, last);
#if HWY_TARGET != HWY_SCALAR
  if (rotates_directly(job)) {
    const bool floats = has_float_factors(dtype, job.rule);
    return with_element(dtype, [&]<class T>(T*) HWY_ATTR {
      using F = std::conditional_t<sizeof(T) == 2, float, double>;
      if constexpr (sizeof(T) < sizeof(double)) {
        const bool interleaved = job.plan->slice.pairing == Pairing::interleaved;
        if (!floats) {
          interleaved ? RotateDirectly<T, double, true>(job, first, last)
                      : RotateDirectly<T, double, false>(job, first, last);
        } else {
          interleaved ? RotateDirectly<T, F, true>(job, first, last)
                      : RotateDirectly<T, F, false>(job, first, last);
        }
      }
    });
  }
#endif
  if (has_float_factors(dtype, job.rule)) return RotateAll<float, float>(job, first, last);
  RotateAll<float, double>(job, first, last);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(FloatRows);
HWY_EXPORT(RotateTokens);

void float_rows(const CosSinRule& rule, std::span<const std::int64_t> positions, float* to) {
  HWY_DYNAMIC_DISPATCH(FloatRows)(rule, positions, to);
}

void rotate_tokens(const RotateJob& job, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(RotateTokens)(job, first, last);
}

}  // namespace posenc::detail
#endif
