// What the heads of a real model do with position: which waves of the rotation they use, and where
// they look.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evidence/lab/model/llama.h"

namespace posenc::lab {

// One attention head over a text.
struct HeadFacts {
  std::int64_t layer = 0, head = 0;
  // [pair] of the rotation: mean |q_r| · mean |k_r| over the tokens but the first, as a share of
  // the head's sum. A pair can move a logit by no more than |q_r||k_r|, whatever its angle.
  std::vector<double> waves = {};
  double sink = 0;      // mean weight on the first token, over queries from the second on
  double previous = 0;  // mean weight on the token before, over queries from the third on
  double distance = 0;  // mean of Σ_j weight·(i − j), tokens
  double entropy = 0;   // mean of −Σ weight·ln(weight) over ln(keys seen): 0 one key, 1 all alike
};

struct HeadSurvey {
  std::int64_t tokens = 0;
  std::vector<HeadFacts> heads = {};    // by layer, then head
  std::vector<double> wavelength = {};  // [pair] of the first layer that rotates, tokens
};

// Runs the tokens through the model as its file has it. Weights are what attend() gives to values
// that are a unit matrix, so that time and memory go with the square of the tokens: some 2000 at
// the most. Errors: fewer than three tokens or more than 8192, a model whose layers do not rotate.
Expected<HeadSurvey> survey_heads(const Llama& model, std::span<const std::int32_t> tokens);

}  // namespace posenc::lab
