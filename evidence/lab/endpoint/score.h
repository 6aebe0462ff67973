// What a model says of a text's tokens, as a server tells it and as the lab's runner computes it
// under a hypothesis.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "evidence/lab/endpoint/hypotheses.h"
#include "evidence/lab/model/llama.h"

namespace posenc::lab {

// How likely a token is to come next, in nats.
struct Chance {
  std::int32_t token = 0;
  float log_probability = 0;
};
// What may follow the first `read` tokens of a text.
struct Seen {
  std::int64_t read = 0;
  std::vector<Chance> chances = {};
};
// A text, and what somebody says of its tokens. `tokens` are the prompt and what was generated.
struct Observed {
  std::vector<std::int32_t> tokens = {};
  std::int64_t prompt = 0;
  std::vector<Seen> seen = {};  // ascending
};

// Hears the log-probabilities so far, and says whether the rest is of use.
using GoOn = std::function<bool(std::span<const float>)>;

// The log-probabilities of the same tokens in the same order, under a hypothesis: [Σ chances]. With
// `late` each is taken a token later than it is said to be. What `go_on` ends is the beginning.
// Errors: those of Passage; a token outside of the vocabulary, more read than there is.
Expected<std::vector<float>> log_probabilities(const Llama& model,
                                               const ServerHypothesis& hypothesis,
                                               const Observed& text, bool late = false,
                                               const GoOn& go_on = {});

}  // namespace posenc::lab
