// What the files of schemes share: what they need of the geometry, and how large a table may be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::detail {

// Entries of one table. More is a slip of a digit, not a model.
constexpr std::int64_t max_entries = std::int64_t{1} << 26;

struct Size {
  std::string_view name;
  std::int64_t value;
};

// "alibi: heads must be known, got 0; set --heads", for the first size that is not positive.
inline Expected<void> known(std::string_view where, std::initializer_list<Size> sizes) {
  for (const auto& [name, value] : sizes) {
    if (value > 0) continue;
    std::string flag = "--" + std::string(name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    return fail(where, std::string(name) + " must be known", std::to_string(value), "set " + flag);
  }
  return {};
}

// position_scale: a number for each axis of the positions, one for all, or none, which is 1.
inline Expected<void> check_position_scale(std::string_view where,
                                           const std::vector<double>& scales, std::size_t axes) {
  if (scales.size() <= 1 || scales.size() == axes) return {};
  return fail(
      where,
      "position_scale must have one number, or one for each of " + std::to_string(axes) + " axes",
      std::to_string(scales.size()), "leave it out for 1");
}
inline double of_axis(const std::vector<double>& scales, std::size_t axis) {
  return scales.empty() ? 1 : scales[scales.size() == 1 ? 0 : axis];
}

// Refuses a table of a × b entries (b at least 1) that nobody can mean.
inline Expected<void> affordable(std::string_view where, Size a, Size b = {"", 1}) {
  if (a.value <= max_entries / b.value) return {};
  const bool product = !b.name.empty();
  return fail(where,
              std::string(a.name) + (product ? " × " + std::string(b.name) : "") +
                  " must be at most 2^26 = 67108864",
              std::to_string(a.value) + (product ? " × " + std::to_string(b.value) : ""),
              "give a smaller " + std::string(a.name));
}

// Refuses a head that nobody has: a thousand times as wide as those of today's models.
constexpr std::int64_t widest_head = std::int64_t{1} << 20;

inline Expected<void> usable_head_dim(std::string_view where, std::int64_t head_dim) {
  POSENC_CHECK(known(where, {{"head_dim", head_dim}}));
  if (head_dim <= widest_head) return {};
  return fail(where, "head_dim must be at most 2^20 = 1048576", std::to_string(head_dim),
              "give the channels of one head");
}

// A borrowed table must have this shape; 0 allows any extent, and a table not given yet passes.
inline Expected<void> shaped(std::string_view where, const Table& table,
                             std::initializer_list<std::int64_t> shape) {
  if (!table) return {};
  const Tensor& values = table.values;
  std::string wanted;
  bool same = values.rank == static_cast<int>(shape.size());
  std::size_t axis = 0;
  for (const std::int64_t extent : shape) {
    wanted += (axis == 0 ? "" : ", ") + (extent == 0 ? "any" : std::to_string(extent));
    same = same && (extent == 0 || values.shape[axis] == extent);
    ++axis;
  }
  if (same) return {};
  return fail(where, "must have shape [" + wanted + "]", shape_text(values),
              "check the rows and the geometry");
}

// Row |distance| for every distance within a length; beyond, asking is an error.
inline Expected<DistanceRows> every_distance(std::string_view where, std::int64_t length) {
  if (auto ok = affordable(where, {"length", length}, {"directions", 2}); !ok) {
    return std::unexpected(ok.error());
  }
  std::vector<std::int32_t> row;
  row.reserve(static_cast<std::size_t>(2 * length - 1));
  for (std::int64_t distance = 1 - length; distance < length; ++distance)
    row.push_back(static_cast<std::int32_t>(std::abs(distance)));
  return DistanceRows{.first = 1 - length, .row = std::move(row), .saturates = false};
}

// A plan of a bias alone. A table [row][head], where one is given, has the values [head][row].
inline Plan plan_of(BiasTable bias, const Table& table = {}) {
  if (table) bias.values = table.viewed(table.values.swapped(0, 1));
  Plan plan;
  plan.bias = std::move(bias);
  return plan;
}

// The same of values [curve][|distance|], for as long as they are.
inline Plan plan_of_curves(DistanceRows rows, std::vector<double> values, std::int64_t curves,
                           std::int64_t length) {
  Plan plan = plan_of({.rows = std::move(rows),
                       .row_count = length,
                       .values = Table::own(std::move(values), curves, length),
                       .bidirectional = true});
  plan.valid = Lengths{.to = length};
  return plan;
}

}  // namespace posenc::detail
