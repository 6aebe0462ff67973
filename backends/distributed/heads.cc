#include "backends/distributed/heads.h"

#include <algorithm>
#include <variant>

#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::mpi {
namespace {

std::vector<double> some(const std::vector<double>& of_heads, Heads heads) {
  const auto first = of_heads.begin() + heads.first;
  return {first, first + heads.count};
}

// Messages of some tensors, [batch, heads, tokens, width] each with its own heads.
struct Parcel {
  Bytes bytes;
  std::vector<Tensor> views;

  Parcel(std::span<const Tensor> like, std::span<const std::int64_t> heads, std::int64_t tokens) {
    const auto size = [&](std::size_t n) {
      return like[n].shape[0] * heads[n] * tokens * like[n].shape[3] *
             static_cast<std::int64_t>(size_of(like[n].dtype));
    };
    std::int64_t all = unit;
    for (std::size_t n = 0; n < like.size(); ++n) all += units(size(n)) * unit;
    bytes = bytes_for(all);
    std::byte* next = bytes.data();
    for (std::size_t n = 0; n < like.size(); ++n) {
      views.push_back(Tensor::dense(next, like[n].dtype,
                                    {like[n].shape[0], heads[n], tokens, like[n].shape[3]}));
      next += units(size(n)) * unit;
    }
  }
};

// Messages to all ranks, or from all, and what lies in each.
struct Mail {
  std::vector<Bytes> bytes;
  std::vector<std::vector<Tensor>> views;  // [rank][tensor]
  void add(Parcel parcel) {
    bytes.push_back(std::move(parcel.bytes));
    views.push_back(std::move(parcel.views));
  }
};

}  // namespace

Tensor some_heads(Tensor x, Heads heads, std::size_t axis) {
  x.data = static_cast<std::byte*>(x.data) +
           heads.first * x.stride[axis] * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[axis] = heads.count;
  return x;
}

Expected<ContentScheme> scheme_of(const ContentScheme& scheme, std::int64_t all, Heads heads) {
  ContentScheme of_heads = scheme;
  const std::vector<FieldSetting> fields = settings(scheme);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Holds& holds = info(scheme).fields[i].holds;
    if (!holds.axes.has(Axis::head)) continue;
    auto numbers = std::get<std::vector<double>>(fields[i].value);
    if (numbers.empty() && holds.alibi) {
      POSENC_TRY(slopes, alibi_slopes(all));
      numbers = std::move(slopes);
    }
    const std::int64_t row = std::ssize(numbers) / all;  // 0: one number for all heads
    if (row > 0)
      POSENC_CHECK(set_field(of_heads, fields[i].name,
                             some(numbers, {heads.first * row, heads.count * row})));
  }
  for (const TableInfo& table : info(scheme).tables) {
    if (table.holds.axes.of_tokens() || !table.holds.axes.has(Axis::head)) continue;
    Table of_table = *table_of(scheme, table.name);
    detail::cut_heads(of_table, heads, static_cast<int>(table.holds.axes.count));
    POSENC_CHECK(set_table(of_heads, table.name, std::move(of_table)));
  }
  return of_heads;
}

Expected<TokenTable> TokenTable::of(const ContentScheme* scheme) {
  TokenTable found;
  if (scheme == nullptr) return found;
  for (const TableInfo& table : info(*scheme).tables) {
    if (!table.holds.axes.of_tokens()) continue;
    if (!found.name.empty() || table.holds.axes != Axes{Axis::batch, Axis::head, Axis::key})
      return fail("attend", "ranks pass on one table of each token, [batch][heads][keys]",
                  std::string(info(*scheme).name) + "." + std::string(table.name),
                  "attend on one machine");
    found.name = table.name;
    const Tensor& values = table_of(*scheme, table.name)->values;
    if (values && values.rank <= 3) found.values = values.with_rank(3);
  }
  return found;
}

Heads HeadShares::key_heads(int rank) const {
  const std::int64_t first = kv_heads_ * rank / ranks_.size();
  return {first, kv_heads_ * (rank + 1) / ranks_.size() - first};
}

Heads HeadShares::query_heads(int rank) const {
  const Heads keys = key_heads(rank);
  const std::int64_t group = heads_ / kv_heads_;
  return {keys.first * group, keys.count * group};
}

Heads HeadShares::share(std::int64_t heads, int rank) const {
  return heads == heads_ ? query_heads(rank) : key_heads(rank);
}

Expected<std::vector<Owned>> HeadShares::by_heads(std::span<const Tensor> of_tokens) {
  const auto counts = [&](int rank) {
    std::vector<std::int64_t> all;
    for (const Tensor& x : of_tokens) all.push_back(share(x.shape[1], rank).count);
    return all;
  };
  Mail out, in;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    out.add(Parcel(of_tokens, counts(rank), layout_.size(ranks_.rank())));
    in.add(Parcel(of_tokens, counts(ranks_.rank()), layout_.size(rank)));
    for (std::size_t n = 0; n < of_tokens.size(); ++n)
      copy_tokens(some_heads(of_tokens[n], share(of_tokens[n].shape[1], rank)), {},
                  out.views.back()[n], {});
  }
  POSENC_CHECK(ranks_.exchange(out.bytes, in.bytes));
  std::vector<Owned> whole;
  for (std::size_t n = 0; n < of_tokens.size(); ++n) {
    const Tensor& x = of_tokens[n];
    whole.emplace_back(x.dtype, x.shape[0], share(x.shape[1], ranks_.rank()).count,
                       layout_.tokens(), x.shape[3]);
    for (int rank = 0; rank < ranks_.size(); ++rank)
      copy_tokens(in.views[static_cast<std::size_t>(rank)][n], {}, whole.back().view(),
                  layout_.tokens_of(rank));
  }
  return whole;
}

Expected<void> HeadShares::by_tokens(std::span<const Tensor> of_heads, std::span<const Tensor> to) {
  Mail out, in;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    std::vector<std::int64_t> own, theirs;
    for (const Tensor& x : of_heads) own.push_back(x.shape[1]);
    for (const Tensor& x : to) theirs.push_back(share(x.shape[1], rank).count);
    const std::vector<std::int64_t> tokens = layout_.tokens_of(rank);
    out.add(Parcel(of_heads, own, std::ssize(tokens)));
    in.add(Parcel(of_heads, theirs, layout_.size(ranks_.rank())));
    for (std::size_t n = 0; n < of_heads.size() && !tokens.empty(); ++n)
      copy_tokens(of_heads[n], tokens, out.views.back()[n], {});
  }
  POSENC_CHECK(ranks_.exchange(out.bytes, in.bytes));
  for (int rank = 0; rank < ranks_.size(); ++rank)
    for (std::size_t n = 0; n < to.size(); ++n)
      copy_tokens(in.views[static_cast<std::size_t>(rank)][n], {},
                  some_heads(to[n], share(to[n].shape[1], rank)), {});
  return {};
}

}  // namespace posenc::mpi
