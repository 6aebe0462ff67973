// Loss by position of a real model, under scalings of its rotation that it may never have been
// trained with.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/lab/model/llama.h"

namespace posenc::lab {

// A scaling by name with its factor; "none" is the model's rotation without any.
struct Stretch {
  std::string scaling;
  double factor = 1;
};

std::string title(const Stretch& stretch);  // "yarn ×2", "none"

// The plans of a model whose rotation is scaled so. What a scaling asks for besides a factor is the
// model's trained length. Errors: no such scaling, or one that needs lists of its own (longrope); a
// model without RoPE.
Expected<Passage::PlanRule> plans_of(const Model& model, const Stretch& stretch);

struct LossBlock {
  std::int64_t from = 0, to = 0;  // positions [from, to)
  double nats = 0;                // mean over n tokens
  std::int64_t n = 0;
};
struct LossCurve {
  Stretch stretch;
  std::vector<float> losses = {};  // of windows after one another, [windows][length − 1]
  std::vector<LossBlock> blocks = {};
};

// What a model made of a text, scaling by scaling.
struct Perplexity {
  std::string model = {};
  std::int64_t tokens = 0;   // of the text
  std::int64_t windows = 0;  // contexts read
  std::int64_t length = 0;   // tokens of one
  std::int64_t trained = 0;  // tokens that training has shown; 0: the file does not say
  Kept kept = {};            // in the cache
  std::vector<LossCurve> curves = {};
};
std::string to_json(const Perplexity& perplexity);  // docs/json.md; without the single losses
Expected<Perplexity> perplexity_of_json(std::string_view text, std::string_view where);

// Where windows of `length` tokens begin: spread evenly over the text. Errors: a text that is too
// short for one, more windows than there are places.
Expected<std::vector<std::int64_t>> windows_of(std::int64_t tokens, std::int64_t length,
                                               std::int64_t count);

// The losses of every window under one scaling; each is a context of its own. Blocks are of `block`
// positions.
Expected<LossCurve> loss_curve(const Llama& model, std::span<const std::int32_t> tokens,
                               std::span<const std::int64_t> windows, std::int64_t length,
                               std::int64_t block, const Stretch& stretch,
                               const std::function<void(std::int64_t)>& told = {}, Kept kept = {},
                               const AttentionMaker& attention = {});

// The mean of paired differences b − a over positions [from, to) of every window, and half the
// width of its 95 % interval: t over runs of 128 neighbouring tokens, since neighbours' losses are
// alike and single tokens would make the interval too narrow by half. n is the number of runs.
struct PairedDifference {
  double mean = 0, half_width = 0;
  std::int64_t n = 0;
};
PairedDifference paired_difference(const LossCurve& a, const LossCurve& b, std::int64_t length,
                                   std::int64_t from, std::int64_t to);

}  // namespace posenc::lab
