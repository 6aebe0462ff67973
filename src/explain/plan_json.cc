// Plans written as JSON and read back: a walk over the rows of each part. Four things differ from
// the members: frequencies of pairs that take one axis each are one row; the kinds of a rotation
// stand side by side, those that it is not as null; values are two booleans; a temperature without
// effect is "none".
#include "src/explain/plan_json.h"

#include <algorithm>
#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "posenc/explain.h"
#include "src/core/part_check.h"
#include "src/core/try.h"
#include "src/text/json.h"

namespace posenc {
namespace {

using detail::Extents, detail::Json;
using Out = detail::JsonWriter;

// Calls visit(Kind{}) for each kind of a variant.
template <class... Kind>
void each_kind(const std::variant<Kind...>&, auto&& visit) {
  (visit(std::type_identity<Kind>()), ...);
}

// --- out -----------------------------------------------------------------------------------------

// The one axis each pair takes; nothing if a pair takes several or heads differ.
std::optional<std::vector<std::int64_t>> axis_of_pair(const Rotate& rotate) {
  if (rotate.frequencies.axes == 1 || rotate.frequencies.heads != 1) return {};
  std::vector<std::int64_t> axes;
  for (std::int64_t r = 0; r < rotate.pairs(); r++) {
    std::int64_t axis = 0, taken = 0;
    for (std::int64_t a = 0; a < rotate.frequencies.axes; a++) {
      if (rotate.at(0, a, r) == 0) continue;
      axis = a;
      taken++;
    }
    if (taken > 1) return {};
    axes.push_back(axis);
  }
  return axes;
}

// The numbers of one axis after another: [axis][…][columns].
void nested(Out& out, std::span<const double> numbers, std::span<const std::int64_t> shape) {
  if (shape.size() == 1) return out.value(numbers);
  const auto count = static_cast<std::size_t>(shape.front());
  const std::size_t size = count > 0 ? numbers.size() / count : 0;
  out.array();
  for (std::size_t i = 0; i < count; ++i)
    nested(out, numbers.subspan(i * size, size), shape.subspan(1));
  out.end();
}

class Writer {
 public:
  explicit Writer(Out& out, bool with_valid = true) : out_(out), with_valid_(with_valid) {}

  template <PlanPart T>
  void members(const T& part, const Extents& around = {}) {
    const Extents extents = around.within(part);
    each_member(part, [&](const auto& row, const auto& value) {
      if constexpr (requires { value.empty(); })
        if (row.left_out && value.empty()) return;
      if (row.inlined) return in_place(value, extents);
      if (!with_valid_ && row.name == "valid") return;
      out_.key(row.name);
      any(row, value, extents);
    });
  }
  void members(const Rotate& rotate) {
    in_place(rotate.slice, {});
    const auto axes = axis_of_pair(rotate);
    const Frequencies& all = rotate.frequencies;
    out_.member("heads", all.heads).member("axes", all.axes).key("frequencies").array();
    for (std::int64_t row = 0; row < (axes ? 1 : all.heads * all.axes); ++row) {
      out_.array();
      for (std::int64_t r = 0; r < rotate.pairs(); ++r)
        out_.value(axes ? rotate.at(0, (*axes)[static_cast<std::size_t>(r)], r)
                        : rotate.at(row / all.axes, row % all.axes, r));
      out_.end();
    }
    out_.end().member("axis_of_pair", axes).member("amplitude", rotate.amplitude);
    const Extents extents = Extents::around_kind(rotate);
    out_.key("growth");
    part_or_null(rotate.growth(), extents);
    out_.key("phase");
    part_or_null(rotate.phase(), extents);
    if (!rotate.magnitudes().empty()) out_.member("magnitudes", rotate.magnitudes());
    each_kind(rotate.kind, [&]<class Kind>(std::type_identity<Kind>) {
      if constexpr (!key_of<Kind>().empty()) {
        out_.key(key_of<Kind>());
        part_or_null(std::get_if<Kind>(&rotate.kind), extents);
      }
    });
    out_.member("polar", rotate.polar()).member("values", rotate.rotates_values());
    out_.member("values_stay", rotate.values == Values::rotated);
    out_.member("angles", name(rotate.angles()));
  }

 private:
  template <PlanPart T>
  void any(const auto&, const T& part, const Extents& around) {
    out_.object();
    if constexpr (std::same_as<T, Rotate>)
      members(part);
    else
      members(part, around);
    out_.end();
  }
  template <class... Kind>
  void any(const auto&, const std::variant<Kind...>& kind, const Extents& around) {
    out_.object();
    in_place(kind, around);
    std::vector<std::string_view> own;
    std::visit(
        [&](const auto& each) {
          each_member(each, [&](const auto& row, const auto&) { own.push_back(row.name); });
        },
        kind);
    each_kind(kind, [&]<class Other>(std::type_identity<Other>) {
      const Other other;
      each_member(other, [&](const auto& row, const auto&) {
        if (!row.left_out && std::ranges::find(own, row.name) == own.end())
          out_.key(row.name).null();
      });
    });
    out_.end();
  }
  template <class T>
  void any(const auto& row, const std::optional<T>& value, const Extents& around) {
    if (value)
      any(row, *value, around);
    else
      out_.null();
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void any(const auto& row, T value, const Extents&) {
    if constexpr (std::same_as<T, bool>)
      out_.value(value);
    else if constexpr (std::integral<T>)
      row.null == value ? out_.null() : out_.value(value);
    else
      out_.value(static_cast<double>(value));
  }
  template <class T>
    requires std::is_enum_v<T>
  void any(const auto&, T word, const Extents&) {
    out_.value(name(word));
  }
  template <class T>
  void any(const auto& row, const std::vector<T>& list, const Extents& extents) {
    if constexpr (PlanPart<T>) {
      out_.array();
      for (const T& part : list) any(row, part, extents);
      out_.end();
    } else if constexpr (std::same_as<T, double>) {
      if (row.null == std::ssize(list)) return out_.null();
      std::vector<std::int64_t> shape;
      for (std::size_t i = 0; i < row.axes.size() && row.axes[i] != Axis::none; ++i)
        shape.push_back(extents.of(row.axes[i]));
      if (shape.size() > 1 && row.flat_alone && shape[0] == 1) shape.erase(shape.begin());
      if (shape.size() > 1) return nested(out_, list, shape);
      out_.value(list);
    } else {
      out_.value(list);
    }
  }
  void any(const auto&, const RowList& list, const Extents&) {
    out_.value(std::span(list.begin(), list.end()));
  }
  // A computed table's numbers; null for a learned one.
  void any(const auto&, const Table& table, const Extents&) {
    if (!table.owned || table.values.rank < 1) return out_.null();
    nested(out_, *table.owned,
           std::span(table.values.shape).first(static_cast<std::size_t>(table.values.rank)));
  }

  template <PlanPart T>
  void in_place(const T& part, const Extents& around) {
    members(part, around);
  }
  template <class... Kind>
  void in_place(const std::variant<Kind...>& kind, const Extents& around) {
    std::visit(
        [&](const auto& each) {
          out_.member("kind", each.name);
          members(each, around);
        },
        kind);
  }
  void in_place(const auto&, const Extents&) {}  // other members stand under their keys

  template <PlanPart T>
  void part_or_null(const T* part, const Extents& around) {
    if (part == nullptr) return out_.null();
    any(0, *part, around);
  }

  Out& out_;
  bool with_valid_;
};

// --- and back ------------------------------------------------------------------------------------

class Reader {
 public:
  std::vector<std::string> unknown;

  template <PlanPart T>
  Expected<void> object(const std::string& path, const Json& from, T& part) {
    const auto* const members = from.get<Json::Object>();
    if (members == nullptr) return wrong(path, "must be an object", from);
    std::vector<std::string_view> known;
    POSENC_CHECK(read(path, from, part, known));
    for (const detail::JsonMember& member : *members)
      if (!member.value.is_null() && std::ranges::find(known, member.key) == known.end())
        unknown.push_back(path.empty() ? member.key : path + "." + member.key);
    return {};
  }

 private:
  static std::unexpected<Error> wrong(const std::string& path, std::string_view rule,
                                      const Json& got) {
    return fail("plan", path + " " + std::string(rule), got.text(), "see docs/json.md, \"A plan\"");
  }

  // The members of a part out of the object that they stand in; their keys are known.
  template <PlanPart T>
  Expected<void> read(const std::string& path, const Json& from, T& part,
                      std::vector<std::string_view>& known) {
    Expected<void> ok = {};
    each_member(part, [&](const auto& row, auto& value) {
      if (!ok) return;
      if (row.inlined) {
        ok = in_place(path, from, value, known);
        return;
      }
      known.push_back(row.name);
      const Json* const found = from.find(row.name);
      if (found == nullptr) return;
      if constexpr (std::same_as<T, Logits>)
        if (row.name == "temperature" && found->text() == "\"none\"") return;
      ok = any(path.empty() ? std::string(row.name) : path + "." + std::string(row.name), row,
               *found, value);
    });
    return ok;
  }
  Expected<void> read(const std::string& path, const Json& from, Rotate& rotate,
                      std::vector<std::string_view>& known) {
    POSENC_CHECK(read(path, from, rotate.slice, known));
    POSENC_CHECK(read(path, from, rotate.frequencies, known));
    std::vector<std::int64_t> axes;
    bool polar = false, values = false, stay = false;
    std::string angles;
    Plain plain;
    const auto take = [&](std::string_view key, auto& value) -> Expected<void> {
      known.push_back(key);
      const Json* const found = from.find(key);
      if (found == nullptr || found->is_null()) return {};
      const std::string at = path + "." + std::string(key);
      if constexpr (PlanPart<std::remove_cvref_t<decltype(value)>>)
        return object(at, *found, value);
      else
        return any(at, no_row_, *found, value);
    };
    POSENC_CHECK(take("axis_of_pair", axes));
    POSENC_CHECK(take("amplitude", rotate.amplitude));
    POSENC_CHECK(take("growth", plain.growth));
    POSENC_CHECK(take("phase", plain.phase));
    POSENC_CHECK(take("magnitudes", plain.magnitudes));
    POSENC_CHECK(take("polar", polar));
    POSENC_CHECK(take("values", values));
    POSENC_CHECK(take("values_stay", stay));
    POSENC_CHECK(take("angles", angles));
    POSENC_CHECK(spread(path, axes, rotate));
    rotate.values = !values ? Values::unrotated : stay ? Values::rotated : Values::rotated_and_back;
    int kinds = 0;
    if (plain.growth || !plain.magnitudes.empty() || (plain.phase && !polar)) {
      rotate.kind = plain;
      ++kinds;
    }
    if (polar) {
      rotate.kind = Polar{std::move(plain.phase)};
      ++kinds;
    }
    if (angles == HfFloat::name) {
      rotate.kind = HfFloat{};
      ++kinds;
    }
    Expected<void> ok = {};
    each_kind(rotate.kind, [&]<class Kind>(std::type_identity<Kind>) {
      if constexpr (!key_of<Kind>().empty()) {
        std::optional<Kind> made;
        if (ok) ok = take(key_of<Kind>(), made);
        if (!made) return;
        rotate.kind = std::move(*made);
        ++kinds;
      }
    });
    POSENC_CHECK(std::move(ok));
    if (kinds <= 1 && (angles.empty() || angles == name(rotate.angles()))) return {};
    return wrong(path, "must be of one kind, and its angles of that", from);
  }
  // One row, in which each pair has the frequency of its one axis.
  static Expected<void> spread(const std::string& path, const std::vector<std::int64_t>& axes,
                               Rotate& rotate) {
    if (axes.empty()) return {};
    std::vector<double>& row = rotate.frequencies.radians;
    const std::int64_t count = rotate.frequencies.axes;
    const auto outside = [&](std::int64_t axis) { return axis < 0 || axis >= count; };
    if (axes.size() != row.size() || std::ranges::any_of(axes, outside) || count > 65536)
      return fail("plan", path + ".axis_of_pair must name an axis of each pair",
                  std::to_string(axes.size()) + " for " + std::to_string(row.size()) + " pairs");
    std::vector<double> all(row.size() * static_cast<std::size_t>(count), 0.0);
    for (std::size_t r = 0; r < row.size(); ++r)
      all[static_cast<std::size_t>(axes[r]) * row.size() + r] = row[r];
    row = std::move(all);
    return {};
  }

  template <PlanPart T>
  Expected<void> in_place(const std::string& path, const Json& from, T& part,
                          std::vector<std::string_view>& known) {
    return read(path, from, part, known);
  }
  template <class... Kind>
  Expected<void> in_place(const std::string& path, const Json& from, std::variant<Kind...>& kind,
                          std::vector<std::string_view>& known) {
    known.emplace_back("kind");
    const Json* const found = from.find("kind");
    const auto* const word = found != nullptr ? found->get<std::string>() : nullptr;
    Expected<void> ok = {};
    bool any = false;
    const auto one = [&]<class One>(One made) {
      if (word == nullptr || *word != One::name) return;
      any = true;
      ok = read(path, from, made, known);
      kind = std::move(made);
    };
    (one(Kind{}), ...);
    if (any) return ok;
    if (word == nullptr) return wrong(path, "must have a kind", from);
    unknown.push_back(path + " of the kind " + *word);
    return {};
  }
  Expected<void> in_place(const std::string&, const Json&, auto&, std::vector<std::string_view>&) {
    return {};
  }

  template <PlanPart T>
  Expected<void> any(const std::string& path, const auto&, const Json& from, T& part) {
    return object(path, from, part);
  }
  template <class... Kind>
  Expected<void> any(const std::string& path, const auto&, const Json& from,
                     std::variant<Kind...>& kind) {
    std::vector<std::string_view> known;
    return in_place(path, from, kind, known);
  }
  template <class T>
  Expected<void> any(const std::string& path, const auto& row, const Json& from,
                     std::optional<T>& value) {
    if (from.is_null()) return {};
    return any(path, row, from, value.emplace());
  }
  Expected<void> any(const std::string& path, const auto&, const Json& from, bool& value) {
    if (from.get<bool>() == nullptr) return wrong(path, "must be true or false", from);
    value = *from.get<bool>();
    return {};
  }
  Expected<void> any(const std::string& path, const auto&, const Json& from, std::string& value) {
    if (from.get<std::string>() == nullptr) return wrong(path, "must be a word", from);
    value = *from.get<std::string>();
    return {};
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  Expected<void> any(const std::string& path, const auto& row, const Json& from, T& value) {
    if (const auto* whole = from.get<std::int64_t>()) {
      value = static_cast<T>(*whole);
      if (static_cast<std::int64_t>(value) == *whole) return {};
    }
    if constexpr (std::integral<T>) {
      if (from.is_null() && row.null != row.always) {
        value = row.null;
        return {};
      }
      return wrong(path, "must be a whole number", from);
    } else {
      const auto* real = from.get<double>();
      if (real == nullptr) return wrong(path, "must be a number", from);
      value = static_cast<T>(*real);
      return {};
    }
  }
  template <class T>
    requires std::is_enum_v<T>
  Expected<void> any(const std::string& path, const auto&, const Json& from, T& value) {
    const auto* const word = from.get<std::string>();
    const auto all = words_of(T{});
    const auto found = word != nullptr ? std::ranges::find(all, *word) : all.end();
    if (found == all.end()) return wrong(path, "must be a word of its list", from);
    value = static_cast<T>(found - all.begin());
    return {};
  }
  // Of any depth: what is nested is written one after another.
  template <class T>
  Expected<void> any(const std::string& path, const auto& row, const Json& from,
                     std::vector<T>& list) {
    if (from.is_null()) return {};
    const auto* const items = from.get<Json::Array>();
    if (items == nullptr) return wrong(path, "must be a list", from);
    for (const Json& item : *items) {
      if constexpr (std::is_arithmetic_v<T>)
        if (item.get<Json::Array>() != nullptr) {
          POSENC_CHECK(any(path, row, item, list));
          continue;
        }
      POSENC_CHECK(any(path, row, item, list.emplace_back()));
    }
    return {};
  }
  Expected<void> any(const std::string& path, const auto& row, const Json& from, RowList& list) {
    std::vector<std::int32_t> rows;
    POSENC_CHECK(any(path, row, from, rows));
    list = RowList(std::move(rows));
    return {};
  }
  Expected<void> any(const std::string& path, const auto& row, const Json& from, Table& table) {
    if (from.is_null()) return {};
    std::vector<double> numbers;
    POSENC_CHECK(any(path, row, from, numbers));
    std::vector<std::int64_t> shape;
    for (const Json* at = &from; const auto* items = at->get<Json::Array>(); at = &items->front()) {
      shape.push_back(std::ssize(*items));
      if (items->empty()) break;
    }
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count = detail::product(count, extent);
    if (count != std::ssize(numbers) || shape.size() < 2 || shape.size() > 3)
      return wrong(path, "must be rows of one length", from);
    table = shape.size() == 2 ? Table::own(std::move(numbers), shape[0], shape[1])
                              : Table::own(std::move(numbers), {shape[0], shape[1], shape[2]});
    return {};
  }

  struct NoRow {
    static constexpr std::int64_t always = 0, null = 0;
  };
  static constexpr NoRow no_row_{};
};

}  // namespace

void detail::write_plan(JsonWriter& out, const Plan& plan, bool with_valid) {
  out.object();
  Writer(out, with_valid).members(plan);
  out.end();
}

std::string to_json(const Plan& plan) {
  Out out;
  detail::write_plan(out, plan);
  return std::move(out.text);
}

Expected<Plan> read_plan(std::string_view text, std::int64_t head_dim) {
  POSENC_TRY(json, detail::parse_json(text, "plan"));
  return detail::read_plan(json, head_dim);
}

Expected<Plan> detail::read_plan(const Json& json, std::int64_t head_dim) {
  Plan plan;
  Reader reader;
  POSENC_CHECK(reader.object("", json, plan));
  plan.unknown.insert(plan.unknown.end(), reader.unknown.begin(), reader.unknown.end());
  return checked(std::move(plan), head_dim);
}

}  // namespace posenc
