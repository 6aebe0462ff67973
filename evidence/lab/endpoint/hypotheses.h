// What a server may do to a model's rotation: each hypothesis is the model as such a server would
// run it, beside the finding that names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"
#include "posenc/tools.h"

namespace posenc::lab {

// Where a server takes tokens to stand. Rotation sees distances alone, so that ids which are all
// off by one number are no fault that a text could show.
struct Placement {
  std::int64_t restart = 0;  // positions begin anew at each multiple of it; 0: never
  std::int64_t behind = 0;   // tokens behind the prompt are so much further out
  std::int64_t pad_to = 0;   // and as much as the prompt lacks to a multiple of it; 0: nothing
  std::int64_t keys = 0;     // keys are so much further out than queries
  // Of a token of a text whose prompt has `prompt` tokens, both counted from 0.
  std::int64_t at(std::int64_t token, std::int64_t prompt) const;
  bool of_generation() const { return behind != 0 || pad_to != 0; }
  bool operator==(const Placement&) const = default;
};

// What each angle is rounded to before its cosine is taken.
enum class Rounding { none, half, bfloat16 };

struct ServerHypothesis {
  std::string id = {};      // stable: "yarn:4"
  std::string title = {};   // "YaRN by 4"
  std::string family = {};  // "yarn"; those of a family differ by a number, and it can be fitted
  std::optional<double> number = {};
  Model model = {};  // as the server would have it
  Placement placement = {};
  Rounding rounding = Rounding::none;
  // Of a file whose pairs are neighbours: the rotation meets the channels in the order that
  // Hugging Face's file of the same model has them, where pairs are halves.
  bool other_order = false;
  std::int64_t shows_from = 0;  // texts of fewer tokens are what the file makes of them
  Finding finding = {};         // code "" of the model as its file has it
};

// All that are known for a model; the first is what its file says. `length`: of the longest text
// that will be asked about, so that windows beyond it are left out.
std::vector<ServerHypothesis> hypotheses_of(const Model& model, std::int64_t length);

// One of a family with another number: "linear", "yarn", "yarn_flat" (without its factor on cos and
// sin), "theta", "amplitude". nullopt: no such family, a number that it cannot have, a model
// without RoPE.
std::optional<ServerHypothesis> hypothesis_with(const Model& model, std::string_view family,
                                                double number, std::int64_t length);

// How many pairs of channels stand at least half a radian apart under the two, for a query and a
// key so far apart; all pairs where only one of them sees the key, or only one rotates. The larger
// count of the layers'.
std::int64_t pairs_apart(const ServerHypothesis& a, const ServerHypothesis& b,
                         std::int64_t distance, std::int64_t length);

}  // namespace posenc::lab
