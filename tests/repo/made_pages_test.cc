// Pages that nobody writes: what they say is walked out of the lists. `make pages` writes them
// again.
#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "posenc/features.h"
#include "posenc/plan.h"
#include "tests/paths.h"

namespace posenc {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The file holds `made`, whole or between the two lines that enclose what is made.
void expect_made(const std::string& path, const std::string& made, const std::string& part = "") {
  const std::string file = test::data_path("../../" + path), found = read(file);
  std::string wanted = made;
  if (!part.empty()) {
    const std::string first = "<!-- made: " + part + " -->\n", last = "<!-- end -->";
    const std::size_t from = found.find(first);
    ASSERT_NE(from, std::string::npos) << path << " has no part " << part;
    const std::size_t to = found.find(last, from);
    ASSERT_NE(to, std::string::npos) << path;
    wanted = found.substr(0, from) + first + "\n" + made + "\n" + found.substr(to);
  }
  if (std::getenv("POSENC_WRITE_PAGES") != nullptr) std::ofstream(file) << wanted;
  EXPECT_TRUE(found == wanted || std::getenv("POSENC_WRITE_PAGES")) << path << ": run make pages";
}

// --- rooms and features --------------------------------------------------------------------------

TEST(MadePages, WhoTakesWhat) {
  std::string page =
      "# Who takes what\n\n"
      "A plan has features, and each place of the library that computes with plans, a room, says "
      "which it takes. What a room neither takes nor ignores, because it acts elsewhere, it "
      "refuses, and so it refuses whatever is new until it has learned it. The error names the "
      "feature and the cure. `make pages` writes this page out of "
      "[features.h](../include/posenc/features.h); `posenc schemes --json` has the same for "
      "machines, Python `Plan.features`, `Plan.refused_by(room)` and `Plan.check(room)`.\n\n"
      "## Features\n\n| feature | what it is | where it is refused |\n|---|---|---|\n";
  for (const FeatureInfo& each : feature_list())
    page += "| `" + std::string(each.name) + "` | " + std::string(each.words) + " | " +
            std::string(each.cure) + " |\n";
  page +=
      "\n## Rooms\n\nyes: taken. **no**: refused. –: it does not concern the room.\n\n| feature |";
  std::string line = "|---|";
  for (const Room* room : room_list()) page += " " + std::string(room->name) + " |", line += "---|";
  page += "\n" + line + "\n";
  for (const FeatureInfo& each : feature_list()) {
    page += "| `" + std::string(each.name) + "` |";
    for (const Room* room : room_list())
      page += room->takes.has(each.feature)     ? " yes |"
              : room->ignores.has(each.feature) ? " – |"
                                                : " **no** |";
    page += "\n";
  }
  expect_made("docs/features.md", page);
}

// --- a plan's members ----------------------------------------------------------------------------

template <PlanPart T>
std::string table_of() {
  std::string rows;
  const T part;
  each_member(part, [&](const auto& row, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if (row.inlined) {
      if constexpr (PlanPart<Value>) rows += table_of<Value>();
      return;
    }
    if (std::same_as<Value, Values>) return;
    std::string shape;
    for (const Axis axis : row.axes)
      if (axis != Axis::none && !std::same_as<Value, std::int64_t>)
        shape += "[" + std::string(name(axis)) + "]";
    rows += "| `" + std::string(row.name) + "` | " + (shape.empty() ? "" : shape + " ") +
            std::string(row.doc) + " |\n";
  });
  return rows;
}

template <PlanPart... Part>
std::string tables(std::initializer_list<const char*> titles) {
  std::string text;
  auto title = titles.begin();
  ((text += std::string(text.empty() ? "" : "\n") + *title++ +
            "\n\n| key | meaning |\n|---|---|\n" + table_of<Part>()),
   ...);
  return text;
}

TEST(MadePages, TheMembersOfAPlan) {
  expect_made("docs/json.md",
              tables<Plan, Add, Waves, Rows, Ramp, Rotate, Plain, Mix, Regions, Regions::Region,
                     PositionMap, TwoAngles, Phase, XposDecay, GgmlRope, Slopes, BiasTable,
                     DistanceRows, Relative, Logits, Lengths>(
                  {"**a plan**",
                   "**`add`**, to the token embedding: `kind` is `waves`, `table` or "
                   "`ramp`",
                   "`waves`",
                   "`table`",
                   "`ramp`",
                   "**`rotate`**, of queries and keys. Besides, `axis_of_pair` is the axis of each "
                   "pair where it takes one alone (M-RoPE: 0 time, 1 height, 2 width), else null; "
                   "`polar` is true where each of rotary_dim/2 channels makes a pair (softplus(x), "
                   "0) before it rotates (PoPE); `values` is true where values rotate too and the "
                   "output back, `values_stay` where it is not rotated back (CLVP); `angles` says "
                   "whose arithmetic forms the angles: `exact`, `hf_float` or `ggml_float` "
                   "([rope.md](rope.md#precision)). A rotation is of one kind, and the members of "
                   "the others are null",
                   "of a rotation without more",
                   "`mix` (FoPE)",
                   "`regions`, distance maps",
                   "each `region`",
                   "its `query` and `key`",
                   "`two_angles`, of a pair's channels (V-JEPA 2)",
                   "`phase`",
                   "`growth`",
                   "`ggml`, with the angles `ggml_float`: what ggml's rope is called with",
                   "**`bias`**, on the logits: `kind` is `slope` or `table`. `slope`",
                   "`table`",
                   "`rows`, and each of `further_axes` and `further_rows`",
                   "**`relative`**",
                   "**`logits`**",
                   "**`valid`**"}),
              "a plan");
}

// --- the type in JavaScript ----------------------------------------------------------------------

class TypeScript {
 public:
  // The members of a part, one a line, each below what it means.
  template <PlanPart T>
  static std::string members(const std::string& indent, bool optional = false,
                             std::vector<std::string_view>* written = nullptr) {
    std::string text;
    const T part;
    each_member(part, [&](const auto& row, const auto& value) {
      using Value = std::remove_cvref_t<decltype(value)>;
      if (row.inlined) {
        text += in_place(static_cast<Value*>(nullptr), indent);
        return;
      }
      if (std::same_as<Value, Values>) return;
      if (written != nullptr) {
        if (std::ranges::find(*written, row.name) != written->end()) return;
        written->push_back(row.name);
      }
      text += indent + "// " + std::string(row.doc) + "\n" + indent + std::string(row.name) +
              (optional || row.left_out ? "?: " : ": ") + type<Value>(row, indent);
      if (optional && !row.left_out && !text.ends_with(" | null")) text += " | null";
      text += "\n";
    });
    if constexpr (std::same_as<T, Rotate>) text += rotation(indent);
    return text;
  }
  template <PlanPart T>
  static std::string object(const std::string& indent) {
    return "{\n" + members<T>(indent + "  ") + indent + "}";
  }

 private:
  // Values are two booleans, and the kinds stand side by side (src/explain/plan_json.cc).
  static std::string rotation(const std::string& indent) {
    std::string text;
    const std::pair<const char*, const char*> beside[] = {
        {"axis_of_pair", "number[] | null"},
        {"polar", "boolean"},
        {"values", "boolean"},
        {"values_stay", "boolean"},
        {"angles", "'exact' | 'hf_float' | 'ggml_float'"}};
    for (const auto& [key, of] : beside) text += indent + std::string(key) + ": " + of + "\n";
    return text;
  }
  template <class T>
  static std::string type(const auto& row, const std::string& indent) {
    const std::string or_null = row.null != row.always ? " | null" : "";
    if constexpr (PlanPart<T>) {
      return object<T>(indent);
    } else if constexpr (std::same_as<T, bool>) {
      return "boolean";
    } else if constexpr (std::is_arithmetic_v<T>) {
      return "number" + or_null;
    } else if constexpr (std::is_enum_v<T>) {
      std::string text = std::same_as<T, Temperature> ? "'none'" : "";
      for (const std::string_view word : words_of(T{}))
        text += (text.empty() ? "'" : " | '") + std::string(word) + "'";
      return text;
    } else {
      return of(static_cast<T*>(nullptr), row, indent) + or_null;
    }
  }
  template <class T>
  static std::string of(std::optional<T>*, const auto& row, const std::string& indent) {
    return type<T>(row, indent) + " | null";
  }
  template <class... Kind>
  static std::string of(std::variant<Kind...>* kind, const auto&, const std::string& indent) {
    return "{\n" + in_place(kind, indent + "  ") + indent + "}";
  }
  template <class T>
  static std::string of(std::vector<T>*, const auto& row, const std::string& indent) {
    if constexpr (PlanPart<T>) return object<T>(indent) + "[]";
    std::string text = std::same_as<T, std::string> ? "string" : "number";
    if (row.axes[0] == Axis::none) return text + "[]";
    const std::string flat = text + "[]";
    if (row.name == "frequencies" && !row.flat_alone) return text + "[][]";
    for (const Axis axis : row.axes) text += axis == Axis::none ? "" : "[]";
    return row.flat_alone ? flat + " | " + text : text;
  }
  static std::string of(RowList*, const auto&, const std::string&) { return "number[]"; }
  static std::string of(Table*, const auto& row, const std::string&) {
    return row.axes[2] == Axis::none ? "number[][] | null" : "number[][] | number[][][] | null";
  }

  static std::string in_place(const void*, const std::string&) { return {}; }  // under its key
  template <PlanPart T>
  static std::string in_place(T*, const std::string& indent) {
    return members<T>(indent);
  }
  // The kinds of a rotation, each by its key.
  static std::string in_place(RotationKind*, const std::string& indent) {
    std::string text = members<Plain>(indent);
    const auto one = [&]<class Kind>(std::type_identity<Kind>) {
      if constexpr (!key_of<Kind>().empty())
        text += indent + std::string(key_of<Kind>()) + ": " + object<Kind>(indent) + " | null\n";
    };
    [&]<class... Kind>(std::variant<Kind...>*) {
      (one(std::type_identity<Kind>()), ...);
    }(static_cast<RotationKind*>(nullptr));
    return text;
  }
  // The members of every kind; those of others are absent or null.
  template <class... Kind>
  static std::string in_place(std::variant<Kind...>*, const std::string& indent) {
    std::string names, all;
    std::vector<std::string_view> written;
    ((names += (names.empty() ? "'" : " | '") + std::string(Kind::name) + "'",
      all += members<Kind>(indent, true, &written)),
     ...);
    return indent + "kind: " + names + "\n" + all;
  }
};

TEST(MadePages, TheTypeOfAPlanInJavaScript) {
  expect_made("bindings/npm/src/plan.ts",
              "// A plan as posenc prints it (docs/json.md). `make pages` writes this file out of "
              "include/posenc/plan.h.\nexport type PlanInfo = " +
                  TypeScript::object<Plan>("") + "\n");
}

}  // namespace
}  // namespace posenc
