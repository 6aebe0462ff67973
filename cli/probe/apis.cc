// Answers are what somebody else wrote: every value is looked at before it is used, and what is
// not there is said in one sentence.
#include "cli/probe/apis.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>
#include <nlohmann/json.hpp>

#include "src/core/try.h"

namespace posenc::cli {
namespace {

using Page = nlohmann::ordered_json;
using lab::Chance;
using lab::Observed;
using lab::Seen;

constexpr std::int64_t likeliest = 5;  // tokens that OpenAI's API tells at most
constexpr std::int64_t likeliest_of_llama_cpp = 8;
constexpr double least_log_probability = -60;  // what is less likely is rounding alone

const Page* at(const Page& page, const char* key) {
  if (!page.is_object()) return nullptr;
  const auto found = page.find(key);
  return found == page.end() ? nullptr : &*found;
}
const Page* first_of(const Page* list) {
  return list != nullptr && list->is_array() && !list->empty() ? &list->front() : nullptr;
}
std::optional<float> log_probability(const Page* page) {
  if (page == nullptr || !page->is_number()) return std::nullopt;
  const double number = page->get<double>();
  // Rounded above 0 a little, as bfloat16 does; else no log-probability.
  if (!std::isfinite(number) || number > 0.01) return std::nullopt;
  return static_cast<float>(std::min(number, 0.0));
}
std::int32_t id_of(const Page* page) {
  if (page == nullptr || !page->is_number_integer()) return -1;
  const auto id = page->get<std::int64_t>();
  return id >= 0 && id < (std::int64_t{1} << 30) ? static_cast<std::int32_t>(id) : -1;
}

// Of digits; -1: something else.
std::int32_t id_in(std::string_view digits) {
  if (digits.empty() || digits.size() > 9) return -1;
  std::int32_t id = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return -1;
    id = 10 * id + (c - '0');
  }
  return id;
}

void add(std::vector<Chance>& chances, std::int32_t token, std::optional<float> how_likely) {
  if (token < 0 || !how_likely || *how_likely < least_log_probability) return;
  for (const Chance& one : chances)
    if (one.token == token) return;
  chances.push_back({token, *how_likely});
}

// Nothing of what is asked for is nested deeper; a hundred thousand arrays within each other take
// a hundred times their bytes.
Page parsed(const std::string& body) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > 32)
      return Page(Page::value_t::discarded);
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return Page::parse(body, nullptr, false);
}

std::string excerpt(const std::string& body) {
  const Page page = parsed(body);
  for (const char* key : {"error", "detail", "message"})
    if (const Page* told = at(page, key)) {
      if (told->is_string()) return printable(told->get<std::string>(), 160);
      if (const Page* inner = at(*told, "message"); inner != nullptr && inner->is_string())
        return printable(inner->get<std::string>(), 160);
    }
  return printable(body, 80);
}

std::unexpected<Error> damaged(std::string_view what) {
  return fail("probe", "the server's answer must tell log-probabilities", what,
              "start it so that it does (docs/probe.md)");
}

}  // namespace

HttpScorer::HttpScorer(ServerQuery asking, const lab::Tokenizer* tokenizer)
    : asking_(std::move(asking)), tokenizer_(tokenizer) {
  root_ = asking_.url.path;
  if (root_.ends_with("/v1")) root_.resize(root_.size() - 3);
  versioned_ = root_ + "/v1";
  if (tokenizer_ == nullptr) return;
  for (std::int32_t token = 0; token < tokenizer_->size(); ++token) {
    const auto [where, fresh] = token_of_.emplace(tokenizer_->text_of(token), token);
    if (!fresh) where->second = -1;
  }
}

std::int32_t HttpScorer::token_of(std::string_view text) const {
  constexpr std::string_view by_number = "token_id:";  // vLLM's return_tokens_as_token_ids
  if (text.starts_with(by_number)) {
    return id_in(text.substr(by_number.size()));
  }
  const auto found = token_of_.find(std::string(text));
  return found == token_of_.end() ? -1 : found->second;
}

Expected<HttpAnswer> HttpScorer::ask(std::string_view path, const std::string& body) const {
  for (int tried = 0;; ++tried) {
    Expected<HttpAnswer> answer = request(asking_.url, path, body, asking_.key, asking_.limits);
    const bool again = answer ? answer->status == 429 || answer->status == 503
                              : !answer.error().rule.contains("in time") &&
                                    !answer.error().rule.contains("redirect");
    if (!again || tried >= asking_.retries) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(400 << tried));
  }
}

std::string HttpScorer::path_of(Api api) const {
  switch (api) {
    case Api::llama_cpp: return root_ + "/completion";
    case Api::sglang: return root_ + "/generate";
    default: return versioned_ + "/completions";
  }
}

std::string HttpScorer::body_of(Api api, const std::string& text,
                                const std::vector<std::int32_t>& tokens, std::int64_t more) const {
  const Page prompt = tokens_ ? Page(tokens) : Page(text);
  const std::int64_t generated = std::max<std::int64_t>(more, 1);
  Page body;
  if (api == Api::llama_cpp) {
    body = {{"prompt", prompt}, {"n_predict", generated}, {"n_probs", likeliest_of_llama_cpp},
            {"temperature", 0}, {"cache_prompt", false},  {"stream", false}};
  } else if (api == Api::sglang) {
    body = {{"sampling_params", {{"max_new_tokens", generated}, {"temperature", 0}}},
            {"return_logprob", true},
            {"logprob_start_len", 0},
            {"top_logprobs_num", likeliest}};
    body[tokens_ ? "input_ids" : "text"] = prompt;
  } else {
    body = {
        {"prompt", prompt}, {"max_tokens", generated}, {"temperature", 0}, {"logprobs", likeliest}};
    if (!asking_.model.empty()) body["model"] = asking_.model;
    if (api == Api::openai_echo) body["echo"] = true;
    if (api == Api::prompt_logprobs) {
      body["prompt_logprobs"] = likeliest;
      body["return_tokens_as_token_ids"] = true;
    }
  }
  return body.dump(-1, ' ', false, Page::error_handler_t::replace);
}

Expected<Observed> HttpScorer::read(Api api, const std::string& answer,
                                    const std::vector<std::int32_t>& tokens) const {
  const Page page = parsed(answer);
  if (page.is_discarded()) return damaged("no JSON");
  const std::int64_t prompt = std::ssize(tokens);
  Observed made{.tokens = tokens, .prompt = prompt};
  // What is generated behind the prompt; false at the first token that is not known.
  const auto goes_on = [&](std::int32_t token, std::vector<Chance> chances) {
    if (!chances.empty()) made.seen.push_back({std::ssize(made.tokens), std::move(chances)});
    if (token < 0) return false;
    made.tokens.push_back(token);
    return true;
  };
  const auto other_tokens = [&](std::int64_t count) {
    return fail("probe", "the server must read a text as FILE's tokenizer does",
                std::to_string(count) + " tokens where FILE's makes " + std::to_string(prompt),
                "is FILE the model that it runs?");
  };
  if (api == Api::llama_cpp) {
    const Page* all = at(page, "completion_probabilities");
    if (all == nullptr || !all->is_array()) return damaged("no completion_probabilities");
    if (const Page* read = at(page, "tokens_evaluated");
        read != nullptr && read->is_number_integer() && read->get<std::int64_t>() != prompt)
      return other_tokens(read->get<std::int64_t>());
    for (const Page& one : *all) {
      std::vector<Chance> chances;
      add(chances, id_of(at(one, "id")), log_probability(at(one, "logprob")));
      if (const Page* top = at(one, "top_logprobs"); top != nullptr && top->is_array())
        for (const Page& other : *top)
          add(chances, id_of(at(other, "id")), log_probability(at(other, "logprob")));
      if (!goes_on(id_of(at(one, "id")), std::move(chances))) break;
    }
    if (made.seen.empty()) return damaged("completion_probabilities without log-probabilities");
    return made;
  }
  if (api == Api::sglang) {
    const Page* meta = at(page.is_array() && !page.empty() ? page.front() : page, "meta_info");
    if (meta == nullptr) return damaged("no meta_info");
    const auto triple = [](std::vector<Chance>& into, const Page& one) {
      if (one.is_array() && one.size() >= 2) add(into, id_of(&one[1]), log_probability(&one[0]));
    };
    const auto side = [&](const char* own, const char* top, bool generated) -> bool {
      const Page *each = at(*meta, own), *others = at(*meta, top);
      if (each == nullptr || !each->is_array()) return false;
      for (std::size_t i = 0; i < each->size(); ++i) {
        std::vector<Chance> chances;
        triple(chances, (*each)[i]);
        if (others != nullptr && others->is_array() && i < others->size() &&
            (*others)[i].is_array())
          for (const Page& other : (*others)[i]) triple(chances, other);
        const std::int32_t token =
            (*each)[i].is_array() && (*each)[i].size() >= 2 ? id_of(&(*each)[i][1]) : -1;
        if (generated) {
          if (!goes_on(token, std::move(chances))) break;
        } else if (static_cast<std::int64_t>(i) >= prompt || token != tokens[i]) {
          return false;
        } else if (i > 0 && !chances.empty()) {
          made.seen.push_back({static_cast<std::int64_t>(i), std::move(chances)});
        }
      }
      return true;
    };
    const Page* count = at(*meta, "prompt_tokens");
    if (count != nullptr && count->is_number_integer() && count->get<std::int64_t>() != prompt)
      return other_tokens(count->get<std::int64_t>());
    if (!side("input_token_logprobs", "input_top_logprobs", false))
      return damaged("no input_token_logprobs of the prompt's tokens");
    side("output_token_logprobs", "output_top_logprobs", true);
    if (made.seen.empty()) return damaged("meta_info without log-probabilities");
    return made;
  }
  const Page* choices = at(page, "choices");
  const Page* choice = first_of(choices);
  if (choice == nullptr) return damaged("no choices");
  if (const Page* usage = at(page, "usage"))
    if (const Page* count = at(*usage, "prompt_tokens");
        count != nullptr && count->is_number_integer() && count->get<std::int64_t>() > 0 &&
        count->get<std::int64_t>() != prompt)
      return other_tokens(count->get<std::int64_t>());
  if (api == Api::prompt_logprobs) {
    const Page* all = at(*choice, "prompt_logprobs");
    if (all == nullptr || !all->is_array()) return damaged("no prompt_logprobs");
    if (std::ssize(*all) != prompt) return other_tokens(std::ssize(*all));
    for (std::size_t i = 1; i < all->size(); ++i) {
      if (!(*all)[i].is_object()) continue;
      std::vector<Chance> chances;
      for (const auto& [key, value] : (*all)[i].items()) {
        add(chances, id_in(key), log_probability(at(value, "logprob")));
      }
      // The text's own token first.
      std::ranges::stable_partition(chances,
                                    [&](const Chance& one) { return one.token == tokens[i]; });
      if (!chances.empty()) made.seen.push_back({static_cast<std::int64_t>(i), std::move(chances)});
    }
  }
  const Page* told = at(*choice, "logprobs");
  const Page* own = told == nullptr ? nullptr : at(*told, "token_logprobs");
  const Page* texts = told == nullptr ? nullptr : at(*told, "tokens");
  const Page* top = told == nullptr ? nullptr : at(*told, "top_logprobs");
  if (own == nullptr || !own->is_array() || texts == nullptr || !texts->is_array() ||
      own->size() != texts->size()) {
    if (api == Api::prompt_logprobs && !made.seen.empty()) return made;
    return damaged("no token_logprobs");
  }
  const auto chances_at = [&](std::size_t i, std::int32_t token) {
    std::vector<Chance> chances;
    add(chances, token, log_probability(&(*own)[i]));
    if (top != nullptr && top->is_array() && i < top->size() && (*top)[i].is_object())
      for (const auto& [text, value] : (*top)[i].items())
        add(chances, token_of(text), log_probability(&value));
    return chances;
  };
  const auto text_at = [&](std::size_t i) {
    return (*texts)[i].is_string() ? (*texts)[i].get<std::string>() : std::string();
  };
  std::size_t next = 0;
  if (api == Api::openai_echo) {
    // llama-cpp-python leaves out the token that begins every text.
    const std::int64_t begun = std::ssize(*own) < prompt + 1 && prompt > 0 &&
                                       tokenizer_ != nullptr &&
                                       text_at(0) != tokenizer_->text_of(tokens.front())
                                   ? 1
                                   : 0;
    if (std::ssize(*own) < prompt - begun)
      return damaged("token_logprobs of fewer tokens than the prompt has");
    for (; static_cast<std::int64_t>(next) < prompt - begun; ++next) {
      const std::int64_t place = static_cast<std::int64_t>(next) + begun;
      std::vector<Chance> chances = chances_at(next, tokens[static_cast<std::size_t>(place)]);
      if (place > 0 && !chances.empty()) made.seen.push_back({place, std::move(chances)});
    }
  }
  for (; next < own->size(); ++next) {
    const std::int32_t token = token_of(text_at(next));
    if (!goes_on(token, chances_at(next, token))) break;
  }
  if (made.seen.empty()) return damaged("token_logprobs without a number");
  return made;
}

Expected<Observed> HttpScorer::score(const std::string& text,
                                     const std::vector<std::int32_t>& tokens, std::int64_t more) {
  if (!tokens_ && text.empty())
    return fail("probe", "the server takes texts alone, and FILE has no tokenizer to make one",
                name(api_), "give a GGUF with its tokenizer");
  POSENC_TRY(answer, ask(path_of(api_), body_of(api_, text, tokens, more)));
  if (answer.status != 200)
    return fail("probe", "the server must score the text",
                std::to_string(answer.status) + " " + excerpt(answer.body),
                std::to_string(tokens.size()) + " tokens: lower --at where its context is shorter");
  return read(api_, answer.body, tokens);
}

// Whether a small request by this way is answered with log-probabilities.
Expected<bool> HttpScorer::has(Api api, bool tokens) {
  std::string text = "The red key and the red key";
  std::vector<std::int32_t> ids = {10, 11, 10, 11};
  if (tokenizer_ != nullptr) ids = tokenizer_->encode(text);
  tokens_ = tokens;
  POSENC_TRY(answer, ask(path_of(api), body_of(api, text, ids, 1)));
  if (answer.status == 401 || answer.status == 403)
    return fail("probe", "the server wants a key", std::to_string(answer.status),
                "put it into a variable, and name that: --key_env NAME");
  if (answer.status != 200) return false;
  const Expected<Observed> seen = read(api, answer.body, ids);
  if (!seen) return false;
  if (api == Api::openai_echo || api == Api::prompt_logprobs)
    return seen->seen.front().read < seen->prompt;
  return true;
}

Expected<std::unique_ptr<HttpScorer>> HttpScorer::find(ServerQuery asking,
                                                       const lab::Tokenizer* tokenizer) {
  const double patience = asking.limits.seconds;
  constexpr double of_small_requests = 30;
  asking.limits.seconds = std::min(patience, of_small_requests);
  std::unique_ptr<HttpScorer> made(new HttpScorer(std::move(asking), tokenizer));
  // llama-server says so itself, and how many tokens a slot has.
  POSENC_TRY(props, made->ask(made->root_ + "/props", ""));
  bool is_llama_cpp = false;
  if (props.status == 200) {
    const Page page = parsed(props.body);
    if (const Page* settings = at(page, "default_generation_settings")) {
      is_llama_cpp = true;
      if (const Page* context = at(*settings, "n_ctx");
          context != nullptr && context->is_number_integer())
        made->context_ = std::max<std::int64_t>(0, context->get<std::int64_t>());
    }
  }
  POSENC_TRY(models, made->ask(made->versioned_ + "/models", ""));
  if (models.status == 200) {
    const Page page = parsed(models.body);
    if (const Page* first = first_of(at(page, "data"))) {
      if (const Page* id = at(*first, "id");
          id != nullptr && id->is_string() && made->asking_.model.empty())
        made->asking_.model = id->get<std::string>();
      if (const Page* context = at(*first, "max_model_len");
          context != nullptr && context->is_number_integer())
        made->context_ = std::max<std::int64_t>(0, context->get<std::int64_t>());
    }
  }
  std::vector<std::pair<Api, bool>> ways = {
      {Api::prompt_logprobs, true}, {Api::openai_echo, true},      {Api::openai_echo, false},
      {Api::sglang, true},          {Api::openai_generated, true}, {Api::openai_generated, false}};
  if (is_llama_cpp) ways = {{Api::llama_cpp, true}};
  for (const auto& [api, tokens] : ways) {
    if (!tokens && tokenizer == nullptr) continue;
    POSENC_TRY(found, made->has(api, tokens));
    if (!found) continue;
    made->api_ = api;
    made->tokens_ = tokens;
    made->asking_.limits.seconds = patience;
    return made;
  }
  return fail("probe", "the server must tell log-probabilities", "none of five ways has them",
              "vLLM, SGLang and llama-server tell them; llama_cpp.server with --logits_all true");
}

}  // namespace posenc::cli
