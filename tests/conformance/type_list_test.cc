// Walks the lists of schemes, scalings and schemes that read the content: what a new one owes the
// rest of the project.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

constexpr std::int64_t kHeadDim = 8, kPairs = kHeadDim / 2;

// All that a scheme may ask for.
constexpr Geometry kGenerous{.width = 16,
                             .heads = 4,
                             .kv_heads = 4,
                             .head_dim = kHeadDim,
                             .length = 32,
                             .grid_height = 4,
                             .grid_width = 4};

// A value for a required field: the default if it may stand, else a plain number of its kind.
FieldValue filled(const FieldInfo& field) {
  const auto in_range = [&](double x) { return field.range.contains(x); };
  if (const auto* x = std::get_if<std::int64_t>(&field.default_value)) {
    return in_range(static_cast<double>(*x)) ? *x : std::int64_t{64};
  }
  if (field.optional && field.kind == FieldKind::integer) return std::int64_t{64};
  if (const auto* list = std::get_if<std::vector<double>>(&field.default_value);
      list && list->empty()) {
    return std::vector<double>(kPairs, 1.5);
  }
  return field.default_value;
}

// Another value that the field may have; nothing for one that has no other.
FieldValue perturbed(const FieldInfo& field, const FieldValue& value) {
  switch (field.kind) {
    case FieldKind::boolean: return !(std::holds_alternative<bool>(value) && std::get<bool>(value));
    case FieldKind::choice:
      for (const std::string_view choice : field.choices) {
        if (FieldValue(std::string(choice)) != value) return std::string(choice);
      }
      return value;
    case FieldKind::integer: {
      const auto* x = std::get_if<std::int64_t>(&value);
      return x ? *x + 2 : std::int64_t{6};
    }
    case FieldKind::number: {
      const auto* x = std::get_if<double>(&value);
      const double more = x ? *x * 1.1 + 0.1 : 1.7;
      return field.range.contains(more) ? more : 0.7;
    }
    case FieldKind::numbers:
      if (!field.range.contains(0.1)) return std::vector<double>{4.0 / 3, 7};
      return std::vector<double>{0.1, 1.0 / 3, 7};
    case FieldKind::integers:
      if (!field.range.contains(1)) return std::vector<double>{4, 2};
      return std::vector<double>{3, 2, 1};
  }
  return value;
}

Scheme filled_scheme(const SchemeInfo& scheme) {
  auto made = make_scheme(scheme.name);
  EXPECT_TRUE(made) << made.error().message();
  for (const FieldInfo& field : scheme.fields) {
    if (field.required) set(*made, field.name, filled(field));
  }
  return *made;
}

Scheme filled_scaling(const SchemeInfo& scaling) {
  Scheme rope = Rope{};
  set(rope, "rope_type", std::string(scaling.name));
  for (const FieldInfo& field : scaling.fields) {
    if (field.required ||
        field.name == "max_position_embeddings") {  // what a factor may follow from
      set(rope, field.name, filled(field));
    }
  }
  return rope;
}

// to_json's object back into a scheme, by the public verbs. The rope's own fields come first: once
// a scaling is set its fields answer to their names.
Scheme from_json(const Json& json) {
  auto scheme = make_scheme(json.at("type").get<std::string>());
  EXPECT_TRUE(scheme) << scheme.error().message();
  std::vector<FieldSetting> fields;
  for (const auto& [key, value] : json.items()) {
    if (key != "type" && key != "scaling") fields.push_back({key, field_value(value)});
  }
  const auto done = set_fields(*scheme, fields);
  EXPECT_TRUE(done) << done.error().message();
  if (!json.contains("scaling")) return *scheme;
  set(*scheme, "rope_type", json.at("scaling").at("type").get<std::string>());
  for (const auto& [key, value] : json.at("scaling").items()) {
    if (key != "type") set(*scheme, key, field_value(value));
  }
  return *scheme;
}

void expect_round_trip(const Scheme& scheme) {
  const Json json = Json::parse(to_json(scheme), nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << to_json(scheme);
  EXPECT_EQ(from_json(json), scheme) << json.dump();
}

// --- of every list -------------------------------------------------------------------------------

void expect_says_what_it_is(const SchemeInfo& entry) {
  EXPECT_FALSE(entry.name.empty());
  EXPECT_FALSE(entry.title.empty());
  EXPECT_FALSE(entry.formula.empty());
  EXPECT_TRUE(entry.paper.empty() || entry.paper.find('.') == 4) << entry.paper;
}

void expect_says_what_each_field_is(const SchemeInfo& entry) {
  for (const FieldInfo& field : entry.fields) {
    EXPECT_FALSE(field.doc.empty()) << field.name;
    EXPECT_EQ(field.doc.find('\n'), std::string_view::npos) << field.name;
    EXPECT_EQ(field.kind == FieldKind::choice, field.choices.size() > 1) << field.name;
  }
}

void expect_no_two_fields_answer_to_one_name(const SchemeInfo& entry) {
  std::set<std::string_view> names;
  for (const FieldInfo& field : entry.fields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    for (const std::string_view alias : field.aliases)
      EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

void expect_row_in_the_documentation(const SchemeInfo& entry) {
  std::ifstream in(data_path("../../docs/schemes.md"));
  ASSERT_TRUE(in) << "docs/schemes.md is missing";
  const std::string start = "| `" + std::string(entry.name) + "` |";
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(start)) return;
  }
  ADD_FAILURE() << "docs/schemes.md has no row that begins with " << start;
}

// Its heading stands in exactly one page, and its row links there.
void expect_page(const SchemeInfo& entry) {
  const std::filesystem::path docs = data_path("../../docs");
  const std::string heading = "### `" + std::string(entry.name) + "`";
  std::vector<std::string> pages, rows;
  for (const auto& file : std::filesystem::directory_iterator(docs)) {
    if (file.path().extension() != ".md") continue;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      if (line == heading) pages.push_back(file.path().filename().string());
      if (line.starts_with("| `" + std::string(entry.name) + "` |")) rows.push_back(line);
    }
  }
  ASSERT_EQ(pages.size(), 1u) << "pages in docs/ with the heading " << heading;
  const std::string link = "(" + pages.front() + "#" + std::string(entry.name) + ")";
  EXPECT_TRUE(std::ranges::any_of(rows, [&](const auto& row) { return row.contains(link); }))
      << "docs/schemes.md does not link to " << link;
}

// --- schemes and scalings ------------------------------------------------------------------------

struct Entry {
  SchemeInfo info;
  bool is_scaling;
};

std::string label(const Entry& entry) {
  return std::string(entry.is_scaling ? "scaling_" : "scheme_") + std::string(entry.info.name);
}

void PrintTo(const Entry& entry, std::ostream* out) { *out << label(entry); }

class TypeList : public testing::TestWithParam<Entry> {
 protected:
  static const SchemeInfo& entry() { return GetParam().info; }
  static bool is_scaling() { return GetParam().is_scaling; }
  static Scheme full() { return is_scaling() ? filled_scaling(entry()) : filled_scheme(entry()); }
};

TEST_P(TypeList, SaysWhatItIs) { expect_says_what_it_is(entry()); }
TEST_P(TypeList, SaysWhatEachFieldIs) { expect_says_what_each_field_is(entry()); }
TEST_P(TypeList, NoTwoFieldsAnswerToOneName) { expect_no_two_fields_answer_to_one_name(entry()); }
TEST_P(TypeList, HasARowInTheDocumentation) { expect_row_in_the_documentation(entry()); }
TEST_P(TypeList, HasAPage) { expect_page(entry()); }

TEST_P(TypeList, IsFoundByEveryAlias) {
  for (const std::string_view alias : entry().aliases) {
    if (is_scaling()) {
      const auto made = make_scaling(alias);
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_EQ(info(*made).name, entry().name);
    } else {
      const auto made = make_scheme(alias);
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_EQ(info(*made).name, entry().name);
    }
  }
}

// The scheme if it takes this value, else each of its choices that does.
std::vector<Scheme> that_take(const Scheme& scheme, std::string_view field,
                              const FieldValue& value) {
  const auto takes = [&](Scheme changed) { return set_field(changed, field, value).has_value(); };
  if (takes(scheme)) return {scheme};
  std::vector<Scheme> all;
  for (const FieldInfo& choice : info(scheme).fields)
    for (const std::string_view word : choice.choices) {
      Scheme chosen = scheme;
      set(chosen, choice.name, std::string(word));
      if (takes(chosen)) all.push_back(std::move(chosen));
    }
  return all;
}

TEST_P(TypeList, JsonRoundTripOfDefaults) { expect_round_trip(full()); }

TEST_P(TypeList, JsonRoundTripOfEachField) {
  for (const FieldInfo& field : entry().fields) {
    SCOPED_TRACE(field.name);
    const Scheme plain = full();
    const auto current = is_scaling() ? settings(std::get<Rope>(plain).scaling) : settings(plain);
    const auto own = std::ranges::find(current, field.name, &FieldSetting::name);
    ASSERT_NE(own, current.end());
    const FieldValue other = perturbed(field, own->value);
    const std::vector<Scheme> takers = that_take(plain, field.name, other);
    EXPECT_FALSE(takers.empty());
    for (const Scheme& taker : takers) {
      Scheme scheme = taker;
      set(scheme, field.name, other);
      EXPECT_NE(scheme, taker) << "the field did not change";
      expect_round_trip(scheme);
    }
  }
}

TEST_P(TypeList, JsonRoundTripOfNull) {
  for (const FieldInfo& field : entry().fields) {
    if (!field.optional) continue;
    SCOPED_TRACE(field.name);
    Scheme scheme = full();
    set(scheme, field.name, std::monostate{});
    expect_round_trip(scheme);
  }
}

TEST_P(TypeList, RefusesNumbersOutsideAFieldsRange) {
  for (const FieldInfo& field : entry().fields) {
    if (field.kind != FieldKind::number && field.kind != FieldKind::integer) continue;
    const double outside = field.range.has_least() ? field.range.least - 1 : -INFINITY;
    Scheme scheme = full();
    const auto done = set_field(scheme, field.name, outside);
    ASSERT_FALSE(done) << field.name << " took " << outside;
    EXPECT_NE(done.error().message().find(field.name), std::string::npos) << done.error().message();
  }
}

TEST_P(TypeList, Compiles) {
  const auto plan = compile(full(), kGenerous);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(checked(*plan, kHeadDim));
}

TEST_P(TypeList, CompilesToTheSamePlanTwice) {
  EXPECT_EQ(compile(full(), kGenerous), compile(full(), kGenerous));
}

TEST_P(TypeList, RotationIsUndoneByItsInverse) {
  const auto plan = compile(full(), kGenerous);
  ASSERT_TRUE(plan) << plan.error().message();
  if (!rooms::rotate_inverse.refused(features(*plan)).empty()) return;
  std::vector<double> x(4 * 5 * kHeadDim);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  const std::vector<double> before = x;
  const Tensor tensor = Tensor::dense(x.data(), {1, 4, 5, kHeadDim});
  const std::int64_t axes = plan->rotate ? plan->rotate->frequencies.axes : 1;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < axes * 5; ++i) ids.push_back(i % 7);
  const auto positions = Positions::ids(ids, axes);
  ASSERT_TRUE(positions);
  for (const Side side : {Side::query, Side::key}) {
    ASSERT_TRUE(rotate(*plan, tensor, *positions, side, tensor));
    EXPECT_EQ(x != before, plan->rotate.has_value());
    ASSERT_TRUE(rotate_inverse(*plan, tensor, *positions, side, tensor));
    expect_close(x, before, 1e-14);
  }
}

TEST_P(TypeList, WhatItAddsIsFinite) {
  auto plan = compile(full(), kGenerous);
  ASSERT_TRUE(plan) << plan.error().message();
  std::vector<double> learned(64 * 16, 0.5), out(5 * 16, std::nan(""));
  Rows* rows = plan->add ? std::get_if<Rows>(&plan->add->kind) : nullptr;
  if (rows) rows->table = Table::borrow(Tensor::dense(learned.data(), {rows->rows, rows->width}));
  const auto done =
      position_vectors(*plan, Positions::range(3, 5), Tensor::dense(out.data(), {1, 5, 16}));
  EXPECT_EQ(done.has_value(), plan->add.has_value());
  for (const double x : out) EXPECT_TRUE(std::isfinite(x) || !plan->add);
}

TEST_P(TypeList, ItsBiasIsFiniteAndZeroWhereItHasNone) {
  auto plan = compile(full(), kGenerous);
  ASSERT_TRUE(plan) << plan.error().message();
  BiasTable* table = plan->bias ? std::get_if<BiasTable>(&*plan->bias) : nullptr;
  std::vector<double> learned(static_cast<std::size_t>(table ? 4 * table->row_count : 0), 0.5),
      out(4 * 5 * 5, std::nan(""));
  if (table && !table->values) {
    table->values = Table::borrow(Tensor::dense(learned.data(), {4, table->row_count}));
  }
  const auto done = bias(*plan, Positions::range(3, 5), Positions::range(3, 5),
                         Tensor::dense(out.data(), {4, 5, 5}));
  ASSERT_TRUE(done) << done.error().message();
  for (const double x : out) EXPECT_TRUE(plan->bias ? std::isfinite(x) : x == 0);
}

std::vector<Entry> everything() {
  std::vector<Entry> all;
  for (const SchemeInfo& scheme : all_schemes()) all.push_back({scheme, false});
  for (const SchemeInfo& scaling : all_scalings()) all.push_back({scaling, true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, TypeList, testing::ValuesIn(everything()),
                         [](const auto& entry) { return label(entry.param); });

// --- schemes that read the content ---------------------------------------------------------------

// One head, as many keys as channels: a list of one number and a table of one row then fit them
// all.
class ContentList : public testing::TestWithParam<SchemeInfo> {
 protected:
  static constexpr std::int64_t kTokens = kHeadDim;
  static const SchemeInfo& entry() { return GetParam(); }

  ContentScheme full() {
    auto made = make_content_scheme(entry().name);
    EXPECT_TRUE(made) << made.error().message();
    for (const FieldInfo& field : entry().fields) {
      if (!field.required) continue;
      const auto done = set_field(*made, field.name, FieldValue(std::vector<double>{1.5}));
      EXPECT_TRUE(done) << done.error().message();
    }
    for (const TableInfo& table : entry().tables) {
      const bool of_channels = table.holds.axes.count > 3;
      const auto done =
          set_table(*made, table.name,
                    {of_channels ? Tensor::dense(table_.data(), {1, 1, kTokens, kHeadDim})
                                 : Tensor::dense(row_.data(), {1, kTokens})});
      EXPECT_TRUE(done) << done.error().message();
    }
    return *made;
  }
  AttentionInputs inputs() {
    const auto view = [](std::vector<double>& x) {
      return Tensor::dense(x.data(), {1, 1, kTokens, kHeadDim});
    };
    for (std::size_t i = 0; i < q_.size(); ++i) {
      q_[i] = std::sin(static_cast<double>(i));
      k_[i] = std::cos(static_cast<double>(i));
      v_[i] = std::sin(static_cast<double>(2 * i));
    }
    const Positions text = Positions::range(0, kTokens);
    return {view(q_), view(k_), view(v_), text, text};
  }

  std::vector<double> row_ = std::vector<double>(kTokens, -0.5);
  std::vector<double> table_ = std::vector<double>(kTokens * kHeadDim, -0.25);
  std::vector<double> q_ = std::vector<double>(kTokens * kHeadDim), k_ = q_, v_ = q_;
};

TEST_P(ContentList, SaysWhatItIs) { expect_says_what_it_is(entry()); }
TEST_P(ContentList, SaysWhatEachFieldIs) {
  expect_says_what_each_field_is(entry());
  for (const TableInfo& table : entry().tables) EXPECT_FALSE(table.doc.empty()) << table.name;
}
TEST_P(ContentList, NoTwoFieldsAnswerToOneName) {
  expect_no_two_fields_answer_to_one_name(entry());
}
TEST_P(ContentList, HasARowInTheDocumentation) { expect_row_in_the_documentation(entry()); }
TEST_P(ContentList, HasAPage) { expect_page(entry()); }

TEST_P(ContentList, IsFoundByEveryAlias) {
  for (const std::string_view alias : entry().aliases) {
    const auto made = make_content_scheme(alias);
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(info(*made).name, entry().name);
  }
}

// What JSON says of it and reads back; tables do not stand in it.
TEST_P(ContentList, JsonRoundTripOfEachField) {
  ContentScheme plain = full();
  for (const TableInfo& table : entry().tables) ASSERT_TRUE(set_table(plain, table.name, {}));
  const auto expect_read_back = [](const ContentScheme& scheme) {
    const auto read = read_content_scheme(to_json(scheme));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, scheme) << to_json(scheme);
  };
  expect_read_back(plain);
  for (const FieldInfo& field : entry().fields) {
    SCOPED_TRACE(field.name);
    ContentScheme changed = plain;
    for (const FieldSetting& setting : settings(plain)) {
      if (setting.name != field.name) continue;
      const auto done = set_field(changed, field.name, perturbed(field, setting.value));
      ASSERT_TRUE(done) << done.error().message();
    }
    EXPECT_NE(changed, plain) << "the field did not change";
    expect_read_back(changed);
  }
}

TEST_P(ContentList, NeedsItsRequiredFieldsInJson) {
  const auto read = read_content_scheme(R"({"type": ")" + std::string(entry().name) + R"("})");
  EXPECT_EQ(read.has_value(), std::ranges::none_of(entry().fields, &FieldInfo::required));
}

TEST_P(ContentList, AttendsAndHasGradients) {
  std::vector<double> out(q_.size(), std::nan("")), dq = out, dk = out, dv = out;
  const auto view = [](std::vector<double>& x) {
    return Tensor::dense(x.data(), {1, 1, kTokens, kHeadDim});
  };
  const auto done = attend(inputs(), full(), {}, view(out));
  ASSERT_TRUE(done) << done.error().message();
  for (const double x : out) EXPECT_TRUE(std::isfinite(x));
  const auto back = attend_backward(inputs(), full(), {}, view(out),
                                    {.q = view(dq), .k = view(dk), .v = view(dv)});
  ASSERT_TRUE(back) << back.error().message();
  for (const auto& gradient : {dq, dk, dv}) {
    for (const double x : gradient) EXPECT_TRUE(std::isfinite(x));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ContentList, testing::ValuesIn(all_content_schemes()),
                         [](const auto& entry) { return std::string(entry.param.name); });

TEST(TypeLists, AFieldOrTableThatAContentSchemeLacksIsRefused) {
  ContentScheme cope = Cope{};
  const auto field = set_field(cope, "before_scal", FieldValue(true));
  ASSERT_FALSE(field);
  EXPECT_NE(field.error().message().find("before_scale"), std::string::npos);
  const auto table = set_table(cope, "embedding", {});
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message().find("embeddings"), std::string::npos);
}

TEST(TypeLists, NoTwoEntriesAnswerToOneName) {
  for (const auto list : {all_schemes(), all_scalings(), all_content_schemes()}) {
    std::set<std::string_view> names;
    for (const SchemeInfo& entry : list) {
      EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
      for (const std::string_view alias : entry.aliases) {
        EXPECT_TRUE(names.insert(alias).second) << alias;
      }
    }
  }
}

// θ is an angle, or a frequency in papers; the base of the frequencies is b.
TEST(TypeLists, AFormulaWritesNoThetaForTheBase) {
  for (const auto list : {all_schemes(), all_scalings(), all_content_schemes()})
    for (const SchemeInfo& entry : list)
      EXPECT_EQ(entry.formula.find("θ"), std::string_view::npos) << entry.name << entry.formula;
}

TEST(TypeLists, AnUnknownNameIsRefusedWithTheNearest) {
  const auto scheme = make_scheme("rop");
  ASSERT_FALSE(scheme);
  EXPECT_NE(scheme.error().message().find("rope"), std::string::npos) << scheme.error().message();
  const auto scaling = make_scaling("yarnn");
  ASSERT_FALSE(scaling);
  EXPECT_NE(scaling.error().message().find("yarn"), std::string::npos);
}

}  // namespace
}  // namespace posenc::golden
