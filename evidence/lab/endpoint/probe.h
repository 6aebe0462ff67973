// A server that one cannot open, diagnosed by the log-probabilities that it tells of chosen texts:
// each is also computed under every hypothesis, and the likelihoods name the rotation that runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/lab/endpoint/score.h"
#include "evidence/lab/endpoint/texts.h"
#include "evidence/lab/endpoint/verdict.h"

namespace posenc::lab {

// Whoever tells log-probabilities: a server, a model in process.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // What it says of a text, and of `more` tokens that it goes on with by itself. `text` is empty
  // where a text was made of tokens; then it must take these.
  // Errors: whatever keeps it from answering; a text that it reads as other tokens.
  virtual Expected<Observed> score(const std::string& text, const std::vector<std::int32_t>& tokens,
                                   std::int64_t more) = 0;
  // Whether it scores the prompt's tokens, and not only those that it generates.
  virtual bool scores_prompts() const = 0;
};

struct ProbeOptions {
  std::int64_t at = 1024;     // the longest text, in tokens
  std::int64_t limit = 8192;  // prompt tokens in all
  std::uint64_t seed = 1;     // of the texts
  double sure = 0.999;        // where asking ends
  // Hears before each text how many prompt tokens were sent, and what comes.
  std::function<void(std::int64_t sent, const std::string& what)> told = {};
};

enum class ProbeVerdict {
  as_file,        // what the file says
  named,          // a hypothesis explains it
  unknown,        // none does
  other_weights,  // nor do the weights: log-probabilities are off where no rotation matters
  undecided,      // the limit came first
};
constexpr std::string_view name(ProbeVerdict verdict) {
  constexpr std::string_view names[] = {"as_file", "named", "unknown", "other_weights",
                                        "undecided"};
  return names[static_cast<std::size_t>(verdict)];
}

// How a hypothesis has done.
struct Rated {
  std::string id = {}, title = {};
  double score = 0;        // ln of its likelihood minus the best's
  double probability = 0;  // among all
  double scale = 0;        // of its differences
  bool alike = false;      // told from the best by no text
};
struct AskedText {
  std::int64_t tokens = 0, generated = 0, distance = 0;
};
// A token's log-probability: the server's, and under the best two.
struct EvidenceToken {
  std::int64_t read = 0;
  double seen = 0, best = 0, second = 0;
};

struct ProbeResult {
  ProbeVerdict verdict = ProbeVerdict::undecided;
  std::string sentence = {};
  double sure = 0;  // probability of what the sentence says, 0 of one that is unknown or undecided
  std::vector<Rated> rated = {};  // the best first
  std::vector<Finding> findings = {};
  std::vector<AskedText> texts = {};
  std::int64_t tokens = 0, requests = 0;
  double floor = 0, scale = 0;               // of rounding alone, and of the best hypothesis
  bool late = false;                         // the server tells each a token late
  std::vector<Judge::Misfit> misfits = {};   // of the best hypothesis
  std::vector<EvidenceToken> evidence = {};  // of the longest text
  std::vector<Observed> observed = {};       // of texts[i]
};

// Asks and computes. What was computed is kept for the next scorer that is asked the same texts.
class Prober {
 public:
  // `tokenizer` null: texts are drawn as tokens. Both must outlive it.
  Prober(const Llama& model, const Tokenizer* tokenizer) : model_(model), tokenizer_(tokenizer) {}
  // Errors: those of the scorer and of log_probabilities; options that leave no text.
  Expected<ProbeResult> probe(Scorer& scorer, const ProbeOptions& options);

  // The text that is asked about at a distance.
  ChosenText text_at(const ProbeOptions& options, std::int64_t distance) const;

 private:
  friend class ProbeRun;
  Expected<std::vector<float>> computed(const ServerHypothesis& hypothesis, const Observed& text,
                                        bool late, const GoOn& go_on = {});

  const Llama& model_;
  const Tokenizer* tokenizer_;
  std::map<std::pair<std::string, std::string>, std::vector<float>> known_;
};

// Where two servers begin to say something else of the same texts.
struct ServersApart {
  std::vector<Judge::Misfit> bands = {};  // of their differences, by tokens read
  double floor = 0;                       // of both, where rotation does not matter
  std::int64_t from = 0;                  // tokens read; 0: nowhere
};
ServersApart servers_apart(const ProbeResult& one, const ProbeResult& other);

// What is known of a server besides.
struct ProbedServer {
  std::string url = {}, model = {}, api = {};
  std::int64_t context = 0;  // tokens, 0: it does not say
  double seconds = 0;        // of asking and computing
};
// The likeliest hypothesis that some text tells from the best; null where there is none.
const Rated* next_best(const ProbeResult& result);
// {"model", "servers": […], "apart"} (docs/json.md), "apart" of two servers alone.
std::string to_json(const std::vector<ProbeResult>& results,
                    const std::vector<ProbedServer>& servers, std::string_view model);

}  // namespace posenc::lab
