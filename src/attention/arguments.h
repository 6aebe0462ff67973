// What every attention asks of its arguments, the same before each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>

#include "posenc/attention.h"
#include "posenc/features.h"

namespace posenc::detail {

// One of a rotation's regions: what a query sees of it. Null: all keys.
struct RegionOf {
  const Regions* all = nullptr;
  std::size_t which = 0;
};

// The plan's vectors by distance, each [head or 1][row][head_dim]; those it does not use are
// absent.
struct RelativeTables {
  const Relative* part = nullptr;  // of the plan; null: it has none
  Tensor query, key, value;
};

// Arguments that are known to fit each other and the plan.
struct AttendArguments {
  Tensor q, k, v, out, logits;  // of four axes; logits absent where nobody wants them
  Tensor log_sums = {};         // [batch, heads, queries]; absent where nobody wants them
  Tensor sink_logits = {};      // [batch, heads, queries], a stride 0 where shared; absent: none
  RelativeTables relative = {};
  ProfileTensors profiles = {};  // of four axes; absent where the plan asks for none
  const Positions *queries = nullptr, *keys = nullptr;  // the caller's
  const Mask* mask = nullptr;
  RegionOf region = {};  // of keys, beside the mask
  Threads threads = {};
  const std::function<void()>* meanwhile = nullptr;  // null: nothing
  std::shared_ptr<const void> lists =
      {};                     // that Mask::keys points to, where it is not the caller's
  bool keys_rotated = false;  // k, and v where the plan rotates values, come rotated (a cache's)
  double key_scale = 1, value_scale = 1;  // of k and v, in 8 bits
  AttendOptions options = {};

  std::int64_t group() const { return q.shape[1] / k.shape[1]; }
  double sink(std::int64_t b, std::int64_t head, std::int64_t query) const {
    return sink_logits ? sink_logits.get(sink_logits.offset(b, head, query))
                       : -std::numeric_limits<double>::infinity();
  }
};

Expected<AttendArguments> attend_arguments(const Room& room, std::string_view where,
                                           const AttentionInputs& in, const Plan& plan,
                                           const Tensor& out, const Tensor& logits = {});

// A mask whose lists of keys are in ascending order, as the kernels take them; null where it has no
// lists. Errors: a key that is not there, or twice in a list; a count below 0.
Expected<std::shared_ptr<const Mask>> check_keys(std::string_view where, const Mask& mask,
                                                 std::int64_t batch, std::int64_t queries,
                                                 std::int64_t keys);

// Errors: lists of keys, where what a query sees is more than a softmax over keys.
Expected<void> refuse_keys(std::string_view where, const Mask& mask, std::string_view rule,
                           std::string_view cure);

// log_sums, or what else has a number for each query of each head; absent where not wanted.
Expected<Tensor> number_by_query(std::string_view where, std::string_view name, const Tensor& given,
                                 const AttendArguments& in);

// Sink logits as [batch, heads, queries]; absent where none are given.
Expected<Tensor> check_sink_logits(std::string_view where, const Tensor& given, std::int64_t batch,
                                   std::int64_t heads, std::int64_t queries);

// An output [batch, heads, queries, keys]; absent where not wanted.
Expected<Tensor> square_output(std::string_view where, std::string_view name, const Tensor& given,
                               const AttendArguments& in);

// What the plan adds to logits and outputs fits these heads: its tables of vectors, seen as they
// are read.
Expected<RelativeTables> check_added(std::string_view where, const Plan& plan, std::int64_t heads,
                                     std::int64_t head_dim, std::int64_t value_dim);

// Queries or keys in the width that they multiply in: that of x, or a polar rotation's.
inline Tensor widened(const Plan& plan, Tensor x) {
  if (plan.rotate) x.shape[3] += plan.rotate->widening();
  return x;
}

// The profiles that the plan's tables meet, and no others.
Expected<ProfileTensors> check_profiles(std::string_view where, const Plan& plan,
                                        const ProfileTensors& given, std::int64_t batch,
                                        std::int64_t heads, std::int64_t queries,
                                        std::int64_t keys);

// Every distance between a query and a key that it sees is in the plan's tables. Errors: one that
// is not.
Expected<void> check_reach(const Plan& plan, const AttendArguments& in);

// A gradient as it is written, of the rank of `like`; absent where not wanted. Errors: another
// shape, elements that share memory.
Expected<Tensor> gradient_like(std::string_view where, std::string_view name,
                               const Tensor& gradient, const Tensor& like);

// That of the sink logits, in their rank. Errors: none were given.
Expected<Tensor> sink_gradient(std::string_view where, const Tensor& gradient,
                               const Tensor& sink_logits);

// The same extents with memory of its own: a gradient that is read may be broadcast, as no output
// may.
Tensor dense_like(const Tensor& x);

// Into how many parts gradients cut the queries of a key head, each with sums of its own for keys
// and values: where key heads are few, threads need more to share out. It depends on the shapes
// alone, as the bits do.
std::int64_t query_parts(const AttendArguments& in);

// Calls act(first) for the part's tiles of `count` queries. Parts are dealt forwards and backwards
// in turns: under a causal mask later tiles have more to do.
template <class Act>
void each_tile_of(std::int64_t part, std::int64_t parts, std::int64_t count, std::int64_t tile,
                  const Act& act) {
  for (std::int64_t round = 0; round * parts * tile < count; ++round) {
    const std::int64_t first = (round * parts + (round % 2 == 0 ? part : parts - 1 - part)) * tile;
    if (first < count) act(first);
  }
}

}  // namespace posenc::detail
