// One token decoded through a key-value cache, in turns with the attention of the same token
// without any position and without a cache: 8192 tokens, 32 heads over 8, head_dim 128, one thread
// by its own processor time. of_nope: the one time over the other.
#include "posenc/cache.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "posenc/schemes.h"

namespace posenc::bench {
namespace {

constexpr std::int64_t heads = 32, kv_heads = 8, head_dim = 128, tokens = 8192, page = 16;
constexpr Threads one{.count = 1};

void must(const Expected<void>& done) {
  if (!done) std::abort();
}

double now() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Numbers {
  std::vector<double> memory;
  Tensor view;

  Numbers(DType dtype, std::int64_t of_heads, std::int64_t count)
      : memory(static_cast<std::size_t>(of_heads * count * head_dim)),
        view(Tensor::dense(memory.data(), dtype, {1, of_heads, count, head_dim})) {
    std::minstd_rand random(1);
    for (std::int64_t i = 0; i < view.size(); ++i)
      view.set(i, static_cast<double>(random() % 2001) / 1000 - 1);
  }
  Numbers(const Numbers&) = delete;
};

enum class Pages { neighbours, scattered };
enum class Plans { one, changing };

void decode(benchmark::State& state, DType dtype, CachedKeys keys, Pages pages, Plans plans) {
  const Geometry geometry{.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
  const auto rope = compile(Rope{}, geometry), other = compile(Rope{.rope_theta = 10001}, geometry);
  auto cache = KvCache::make({.kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .dtype = dtype,
                              .page_size = page,
                              .max_pages = 2 * tokens / page + 2,
                              .keys = keys});
  if (!rope || !other || !cache) std::abort();
  const Numbers k(dtype, kv_heads, tokens), v(dtype, kv_heads, tokens), q(dtype, heads, 1),
      out(dtype, heads, 1), key(dtype, kv_heads, 1), value(dtype, kv_heads, 1);
  if (pages == Pages::scattered) {  // every second page belongs to another sequence
    const Numbers few(dtype, kv_heads, page);
    std::vector<KvCache::Sequence> others;
    while (cache->free_pages() > 0) {
      others.push_back(cache->add());
      must(cache->append({&others.back(), 1}, few.view, few.view, *rope, {}, one));
    }
    for (std::size_t i = 0; i < others.size(); i += 2) must(cache->remove(others[i]));
  }
  const KvCache::Sequence sequence[] = {cache->add()};
  must(cache->append(sequence, k.view, v.view, *rope, {}, one));
  const Positions at = Positions::range(tokens - 1, 1), all = Positions::range(0, tokens);
  double cached = 0, plain = 0;
  bool odd = false;
  for (auto _ : state) {
    odd = !odd;
    const Plan& plan = plans == Plans::changing && odd ? *other : *rope;
    const double start = now();
    must(cache->append(sequence, key.view, value.view, plan, {}, one));
    must(cache->attend(sequence, q.view, plan, {}, out.view, one));
    const double middle = now();
    must(attend({q.view, k.view, v.view, at, all, {}, one}, {}, out.view));
    const double end = now();
    must(cache->evict(sequence[0], tokens, tokens + 1, KvCache::Gap::keep));
    state.SetIterationTime(middle - start);
    cached += middle - start;
    plain += end - middle;
  }
  state.counters["of_nope"] = cached / plain;
}

int registered() {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [name, keys, plans] : {std::tuple{"rotated", CachedKeys::rotated, Plans::one},
                                            {"rotated_again", CachedKeys::rotated, Plans::changing},
                                            {"unrotated", CachedKeys::unrotated, Plans::one}}) {
      for (const Pages pages : {Pages::neighbours, Pages::scattered}) {
        benchmark::RegisterBenchmark(
            ("cache/" + std::string(name) +
             (pages == Pages::scattered ? "/gathered/" : "/in_place/") +
             std::string(posenc::name(dtype)))
                .c_str(),
            [=](benchmark::State& state) { decode(state, dtype, keys, pages, plans); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return 0;
}
[[maybe_unused]] const int at_start = registered();

}  // namespace
}  // namespace posenc::bench
