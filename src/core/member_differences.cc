// A walk over two plans, member by member. What differs is told by its path and as text.
#include "src/core/member_differences.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

#include "src/core/plan_members.h"

namespace posenc::detail {

bool nearly(double a, double b) {
  return std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b));
}

bool nearly(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return nearly(x, y); });
}

namespace {

template <class T>
concept Named = std::is_enum_v<T>;
template <class T>
concept Number = std::is_arithmetic_v<T>;

std::string text_of(bool yes) { return yes ? "true" : "false"; }
std::string text_of(Named auto word) { return std::string(name(word)); }
std::string text_of(std::floating_point auto number) {
  return number_text(static_cast<double>(number));
}
std::string text_of(std::integral auto number) {
  return std::cmp_equal(number, std::numeric_limits<std::int64_t>::max()) ? "none"
                                                                          : std::to_string(number);
}

bool alike(std::floating_point auto a, std::floating_point auto b) {
  return a == b || nearly(static_cast<double>(a), static_cast<double>(b));
}
template <class T>
  requires(Named<T> || std::integral<T>)
bool alike(T a, T b) {
  return a == b;
}

class Walk {
 public:
  std::vector<MemberDifference> found;

  template <PlanPart T>
  void compare(const std::string& path, const T& a, const T& b) {
    each_member(a, b, [&](std::string_view name, const auto& x, const auto& y) {
      compare(path.empty() ? std::string(name) : path + "." + std::string(name), x, y);
    });
  }

  template <class T>
    requires(Named<T> || Number<T>)
  void compare(const std::string& path, T a, T b) {
    if (!alike(a, b)) found.push_back({path, text_of(a), text_of(b)});
  }

  void compare(const std::string& path, const Table& a, const Table& b) {
    if (a == b) return;
    const auto text = [](const Table& table) {
      return table ? "a table " + shape_text(table.values) : std::string("none");
    };
    std::string ours = text(a), theirs = text(b);
    if (ours == theirs) theirs = "other numbers";
    found.push_back({path, std::move(ours), std::move(theirs)});
  }

  template <class T>
  void compare(const std::string& path, const std::optional<T>& a, const std::optional<T>& b) {
    if (a && b)
      compare(path, *a, *b);
    else if (a || b)
      found.push_back({path, a ? "given" : "none", b ? "given" : "none"});
  }

  template <class... T>
  void compare(const std::string& path, const std::variant<T...>& a, const std::variant<T...>& b) {
    if (a.index() != b.index()) {
      found.push_back({path, kind_of(a), kind_of(b)});
      return;
    }
    std::visit(
        [&](const auto& ours) {
          compare(path, ours, std::get<std::remove_cvref_t<decltype(ours)>>(b));
        },
        a);
  }

  template <class T>
  void compare(const std::string& path, const std::vector<T>& a, const std::vector<T>& b) {
    lists(path, a, b);
  }
  void compare(const std::string& path, const RowList& a, const RowList& b) { lists(path, a, b); }

 private:
  // Of numbers the first that differs, of parts each.
  void lists(const std::string& path, const auto& a, const auto& b) {
    if (a.size() != b.size()) {
      found.push_back(
          {path, std::to_string(a.size()) + " entries", std::to_string(b.size()) + " entries"});
      return;
    }
    const std::size_t before = found.size();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto& x = a[i];
      compare(path + "[" + std::to_string(i) + "]", x, b[i]);
      if (!PlanPart<std::remove_cvref_t<decltype(x)>> && found.size() > before) return;
    }
  }

  static std::string kind_of(const std::variant<Waves, Rows, Ramp>& kind) {
    constexpr std::string_view names[] = {"waves", "rows", "the index"};
    return std::string(names[kind.index()]);
  }
  static std::string kind_of(const Bias& kind) {
    constexpr std::string_view names[] = {"slopes", "a table"};
    return std::string(names[kind.index()]);
  }
};

template <class T>
std::vector<MemberDifference> walked(const T& a, const T& b) {
  Walk walk;
  walk.compare("", a, b);
  return std::move(walk.found);
}

}  // namespace

std::vector<MemberDifference> member_differences(const Plan& a, const Plan& b) {
  return walked(a, b);
}
std::vector<MemberDifference> member_differences(const Add& a, const Add& b) {
  return walked(a, b);
}
std::vector<MemberDifference> member_differences(const Rotate& a, const Rotate& b) {
  return walked(a, b);
}
std::vector<MemberDifference> member_differences(const Bias& a, const Bias& b) {
  return walked(a, b);
}
std::vector<MemberDifference> member_differences(const Relative& a, const Relative& b) {
  return walked(a, b);
}
std::vector<MemberDifference> member_differences(const Logits& a, const Logits& b) {
  return walked(a, b);
}

bool is_of(std::string_view member, std::string_view path) {
  return path.starts_with(member) &&
         (path.size() == member.size() || path[member.size()] == '.' || path[member.size()] == '[');
}

std::string told(const std::vector<MemberDifference>& differences) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i) {
    const MemberDifference& one = differences[i];
    text += (i ? ", " : "") + (one.member.empty() ? "" : one.member + " ") + one.expected +
            " against " + one.found;
  }
  if (differences.size() > most)
    text += " and " + std::to_string(differences.size() - most) + " more";
  return text;
}

}  // namespace posenc::detail
