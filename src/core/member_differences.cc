// A walk over two plans, member by member. What differs is told by its path and as text.
#include "src/core/member_differences.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

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
    each_member(a, b, [&](const auto& row, const auto& x, const auto& y) {
      compare(row.inlined ? path : below(path, row.name), x, y);
    });
  }

  template <class T>
    requires(Named<T> || Number<T>)
  void compare(const std::string& path, T a, T b) {
    if (!alike(a, b)) found.push_back({path, text_of(a), text_of(b)});
  }

  void compare(const std::string& path, const std::string& a, const std::string& b) {
    if (a != b) found.push_back({path, a, b});
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
      found.push_back({below(path, "kind"), kind_of(a), kind_of(b)});
      return;
    }
    std::visit(
        [&](const auto& ours) {
          using Kind = std::remove_cvref_t<decltype(ours)>;
          compare(below(path, key_of<Kind>()), ours, std::get<Kind>(b));
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

  template <class... T>
  static std::string kind_of(const std::variant<T...>& kind) {
    return std::visit([](const auto& each) { return std::string(each.name); }, kind);
  }
  static std::string below(const std::string& path, std::string_view name) {
    return path.empty() || name.empty() ? path + std::string(name) : path + "." + std::string(name);
  }
};

}  // namespace

template <class Part>
std::vector<MemberDifference> member_differences(const Part& a, const Part& b) {
  Walk walk;
  walk.compare("", a, b);
  return std::move(walk.found);
}
template std::vector<MemberDifference> member_differences(const Plan&, const Plan&);
template std::vector<MemberDifference> member_differences(const Add&, const Add&);
template std::vector<MemberDifference> member_differences(const Rotate&, const Rotate&);
template std::vector<MemberDifference> member_differences(const Bias&, const Bias&);
template std::vector<MemberDifference> member_differences(const Relative&, const Relative&);
template std::vector<MemberDifference> member_differences(const Phase&, const Phase&);
template std::vector<MemberDifference> member_differences(const XposDecay&, const XposDecay&);
template std::vector<MemberDifference> member_differences(const Mix&, const Mix&);
template std::vector<MemberDifference> member_differences(const Regions&, const Regions&);
template std::vector<MemberDifference> member_differences(const TwoAngles&, const TwoAngles&);
template std::vector<MemberDifference> member_differences(const GgmlRope&, const GgmlRope&);
template std::vector<MemberDifference> member_differences(const Logits&, const Logits&);

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
