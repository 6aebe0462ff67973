#include "evidence/lab/train/experiments.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/core/words.h"

namespace posenc::lab {
namespace {

struct Arm {
  std::string_view experiment, name, scheme;
  std::string_view presets = "standard full";
  std::int64_t window_share = 0;  // window: the trained length over this; 0: none
  std::int64_t without_every = 0;
  std::string_view task = "text";
  std::string_view positions = {};  // of a task's texts
  std::int64_t range = 0;           // they lie below it
  std::int64_t symbols = 0;         // at most, in training; 0: ten
  bool probe = false;
  std::int64_t length = 1;  // times the preset's, with as many bytes a step and as many scored
  double steps = 1;         // times the preset's
  double rate = 1;          // times the usual one
  std::int64_t seeds = 0;   // at most; 0: the preset's
  std::int64_t heads = 0;   // 0: the preset's
};

constexpr Arm on_three_seeds(Arm arm) {
  arm.seeds = 3;
  return arm;
}
constexpr Arm with_four_heads(Arm arm) {
  arm.heads = 4;
  return arm;
}

// In a scheme's text L is the trained length, H half of it, S the stretch of E2, R the range of
// positions.
constexpr std::string_view all = "quick standard full", most = "standard full";
constexpr Arm arms[] = {
    {"E1", "nope", "nope", all},
    {"E1", "sinusoidal", "sinusoidal scale_embedding=true"},
    {.experiment = "E1",
     .name = "sinusoidal_long",
     .scheme = "sinusoidal scale_embedding=true",
     .length = 2},
    {"E1", "learned", "learned"},
    {"E1", "t5", "t5 max_distance=L"},
    {"E1", "alibi", "alibi", all},
    {"E1", "kerple", "kerple"},
    {"E1", "sandwich", "sandwich"},
    {"E1", "rope", "rope", all},
    {"E1", "xpos", "xpos"},
    {"E1", "fire", "fire initial_length=L"},
    {"E1", "cope", "cope"},
    {"E1", "forgetting", "forgetting", all},
    {"E1", "stick_breaking", "stick_breaking"},
    {"E2", "trained", "rope", all},
    {"E4", "copy_nope", "nope", most, 0, 0, "copy"},
    {"E4", "copy_alibi", "alibi", most, 0, 0, "copy"},
    {"E4", "copy_rope", "rope", most, 0, 0, "copy"},
    {"E4", "copy_t5", "t5 max_distance=L", most, 0, 0, "copy"},
    {"E4", "copy_rope_1_4", "rope partial_rotary_factor=0.25", most, 0, 0, "copy"},
    {"E4", "copy_kerple", "kerple", most, 0, 0, "copy"},
    {"E4", "copy_fire", "fire initial_length=L", most, 0, 0, "copy"},
    {"E4", "copy_random_rope", "rope", most, 0, 0, "copy", "random", 128},
    {"E4", "copy_abacus", "learned rows=R", most, 0, 0, "copy", "numbers", 24},
    {"E4", "reverse_nope", "nope", most, 0, 0, "reverse"},
    {"E4", "reverse_alibi", "alibi", most, 0, 0, "reverse"},
    {"E4", "reverse_rope", "rope", most, 0, 0, "reverse"},
    {"E4", "reverse_t5", "t5 max_distance=L", most, 0, 0, "reverse"},
    {"E4", "reverse_rope_1_4", "rope partial_rotary_factor=0.25", most, 0, 0, "reverse"},
    {"E4", "addition_nope", "nope", most, 0, 0, "addition"},
    {"E4", "addition_alibi", "alibi", most, 0, 0, "addition"},
    {"E4", "addition_rope", "rope", most, 0, 0, "addition"},
    {"E4", "addition_t5", "t5 max_distance=L", most, 0, 0, "addition"},
    {"E4", "sums_nope", "nope", most, 0, 0, "addition", "", 0, 4},
    {"E4", "sums_alibi", "alibi", most, 0, 0, "addition", "", 0, 4},
    {"E4", "sums_rope", "rope", most, 0, 0, "addition", "", 0, 4},
    {"E4", "sums_abacus", "learned rows=R", most, 0, 0, "addition", "numbers", 16, 4},
    {"E5", "nope", "nope", most, 0, 0, "masked", "", 0, 0, true},
    {"E5", "rope", "rope", most, 0, 0, "masked", "", 0, 0, true},
    {"E5", "causal_nope", "nope", most, 0, 0, "text", "", 0, 0, true},
    {"E5", "causal_rope", "rope", most, 0, 0, "text", "", 0, 0, true},
    {"E6", "base_10", "rope rope_theta=10"},
    {"E6", "base_100", "rope rope_theta=100"},
    {"E6", "base_500", "rope rope_theta=500"},
    {"E6", "base_1000", "rope rope_theta=1000"},
    {"E6", "base_10000", "rope"},
    {"E6", "base_100000", "rope rope_theta=100000"},
    {"E6", "base_1000000", "rope rope_theta=1000000"},
    {"E7", "part_1_16", "rope partial_rotary_factor=0.0625"},
    {"E7", "part_1_8", "rope partial_rotary_factor=0.125"},
    {"E7", "part_1_4", "rope partial_rotary_factor=0.25"},
    {"E7", "part_1_2", "rope partial_rotary_factor=0.5"},
    {"E7", "part_3_4", "rope partial_rotary_factor=0.75"},
    {"E7", "whole", "rope"},
    {"E7", "fastest_1_8", "rope rope_type=proportional partial_rotary_factor=0.125"},
    {"E7", "fastest_1_4", "rope rope_type=proportional partial_rotary_factor=0.25"},
    {"E7", "fastest_1_2", "rope rope_type=proportional partial_rotary_factor=0.5"},
    {"E7", "fastest_3_4", "rope rope_type=proportional partial_rotary_factor=0.75"},
    {"E8", "trained", "rope"},
    {"E9", "rope", "rope"},
    {"E9", "window", "rope", most, 2},
    {"E9", "window_and_nope", "rope", most, 2, 3},
    {"E9", "rope_and_nope", "rope", most, 0, 3},
    {.experiment = "E9", .name = "trained", .scheme = "rope", .steps = 0.9},
    {"E10", "nope", "nope", most, 0, 0, "recall"},
    {"E10", "alibi", "alibi", most, 0, 0, "recall"},
    {"E10", "window", "rope", most, 2, 0, "recall"},
    {"E10", "window_and_nope", "rope", most, 2, 3, "recall"},
    {"E10", "trained", "rope", most, 0, 0, "recall"},
    on_three_seeds({"E10", "forgetting", "forgetting", most, 0, 0, "recall"}),
    on_three_seeds({"E10", "stick_breaking", "stick_breaking", most, 0, 0, "recall"}),
    on_three_seeds({"E10", "base_10", "rope rope_theta=10", most, 0, 0, "recall"}),
    on_three_seeds({"E10", "base_1000000", "rope rope_theta=1000000", most, 0, 0, "recall"}),
    {"E13", "pope", "pope", all},
    {"E13", "fope", "fope max_position_embeddings=L", all},
    {"E13", "wall", "wall", all},
    {"E13", "path", "path", all},
    // RoPE++ has two heads for each key head; as many of RoPE beside them.
    with_four_heads({"E13", "rope_4_heads", "rope", all}),
    with_four_heads({"E13", "imaginary", "rope imaginary_heads=alternating", all}),
    {"E13", "trained", "rope", all},
    {"E13", "selective_rope", "selective_rope", all},
    {"E13", "carope", "carope", all},
    {"E13", "mamba3", "mamba3", all},
    {"E13", "repo", "repo", all},
    {"E13", "repo_above", "repo first=1", all},
    {"E13", "grape_a", "profiles curves=ramp profiles=1", all},
    {"E13", "grape_ap", "grape_ap", all},
    {"E13", "inkling", "profiles extent=L", all},
    {"E13", "transformer_xl", "transformer_xl bidirectional=false", all},
};

// What an experiment's arm `trained` is changed to, from the same weights.
constexpr struct {
  std::string_view experiment, arm, scheme;
  double rate = 0.1;                  // of learning on, times the rate of training
  std::string_view learning_on = {};  // tenths of the preset's steps, at the trained length
} stretches[] = {
    {"E2", "none", "rope"},
    {"E2", "linear", "rope rope_type=linear factor=S"},
    {"E2", "ntk", "rope rope_type=ntk factor=S"},
    {"E2", "by_parts", "rope rope_type=ntk_by_parts factor=S original_max_position_embeddings=L"},
    {"E2", "yarn", "rope rope_type=yarn factor=S original_max_position_embeddings=L"},
    {"E2", "dynamic", "rope rope_type=dynamic factor=1 max_position_embeddings=L"},
    {"E2", "llama3", "rope rope_type=llama3 factor=S original_max_position_embeddings=L"},
    {"E8", "factor_0.9",
     "rope rope_type=yarn factor=S original_max_position_embeddings=L attention_factor=0.9"},
    {"E8", "factor_1.0",
     "rope rope_type=yarn factor=S original_max_position_embeddings=L attention_factor=1"},
    {"E8", "factor_1.1",
     "rope rope_type=yarn factor=S original_max_position_embeddings=L attention_factor=1.1"},
    {"E8", "as_coded", "rope rope_type=yarn factor=S original_max_position_embeddings=L"},
    {"E8", "factor_1.3",
     "rope rope_type=yarn factor=S original_max_position_embeddings=L attention_factor=1.3"},
    {"E8", "factor_1.5",
     "rope rope_type=yarn factor=S original_max_position_embeddings=L attention_factor=1.5"},
    {"E9", "dropped", "nope", 0.1, "0 1"},
    {"E9", "dropped_faster", "nope", 0.5, "0 1 3"},
    {"E10", "yarn", "rope rope_type=yarn factor=S original_max_position_embeddings=L"},
    {"E10", "ntk", "rope rope_type=ntk factor=S"},
    {"E13", "rerope", "rope distance_map=rerope map_window=H"},
    {"E13", "leaky_rerope", "rope distance_map=rerope map_window=H map_group=S"},
    {"E13", "self_extend", "rope distance_map=self_extend map_window=H map_group=16"},
    {"E13", "dual_chunk", "rope distance_map=dual_chunk chunk_size=L local_size=H"},
    {"E10", "dropped", "nope", 0.5, "0 1 3"},
};

std::string filled_in(std::string_view scheme, std::int64_t length, std::int64_t stretch,
                      std::int64_t range = 0) {
  std::string made;
  for (const char letter : scheme) {
    const bool value = made.ends_with('=');
    if (value && letter == 'L')
      made += std::to_string(length);
    else if (value && letter == 'H')
      made += std::to_string(length / 2);
    else if (value && letter == 'S')
      made += std::to_string(stretch);
    else if (value && letter == 'R')
      made += std::to_string(range);
    else
      made += letter;
  }
  return made;
}
std::string filled_in(std::string_view scheme, const Preset& preset) {
  return filled_in(scheme, preset.trained_length, preset.longest / preset.trained_length);
}

Cell cell_of(const Preset& preset, const Arm& arm, std::uint64_t seed) {
  const std::int64_t length = preset.trained_length;
  Cell cell{.experiment = std::string(arm.experiment),
            .arm = std::string(arm.name),
            .scheme = filled_in(arm.scheme, preset),
            .task = std::string(arm.task),
            .seed = seed,
            .shape = {.width = preset.width,
                      .layers = preset.layers,
                      .heads = preset.heads,
                      .hidden = 4 * preset.width,
                      .trained_length = length,
                      .window = arm.window_share > 0 ? length / arm.window_share : 0,
                      .without_every = arm.without_every},
            .steps = std::llround(arm.steps * static_cast<double>(preset.steps)),
            .texts = preset.texts,
            .positions = std::string(arm.positions),
            .position_range = arm.range,
            .probe = arm.probe};
  cell.rate *= arm.rate;
  if (arm.heads > 0) cell.shape.heads = arm.heads;
  if (arm.length > 1) {
    cell.scored = length / 2;
    cell.shape.trained_length *= arm.length;
    cell.texts /= arm.length;
  }
  if (arm.name == "trained")
    for (const auto& [experiment, name, scheme, rate, learning_on] : stretches)
      if (experiment == arm.experiment) {
        Change& change = cell.afterwards.emplace_back(
            Change{.arm = std::string(name), .scheme = filled_in(scheme, preset), .rate = rate});
        if (experiment == "E2") change.steps = preset.extending;
        if (learning_on.empty()) continue;
        change.length = length;
        change.steps.clear();
        for (const std::string_view tenths : detail::split(learning_on))
          change.steps.push_back((tenths.front() - '0') * preset.steps / 10);
      }
  if (arm.task == "recall") {
    cell.shape.vocabulary = symbols_of_recall;
    cell.steps = preset.steps * 7 / 5;
    cell.rate *= 2;
  }
  if (is_of_text(arm.task)) {
    for (std::int64_t at = cell.shape.trained_length; at <= preset.longest; at *= 2)
      cell.tests.push_back(at);
    return cell;
  }
  if (arm.symbols > 0) cell.most = arm.symbols;
  cell.shape.vocabulary = 13;
  cell.shape.trained_length = arm.task == "addition" ? 3 * cell.most + 4 : 2 * cell.most + 2;
  // T5's buckets end at twice the symbols; all else knows the longest text of training.
  cell.scheme = arm.scheme.starts_with("t5")
                    ? "t5 max_distance=" + std::to_string(2 * cell.most)
                    : filled_in(arm.scheme, cell.shape.trained_length, 1, arm.range);
  cell.steps = preset.task_steps;
  cell.texts = 32;
  cell.tests = {8, 10, 11, 12, 14, 20};
  if (arm.symbols > 0) cell.tests = {1, 2, 3, 4, 5, 6, 7, 8, 10};
  return cell;
}

// E3 trains the schemes of E1 at E1's rate times these, on one seed.
constexpr struct {
  double times;
  std::string_view name;
} swept_rates[] = {{0.5, "_x0.5"}, {2, "_x2"}, {4, "_x4"}};

std::vector<Cell> sweep_of(const Preset& preset) {
  std::vector<Cell> cells;
  for (const auto& [times, name] : swept_rates)
    for (const Arm& arm : arms) {
      if (arm.experiment != "E1" || arm.length > 1) continue;
      Cell& cell = cells.emplace_back(cell_of(preset, arm, 1));
      cell.experiment = "E3";
      cell.arm += name;
      cell.rate *= times;
    }
  return cells;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> list = {
      {.name = "quick",
       .about = "eighteen schemes and the scalings of RoPE untuned, two seeds",
       .width = 64,
       .layers = 2,
       .heads = 2,
       .steps = 400,
       .texts = 16,
       .trained_length = 64,
       .longest = 512,
       .seeds = 2,
       .extending = {0},
       .task_steps = 0},
      {.name = "standard",
       .about = "all experiments, six seeds, a third of a million parameters",
       .width = 96,
       .layers = 3,
       .heads = 3,
       .steps = 500,
       .texts = 16,
       .trained_length = 64,
       .longest = 512,
       .seeds = 6,
       .extending = {0, 25, 50, 100},
       .task_steps = 1500},
      {.name = "full",
       .about = "all experiments, six seeds, 0.8 million parameters: a night",
       .width = 128,
       .layers = 4,
       .heads = 4,
       .steps = 2000,
       .texts = 32,
       .trained_length = 128,
       .longest = 2048,
       .seeds = 6,
       .extending = {0, 30, 100, 300},
       .task_steps = 3000},
  };
  return list;
}

Expected<Preset> find_preset(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    known.push_back(preset.name);
  }
  return fail("--preset", "no such preset", name, suggestion(name, known));
}

std::span<const Experiment> experiments() {
  static constexpr Experiment list[] = {
      {"E1", "Train short, test long", all},
      {"E2", "A trained RoPE stretched", all},
      {"E3", "The learning rate"},
      {"E4", "Copying, reversing and adding more symbols than in training"},
      {"E5", "Hidden bytes found by reading both ways"},
      {"E6", "The base of RoPE"},
      {"E7", "How much of a head rotates"},
      {"E8", "YaRN's factor on cos and sin"},
      {"E9", "Windows, and layers without position"},
      {"E10", "Facts asked for at the end of a text"},
      {"E13", "The frontier of 2024 to 2026 beside RoPE, ALiBi and none", all},
  };
  return list;
}

Expected<std::vector<Cell>> cells_of(const Preset& preset, std::string_view experiment) {
  std::vector<std::string_view> known;
  for (const Experiment& each : experiments()) known.push_back(each.name);
  if (!experiment.empty() && std::ranges::count(known, experiment) == 0)
    return fail("--experiment", "no such experiment", experiment, suggestion(experiment, known));
  std::vector<Cell> cells;
  if ((experiment.empty() || experiment == "E3") && preset.name != "quick")
    cells = sweep_of(preset);
  // Seeds outermost: whoever stops early has fewer seeds of everything.
  for (std::int64_t seed = 1; seed <= preset.seeds; ++seed) {
    for (const Arm& arm : arms)
      if ((experiment.empty() || arm.experiment == experiment) &&
          detail::contains_word(arm.presets, preset.name) && (arm.seeds == 0 || seed <= arm.seeds))
        cells.push_back(cell_of(preset, arm, static_cast<std::uint64_t>(seed)));
  }
  return cells;
}

std::span<const SharedArm> shared_arms() {
  static constexpr SharedArm list[] = {{"E7", "none", "E1", "nope"},
                                       {"E13", "nope", "E1", "nope"},
                                       {"E13", "alibi", "E1", "alibi"},
                                       {"E13", "rope", "E1", "rope"},
                                       {"E13", "forgetting", "E1", "forgetting"}};
  return list;
}

}  // namespace posenc::lab
