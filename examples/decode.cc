// Decoding with a key-value cache. Whichever way keys are cached, token by token gives what one
// pass over the whole text gives; a scaling that changes with the length shows what a cache of
// stale keys gives instead. Prints the largest differences, and exits with 1 if one is larger than
// rounding explains.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "posenc/posenc.h"

using namespace posenc;

constexpr std::int64_t heads = 8, kv_heads = 2, head_dim = 64, length = 96, trained = 32;

template <class T>
T must(Expected<T> result) {
  if (result) return T(*std::move(result));  // of Expected<void>, nothing
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(1);
}

// Queries, keys or values of the whole text, [1, heads, length, head_dim].
struct Vectors {
  std::int64_t n;
  DType dtype;
  std::vector<double> memory = std::vector<double>(static_cast<std::size_t>(n * length * head_dim));

  Tensor all() { return Tensor::dense(memory.data(), dtype, {1, n, length, head_dim}); }
  Tensor tokens(std::int64_t first, std::int64_t count) {
    Tensor some = all();
    some.data = static_cast<char*>(some.data) +
                first * head_dim * static_cast<std::int64_t>(size_of(dtype));
    some.shape[2] = count;
    return some;
  }
  Tensor token(std::int64_t t) { return tokens(t, 1); }
};

struct Text {
  DType dtype;
  Vectors q{heads, dtype}, k{kv_heads, dtype}, v{kv_heads, dtype};

  explicit Text(DType type) : dtype(type) {
    std::mt19937 engine(1);
    for (Vectors* x : {&q, &k, &v}) {
      std::normal_distribution<double> normal;
      for (std::int64_t i = 0; i < x->all().size(); ++i) x->all().set(i, normal(engine));
    }
  }
};

Plan plan_for(const Scheme& scheme, std::int64_t of_length) {
  return must(compile(
      scheme, {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .length = of_length}));
}

// What the last token of each length gets when all keys before it are attended to at once, in
// double.
double difference(Text& text, const Scheme& scheme, Vectors& out) {
  Text wide(DType::f64);
  for (const auto& [to, from] :
       {std::pair{&wide.q, &text.q}, {&wide.k, &text.k}, {&wide.v, &text.v}}) {
    for (std::int64_t i = 0; i < from->all().size(); ++i) to->all().set(i, from->all().get(i));
  }
  Vectors truth{heads, DType::f64};
  double most = 0;
  for (std::int64_t t = 0; t < length; ++t) {
    Tensor k = wide.k.all(), v = wide.v.all();
    k.shape[2] = v.shape[2] = t + 1;
    must(attend_reference(
        {wide.q.token(t), k, v, Positions::range(t, 1), Positions::range(0, t + 1)},
        plan_for(scheme, t + 1), truth.token(t)));
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t c = 0; c < head_dim; ++c) {
        const std::int64_t at = (h * length + t) * head_dim + c;
        most = std::max(most, std::abs(out.all().get(at) - truth.all().get(at)));
      }
    }
  }
  return most;
}

// A prompt of 16 tokens at once, then token by token; each time with the plan for the length
// reached.
double decoded(const Scheme& scheme, CachedKeys keys, DType dtype) {
  Text text(dtype);
  Vectors out{heads, dtype};
  KvCache cache = must(
      KvCache::make({.kv_heads = kv_heads, .head_dim = head_dim, .dtype = dtype, .keys = keys}));
  const KvCache::Sequence sequences[] = {cache.add()};
  for (std::int64_t t = 0, count = 16; t < length; t += count, count = 1) {
    const Plan plan = plan_for(scheme, t + count);
    must(cache.append(sequences, text.k.tokens(t, count), text.v.tokens(t, count), plan));
    must(cache.attend(sequences, text.q.tokens(t, count), plan, {}, out.tokens(t, count)));
  }
  return difference(text, scheme, out);
}

// What many engines do: each key is rotated once, by the plan of its time, and stays so.
double decoded_with_stale_keys(const Scheme& scheme) {
  Text text(DType::f64);
  const Text original = text;
  Vectors out{heads, DType::f64};
  for (std::int64_t t = 0; t < length; ++t) {
    const Plan plan = plan_for(scheme, t + 1);
    const Positions at = Positions::range(t, 1);
    must(rotate(plan, text.q.token(t), text.k.token(t), at, text.q.token(t), text.k.token(t)));
    Tensor k = text.k.all(), v = text.v.all();
    k.shape[2] = v.shape[2] = t + 1;
    must(attend({text.q.token(t), k, v, at, Positions::range(0, t + 1)}, Plan{}, out.token(t)));
  }
  text = original;
  return difference(text, scheme, out);
}

// A stream that keeps its first four tokens and the newest 28, renumbered after each: what the last
// one gets, beside a cache that was given the survivors alone, where they stand now.
double streamed(CachedKeys keys, DType dtype) {
  constexpr std::int64_t sinks = 4, window = 28;
  Text text(dtype);
  const Plan plan = plan_for(Rope{}, 0);
  const KvCacheOptions options{
      .kv_heads = kv_heads, .head_dim = head_dim, .dtype = dtype, .keys = keys};
  KvCache stream = must(KvCache::make(options)), fresh = must(KvCache::make(options));
  const KvCache::Sequence one[] = {stream.add()}, other[] = {fresh.add()};
  for (std::int64_t t = 0; t < length; ++t) {
    must(stream.append(one, text.k.token(t), text.v.token(t), plan));
    if (must(stream.tokens(one[0])) > sinks + window)
      must(stream.evict(one[0], sinks, sinks + 1, KvCache::Gap::close));
    if (t < sinks || t >= length - window)
      must(fresh.append(other, text.k.token(t), text.v.token(t), plan));
  }
  Vectors a{heads, dtype}, b{heads, dtype};
  must(stream.attend(one, text.q.token(length - 1), plan, {}, a.token(0)));
  must(fresh.attend(other, text.q.token(length - 1), plan, {}, b.token(0)));
  double most = 0;
  for (std::int64_t i = 0; i < a.all().size(); ++i)
    most = std::max(most, std::abs(a.all().get(i) - b.all().get(i)));
  return most;
}

bool good = true;

void report(const char* what, double difference, double allowed) {
  const bool holds = difference <= allowed;
  std::printf("  %-46s %.1e%s\n", what, difference, holds ? "" : "  MORE THAN ROUNDING");
  good = good && holds;
}

int main() {
  const Scheme rope = Rope{};
  const Scheme dynamic =
      Rope{.scaling = DynamicNtk{.factor = 4, .max_position_embeddings = trained}};

  std::printf("largest difference from one pass over the text, %d tokens\n",
              static_cast<int>(length));
  std::printf("RoPE\n");
  report("keys unrotated, float32", decoded(rope, CachedKeys::unrotated, DType::f32), 1e-5);
  report("keys rotated, float32", decoded(rope, CachedKeys::rotated, DType::f32), 1e-5);
  report("keys unrotated, bfloat16", decoded(rope, CachedKeys::unrotated, DType::bf16), 2e-2);
  report("keys rotated, bfloat16", decoded(rope, CachedKeys::rotated, DType::bf16), 5e-2);

  std::printf("RoPE with dynamic NTK, whose frequencies change with every token past %d\n",
              static_cast<int>(trained));
  report("keys unrotated, float32", decoded(dynamic, CachedKeys::unrotated, DType::f32), 1e-5);
  report("keys rotated again for each token, float32",
         decoded(dynamic, CachedKeys::rotated, DType::f32), 1e-5);
  report("keys unrotated, bfloat16", decoded(dynamic, CachedKeys::unrotated, DType::bf16), 2e-2);
  const double small_turns = decoded(dynamic, CachedKeys::rotated, DType::bf16);
  std::printf("  %-46s %.1e  small turns are rounded away\n",
              "keys rotated again for each token, bfloat16", small_turns);
  const double stale = decoded_with_stale_keys(dynamic);
  std::printf("  %-46s %.1e  what engines do that mix\n", "keys as they were rotated at their time",
              stale);
  good = good && stale > 0.1;

  std::printf("RoPE, a stream of 4 sinks and a window of 28, renumbered at every token\n");
  report("keys unrotated, bfloat16", streamed(CachedKeys::unrotated, DType::bf16), 0);
  report("keys rotated, float32", streamed(CachedKeys::rotated, DType::f32), 1e-5);
  std::printf("  %-46s %.1e  again\n", "keys rotated, bfloat16",
              streamed(CachedKeys::rotated, DType::bf16));

  // A cache told to refuse says so instead of mixing.
  Text text(DType::f32);
  KvCache cache = must(KvCache::make({.kv_heads = kv_heads,
                                      .head_dim = head_dim,
                                      .keys = CachedKeys::rotated,
                                      .new_plan = NewPlan::refuse}));
  const KvCache::Sequence sequences[] = {cache.add()};
  std::int64_t t = 0;
  Expected<void> kept;
  while (kept && t < length) {
    kept = cache.append(sequences, text.k.token(t), text.v.token(t), plan_for(dynamic, t + 1));
    if (kept) ++t;
  }
  good = good && !kept && t == trained;
  std::printf("refused after %d tokens\n  %s\n", static_cast<int>(t),
              kept ? "nothing" : kept.error().message().c_str());
  return good ? 0 : 1;
}
