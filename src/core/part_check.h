// The rules that a part's rows state: how many numbers a list has, and which each of them may be.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "posenc/plan.h"
#include "src/core/saturating.h"
#include "src/core/try.h"

namespace posenc::detail {

// How long the axes of a part's lists are: what it counts itself, the rest as the part around it
// has it; -1: not known.
class Extents {
 public:
  template <PlanPart T>
  Extents within(const T& part) const {
    Extents own = *this;
    each_member(part, [&](const auto& row, const auto& value) {
      if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, std::int64_t>)
        if (row.axes[0] != Axis::none) own.of_[static_cast<std::size_t>(row.axes[0])] = value;
    });
    if constexpr (requires { part.pairs(); })
      own.of_[static_cast<std::size_t>(Axis::pair)] = part.pairs();
    return own;
  }
  // What a rotation's kind has around it.
  static Extents around_kind(const Rotate& rotate) {
    return Extents().within(rotate.slice).within(rotate.frequencies);
  }
  std::int64_t of(Axis axis) const { return of_[static_cast<std::size_t>(axis)]; }
  // Of a list's axes behind `first`, saturating; -1 where one is not known.
  std::int64_t product_of(const std::array<Axis, 3>& axes, std::size_t first = 0) const {
    std::int64_t all = 1;
    for (std::size_t i = first; i < axes.size(); ++i) {
      if (axes[i] == Axis::none) break;
      const std::int64_t extent = of(axes[i]);
      if (extent < 0) return -1;
      all = product(all, extent);
    }
    return all;
  }
  // "1 x 2 x 4 numbers, [head][axis][pair]"
  std::string text(const std::array<Axis, 3>& axes) const;

 private:
  std::array<std::int64_t, 9> of_ = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
};

constexpr std::string_view mend = "compile the plan from a scheme, or mend it";

// A list of numbers is as long as its axes say. Counts are in their range first.
template <PlanPart T>
Expected<void> check_sizes(std::string_view where, std::string_view path, const T& part,
                           const Extents& around) {
  const Extents extents = around.within(part);
  Expected<void> ok = {};
  each_member(part, [&](const auto& row, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if (!ok || row.axes[0] == Axis::none) return;
    if constexpr (requires { value.empty(); })
      if (row.left_out && value.empty()) return;
    if constexpr (std::same_as<Value, std::int64_t>) {
      if (row.range.contains(static_cast<double>(value))) return;
      ok = fail(where, std::string(path) + "." + std::string(row.name) + " " + rule_of(row.range),
                std::to_string(value), mend);
    } else if constexpr (std::same_as<Value, std::vector<double>>) {
      const std::int64_t wanted = extents.product_of(row.axes);
      if (wanted < 0 || std::cmp_equal(wanted, value.size())) return;
      ok = fail(
          where,
          std::string(path) + "." + std::string(row.name) + " must hold " + extents.text(row.axes),
          std::to_string(value.size()), mend);
    }
  });
  return ok;
}

// Each number of a part, and of the parts in it, is finite and within its row's range.
class NumberCheck {
 public:
  template <PlanPart T>
  static Expected<void> of(std::string_view path, const T& part) {
    NumberCheck check(path);
    check.members(part);
    return std::move(check.ok_);
  }

 private:
  explicit NumberCheck(std::string_view path) : path_(path) {}

  template <PlanPart T>
  void members(const T& part) {
    each_member(part, [&](const auto& row, const auto& value) {
      if (!ok_) return;
      if (row.inlined)
        any(row, value);
      else
        within(".", row.name, [&] { any(row, value); });
    });
  }
  // `check` of what stands one step further down the path.
  void within(std::string_view sign, std::string_view name, const auto& check) {
    const std::size_t here = path_.size();
    path_.append(sign).append(name);
    check();
    path_.resize(here);
  }

  template <PlanPart T>
  void any(const auto&, const T& value) {
    members(value);
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void any(const auto& row, T value) {
    if constexpr (!std::same_as<T, bool>) number(row.range, static_cast<double>(value), "");
  }
  template <class T>
  void any(const auto& row, const std::vector<T>& list) {
    for (std::size_t i = 0; i < list.size() && ok_; ++i) {
      if constexpr (PlanPart<T>)
        within("[", std::to_string(i) + "]", [&] { members(list[i]); });
      else if constexpr (std::is_arithmetic_v<T>)
        if (const auto value = static_cast<double>(list[i]); !row.range.contains(value))
          number(row.range, value, " at index " + std::to_string(i));
    }
  }
  template <class T>
  void any(const auto& row, const std::optional<T>& value) {
    if (value) any(row, *value);
  }
  template <class... T>
  void any(const auto&, const std::variant<T...>& value) {
    std::visit([&](const auto& kind) { within(".", kind.name, [&] { members(kind); }); }, value);
  }
  void any(const auto&, const Table&) {}
  void any(const auto&, const RowList&) {}
  template <class T>
    requires std::is_enum_v<T>
  void any(const auto&, T) {}

  void number(const Range& range, double value, const std::string& at) {
    if (range.contains(value)) return;
    const bool finite = std::isfinite(value);
    ok_ = fail("plan", path_ + " " + (finite ? rule_of(range) : "must be finite"),
               number_text(value) + at, mend);
  }

  std::string path_;  // of what is checked now: one text, since plans are checked at each compile
  Expected<void> ok_ = {};
};

}  // namespace posenc::detail
