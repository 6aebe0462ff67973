// Profiles of engines against what each engine's own code computes (tests/peers/engines.py ran it):
// frequencies, the factor on cos and sin, the scale of the logits, which channels rotate, the rows
// of its table.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

std::string recorded(const std::string& engine) { return "engines/" + engine + ".json"; }

// The rotation of a record's layer, as the profile has it.
Expected<Plan> planned(const EngineReading& reading, const Json& record) {
  const LayerGroup* group = find_group(reading.model, record.value("layer", 0), Stack::text);
  if (!group) return fail("test", "the layer is there");
  // A table is made for the whole context where no length is asked. SGLang has several, and each
  // call takes one: the recorded one had position 1 alone.
  const std::int64_t length = record.at("length");
  const std::int64_t longest =
      reading.engine.name == "sglang" ? 2 : record.value("table_rows", std::int64_t{0});
  return compile(*group, length > 0 ? length : longest);
}

bool nearly(double a, double b, double share) { return std::abs(a - b) <= share * std::abs(b); }

bool nearly(const std::vector<double>& a, const std::vector<double>& b, double share) {
  return std::ranges::equal(a, b, [&](double x, double y) { return nearly(x, y, share); });
}

// What the profile says otherwise than the engine did, "" where nothing.
std::string difference(const EngineReading& reading, const Json& record) {
  const bool refuses = record.contains("error");
  // A file that none of its classes takes.
  if (refuses) {
    const std::string error = record.at("error");
    // Half a file was given; a family's code stands beside its weights.
    if (error.contains("without vision_config") || error.contains("Unrecognized model identifier"))
      return "";
    for (const char* other :
         {"Unknown architecture", "model is not currently supported", "is not in its module map"})
      if (error.contains(other)) return reading.has_class ? "the engine has no class for it" : "";
  }
  if (!reading.has_class) return "the engine has a class for it";
  // A model has one of two spellings that differ; an engine that reads the other one cannot be
  // followed.
  if (!refuses && reading.refused.contains("and they differ: keep one")) return "";
  if (refuses != !reading.refused.empty())
    return refuses ? "the engine refuses it: " + record.at("error").get<std::string>()
                   : "refused by the profile: " + reading.refused;
  if (refuses) return "";
  const Expected<Plan> plan = planned(reading, record);
  if (!plan) return plan.error().message();
  if (!plan->rotate) return "does not rotate";
  const Rotate& rotate = *plan->rotate;
  const auto want = numbers<double>(record.at("frequency"));
  std::string text;
  if (rotate.slice.rotary_dim != record.at("rotary_dim"))
    return "rotary_dim " + std::to_string(rotate.slice.rotary_dim) + ", not " +
           record.at("rotary_dim").dump();
  // Engines compute in float, and some powers lose digits there.
  constexpr double float_rounding = 2e-6;
  const std::vector<double> got = pair_frequencies(rotate);
  if (!nearly(got, want, float_rounding)) {
    std::size_t r = 0;
    while (r < want.size() && r < got.size() && nearly(got[r], want[r], float_rounding)) ++r;
    text += " frequency of pair " + std::to_string(r) + " " +
            number_text(r < got.size() ? got[r] : 0) + ", not " +
            number_text(r < want.size() ? want[r] : 0);
  }
  if (!nearly(rotate.amplitude, record.at("amplitude"), 1e-5))
    text +=
        " amplitude " + number_text(rotate.amplitude) + ", not " + record.at("amplitude").dump();
  if (!nearly(plan->logits.multiplier, record.value("logits", 1.0), 1e-5))
    text += " logits " + number_text(plan->logits.multiplier) + ", not " +
            number_text(record.value("logits", 1.0));
  if (name(rotate.slice.pairing) != record.at("pairing").get<std::string>()) text += " pairing";
  // The profile has the shortest table of all layers.
  if (record.contains("table_rows") &&
      !(reading.table_rows <= record.at("table_rows").get<std::int64_t>()))
    text += " table of " + std::to_string(reading.table_rows.value_or(0)) + " rows, not " +
            record.at("table_rows").dump();
  return text;
}

class EngineProfiles : public testing::TestWithParam<std::string> {};

TEST_P(EngineProfiles, ComputeWhatTheEngineComputes) {
  const Json& all = load(recorded(GetParam()));
  std::string name = all.at("engine");
  if (name == "transformers-4") name = "transformers";
  const std::string engine = name + "@" + all.at("version").get<std::string>();
  for (const Json& record : all.at("records")) {
    const std::string which = record.at("case");
    const Expected<Model> model = read_model(data_path("engines/cases/" + which + ".json"));
    ASSERT_TRUE(model) << model.error().message();
    const auto reading = read_as(*model, engine, record.at("length"));
    ASSERT_TRUE(reading) << reading.error().message();
    EXPECT_EQ(difference(*reading, record), "") << which << " for " << record.at("length");
  }
}

std::vector<std::string> recorded_engines() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("engines")))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EngineProfiles, testing::ValuesIn(recorded_engines()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace posenc::golden
