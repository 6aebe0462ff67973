// The kernel of what is added to embeddings. Waves that go to neighbouring channels are written, or
// added, from registers (AddDirectly). All else is made in a buffer that stays in the first cache,
// a token's vector at a time, then written or added for every sequence that shares it (AddAll).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/add.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/kernels/add.h"
#include "src/kernels/ahead.h"
#include "src/kernels/cos_sin_rows-inl.h"
#include "src/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One channel of a tensor of any dtype: the slow way, for channels that are not neighbours.
template <class C>
HWY_INLINE C Channel(const Tensor& tensor, std::int64_t offset) {
  return static_cast<C>(tensor.get(offset));
}

// Whether a table is so large that it would only drive other data out of the caches: it goes past
// them.
HWY_INLINE bool streams(const AddJob& job) {
  return !job.x &&
         job.out.size() * static_cast<std::int64_t>(size_of(job.out.dtype)) >= streamed_bytes;
}
HWY_INLINE bool aligned(const void* to) { return reinterpret_cast<std::uintptr_t>(to) % 64 == 0; }

// out[i] = x[i] · scale + vector[i], or the vector alone where there is no x. Asks for the memory
// of the next token, `ahead` elements on, which then arrives while that token's vector is made.
template <class T, class How = Kept>
HWY_INLINE void Write(const T* x, Compute<T> scale, const Compute<T>* vector, T* out,
                      std::int64_t count, std::int64_t ahead) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scales = hn::Set(d, scale);
  std::int64_t i = 0;
  if (x == nullptr) {
    for (; i + lanes <= count; i += lanes) {
      if (std::is_same_v<How, Kept>) Fetch(out + i + ahead);
      StoreElements<How>(hn::LoadU(d, vector + i), d, out + i);
    }
  } else {
    for (; i + lanes <= count; i += lanes) {
      Fetch(out + i + ahead);
      StoreElements(hn::MulAdd(LoadElements(d, x + i), scales, hn::LoadU(d, vector + i)), d,
                    out + i);
    }
  }
  if (i == count) return;
  T rest[hn::MaxLanes(d)] = {};
  const auto bytes = static_cast<std::size_t>(count - i) * sizeof(T);
  auto sum = hn::LoadU(d, vector + i);
  if (x != nullptr) {
    std::memcpy(rest, x + i, bytes);
    sum = hn::MulAdd(LoadElements(d, rest), scales, sum);
  }
  StoreElements(sum, d, rest);
  std::memcpy(out + i, rest, bytes);
}

// vector = a learned row, converted to what is computed with.
template <class C>
HWY_INLINE void ReadRow(const Tensor& table, std::int64_t row, std::int64_t count, C* vector) {
  const std::int64_t start = table.offset(row), step = table.stride[1];
  if (step != 1) {
    for (std::int64_t i = 0; i < count; ++i) vector[i] = Channel<C>(table, start + i * step);
    return;
  }
  const auto read = [&]<class T>(const T* from) HWY_ATTR {
    const hn::ScalableTag<C> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(LoadElements(d, from + i), d, vector + i);
    T rest[hn::MaxLanes(d)] = {};
    if (i == count) return;
    std::memcpy(rest, from + i, static_cast<std::size_t>(count - i) * sizeof(T));
    hn::StoreU(LoadElements(d, rest), d, vector + i);
  };
  if constexpr (sizeof(C) == sizeof(double)) {
    read(static_cast<const double*>(table.data) + start);
  } else if (table.dtype == DType::f32) {
    read(static_cast<const float*>(table.data) + start);
  } else if (table.dtype == DType::f16) {
    read(static_cast<const Half*>(table.data) + start);
  } else {
    read(static_cast<const BFloat16*>(table.data) + start);
  }
}

// Writes one token of one sequence.
template <class C>
HWY_INLINE void WriteToken(const AddJob& job, std::int64_t b, std::int64_t t, const C* vector) {
  const Tensor &x = job.x, &out = job.out;
  const std::int64_t width = out.shape[2], to = out.offset(b, t), from = x ? x.offset(b, t) : 0;
  const auto scale = static_cast<C>(job.part->embedding_scale);
  if (out.stride[2] != 1 || (x && x.stride[2] != 1)) {
    for (std::int64_t i = 0; i < width; ++i) {
      C sum = vector[i];
      if (x) sum += Channel<C>(x, from + i * x.stride[2]) * scale;
      out.set(to + i * out.stride[2], static_cast<double>(sum));
    }
    return;
  }
  const auto write = [&]<class T>(T* start) HWY_ATTR {
    if (streams(job) && aligned(start + to)) {
      return Write<T, Streamed>(nullptr, scale, vector, start + to, width, 0);
    }
    Write<T>(x ? static_cast<const T*>(x.data) + from : nullptr, scale, vector, start + to, width,
             out.stride[1]);
  };
  if constexpr (sizeof(C) == sizeof(double)) {
    write(static_cast<double*>(out.data));
  } else if (out.dtype == DType::f32) {
    write(static_cast<float*>(out.data));
  } else if (out.dtype == DType::f16) {
    write(static_cast<Half*>(out.data));
  } else {
    write(static_cast<BFloat16*>(out.data));
  }
}

// Room for `count` numbers, and padding that the last vector may overrun.
template <class C>
AlignedDoubles Buffer(std::int64_t count) {
  return AlignedDoubles(
      (count + 2 * CosSinRows<double>::lanes) * static_cast<std::int64_t>(sizeof(C)) / 8 + 1);
}

// Writes a row as Put does, and meanwhile asks for the memory that it will be copied to.
template <class Put>
struct Fetching {
  Put put;
  const char* to;
  std::int64_t bytes;  // of a pair
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    Fetch(to + i * bytes);
    put(d, i, c, s);
  }
};

// Makes the waves of one position after another, in `vector`.
template <class C, class F>
class WaveMaker {
 public:
  WaveMaker(const Waves& waves, C* vector)
      : waves_(waves),
        cos_sin_(CosSinRule::of(waves)),
        pairs_(cos_sin_.count),
        vector_(vector),
        apart_memory_(Buffer<C>(2 * cos_sin_.size)),
        apart_(reinterpret_cast<C*>(apart_memory_.data())) {}

  // For an element at `to`, `size` bytes apart from the next.
  HWY_INLINE void operator()(std::int64_t position, const void* to, std::int64_t size) {
    const auto fetching = [&]<class Put>(Put put) HWY_ATTR {
      return Fetching<Put>{put, static_cast<const char*>(to), 2 * size};
    };
    const std::int64_t row = position + waves_.row_offset, width = waves_.width;
    if (waves_.zero_row >= 0 && row == waves_.zero_row) {
      std::fill_n(vector_, width, C(0));
      return;
    }
    std::int64_t end = 2 * pairs_;
    if (waves_.layout == WaveLayout::interleaved) {
      MakeRow<C>(cos_sin_, &row, 0, cos_sin_.size, fetching(Alternating<C>{vector_}));
    } else {
      C* const cosine = apart_ + cos_sin_.size;
      MakeRow<C>(cos_sin_, &row, 0, cos_sin_.size, fetching(Apart<C>{cosine, apart_}));
      std::copy_n(apart_, pairs_, vector_);
      std::copy_n(cosine, std::min(pairs_, width - pairs_), vector_ + pairs_);
    }
    if (end < width) std::fill(vector_ + end, vector_ + width, C(0));
  }

 private:
  const Waves& waves_;
  CosSinRows<F> cos_sin_;
  std::int64_t pairs_;
  C* vector_;
  AlignedDoubles apart_memory_;
  C* apart_;
};

// Makes the waves of real positions, in `vector`: an angle is formed in double, and each row by
// itself.
template <class C>
class RealWaveMaker {
 public:
  RealWaveMaker(const Waves& waves, C* vector)
      : waves_(waves),
        cos_sin_({.axes = 0,
                  .pairs = waves.pairs(),
                  .swapped = waves.cosine_first,
                  .amplitude = waves.amplitude}),
        vector_(vector),
        angle_(cos_sin_.size),
        apart_memory_(Buffer<C>(2 * cos_sin_.size)),
        apart_(reinterpret_cast<C*>(apart_memory_.data())) {}

  HWY_INLINE void operator()(const Tensor& at, std::int64_t b, std::int64_t t) {
    const std::int64_t pairs = cos_sin_.count, width = waves_.width, size = cos_sin_.size;
    const double first = Position(at, b, t, 0);
    if (waves_.zero_row >= 0 && first == static_cast<double>(waves_.zero_row)) {
      std::fill_n(vector_, width, C(0));
      return;
    }
    double* const angle = angle_.data();
    for (std::int64_t a = 0; a < waves_.axes; ++a) {
      const double p = Position(at, b, t, a) * (waves_.cosine_first ? -1 : 1);
      const double* const frequency = waves_.frequency.data() + a * pairs;
      for (std::int64_t r = 0; r < pairs; ++r)
        angle[r] = std::fma(p, frequency[r], a == 0 ? 0 : angle[r]);
    }
    const Factors<double> row = FactorsOfAngles(cos_sin_, angle);
    if (waves_.layout == WaveLayout::interleaved) {
      PutRow<C>(cos_sin_, row, 0, size, Alternating<C>{vector_});
    } else {
      C *const sine = apart_, *const cosine = apart_ + size;
      PutRow<C>(cos_sin_, row, 0, size, Apart<C>{cosine, sine});
      std::int64_t channel = 0, pair = 0;
      const auto block = [&](std::int64_t count, std::int64_t seconds) {
        std::copy_n(sine + pair, count, vector_ + channel);
        std::copy_n(cosine + pair, seconds, vector_ + channel + count);
        channel += 2 * count;
        pair += count;
      };
      for (const std::int64_t each : waves_.blocks) block(each / 2, each / 2);
      if (waves_.blocks.empty()) block(pairs, std::min(pairs, width - pairs));
    }
    if (2 * pairs < width) std::fill(vector_ + 2 * pairs, vector_ + width, C(0));
  }

 private:
  HWY_INLINE double Position(const Tensor& at, std::int64_t b, std::int64_t t,
                             std::int64_t axis) const {
    return at.get(at.offset(axis, b, t)) + static_cast<double>(waves_.row_offset);
  }

  const Waves& waves_;
  CosSinRows<double> cos_sin_;
  C* vector_;
  AlignedDoubles angle_;
  AlignedDoubles apart_memory_;
  C* apart_;
};

#if HWY_TARGET != HWY_SCALAR

// Where waves go from registers: Alone writes them there, Sum adds them to the embedding.
template <class T>
struct Place {
  const T* x;  // null where nothing is added
  float scale;
  T* out;
  const T*
      next;  // of the row that follows, asked for meanwhile; `out` itself where that does not pay
  std::int64_t cosine;  // from a sine to its cosine, where they are apart
};
template <class T, bool interleaved>
struct Sum : Place<T> {
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    if constexpr (interleaved && words_are_pairs<T>) {
      V first, second;
      LoadPairs(d, this->x + 2 * i, first, second);
      const auto times = hn::Set(d, this->scale);
      FetchToSecond(this->next + 2 * i);
      StorePairs(hn::MulAdd(first, times, s), hn::MulAdd(second, times, c), d, this->out + 2 * i);
    } else if constexpr (interleaved) {
      const Alternated<D, V> waves(d, c, s);
      Two(d, 2 * i, waves.lower, waves.upper);
    } else {
      One(d, i, s);
      One(d, this->cosine + i, c);
    }
  }
  template <class D, class V>
  HWY_INLINE void One(D d, std::int64_t i, V wave) const {
    FetchToSecond(this->next + i);
    StoreResult(At(d, i, wave), d, this->out + i);
  }
  // A cache line of 16-bit elements with AVX-512.
  template <class D, class V>
  HWY_INLINE void Two(D d, std::int64_t i, V wave, V following) const {
    const auto further = static_cast<std::int64_t>(hn::Lanes(d));
    FetchToSecond(this->next + i);
    if constexpr (sizeof(T) == sizeof(float)) FetchToSecond(this->next + i + further);
    StoreTwoResults(At(d, i, wave), At(d, i + further, following), d, this->out + i);
  }
  template <class D, class V>
  HWY_INLINE V At(D d, std::int64_t i, V wave) const {
    return hn::MulAdd(LoadElements(d, this->x + i), hn::Set(d, this->scale), wave);
  }
};
template <class T, bool interleaved, class How>
struct Alone : Place<T> {
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s) const {
    if constexpr (interleaved && words_are_pairs<T>) {
      StorePairs<How>(s, c, d, this->out + 2 * i);
    } else if constexpr (interleaved) {
      const Alternated<D, V> waves(d, c, s);
      StoreTwoResults<How>(waves.lower, waves.upper, d, this->out + 2 * i);
    } else {
      StoreResult<How>(s, d, this->out + i);
      StoreResult<How>(c, d, this->out + this->cosine + i);
    }
  }
};
// Sines and cosines apart, of 16 bits: two vectors of each fill what one of floats does.
template <class T>
struct WideSum : Sum<T, false> {
  static constexpr bool wide = true;
  using Sum<T, false>::operator();
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s, V next_c, V next_s) const {
    this->Two(d, i, s, next_s);
    this->Two(d, this->cosine + i, c, next_c);
  }
};
template <class T, class How>
struct WideAlone : Alone<T, false, How> {
  static constexpr bool wide = true;
  using Alone<T, false, How>::operator();
  template <class D, class V>
  HWY_INLINE void operator()(D d, std::int64_t i, V c, V s, V next_c, V next_s) const {
    StoreTwoResults<How>(s, next_s, d, this->out + i);
    StoreTwoResults<How>(c, next_c, d, this->out + this->cosine + i);
  }
};

// Whether every row is written once, and to neighbouring channels: whole vectors of sines, and of
// cosines.
HWY_INLINE bool writes_directly(const AddJob& job) {
  const auto* waves = std::get_if<Waves>(&job.part->kind);
  return waves != nullptr && !job.at &&
         (waves->layout == WaveLayout::interleaved ||
          (waves->width % (2 * CosSinRows<float>::lanes) == 0 &&
           2 * static_cast<std::int64_t>(waves->frequency.size()) == waves->width)) &&
         (!job.shared || job.out.shape[0] == 1) && job.out.stride[2] == 1 &&
         (!job.x || job.x.stride[2] == 1);
}

// How many rows are made together, and how many pairs of one before the next row follows: few
// enough that the factors they share stay in the first cache.
constexpr std::int64_t rows_together = 8, pairs_together = 128;

// Makes and writes one row, or eight.
template <class Put, class T, class F>
HWY_NOINLINE void MakeDirectly(CosSinRows<F>& cos_sin, std::int64_t row, std::int64_t pairs,
                               std::int64_t count, const Place<T>* to) {
  if (count == 1) return MakeRow<float>(cos_sin, &row, 0, pairs, Put{*to});
  const Put put[] = {{to[0]}, {to[1]}, {to[2]}, {to[3]}, {to[4]}, {to[5]}, {to[6]}, {to[7]}};
  for (std::int64_t begin = 0; begin < pairs; begin += pairs_together) {
    const std::int64_t end = std::min(begin + pairs_together, pairs);
    MakeEightRows<float>(cos_sin, row, begin, end, put);
  }
}

template <class T, bool interleaved>
void AddDirectly(const AddJob& job, std::int64_t first, std::int64_t last) {
  const auto& waves = std::get<Waves>(job.part->kind);
  const Tensor &x = job.x, &out = job.out;
  const std::int64_t seq = out.shape[1], width = out.shape[2];
  using F = std::conditional_t<sizeof(T) == 2, float, double>;
  CosSinRows<F> cos_sin(CosSinRule::of(waves));
  // Whole vectors of pairs that have both of their channels; the rest of a row takes a buffer, in
  // which the last pair of an odd width may have its cosine behind the row's end.
  const std::int64_t pairs = std::min(cos_sin.count, width / 2) / cos_sin.lanes * cos_sin.lanes;
  const std::int64_t waves_end = std::min(2 * cos_sin.count, width);
  const AlignedDoubles memory = Buffer<float>(std::max(2 * cos_sin.size, width));
  float* const rest = reinterpret_cast<float*>(memory.data());
  const auto scale = static_cast<float>(job.part->embedding_scale);
  const bool streamed = streams(job);
  const auto b_of = [&](std::int64_t token) { return job.shared ? 0 : token / seq; };
  const auto row_of = [&](std::int64_t token) {
    const std::int64_t b = b_of(token);
    return job.positions->at(token - b * seq, b, job.axis) + waves.row_offset;
  };
  const std::int64_t token_bytes = width * static_cast<std::int64_t>(sizeof(T));
  Ahead ahead(Loop::sum, x ? (last - first) * token_bytes : 0);
  for (std::int64_t token = first, count; token < last; token += count) {
    const std::int64_t row = row_of(token);
    count = RowsTogether(last - token, [&](std::int64_t r) {
      const std::int64_t next = row_of(token + r);
      return waves.zero_row >= 0 && next == waves.zero_row ? row - 1 : next;  // not one of eight
    });
    const bool zero = waves.zero_row >= 0 && row == waves.zero_row;
    Place<T> to[rows_together];
    bool all_aligned = true;
    const bool asks = ahead(count * token_bytes) != Ask::no;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t b = b_of(token + r), t = token + r - b * seq;
      to[r] = {.x = x ? static_cast<const T*>(x.data) + x.offset(b, t) : nullptr,
               .scale = scale,
               .out = static_cast<T*>(out.data) + out.offset(b, t),
               .cosine = cos_sin.count};
      to[r].next = to[r].out + (asks ? count * out.stride[1] : 0);
      all_aligned = all_aligned && aligned(to[r].out);
    }
    if (!zero) {
      constexpr bool wide = sizeof(T) == 2 && !interleaved;
      const auto make = [&]<class Put>(std::type_identity<Put>)
                            HWY_ATTR { MakeDirectly<Put>(cos_sin, row, pairs, count, to); };
      if (x) {
        make(std::type_identity<std::conditional_t<wide, WideSum<T>, Sum<T, interleaved>>>());
      } else if (streamed && all_aligned) {
        make(std::type_identity<
             std::conditional_t<wide, WideAlone<T, Streamed>, Alone<T, interleaved, Streamed>>>());
      } else {
        make(std::type_identity<
             std::conditional_t<wide, WideAlone<T, Kept>, Alone<T, interleaved, Kept>>>());
      }
    }
    const std::int64_t done = zero ? 0 : 2 * pairs;
    for (std::int64_t r = 0; r < count && done < width; ++r) {
      const std::int64_t next = row + r;
      std::fill(rest + done, rest + width, 0.0f);
      if (!zero && pairs < cos_sin.size) {
        MakeRow<float>(cos_sin, &next, pairs, cos_sin.size, Alternating<float>{rest});
        std::fill(rest + waves_end, rest + width, 0.0f);
      }
      Write<T>(x ? to[r].x + done : nullptr, scale, rest + done, to[r].out + done, width - done,
               to[r].next - to[r].out);
    }
  }
  if (streamed) hwy::FlushStream();
}

#endif

template <class C, class F>
void AddAll(const AddJob& job, std::int64_t first, std::int64_t last) {
  const std::int64_t batch = job.out.shape[0], seq = job.out.shape[1], width = job.out.shape[2];
  const AlignedDoubles memory = Buffer<C>(width + 2 * CosSinRows<F>::lanes);
  C* const vector = reinterpret_cast<C*>(memory.data());
  const auto each = [&](const auto& make) HWY_ATTR {
    for (std::int64_t token = first; token < last; ++token) {
      const std::int64_t b = job.shared ? 0 : token / seq, t = job.shared ? token : token % seq;
      make(b, t, job.out.offset(b, t));
      if (!job.shared) {
        WriteToken<C>(job, b, t, vector);
        continue;
      }
      for (std::int64_t each_b = 0; each_b < batch; ++each_b) {
        WriteToken<C>(job, each_b, t, vector);
      }
    }
  };
  if (const auto* waves = std::get_if<Waves>(&job.part->kind)) {
    if (job.at) {
      RealWaveMaker<C> make(*waves, vector);
      each([&](std::int64_t b, std::int64_t t, std::int64_t) HWY_ATTR { make(job.at, b, t); });
      return;
    }
    WaveMaker<C, F> make(*waves, vector);
    const auto size = static_cast<std::int64_t>(size_of(job.out.dtype));
    const bool streamed = streams(job);  // then what lies there is not wanted
    each([&](std::int64_t b, std::int64_t t, std::int64_t to) HWY_ATTR {
      const std::int64_t position = job.positions->at(t, b, job.axis);
      if (streamed) return make(position, vector, 0);
      make(position, static_cast<const char*>(job.out.data) + to * size, size);
    });
  } else if (const auto* rows = std::get_if<Rows>(&job.part->kind)) {
    const Tensor table = rows->table.values.with_rank(2);
    const AlignedDoubles second = Buffer<C>(rows->axes() > 1 ? width : 0);
    C* const other = reinterpret_cast<C*>(second.data());
    each([&](std::int64_t b, std::int64_t t, std::int64_t) HWY_ATTR {
      std::int64_t row = rows->row_offset;
      ReadRow<C>(table, row + job.positions->at(t, b), width, vector);
      for (std::int64_t a = 1; a < rows->axes(); ++a) {
        row += rows->axis_rows[static_cast<std::size_t>(a - 1)];
        ReadRow<C>(table, row + job.positions->at(t, b, a), width, other);
        for (std::int64_t c = 0; c < width; ++c) vector[c] += other[c];
      }
    });
  }
  if (streams(job)) hwy::FlushStream();
}

void AddTokens(const AddJob& job, std::int64_t first, std::int64_t last) {
  if (computes_in_double(job.out.dtype)) return AddAll<double, double>(job, first, last);
#if HWY_TARGET != HWY_SCALAR
  if (writes_directly(job)) {
    const auto layout = std::get<Waves>(job.part->kind).layout;
    return with_element(job.out.dtype, [&]<class T>(T*) HWY_ATTR {
      if constexpr (sizeof(T) < sizeof(double)) {
        if (layout == WaveLayout::interleaved) return AddDirectly<T, true>(job, first, last);
        AddDirectly<T, false>(job, first, last);
      }
    });
  }
#endif
  if (size_of(job.out.dtype) == 2) return AddAll<float, float>(job, first, last);
  AddAll<float, double>(job, first, last);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(AddTokens);

void add_tokens(const AddJob& job, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(AddTokens)(job, first, last);
}

bool adds(const AddJob& job) {
  if (const auto* rows = std::get_if<Rows>(&job.part->kind)) {
    return computes_in_double(rows->table.values.dtype) == computes_in_double(job.out.dtype);
  }
  const auto* waves = std::get_if<Waves>(&job.part->kind);
  return waves != nullptr && (job.at || (waves->axes == 1 && waves->blocks.empty()));
}

}  // namespace posenc::detail
#endif
