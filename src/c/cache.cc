// The C interface: the key-value cache. Not in WebAssembly.
#include "posenc/cache.h"

#include <optional>
#include <string>
#include <string_view>

#include "src/c/handles.h"

struct posenc_cache {
  posenc::KvCache value;
};

using namespace posenc;
using c::done, c::hand_out, c::misuse, c::need, c::need_threads, c::View, c::view;

posenc_status posenc_cache_make(const posenc_cache_options* options, posenc_cache** out) noexcept {
  constexpr std::string_view where = "posenc_cache_make";
  if (const auto bad = need(where, "out", out, {{"options", options}})) return bad;
  if (const auto bad = c::need_size(where, "options", "posenc_cache_options", *options)) return bad;
  if (options->dtype < POSENC_FLOAT64 || options->dtype > POSENC_BFLOAT16)
    return misuse(where, "dtype must be one of posenc_dtype", std::to_string(options->dtype));
  KvCacheOptions made{
      .kv_heads = options->kv_heads,
      .head_dim = options->head_dim,
      .value_dim = options->value_dim,
      .dtype = static_cast<DType>(options->dtype),
      .max_pages = options->max_pages,
      .keys = options->rotated ? CachedKeys::rotated : CachedKeys::unrotated,
      .new_plan = options->one_plan ? NewPlan::refuse : NewPlan::rerotate,
      .attend = {.allow_bfloat16_products = options->float_products == 0},
  };
  if (options->page_size != 0) made.page_size = options->page_size;
  return hand_out(KvCache::make(made), out);
}

void posenc_cache_free(posenc_cache* cache) noexcept { delete cache; }

posenc_status posenc_cache_add(posenc_cache* cache, int64_t* sequence) noexcept {
  if (const auto bad = need("posenc_cache_add", {{"cache", cache}, {"sequence", sequence}}))
    return bad;
  *sequence = cache->value.add();
  return POSENC_OK;
}

posenc_status posenc_cache_remove(posenc_cache* cache, int64_t sequence) noexcept {
  if (const auto bad = need("posenc_cache_remove", {{"cache", cache}})) return bad;
  return done(cache->value.remove(sequence));
}

posenc_status posenc_cache_append(posenc_cache* cache, const int64_t* sequences, size_t count,
                                  const posenc_tensor* k, const posenc_tensor* v,
                                  const posenc_plan* plan, const posenc_positions* positions,
                                  int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_cache_append";
  if (const auto bad = need(where, {{"cache", cache}, {"sequences", sequences}, {"plan", plan}}))
    return bad;
  if (const auto bad = need_threads(where, threads)) return bad;
  const View keys = view(where, "k", k);
  if (keys.status) return keys.status;
  const View values = view(where, "v", v);
  if (values.status) return values.status;
  return done(cache->value.append({sequences, count}, keys.tensor, values.tensor, plan->value,
                                  positions ? std::optional(positions->value) : std::nullopt,
                                  Threads{threads}));
}

posenc_status posenc_cache_attend(posenc_cache* cache, const int64_t* sequences, size_t count,
                                  const posenc_tensor* q, const posenc_plan* plan,
                                  const posenc_mask* mask, const posenc_tensor* sink_logits,
                                  const posenc_profiles* profiles, const posenc_tensor* out,
                                  int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_cache_attend";
  if (const auto bad = need(where, {{"cache", cache}, {"sequences", sequences}, {"plan", plan}}))
    return bad;
  if (const auto bad = need_threads(where, threads)) return bad;
  const c::ReadMask sees = c::read_mask(where, mask);
  if (sees.status) return sees.status;
  const View queries = view(where, "q", q);
  if (queries.status) return queries.status;
  const View to = view(where, "out", out);
  if (to.status) return to.status;
  View sinks{POSENC_OK};
  if (sink_logits) sinks = view(where, "sink_logits", sink_logits);
  if (sinks.status) return sinks.status;
  const c::ReadProfiles met = c::read_profiles(where, profiles);
  if (met.status) return met.status;
  return done(cache->value.attend({sequences, count}, queries.tensor, plan->value, sees.mask,
                                  to.tensor, Threads{threads}, sinks.tensor, met.tensors));
}

posenc_status posenc_cache_shift(posenc_cache* cache, int64_t sequence, int64_t first, int64_t last,
                                 int64_t offset) noexcept {
  if (const auto bad = need("posenc_cache_shift", {{"cache", cache}})) return bad;
  return done(cache->value.shift(sequence, first, last, offset));
}

posenc_status posenc_cache_evict(posenc_cache* cache, int64_t sequence, int64_t first, int64_t last,
                                 int32_t closes) noexcept {
  if (const auto bad = need("posenc_cache_evict", {{"cache", cache}})) return bad;
  return done(
      cache->value.evict(sequence, first, last, closes ? KvCache::Gap::close : KvCache::Gap::keep));
}

posenc_status posenc_cache_size(const posenc_cache* cache, int64_t sequence, int64_t* tokens,
                                int64_t* length) noexcept {
  if (const auto bad =
          need("posenc_cache_size", {{"cache", cache}, {"tokens", tokens}, {"length", length}}))
    return bad;
  const auto count = cache->value.tokens(sequence), end = cache->value.length(sequence);
  if (!count) return c::refused(count.error());
  if (!end) return c::refused(end.error());
  *tokens = *count;
  *length = *end;
  return POSENC_OK;
}
