// What servers call log-probabilities: found out by asking, and read by whichever of their ways a
// server has.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/probe/http.h"
#include "evidence/lab/endpoint/probe.h"

namespace posenc::cli {

enum class Api {
  openai_echo,       // /v1/completions with echo and logprobs
  prompt_logprobs,   // and vLLM's prompt_logprobs
  openai_generated,  // /v1/completions, which tells of what it generates alone
  llama_cpp,         // /completion of llama-server, likewise
  sglang,            // /generate of SGLang
};
constexpr std::string_view name(Api api) {
  constexpr std::string_view names[] = {"OpenAI's completions with echo", "vLLM's prompt_logprobs",
                                        "OpenAI's completions", "llama.cpp's completion",
                                        "SGLang's generate"};
  return names[static_cast<std::size_t>(api)];
}

struct ServerQuery {
  Url url = {};
  std::string model = {};  // "": the first that the server lists
  std::string key = {};
  HttpLimits limits = {};
  int retries = 2;
};

// A server, by its address.
class HttpScorer : public lab::Scorer {
 public:
  // Asks the server which of its ways it has. `tokenizer` null: only servers that take tokens.
  // Errors: those of request(); no way that tells log-probabilities.
  static Expected<std::unique_ptr<HttpScorer>> find(ServerQuery asking,
                                                    const lab::Tokenizer* tokenizer);

  Expected<lab::Observed> score(const std::string& text, const std::vector<std::int32_t>& tokens,
                                std::int64_t more) override;
  bool scores_prompts() const override {
    return api_ != Api::openai_generated && api_ != Api::llama_cpp;
  }
  Api api() const { return api_; }
  const std::string& model() const { return asking_.model; }
  std::int64_t context() const { return context_; }  // 0: the server does not say
  bool takes_tokens() const { return tokens_; }

 private:
  HttpScorer(ServerQuery asking, const lab::Tokenizer* tokenizer);
  Expected<HttpAnswer> ask(std::string_view path, const std::string& body) const;
  std::string body_of(Api api, const std::string& text, const std::vector<std::int32_t>& tokens,
                      std::int64_t more) const;
  std::string path_of(Api api) const;
  Expected<lab::Observed> read(Api api, const std::string& answer,
                               const std::vector<std::int32_t>& tokens) const;
  Expected<bool> has(Api api, bool tokens);
  std::int32_t token_of(std::string_view text) const;

  ServerQuery asking_;
  const lab::Tokenizer* tokenizer_;
  std::unordered_map<std::string, std::int32_t> token_of_ = {};  // −1: several have this text
  Api api_ = Api::openai_echo;
  bool tokens_ = true;
  std::int64_t context_ = 0;
  std::string root_ = {}, versioned_ = {};  // "", "/v1"
};

}  // namespace posenc::cli
