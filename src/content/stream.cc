// What the loop of stream.h needs once a call: which keys the queries see, as bits, and queries,
// keys and values loaded, rotated and cut into blocks.
#include "src/content/stream.h"

#include <cstring>
#include <string>
#include <utility>

#include "src/attention/visible.h"

namespace posenc::detail {
namespace {

std::int64_t blocks_of(std::int64_t keys) { return (keys + block_keys - 1) / block_keys; }

// Bits [first, last) of a word.
std::uint64_t bits(std::int64_t first, std::int64_t last) {
  first = std::max<std::int64_t>(first, 0);
  last = std::min(last, block_keys);
  if (first >= last) return 0;
  return ~std::uint64_t{0} >> (block_keys - (last - first)) << first;
}

}  // namespace

MaskWords::MaskWords(const ContentCall& call, bool past_only)
    : mask_(&call.in.mask),
      queries_(&call.in.queries),
      keys_(&call.in.keys),
      blocks_(blocks_of(keys_->size())),
      past_only_(past_only),
      // Then the keys that a query sees stand beside each other.
      interval_(keys_->contiguous() && queries_->axes() == 1 && mask_->chunk <= 0 &&
                mask_->prefix <= 0) {
  const std::int64_t sequences = mask_->keep == nullptr ? 1 : call.batch();
  kept_.resize(static_cast<std::size_t>(sequences * blocks_));
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (std::int64_t j = 0; j < keys_->size(); ++j) {
      const auto word = static_cast<std::size_t>(b * blocks_ + j / block_keys);
      if (call.keeps(b, j)) kept_[word] |= std::uint64_t{1} << (j % block_keys);
    }
  }
}

std::uint64_t MaskWords::word(std::int64_t b, std::int64_t i, std::int64_t block) const {
  const std::int64_t start = block * block_keys;
  const auto row = mask_->keep == nullptr ? 0 : b;
  std::uint64_t word = kept_[static_cast<std::size_t>(row * blocks_ + block)];
  const std::int64_t query = queries_->at(i, b);
  if (interval_) {
    if (queries_->segment(i) != 0) return 0;
    // Bit 0 is that many positions before the query. Distances and windows may be too large to be
    // added.
    const std::int64_t ahead = query - keys_->at(start, b), window = mask_->window;
    std::int64_t first = 0, last = block_keys;
    if (window > 0) {
      if (ahead >= window) first = ahead - window + 1;
      if (window < block_keys - ahead) last = ahead + window;
    }
    if (mask_->causal) last = std::min(last, ahead + 1);
    if (past_only_) last = std::min(last, ahead);
    return word & bits(first, last);
  }
  const bool by_position = queries_->axes() == 1 && keys_->axes() == 1;
  const std::int64_t own = first_order(*queries_, *keys_) + queries_->order(i);
  for (std::uint64_t left = word; left != 0; left &= left - 1) {
    const std::int64_t j = start + std::countr_zero(left);
    const bool past = by_position ? keys_->at(j, b) < query : j < own;
    if ((past_only_ && !past) || !visible(*mask_, *queries_, *keys_, b, i, j)) {
      word &= ~(left & -left);
    }
  }
  return word;
}

Expected<void> check_counted(const ContentCall& call) {
  const Mask& mask = call.in.mask;
  const Positions& keys = call.in.keys;
  if (!mask.causal || mask.prefix > 0 || mask.blocks != nullptr) {
    return fail(call.where, "the mask must be causal, without a prefix or blocks",
                !mask.causal      ? "causal false"
                : mask.prefix > 0 ? "prefix " + std::to_string(mask.prefix)
                                  : "blocks",
                "what lies between a query and a key of its future is not defined");
  }
  if (keys.contiguous() || keys.axes() != 1) return {};
  for (std::int64_t b = 0; b < call.batch(); ++b) {
    std::int64_t before = -1;
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      if (!call.keeps(b, j)) continue;
      const bool same = before >= 0 && keys.segment(before) == keys.segment(j);
      if (same && keys.at(j, b) < keys.at(before, b)) {
        return fail(call.where, "keys must stand in the order of their positions",
                    std::to_string(keys.at(j, b)) + " after " + std::to_string(keys.at(before, b)),
                    "sort keys, values and gates by position, or hide padding with Mask::keep");
      }
      before = j;
    }
  }
  return {};
}

std::vector<std::int64_t> own_keys(const ContentCall& call) {
  const Positions &queries = call.in.queries, &keys = call.in.keys;
  std::vector<std::int64_t> own, order;
  own.reserve(static_cast<std::size_t>(call.batch() * queries.size()));
  const bool by_position = queries.axes() == 1 && keys.axes() == 1;
  for (std::int64_t b = 0; b < call.batch(); ++b) {
    order.clear();
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      if (call.keeps(b, j)) order.push_back(j);
    }
    for (std::int64_t i = 0; i < queries.size(); ++i) {
      const std::int64_t last = first_order(queries, keys) + queries.order(i);
      const std::pair at{queries.segment(i), queries.at(i, b)};
      const auto after = std::ranges::partition_point(order, [&](std::int64_t j) {
        return by_position ? std::pair{keys.segment(j), keys.at(j, b)} <= at : j <= last;
      });
      const bool found = after != order.begin() && keys.segment(after[-1]) == at.first;
      own.push_back(found ? after[-1] : -1);
    }
  }
  return own;
}

bool TokensInReach::has(std::int64_t b, std::int64_t j) {
  if (in_reach_.empty()) find();
  return in_reach_[static_cast<std::size_t>(b * call_->in.keys.size() + j)] != 0;
}

void TokensInReach::find() {
  const std::int64_t keys = call_->in.keys.size(), queries = call_->in.queries.size();
  in_reach_.assign(static_cast<std::size_t>(call_->batch() * keys), 0);
  const MaskWords seen(*call_);
  const std::vector<std::int64_t> own = own_keys(*call_);
  std::vector<std::int64_t> begins(static_cast<std::size_t>(keys) + 1);
  for (std::int64_t b = 0; b < call_->batch(); ++b) {
    std::ranges::fill(begins, 0);
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t last = own[static_cast<std::size_t>(b * queries + i)];
      for (std::int64_t block = 0; block * block_keys <= last; ++block) {
        const std::uint64_t word = seen.word(b, i, block);
        if (word == 0) continue;
        const std::int64_t oldest = block * block_keys + std::countr_zero(word);
        ++begins[static_cast<std::size_t>(oldest)];
        --begins[static_cast<std::size_t>(last) + 1];
        break;
      }
    }
    std::int64_t open = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      open += begins[static_cast<std::size_t>(j)];
      in_reach_[static_cast<std::size_t>(b * keys + j)] = open > 0 ? 1 : 0;
    }
  }
}

template <class T>
Expected<Streamed<T>> Streamed<T>::of(const ContentCall& call, bool with_raw) {
  const AttendArguments& in = call.checked;
  const Plan& plan = call.plan;
  const Positions &queries = call.in.queries, &keys = call.in.keys;
  Streamed s;
  s.batch = in.q.shape[0];
  s.heads = in.q.shape[1];
  s.queries = in.q.shape[2];
  s.head_dim = in.q.shape[3];
  s.kv_heads = in.k.shape[1];
  s.keys = in.k.shape[2];
  s.value_dim = in.v.shape[3];
  s.dim = padded(s.head_dim);
  s.v_step = padded(s.value_dim);
  s.blocks = blocks_of(s.keys);
  const std::int64_t query_rows = s.batch * s.heads * s.queries;
  const std::int64_t key_rows = s.batch * s.kv_heads * s.blocks * block_keys;

  s.q = loaded_rows<T>(in.q, s.queries);
  s.outputs = Aligned<T>(query_rows * s.v_step);
  if (with_raw) {
    s.raw = Aligned<T>(query_rows * s.dim);
    std::copy_n(s.q.data(), query_rows * s.dim, s.raw.data());
  }
  const Tensor q = padded_view(s.q.data(), s.batch, s.heads, s.queries, s.head_dim, s.dim);
  POSENC_CHECK(rotate(plan, q, queries, Side::query, q, call.in.threads));
  for (std::int64_t row = 0; row < query_rows; ++row) {
    const std::int64_t b = row / (s.heads * s.queries);
    const double position_scale =
        plan.logits.query_scale(queries.at(row % s.queries, b), row / s.queries % s.heads);
    const T scale = static_cast<T>(position_scale / std::sqrt(static_cast<double>(s.head_dim)));
    scale_row(s.q.data() + row * s.dim, s.dim, scale);
  }

  const auto rotated = [&](const Tensor& x, Side side, Aligned<T>& rows) -> Expected<void> {
    rows = loaded_rows<T>(x, s.blocks * block_keys);
    if (side == Side::value && !(plan.rotate && plan.rotate->rotates_values())) return {};
    Tensor view = padded_view(rows.data(), s.batch, s.kv_heads, s.blocks * block_keys, x.shape[3],
                              padded(x.shape[3]));
    view.shape[2] = s.keys;
    return rotate(plan, view, keys, side, view, call.in.threads);
  };
  POSENC_CHECK(rotated(in.v, Side::value, s.v));
  Aligned<T> rows;
  POSENC_CHECK(rotated(in.k, Side::key, rows));
  s.k = Aligned<T>(key_rows * s.dim);
  s.finite.assign(static_cast<std::size_t>(s.batch * s.kv_heads * s.blocks), 1);
  const std::int64_t block_size = block_keys * s.dim;
  for (std::int64_t block = 0; block < s.batch * s.kv_heads * s.blocks; ++block) {
    const T* const from = rows.data() + block * block_size;
    T* const to = s.k.data() + block * block_size;
    transpose(from, s.dim, block_keys, s.dim, to, block_keys);
    s.finite[static_cast<std::size_t>(block)] =
        all_finite(s.v.data() + block * block_keys * s.v_step, s.v_step, block_keys, s.v_step) ? 1
                                                                                               : 0;
  }
  return s;
}

template <class T>
Expected<void> Streamed<T>::write(const ContentCall& call) {
  if (call.plan.rotate && call.plan.rotate->rotates_outputs()) {
    const Tensor rows = padded_view(outputs.data(), batch, heads, queries, value_dim, v_step);
    POSENC_CHECK(
        rotate_inverse(call.plan, rows, call.in.queries, Side::value, rows, call.in.threads));
  }
  write_rows(outputs, queries, call.checked.out);
  return {};
}

template struct Streamed<float>;
template struct Streamed<double>;

}  // namespace posenc::detail
