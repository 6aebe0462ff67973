// Towers of pictures, encoders of sound and the text models beside them, as transformers' own
// modules have them (tests/peers/towers.py). A configuration says its type alone, so that the
// classes' defaults are compared too.
#include <algorithm>
#include <map>
#include <numeric>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

class Tower : public testing::TestWithParam<std::string> {};

const Json& tower_list(const char* name) {
  static const Json all = load("golden/towers.json");
  return all.at(name);
}

std::vector<std::string> tower_types(const char* name) {
  std::vector<std::string> found;
  for (const Json& record : tower_list(name)) found.push_back(record.at("config").at("model_type"));
  return found;
}

const Json& tower_record(const char* name, const std::string& type) {
  return *std::ranges::find_if(tower_list(name), [&](const Json& record) {
    return record.at("config").at("model_type") == type;
  });
}

Model tower_of(const Json& record) {
  auto model = read_config(record.at("config").dump());
  if (!model) ADD_FAILURE() << model.error().message();
  return model ? *model : Model{};
}

bool tower_attends(const LayerGroup& group) {
  return group.mixer == Mixer::attention &&
         !group.cache_note.starts_with("keys and values are the picture's");
}

// Layers of a stack with one head_dim, among those that the record counts alone or together.
TEST_P(Tower, HasTheLayersAndTheTableOfItsModules) {
  const Json& want = tower_record("tables", GetParam());
  std::map<std::pair<Stack, std::int64_t>, std::int64_t> layers;
  const Model model = tower_of(want);
  for (const LayerGroup& group : model.groups) {
    if (tower_attends(group))
      layers[{group.stack, group.geometry.head_dim}] += std::ssize(group.layers);
    const Expected<Plan> plan = compile(group);
    ASSERT_TRUE(plan) << plan.error().message();
    const Rows* rows = plan->add ? std::get_if<Rows>(&plan->add->kind) : nullptr;
    if (!rows) continue;
    const Json& tables = want.at("tables");
    EXPECT_TRUE(std::ranges::any_of(
        tables,
        [&](const Json& table) { return table.at(0) == rows->rows && table.at(1) == rows->width; }))
        << rows->rows << " × " << rows->width << " is not among " << tables;
  }
  for (const auto& [of, count] : layers) {
    const auto seen = std::ranges::find_if(
        want.at("attention"), [&](const Json& each) { return each.at(0) == of.second; });
    ASSERT_NE(seen, want.at("attention").end()) << "no head of " << of.second << " channels";
    const auto counts = numbers<std::int64_t>(*seen);
    EXPECT_TRUE(std::find(counts.begin() + 1, counts.end(), count) != counts.end() ||
                std::accumulate(counts.begin() + 1, counts.end(), std::int64_t{0}) == count)
        << count << " layers of " << name(of.first) << ", and modules: " << *seen;
  }
}

INSTANTIATE_TEST_SUITE_P(, Tower, testing::ValuesIn(tower_types("tables")),
                         [](const auto& each) { return test_name(each.param); });

class TowerWaves : public testing::TestWithParam<std::string> {};

// Some channels of both halves, as tests/peers/towers.py picks them.
std::vector<std::int64_t> sampled_channels(std::int64_t width) {
  std::vector<std::int64_t> channels{
      0, 1, 2, width / 4, width / 2 - 1, width / 2, width / 2 + 1, width - 2, width - 1};
  std::ranges::sort(channels);
  channels.erase(std::ranges::unique(channels).begin(), channels.end());
  return channels;
}

TEST_P(TowerWaves, AreThoseOfItsModule) {
  const Json& want = tower_record("waves", GetParam());
  const Model model = tower_of(want);
  ASSERT_FALSE(model.groups.empty());
  const auto plan = compile(model.groups.front());
  ASSERT_TRUE(plan) << plan.error().message();
  const auto width = want.at("width").get<std::int64_t>();
  std::vector<double> rows(static_cast<std::size_t>(5 * width));
  ASSERT_TRUE(
      position_vectors(*plan, Positions::range(0, 5), Tensor::dense(rows.data(), {1, 5, width})));
  std::vector<double> ours, theirs;
  for (std::int64_t p = 0; p < 5; ++p) {
    for (const std::int64_t channel : sampled_channels(width))
      ours.push_back(rows[static_cast<std::size_t>(p * width + channel)]);
    for (const double value : numbers<double>(want.at("rows").at(static_cast<std::size_t>(p))))
      theirs.push_back(value);
  }
  expect_close(ours, theirs, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(, TowerWaves, testing::ValuesIn(tower_types("waves")),
                         [](const auto& each) { return test_name(each.param); });

}  // namespace
}  // namespace posenc::golden
