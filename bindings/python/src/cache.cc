// KvCache: keys and values of the tokens so far.
#include "posenc/cache.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "attention_arguments.h"
#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

using Sequences = std::vector<std::int64_t>;

DType dtype_named(std::string_view word) {
  for (const DType each : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (name(each) == word) return each;
  refuse("KvCache", "dtype must be float64, float32, float16 or bfloat16", word);
}

// The cache, and what its outputs are wide.
struct Cached {
  KvCache cache;
  std::int64_t value_dim;
};

KvCache made(std::int64_t kv_heads, std::int64_t head_dim, std::int64_t value_dim,
             std::string_view dtype, std::int64_t page_size, std::int64_t max_pages, bool rotated,
             bool one_plan, bool allow_bfloat16_products) {
  return unwrap(KvCache::make({.kv_heads = kv_heads,
                               .head_dim = head_dim,
                               .value_dim = value_dim,
                               .dtype = dtype_named(dtype),
                               .page_size = page_size,
                               .max_pages = max_pages,
                               .keys = rotated ? CachedKeys::rotated : CachedKeys::unrotated,
                               .new_plan = one_plan ? NewPlan::refuse : NewPlan::rerotate,
                               .attend = {.allow_bfloat16_products = allow_bfloat16_products}}));
}

void append(Cached& cached, const Sequences& sequences, nb::handle k, nb::handle v,
            const CompiledPlan& plan, nb::handle position_ids, std::string_view layout,
            int threads) {
  constexpr const char* where = "KvCache.append";
  const Array keys = array_of(k, where, "k", Access::read),
              values = array_of(v, where, "v", Access::read);
  const Tensor k_in = in_layout(keys.tensor, layout, where),
               v_in = in_layout(values.tensor, layout, where);
  std::optional<Positions> positions;
  if (!position_ids.is_none()) positions = positions_of(position_ids, k_in.shape[2], where);
  unlocked(
      [&] { return cached.cache.append(sequences, k_in, v_in, plan.plan, positions, {threads}); });
}

nb::object attend_cached(Cached& cached, const Sequences& sequences, nb::handle q,
                         const CompiledPlan& plan, bool causal, std::int64_t window,
                         std::int64_t chunk, std::int64_t prefix, nb::handle keys,
                         nb::handle sink_logits, nb::handle query_profiles, nb::handle key_profiles,
                         nb::handle out, std::string_view layout, int threads) {
  constexpr const char* where = "KvCache.attend";
  const Array queries = array_of(q, where, "q", Access::read);
  const Tensor in = in_layout(queries.tensor, layout, where);
  nb::object made = !out.is_none() ? nb::borrow(out)
                    : cached.value_dim == in.shape[3]
                        ? empty_like(q)
                        : new_array(q, in_order(in, cached.value_dim, layout, queries.tensor.rank),
                                    name(in.dtype));
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor into = in_layout(to.tensor, layout, where);
  Array sinks;
  if (!sink_logits.is_none()) sinks = array_of(sink_logits, where, "sink_logits", Access::read);
  Array of_queries, of_keys;
  ProfileTensors profiles;
  if (!query_profiles.is_none()) {
    of_queries = array_of(query_profiles, where, "query_profiles", Access::read);
    profiles.query = in_layout(of_queries.tensor, layout, where);
  }
  if (!key_profiles.is_none()) {
    of_keys = array_of(key_profiles, where, "key_profiles", Access::read);
    profiles.key = in_layout(of_keys.tensor, layout, where);
  }
  Mask mask = MaskWords{causal, window, chunk, prefix}.mask();
  std::vector<std::int32_t> lists;
  if (!keys.is_none()) lists = lists_of(keys, in.shape[0], in.shape[2], where, mask);
  unlocked([&] {
    return cached.cache.attend(sequences, in, plan.plan, mask, into, {threads}, sinks.tensor,
                               profiles);
  });
  return out.is_none() ? handed_back(std::move(made), q) : made;
}

// (out, log_sums): new arrays of float32 where the cache holds 16 bits, else of q's type.
nb::tuple attend_part(Cached& cached, const Sequences& sequences, nb::handle q,
                      nb::handle position_ids, const CompiledPlan& plan, bool causal,
                      std::int64_t window, std::int64_t chunk, std::int64_t prefix,
                      std::string_view layout, int threads) {
  constexpr const char* where = "KvCache.attend_part";
  const Array queries = array_of(q, where, "q", Access::read);
  const Tensor in = in_layout(queries.tensor, layout, where);
  const std::string_view of = size_of(in.dtype) < 4 ? name(DType::f32) : name(in.dtype);
  const nb::object made =
      new_array(q, in_order(in, cached.value_dim, layout, queries.tensor.rank), of);
  const nb::object sums = new_array(q, {in.shape[0], in.shape[1], in.shape[2]}, of);
  const Array to = array_of(made, where, "out", Access::write),
              sums_to = array_of(sums, where, "log_sums", Access::write);
  const Tensor into = in_layout(to.tensor, layout, where);
  const Positions positions = positions_of(position_ids, in.shape[2], where);
  const MaskWords mask{causal, window, chunk, prefix};
  unlocked([&] {
    return cached.cache.attend_part(sequences, in, positions, plan.plan, mask.mask(), into,
                                    sums_to.tensor, {threads});
  });
  return nb::make_tuple(made, sums);
}

}  // namespace

void bind_cache(nb::module_& m) {
  nb::class_<Cached>(m, "KvCache",
                     "Cached keys and values of the tokens so far, whose positions cannot go "
                     "stale. One serves one layer.",
                     nb::dynamic_attr())
      .def(
          "__init__",
          [](Cached* self, std::int64_t kv_heads, std::int64_t head_dim, std::int64_t value_dim,
             std::string_view dtype, std::int64_t page_size, std::int64_t max_pages, bool rotated,
             bool one_plan, bool allow_bfloat16_products) {
            new (self) Cached{made(kv_heads, head_dim, value_dim, dtype, page_size, max_pages,
                                   rotated, one_plan, allow_bfloat16_products),
                              value_dim > 0 ? value_dim : head_dim};
          },
          nb::kw_only(), nb::arg("kv_heads"), nb::arg("head_dim"), nb::arg("value_dim") = 0,
          nb::arg("dtype") = "float32", nb::arg("page_size") = 16, nb::arg("max_pages") = 0,
          nb::arg("rotated") = false, nb::arg("one_plan") = false,
          nb::arg("allow_bfloat16_products") = true)
      .def(
          "add", [](Cached& c) { return c.cache.add(); },
          "An empty sequence; its number is never used twice.")
      .def(
          "remove", [](Cached& c, std::int64_t sequence) { unwrap(c.cache.remove(sequence)); },
          nb::arg("sequence"), "Drops a sequence; its pages serve others.")
      .def("append", &append, nb::arg("sequences"), nb::arg("k"), nb::arg("v"), nb::arg("plan"),
           nb::arg("position_ids").none() = nb::none(), nb::kw_only(), nb::arg("layout") = "",
           nb::arg("threads") = 0,
           "Appends tokens to each of the sequences: k [sequence, kv_heads, tokens, head_dim] and "
           "v, unrotated. Without position_ids they stand behind the last ones.")
      .def("attend", &attend_cached, nb::arg("sequences"), nb::arg("q"), nb::arg("plan"),
           nb::kw_only(), nb::arg("causal") = true, nb::arg("window") = 0, nb::arg("chunk") = 0,
           nb::arg("prefix") = 0, nb::arg("keys").none() = nb::none(),
           nb::arg("sink_logits").none() = nb::none(),
           nb::arg("query_profiles").none() = nb::none(),
           nb::arg("key_profiles").none() = nb::none(), nb::arg("out").none() = nb::none(),
           nb::arg("layout") = "", nb::arg("threads") = 0,
           "The attention of the newest tokens of each sequence over all its tokens: q [sequence, "
           "heads, tokens, head_dim], unrotated. Keywords as posenc.attend has them; keys count a "
           "sequence's tokens in the order of append.")
      .def("attend_part", &attend_part, nb::arg("sequences"), nb::arg("q"), nb::arg("position_ids"),
           nb::arg("plan"), nb::kw_only(), nb::arg("causal") = true, nb::arg("window") = 0,
           nb::arg("chunk") = 0, nb::arg("prefix") = 0, nb::arg("layout") = "",
           nb::arg("threads") = 0,
           "(out, log_sums) of queries that stand anywhere, over the tokens that this cache holds "
           "of a text that several share; parts are merged by the sums of their logits.")
      .def(
          "shift",
          [](Cached& c, std::int64_t sequence, std::int64_t first, std::int64_t last,
             std::int64_t offset) { unwrap(c.cache.shift(sequence, first, last, offset)); },
          nb::arg("sequence"), nb::arg("first"), nb::arg("last"), nb::arg("offset"),
          "Adds offset to the positions of tokens first to last - 1; rotated keys are rotated "
          "along.")
      .def(
          "evict",
          [](Cached& c, std::int64_t sequence, std::int64_t first, std::int64_t last, bool close) {
            unwrap(c.cache.evict(sequence, first, last,
                                 close ? KvCache::Gap::close : KvCache::Gap::keep));
          },
          nb::arg("sequence"), nb::arg("first"), nb::arg("last"), nb::kw_only(),
          nb::arg("close") = false,
          "Drops tokens first to last - 1. close: those behind move up to where the first one "
          "stood.")
      .def(
          "tokens",
          [](const Cached& c, std::int64_t sequence) { return unwrap(c.cache.tokens(sequence)); },
          "How many tokens a sequence has cached.")
      .def(
          "length",
          [](const Cached& c, std::int64_t sequence) { return unwrap(c.cache.length(sequence)); },
          "The largest position of a sequence, plus one.")
      .def(
          "positions",
          [](const Cached& c, std::int64_t sequence) {
            return unwrap(c.cache.positions(sequence));
          },
          "Where the cached tokens of a sequence stand.")
      .def_prop_ro(
          "pages", [](const Cached& c) { return c.cache.pages(); }, "Pages that there are.")
      .def_prop_ro(
          "free_pages", [](const Cached& c) { return c.cache.free_pages(); },
          "Pages that no sequence holds.")
      .def_prop_ro(
          "bytes", [](const Cached& c) { return c.cache.bytes(); }, "Memory of all pages.");
}

}  // namespace posenc::python
