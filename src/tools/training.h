// What a trainer was told about position: its YAML, TOML or command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/tools.h"
#include "src/text/json.h"

namespace posenc::detail {

// Stands in front of arguments that Python code calls a trainer with, and that are read as its
// settings.
constexpr std::string_view called_in_python = "called_in: Python";

// Keys of the longest text that stand at the top: LLaMA-Factory's, axolotl's, TRL's before and
// since 0.20 (Unsloth's and ms-swift's as well), and the tokenizer's.
constexpr std::string_view length_keys[] = {"cutoff_len", "sequence_len", "max_seq_length",
                                            "max_length", "model_max_length"};

// Keys of the longest prompt and the longest answer: verl's, ms-swift's and their kin's;
// torchforge's; Trinity-RFT's; TRL's.
constexpr std::pair<std::string_view, std::string_view> prompt_and_answer_keys[] = {
    {"max_prompt_length", "max_response_length"},
    {"max_req_tokens", "max_res_tokens"},
    {"max_prompt_tokens", "max_response_tokens"},
    {"max_prompt_length", "max_completion_length"}};

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
  bool packs_rows = false;         // NeMo Automodel's packs, whose positions it counts in one row
  bool packs_blind = false;        // TRL's packing, and nothing tells attention where texts begin
  bool packs_through = false;      // LLaMA-Factory's packing, whose samples see those before them
  // TRL's packing with a flash attention that some of its versions hand no position_ids to.
  std::string packs_by_kernel = {};
  bool ring_of_batches = false;  // axolotl's ring of ranks that knows no bounds of packed texts
  std::optional<std::string> scaling = {};  // a word: LLaMA-Factory's and ms-swift's rope_scaling
  std::optional<Json> override_dict = {};   // a scaling that is put into the configuration
  std::string override_key = {};            // "rope_scaling" or "rope_parameters"
  bool refuses_override = false;    // axolotl, of a scaling that stands where it no longer may
  double base = 0;                  // rope_theta that is put there; 0: none is
  std::int64_t promised = 0;        // max_position_embeddings that is put into the configuration
  std::string override_place = {};  // as it is written: "policy.hf_config_overrides"
  bool whole = false;               // all weights are trained, not an adapter
  bool serves = false;              // `swift infer`: the trainer's program runs a model

  // "max_prompt_length 6,000 + max_response_length 2,000"
  std::string sum_text() const;
};
// Errors: more than 1 MiB, a length that is no number of tokens.
Expected<Training> read_training(std::string_view text);

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
