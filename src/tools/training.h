// What a trainer was told about position: its YAML, TOML or command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tools.h"
#include "src/text/json.h"

namespace posenc::detail {

struct Training {
  std::int64_t length = 0;              // tokens of the longest text; 0: nobody says
  std::int64_t prompt = 0, answer = 0;  // what each may have, where the settings say both
  std::string prompt_key = {}, answer_key = {}, length_key = {};
  std::int64_t ranks = 1;  // among which a text is shared
  std::string ranks_key = {};
  bool cuts_data_alone = false;    // a program that serves, with a length that cuts texts of data
  bool of_unsloth = false;         // which divides positions where more tokens are asked for
  bool rolls_out_by_vllm = false;  // ms-swift, to whose vLLM a scaling by flag does not come
  bool fuses_parts = false;        // NeMo Automodel: one rotation for all, on parts of a text
  bool drops_scaling = false;      // to the engine that generates in a training
  bool packs = false;              // several texts in a row
  bool packs_rows = false;         // and pictures in them, by a trainer that counts one row
  bool packs_blind = false;        // TRL's packing, and nothing tells attention where texts begin
  bool ring_of_batches = false;    // axolotl's ring of ranks that knows no bounds of packed texts
  std::optional<std::string> scaling = {};  // a word: LLaMA-Factory's and ms-swift's rope_scaling
  std::optional<Json> override_dict = {};   // a scaling that is put into the configuration
  std::string override_key = {};            // "rope_scaling" or "rope_parameters"
  std::string override_place = {};          // as it is written: "policy.hf_config_overrides"
  bool whole = false;                       // all weights are trained, not an adapter
  bool serves = false;                      // `swift infer`: the trainer's program runs a model
};
// Errors: more than 1 MiB, a length that is no number of tokens.
Expected<Training> read_training(std::string_view settings);

// What the settings contradict by themselves, whatever the model.
std::vector<Finding> contradictions(const Training& training);

// Whether a text is the settings of a training.
bool is_training(std::string_view text);

// The settings of a trainer's command line (`swift pt --max_length 64000`, `trainer.x.y=4`), a line
// each: "max_length: 64000"; and the trainer's name. Nothing: another program's line.
struct TrainingLine {
  std::string trainer, settings;
  bool serves = false;  // the trainer's program runs a model
};
std::optional<TrainingLine> training_of_line(std::string_view text);

}  // namespace posenc::detail
