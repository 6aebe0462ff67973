// Attention with tables by distance as families' own modules compute it (tests/peers/tables.py):
// profiles, Transformer-XL's terms, clipped distances, pictures; and rotations of values, of some
// heads, of boxes.
#include <map>

#include "posenc/gradients.h"
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {
namespace of_tables {

struct Numbers {
  std::vector<double> values;
  Tensor view;
  Numbers() = default;
  explicit Numbers(const Json& tensor) : values(numbers<double>(tensor.at("values"))) {
    const auto shape = numbers<std::int64_t>(tensor.at("shape"));
    view.data = values.data();
    view.dtype = DType::f64;
    view.rank = static_cast<int>(shape.size());
    std::int64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; step *= shape[axis]) {
      view.shape[axis] = shape[axis];
      view.stride[axis] = step;
    }
    EXPECT_EQ(std::ssize(values), step);
  }
  Table table() const { return Table::borrow(view); }
};

// A record's scheme with the tables that its family has learned.
struct Made {
  Scheme scheme;
  std::map<std::string, Numbers> tables;
};

Made made(const Json& record) {
  Made all;
  auto scheme = make_scheme(record.at("scheme").at("type").get<std::string>());
  EXPECT_TRUE(scheme) << scheme.error().message();
  for (const auto& [name, value] : record.at("scheme").items())
    if (name != "type") {
      EXPECT_TRUE(set_field(*scheme, name, field_value(value))) << name;
    }
  for (const auto& [name, tensor] : record.at("tables").items()) all.tables[name] = Numbers(tensor);
  for (auto& [name, tensor] : all.tables) {
    if (auto* shaw = std::get_if<Shaw>(&*scheme)) {
      (name == "value" ? shaw->value : shaw->key) = tensor.table();
    } else {
      EXPECT_TRUE(set_table(*scheme, name, tensor.table())) << name;
    }
  }
  all.scheme = *scheme;
  return all;
}

void expect_record(const Json& record) {
  Numbers q(record.at("q")), k(record.at("k")), v(record.at("v")), wanted(record.at("out")), r;
  const std::int64_t heads = q.view.shape[1], tokens = q.view.shape[2], dim = q.view.shape[3];
  const Made of = made(record);
  GridPositions at{Positions::range(0, tokens), Positions::range(0, tokens)};
  std::vector<std::int64_t> grid = {0, 0};
  if (record.contains("grid")) {
    grid = numbers<std::int64_t>(record.at("grid"));
    at = *grid_positions(grid[0], grid[1], record.value("class_token", false));
  }
  std::vector<std::int32_t> lists;         // of keys that each query sees
  if (record.contains("neighbourhood")) {  // height, width, kernel, dilation
    const auto of_record = numbers<std::int64_t>(record.at("neighbourhood"));
    Neighbourhood around = *neighbourhood(of_record[0], of_record[1], of_record[2], of_record[3]);
    at = {around.positions, around.positions};
    lists = std::move(around.keys);
  }
  if (record.contains("positions")) {  // [axis][batch][token]
    const Numbers ids(record.at("positions"));
    at.queries = at.keys =
        *Positions::ids(std::vector<std::int64_t>(ids.values.begin(), ids.values.end()),
                        ids.view.shape[0], ids.view.shape[1]);
  }
  auto plan = compile(of.scheme, {.width = heads * dim,
                                  .heads = heads,
                                  .kv_heads = k.view.shape[1],
                                  .head_dim = dim,
                                  .length = tokens,
                                  .grid_height = grid[0],
                                  .grid_width = grid[1]});
  ASSERT_TRUE(plan) << plan.error().message();
  if (record.contains("logits")) {
    const Json& logits = record.at("logits");
    plan->logits.multiplier = logits.at("multiplier").get<double>();
    plan->logits.softcap = logits.value("softcap", 0.0);
    if (logits.contains("temperature")) {
      plan->logits.temperature = Temperature::log;
      plan->logits.beta = logits.at("beta").get<double>();
      plan->logits.floor = logits.at("floor").get<double>();
      plan->logits.offset = logits.at("offset").get<double>();
    }
  }
  AttentionInputs in{q.view,     k.view,  v.view,
                     at.queries, at.keys, {.causal = record.value("causal", false)}};
  in.mask.window = record.value("window", std::int64_t{0});
  if (record.contains("keep")) {  // what a window that reaches unlike to both sides shows
    for (const Json& row : record.at("keep"))
      for (std::int64_t j = 0; j < tokens; ++j)
        lists.push_back(
            row.at(static_cast<std::size_t>(j)).get<bool>() ? static_cast<std::int32_t>(j) : -1);
  }
  if (!lists.empty()) {
    in.mask.keys = lists.data();
    in.mask.key_count = std::ssize(lists) / tokens;
  }
  if (record.contains("query_profiles")) {
    r = Numbers(record.at("query_profiles"));
    in.profiles.query = r.view;
  }
  std::vector<double> out(wanted.values.size());
  Tensor to = wanted.view;
  to.data = out.data();
  // Some of the modules normalise in float.
  ASSERT_TRUE(attend(in, *plan, to));
  expect_close(out, wanted.values, 2e-6);
  ASSERT_TRUE(attend_reference(in, *plan, to));
  expect_close(out, wanted.values, 2e-6);
}

TEST(TablesByDistance, AreThoseOfTheirFamilies) {
  for (const Json& record : records("tables")) {
    SCOPED_TRACE(record.at("model").get<std::string>());
    expect_record(record);
  }
}

}  // namespace of_tables
}  // namespace
}  // namespace posenc::golden
