// The checks that every form of attention makes of its arguments before it computes: shapes,
// dtypes, positions, and that the plan's parts fit them.
#include "src/attention/arguments.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/attention/visible.h"
#include "src/core/try.h"
#include "src/kernels/bias.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"

namespace posenc::detail {
namespace {

// A table of vectors by distance, [head or 1][row][head_dim]; absent where the plan uses none.
Expected<Tensor> relative_table(std::string_view where, std::string_view name, bool used,
                                const Table& table, const Relative& relative, std::int64_t heads,
                                std::int64_t columns) {
  if (!used) return Tensor{};
  if (!table) {
    return fail(where, "the learned table relative." + std::string(name) + " must be given", "none",
                "set it in the plan");
  }
  const auto view = viewed(where, "relative." + std::string(name), table.values, 3);
  if (!view) return view;
  const bool fits = (view->shape[0] == 1 || view->shape[0] == heads) &&
                    view->shape[1] == relative.row_count && view->shape[2] == columns;
  if (fits) return view;
  return fail(where,
              "relative." + std::string(name) + " must be [" + std::to_string(relative.row_count) +
                  ", " + std::to_string(columns) + "], or that for each of " +
                  std::to_string(heads) + " heads",
              shape_text(*view), "check max_distance and head_dim against the table");
}

// Every distance of any query and any key on an axis is listed, of those that a mask by position
// leaves: a quick look.
bool reaches(const DistanceRows& rows, const Mask& mask, const Positions& queries,
             const Positions& keys, std::int64_t axis) {
  if (rows.saturates) return true;
  const auto ends = [axis](const Positions& positions) {
    if (positions.contiguous())
      return std::pair{positions.at(0), positions.at(positions.size() - 1)};
    std::pair all{positions.at(0, 0, axis), positions.at(0, 0, axis)};
    for (std::int64_t b = 0; b < positions.batch(); ++b) {
      for (std::int64_t t = 0; t < positions.size(); ++t) {
        all.first = std::min(all.first, positions.at(t, b, axis));
        all.second = std::max(all.second, positions.at(t, b, axis));
      }
    }
    return all;
  };
  if (queries.size() == 0 || keys.size() == 0) return true;
  const auto q = ends(queries), k = ends(keys);
  std::int64_t least = q.first - k.second, most = q.second - k.first;
  const bool by_position = queries.axes() == 1 && keys.axes() == 1;
  if (by_position && mask.prefix == 0 && mask.blocks == nullptr) {
    if (mask.causal) least = std::max<std::int64_t>(least, 0);
    if (mask.window > 0) {
      least = std::max(least, 1 - mask.window);
      most = std::min(most, mask.window - 1);
    }
  }
  return least >= rows.first && most <= rows.last();
}

// A mask and the lists that it points to.
struct SortedMask {
  Mask mask;
  std::vector<std::int32_t> lists;
};

// Lists one after the other, through a bit for each key: as fast as they are read.
class KeySorter {
 public:
  KeySorter(std::string_view where, std::int64_t keys)
      : where_(where), keys_(keys), bits_(static_cast<std::size_t>((keys + 63) / 64)) {}

  Expected<void> operator()(std::span<const std::int32_t> from, std::span<std::int32_t> to,
                            std::int64_t query) {
    std::size_t count = 0;
    bool ascending = true;
    for (const std::int32_t id : from) {
      if (id < 0) continue;
      if (id >= keys_)
        return fail(where_, "mask.keys must be below the " + std::to_string(keys_) + " keys",
                    std::to_string(id) + " of query " + std::to_string(query),
                    "keys count from 0 in the order of k; below 0 is none");
      ascending = ascending && (count == 0 || id > to[count - 1]);
      to[count++] = id;
    }
    std::ranges::fill(to.subspan(count), no_key);
    if (!ascending) sort(to.first(count));
    for (std::size_t n = 1; n < count; ++n)
      if (to[n] == to[n - 1])
        return fail(where_, "mask.keys must name a key once for each query",
                    std::to_string(to[n]) + " of query " + std::to_string(query),
                    "drop it: a key has one weight, however often it was picked");
    return {};
  }

 private:
  void sort(std::span<std::int32_t> ids) {
    constexpr std::size_t few = 64;
    if (ids.size() < few || ids.size() * few < bits_.size()) return void(std::ranges::sort(ids));
    std::ranges::fill(bits_, 0);
    std::int32_t twice = -1;
    for (const std::int32_t id : ids) {
      std::uint64_t& word = bits_[static_cast<std::size_t>(id / 64)];
      const std::uint64_t bit = std::uint64_t{1} << (id % 64);
      if ((word & bit) != 0) twice = id;
      word |= bit;
    }
    if (twice >= 0) return void(std::ranges::fill(ids, twice));  // told by who looks for neighbours
    std::size_t next = 0;
    for (std::size_t w = 0; w < bits_.size(); ++w)
      for (std::uint64_t word = bits_[w]; word != 0; word &= word - 1)
        ids[next++] = static_cast<std::int32_t>(w * 64) + std::countr_zero(word);
  }

  std::string_view where_;
  std::int64_t keys_;
  std::vector<std::uint64_t> bits_;
};

// What the plan does with keys and values of 8 bits, and the numbers that they are multiplied by.
Expected<void> check_8_bits(std::string_view where, const AttentionInputs& in, const Plan& plan) {
  for (const auto& [name, tensor, scale] :
       {std::tuple{"k", &in.k, in.key_scale}, {"v", &in.v, in.value_scale}}) {
    const std::string scale_name = name == std::string_view("k") ? "key_scale" : "value_scale";
    if (!has_8_bits(tensor->dtype)) {
      if (scale != 1)
        return fail(where, scale_name + " must be 1 where " + name + " is not of 8 bits",
                    std::to_string(scale), "multiply the tensor");
      continue;
    }
    if (!std::isfinite(scale))
      return fail(where, scale_name + " must be finite", std::to_string(scale));
    if (plan.relative)
      return fail(where,
                  std::string(name) + " must be of 16 bits or more beside vectors by distance",
                  posenc::name(tensor->dtype), "convert it outside");
    if (scale != 1 && plan.rotate && plan.rotate->polar())
      return fail(where, scale_name + " must be 1 where the rotation makes magnitudes of numbers",
                  std::to_string(scale), "convert the tensor outside");
  }
  return {};
}

}  // namespace

Expected<std::shared_ptr<const Mask>> check_keys(std::string_view where, const Mask& mask,
                                                 std::int64_t batch, std::int64_t queries,
                                                 std::int64_t keys) {
  if (mask.keys == nullptr) return nullptr;
  if (mask.key_count < 0)
    return fail(where, "mask.key_count must be 0 or more", std::to_string(mask.key_count));
  auto sorted = std::make_shared<SortedMask>(SortedMask{mask, {}});
  const auto size = static_cast<std::size_t>(mask.key_count);
  const std::int64_t rows = batch * queries;
  // A list of none has a place, so that there is something to point to.
  sorted->lists.resize(std::max<std::size_t>(static_cast<std::size_t>(rows) * size, 1));
  KeySorter sort(where, keys);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t from = static_cast<std::size_t>(row) * size;
    POSENC_CHECK(sort({mask.keys + from, size}, std::span(sorted->lists).subspan(from, size),
                      row % queries));
  }
  sorted->mask.keys = sorted->lists.data();
  return std::shared_ptr<const Mask>(sorted, &sorted->mask);
}

Expected<void> refuse_keys(std::string_view where, const Mask& mask, std::string_view rule,
                           std::string_view cure) {
  if (mask.keys == nullptr) return {};
  return fail(where, rule, "mask.keys", cure);
}

Expected<RelativeTables> check_added(std::string_view where, const Plan& plan, std::int64_t heads,
                                     std::int64_t head_dim, std::int64_t value_dim) {
  if (plan.bias) POSENC_CHECK(check_bias(where, *plan.bias, heads));
  if (!plan.relative) return RelativeTables{};
  POSENC_CHECK(check_takes(rooms::beside_vectors, plan, where));
  const Relative& r = *plan.relative;
  const std::int64_t columns = r.columns(head_dim);
  POSENC_TRY(query, relative_table(where, "query", r.uses_query, r.query, r, heads, columns));
  POSENC_TRY(key, relative_table(where, "key", r.uses_key, r.key, r, heads, columns));
  POSENC_TRY(value, relative_table(where, "value", r.uses_value, r.value, r, heads, value_dim));
  return RelativeTables{.part = &r, .query = query, .key = key, .value = value};
}

Expected<ProfileTensors> check_profiles(std::string_view where, const Plan& plan,
                                        const ProfileTensors& given, std::int64_t batch,
                                        std::int64_t heads, std::int64_t queries,
                                        std::int64_t keys) {
  const Relative none{.uses_key = false};
  const Relative& r = plan.relative && plan.relative->profiles > 0 ? *plan.relative : none;
  const auto check = [&](std::string_view name, const Tensor& x, bool used,
                         std::int64_t tokens) -> Expected<Tensor> {
    if (!x && !used) return Tensor{};
    if (!used)
      return fail(where, std::string(name) + " must be absent", shape_text(x),
                  "this plan's tables by distance do not meet them");
    const std::string rule = std::string(name) + " must be [" + std::to_string(batch) + ", " +
                             std::to_string(heads) + ", " + std::to_string(tokens) + ", " +
                             std::to_string(r.profiles) + "]";
    if (!x) return fail(where, rule, "none", "the plan's tables by distance meet them");
    POSENC_TRY(view, viewed(where, name, x, 4));
    if (view.shape[0] == batch && view.shape[1] == heads && view.shape[2] == tokens &&
        view.shape[3] == r.profiles)
      return view;
    return fail(where, rule, shape_text(x), "shapes read [batch, head, seq, profile]");
  };
  POSENC_TRY(query, check("profiles.query", given.query, r.uses_key, queries));
  POSENC_TRY(key, check("profiles.key", given.key, r.uses_query, keys));
  return ProfileTensors{.query = query, .key = key};
}

Expected<void> check_reach(const Plan& plan, const AttendArguments& in) {
  const Positions &queries = *in.queries, &keys = *in.keys;
  const auto check = [&](const DistanceRows& rows, std::int64_t axis) -> Expected<void> {
    if (reaches(rows, *in.mask, queries, keys, axis)) return {};
    for (std::int64_t b = 0; b < in.q.shape[0]; ++b) {
      for (std::int64_t i = 0; i < queries.size(); ++i) {
        for (std::int64_t j = 0; j < keys.size(); ++j) {
          if (!visible(*in.mask, queries, keys, b, i, j)) continue;
          POSENC_CHECK(rows.at(queries.at(i, b, axis) - keys.at(j, b, axis)));
        }
      }
    }
    return {};
  };
  for (std::int64_t list = 0; plan.relative && list < plan.relative->lists(); ++list)
    POSENC_CHECK(check(plan.relative->list(list), 0));
  const auto* const table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
  for (std::int64_t axis = 0; table != nullptr && axis < table->axes(); ++axis)
    POSENC_CHECK(check(table->of_axis(axis), axis));
  return {};
}

Expected<Tensor> check_sink_logits(std::string_view where, const Tensor& given, std::int64_t batch,
                                   std::int64_t heads, std::int64_t queries) {
  if (!given) return Tensor{};
  POSENC_CHECK(viewed(where, "sink_logits", given, given.rank));
  Tensor shared = given;
  shared.rank = 3;
  shared.shape = {batch, heads, queries};
  shared.stride = {0, given.stride[0], 0};
  if (given.rank == 1 && given.shape[0] == heads) return shared;
  if (given.rank == 3 &&
      std::equal(shared.shape.begin(), shared.shape.begin() + 3, given.shape.begin()))
    return given;
  const std::string of_heads = std::to_string(heads);
  return fail(where,
              "sink_logits must be [" + of_heads + "], or [" + std::to_string(batch) + ", " +
                  of_heads + ", " + std::to_string(queries) + "]",
              shape_text(given), "one for each query head, or for each query of each");
}

Expected<Tensor> number_by_query(std::string_view where, std::string_view name, const Tensor& given,
                                 const AttendArguments& in) {
  if (!given) return Tensor{};
  POSENC_TRY(view, viewed(where, name, given, 3));
  POSENC_CHECK(check_distinct(where, view));
  const bool fits = std::equal(in.q.shape.begin(), in.q.shape.begin() + 3, view.shape.begin());
  if (fits && size_of(view.dtype) >= sizeof(float)) return view;
  const std::string rule =
      std::string(name) + " must be float32 or float64 [batch, heads, queries], ";
  return fail(where, rule + "the first three of " + shape_text(in.q),
              shape_text(view) + " of " + std::string(posenc::name(view.dtype)));
}

Expected<Tensor> square_output(std::string_view where, std::string_view name, const Tensor& given,
                               const AttendArguments& in) {
  if (!given) return Tensor{};
  POSENC_TRY(view, viewed(where, name, given, 4));
  Tensor square = in.q;
  square.shape[3] = in.k.shape[2];
  POSENC_CHECK(check_shape(where, name, view, square));
  POSENC_CHECK(check_distinct(where, view));
  return view;
}

Expected<AttendArguments> attend_arguments(const Room& room, std::string_view where,
                                           const AttentionInputs& in, const Plan& plan,
                                           const Tensor& out, const Tensor& logits) {
  AttendArguments checked{.queries = &in.queries,
                          .keys = &in.keys,
                          .mask = &in.mask,
                          .threads = in.threads,
                          .meanwhile = in.meanwhile ? &in.meanwhile : nullptr,
                          .options = in.options};
  POSENC_CHECK(check_takes(room, plan, where));
  for (const auto& [name, from, to] : {std::tuple{"q", &in.q, &checked.q},
                                       {"k", &in.k, &checked.k},
                                       {"v", &in.v, &checked.v},
                                       {"out", &out, &checked.out}}) {
    POSENC_TRY(view, &room == &rooms::attend && (to == &checked.k || to == &checked.v)
                         ? viewed_cached(where, name, *from)
                         : viewed(where, name, *from, 4));
    if (has_8_bits(view.dtype)) {
      *to = view;
      continue;
    }
    const bool rounds_less =
        to == &checked.out && from->dtype == DType::f32 && size_of(in.q.dtype) < sizeof(float);
    if (from->dtype != in.q.dtype && !rounds_less) {
      return fail(
          where, "q, k, v and out must have one dtype",
          std::string(posenc::name(in.q.dtype)) + " and " + std::string(posenc::name(from->dtype)),
          "convert outside");
    }
    *to = view;
  }
  const std::int64_t batch = checked.q.shape[0], heads = checked.q.shape[1],
                     head_dim = checked.q.shape[3];
  const std::int64_t kv_heads = checked.k.shape[1];
  // Values, and so outputs, may be wider or narrower than keys.
  const std::int64_t value_dim = checked.v.shape[3];
  Tensor v_like = checked.k, out_like = checked.q;
  v_like.shape[3] = out_like.shape[3] = value_dim;
  POSENC_CHECK(check_shape(where, "v", checked.v, v_like));
  POSENC_CHECK(check_shape(where, "out", checked.out, out_like));
  POSENC_CHECK(check_distinct(where, checked.out));
  if (checked.k.shape[0] != batch || checked.k.shape[3] != head_dim) {
    return fail(where, "k must have the batch and head_dim of q, " + shape_text(checked.q),
                shape_text(checked.k), "shapes read [batch, head, seq, head_dim]");
  }
  if (heads != 0 && (kv_heads == 0 || heads % kv_heads != 0)) {
    return fail(where, "heads must be a multiple of kv_heads",
                std::to_string(heads) + " and " + std::to_string(kv_heads),
                "each key head serves heads/kv_heads query heads");
  }
  POSENC_TRY(square, square_output(where, "logits", logits, checked));
  checked.logits = square;
  POSENC_TRY(sinks, check_sink_logits(where, in.sink_logits, batch, heads, checked.q.shape[2]));
  checked.sink_logits = sinks;
  for (const auto& [positions, seq] :
       {std::pair{&in.queries, checked.q.shape[2]}, {&in.keys, checked.k.shape[2]}}) {
    const std::int64_t axes = axes_of(plan);
    POSENC_CHECK(
        check_positions(where, *positions, batch, seq, axes == 0 ? positions->axes() : axes));
    POSENC_CHECK(check_length(where, plan, *positions));
  }
  if (&room == &rooms::attend_content)
    POSENC_CHECK(refuse_keys(where, in.mask, "a scheme that reads the content must see all keys",
                             "what it makes of keys that nobody picked is not defined: drop them"));
  POSENC_TRY(listed, check_keys(where, in.mask, batch, checked.q.shape[2], checked.k.shape[2]));
  if (listed) {
    checked.mask = listed.get();
    checked.lists = std::move(listed);
  }
  if (in.mask.blocks != nullptr && in.mask.query_blocks == nullptr &&
      checked.q.shape[2] > checked.k.shape[2]) {
    return fail(where, "with blocks the queries must be the last of the keys");
  }
  if (in.queries.axes() != in.keys.axes() && in.queries.axes() != 1 && in.keys.axes() != 1) {
    return fail(where, "queries and keys must have the same axes",
                std::to_string(in.queries.axes()) + " and " + std::to_string(in.keys.axes()),
                "take both from one plan's positions");
  }
  if (plan.rotate) {
    POSENC_CHECK(check_rotation(where, *plan.rotate, Side::query, heads, head_dim));
    POSENC_CHECK(check_rotation(where, *plan.rotate, Side::key, kv_heads, head_dim));
    if (plan.rotate->rotates_values())
      POSENC_CHECK(check_rotation(where, *plan.rotate, Side::value, kv_heads, value_dim));
    POSENC_CHECK(check_engine(where, *plan.rotate, in.queries));
    POSENC_CHECK(check_engine(where, *plan.rotate, in.keys));
  }
  const auto* const slopes = plan.bias ? std::get_if<Slopes>(&*plan.bias) : nullptr;
  // Vectors by distance meet queries and keys before the scale; a bias beside them, which comes
  // after a softcap, would have to be told from them.
  const bool before_scale = plan.relative && plan.relative->profiles == 0 && plan.bias;
  if (plan.logits.softcap != 0 && (before_scale || (slopes != nullptr && slopes->before_scale)))
    return fail(
        where,
        "a softcap must stand beside rotations, vectors by distance or biases after the scale",
        before_scale ? "vectors by distance and a bias" : "slopes before the scale",
        "drop logits.softcap");
  if (plan.logits.temperature == Temperature::heads &&
      (std::ssize(plan.logits.head_scale) != heads || std::ssize(plan.logits.head_bias) != heads))
    return fail(where,
                "logits.head_scale and head_bias must have a number for each of " +
                    std::to_string(heads) + " heads",
                std::to_string(plan.logits.head_scale.size()) + " and " +
                    std::to_string(plan.logits.head_bias.size()),
                "take both from the checkpoint (softmax_scaling.scale and bias)");
  POSENC_CHECK(check_8_bits(where, in, plan));
  checked.key_scale = in.key_scale;
  checked.value_scale = in.value_scale;
  POSENC_TRY(relative, check_added(where, plan, heads, head_dim, value_dim));
  checked.relative = relative;
  POSENC_TRY(profiles, check_profiles(where, plan, in.profiles, batch, heads, checked.q.shape[2],
                                      checked.k.shape[2]));
  checked.profiles = profiles;
  return checked;
}

Expected<Tensor> gradient_like(std::string_view where, std::string_view name,
                               const Tensor& gradient, const Tensor& like) {
  if (!gradient) return Tensor{};
  const auto view = viewed(where, name, gradient, like.rank);
  if (!view) return view;
  POSENC_CHECK(check_shape(where, name, *view, like));
  const std::string out = std::string(where) + ": " + std::string(name);
  POSENC_CHECK(check_distinct(out, *view));
  return view;
}

Expected<Tensor> sink_gradient(std::string_view where, const Tensor& gradient,
                               const Tensor& sink_logits) {
  if (gradient && !sink_logits)
    return fail(where, "the gradient of the sink logits needs such logits", "none",
                "leave the gradient absent");
  return gradient_like(where, "the gradient of the sink logits", gradient, sink_logits);
}

Tensor dense_like(const Tensor& x) {
  return Tensor::dense(x.data, x.dtype, {x.shape[0], x.shape[1], x.shape[2], x.shape[3]});
}

std::int64_t query_parts(const AttendArguments& in) {
  constexpr std::int64_t tasks = 8, least_queries = 64;
  const std::int64_t groups = std::max<std::int64_t>(in.k.shape[0] * in.k.shape[1], 1);
  return std::max<std::int64_t>(
      std::min(tasks / groups, (in.q.shape[2] + least_queries - 1) / least_queries), 1);
}

}  // namespace posenc::detail
