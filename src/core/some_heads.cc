#include "src/core/some_heads.h"

#include <concepts>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "src/core/part_check.h"

namespace posenc::detail {
namespace {

// A walk over the members: those whose axes begin with heads lose the rows of the others.
struct Cut {
  Heads queries, keys;

  template <PlanPart T>
  void part(T& part, const Extents& around) const {
    const Extents extents = around.within(part);
    each_member(part, [&](const auto& row, auto& value) { any(part, row, value, extents); });
  }

 private:
  template <class T>
  Heads heads_of(const T& part, Axis axis) const {
    if constexpr (requires { part.side; })
      return part.side == Side::key ? keys : queries;
    else
      return axis == Axis::key_head ? keys : queries;
  }
  static bool by_head(const auto& row) {
    return row.axes[0] == Axis::head || row.axes[0] == Axis::key_head;
  }

  void any(const auto&, const auto&, PlanPart auto& value, const Extents& extents) const {
    part(value, extents);
  }
  template <class T>
  void any(const auto& in, const auto& row, std::optional<T>& value, const Extents& extents) const {
    if (value) any(in, row, *value, extents);
  }
  template <class... T>
  void any(const auto&, const auto&, std::variant<T...>& kind, const Extents& extents) const {
    std::visit([&](auto& each) { part(each, extents); }, kind);
  }
  // A count of heads, of which 1 shares all.
  void any(const auto& in, const auto& row, std::int64_t& count, const Extents&) const {
    if (by_head(row) && count > 1) count = heads_of(in, row.axes[0]).count;
  }
  void any(const auto& in, const auto& row, std::vector<double>& list,
           const Extents& extents) const {
    if (!by_head(row) || extents.of(row.axes[0]) == 1) return;
    const Heads heads = heads_of(in, row.axes[0]);
    const std::int64_t size = extents.product_of(row.axes, 1);
    if ((heads.first + heads.count) * size > std::ssize(list)) return;
    const auto first = list.begin() + heads.first * size;
    list = std::vector<double>(first, first + heads.count * size);
  }
  void any(const auto& in, const auto& row, Table& table, const Extents&) const {
    int rank = 0;
    for (const Axis axis : row.axes) rank += axis != Axis::none;
    if (by_head(row)) cut_heads(table, heads_of(in, row.axes[0]), rank);
  }
  void any(const auto&, const auto&, const auto&, const Extents&) const {}
};

}  // namespace

void cut_heads(Table& table, Heads heads, int rank) {
  Tensor& x = table.values;
  if (!table || x.rank != rank || x.shape[0] <= 1) return;
  if (heads.first + heads.count > x.shape[0]) return;  // of fewer heads: who reads it refuses it
  x.data = static_cast<std::byte*>(x.data) +
           heads.first * x.stride[0] * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[0] = heads.count;
}

Rotate some_heads(Rotate rotate, Heads queries, Heads keys) {
  Cut{queries, keys}.part(rotate, Extents::around_kind(rotate));
  return rotate;
}

Plan some_heads(Plan plan, Heads queries, Heads keys) {
  Cut{queries, keys}.part(plan, {});
  return plan;
}

}  // namespace posenc::detail
