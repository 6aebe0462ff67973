// What lines say of answers and texts that were cut, and by whom: the metrics of a trainer, what a
// server gave back, code that cuts what it hands over.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

std::optional<double> first_number(std::string_view line, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto number = number_after(line, name); number && *number >= 0) return number;
  return std::nullopt;
}

// Metrics of a training by reinforcement: TRL's dictionary, verl's "name:value".
std::optional<Finding> clipped_answers(std::string_view line) {
  constexpr std::string_view ratios[] = {"completions/clipped_ratio': ",
                                         "completions/clipped_ratio\": ",
                                         "response_length/clip_ratio:"},
                             lengths[] = {"completions/max_length': ", "completions/max_length\": ",
                                          "response_length/max:"};
  constexpr double many = 0.5;
  const auto ratio = first_number(line, ratios), longest = first_number(line, lengths);
  if (!ratio || !longest || *ratio < many || *ratio > 1 || *longest < 1) return std::nullopt;
  const bool of_trl = line.contains("completions/");
  return Finding{
      .code = "answers_clipped",
      .severity = Severity::warning,
      .found = told(*longest),
      .message = std::to_string(std::llround(100 * *ratio)) + " % of the answers are cut at " +
                 told(*longest) + " tokens before they end" +
                 (of_trl ? ": max_completion_length, which is 256 where nobody sets it"
                         : ": data.max_response_length") +
                 "; an answer without its end earns nothing, and nothing is learned",
      .cure = std::string(of_trl ? "max_completion_length" : "data.max_response_length") +
              " above what answers need (1,024 and more where a model reasons); prompt and answer "
              "together within the model's context"};
}

// An answer that ended by a limit: LMDeploy's Response(…), OpenAI's JSON.
std::optional<Finding> ended_answer(std::string_view line, std::span<const std::string> before,
                                    std::string_view behind) {
  constexpr std::string_view answers[] = {"generate_token_len=",   "\"completion_tokens\":",
                                          "'completion_tokens': ", "completion_tokens=",
                                          "\"output\":",           "input, ",
                                          "max_tokens=",           "max_new_tokens="},
                             prompts[] = {"input_token_len=", "\"prompt_tokens\":",
                                          "'prompt_tokens': ", "prompt_tokens=", "\"input\":"};
  // That of a client may stand behind other words: step_finish reason:"length".
  const std::string_view reason =
      line.contains("finish_reason") ? "finish_reason" : "finish reason";
  const std::size_t at = line.find(reason);
  if (at == line.npos) return std::nullopt;
  // finish_reason='length', "finish_reason": "length", finish_reason = 'length'
  const std::string_view value = line.substr(at + reason.size());
  const std::size_t word = value.find_first_not_of(" \t='\":");
  if (word == value.npos || !value.substr(word).starts_with("length")) return std::nullopt;
  constexpr std::size_t letters_near = 200;
  auto answer = first_number(line, answers);
  if (!answer) answer = first_number(behind.substr(0, letters_near), answers);
  for (auto above = before.rbegin(); !answer && above != before.rend(); ++above)
    answer = first_number(*above, answers);
  const auto prompt = first_number(line, prompts);
  if (!answer || *answer < 1) return std::nullopt;
  Finding finding{
      .code = "answer_cut",
      .severity = Severity::warning,
      .found = told(*answer),
      .message = "the answer was ended at " + told(*answer) +
                 " tokens by a limit (finish_reason length): the request's own max_tokens, which a "
                 "longer context does not move, and which is 512 by default in LMDeploy",
      .cure =
          "max_tokens of the request, or GenerationConfig(max_new_tokens=…); prompt and answer "
          "together within the context"};
  const double both = prompt ? *prompt + *answer : 0;
  constexpr double round_context = 1024, default_of_ollama = 4096;
  const bool of_ollama = line.contains("fp_ollama");
  if (both > 0 && std::fmod(both, round_context) == 0 &&
      (of_ollama || (line.contains("\"total\":") && both == default_of_ollama))) {
    finding.message =
        "the answer was ended where " + std::string(of_ollama ? "Ollama's" : "the server's") +
        " context was full: prompt and answer are " + told(both) + " tokens together. 4,096 are " +
        std::string(of_ollama ? "their" : "Ollama's") +
        " default on small machines, and /v1 reads no num_ctx";
    finding.cure =
        "OLLAMA_CONTEXT_LENGTH before `ollama serve`, PARAMETER num_ctx in a Modelfile, "
        "or /api/chat with options.num_ctx";
    return finding;
  }
  if (prompt && *prompt >= 1)
    finding.message +=
        "; the context holds at least the " + told(*prompt + *answer) + " of prompt and answer";
  return finding;
}

// A tokenizer's call that cuts: the two arguments stand within a few lines.
std::optional<Finding> cut_texts(std::string_view line, std::span<const std::string> before,
                                 std::string_view behind) {
  constexpr std::string_view names[] = {"max_length=", "max_length = "};
  constexpr std::size_t lines_near = 6, letters_near = 120;
  const auto most = first_number(line, names);
  if (!most || *most < 8 || line.contains("max_length=max_length")) return std::nullopt;
  const std::string next = in_small_letters(behind.substr(0, letters_near));
  const auto cuts = [](std::string_view text) {
    return text.contains("truncation=true") || text.contains("truncation = true");
  };
  if (!cuts(next) && std::ranges::none_of(before.last(std::min(lines_near, before.size())), cuts))
    return std::nullopt;
  return Finding{.code = "texts_cut",
                 .severity = Severity::warning,
                 .found = told(*most),
                 .message = "this code cuts every text at " + told(*most) +
                            " tokens (truncation=True, max_length), whatever the model takes",
                 .cure =
                     "max_length up to the model's context (posenc explain MODEL says it), or "
                     "the text in pieces"};
}

// A server that answers for its settings: text-embeddings-inference's /info. A text that never fits
// a batch waits for ever.
std::optional<Finding> batch_below_text(std::string_view line, std::span<const std::string> before,
                                        std::string_view behind) {
  constexpr std::string_view batches[] = {"\"max_batch_tokens\":", "\"max_batch_tokens\": "},
                             texts[] = {"\"max_input_length\":", "\"max_input_length\": "};
  const auto batch = first_number(line, batches);
  if (!batch) return std::nullopt;
  constexpr std::size_t letters_near = 400;
  auto text = first_number(line, texts);
  if (!text) text = first_number(behind.substr(0, letters_near), texts);
  for (auto above = before.rbegin(); !text && above != before.rend(); ++above)
    text = first_number(*above, texts);
  if (!text || *batch >= *text) return std::nullopt;
  return Finding{.code = "batch_size",
                 .severity = Severity::warning,
                 .expected = told(*text),
                 .found = told(*batch),
                 .message = "a text may have " + told(*text) + " tokens and a batch " +
                            told(*batch) +
                            ": a text between the two never fits a batch, and its request waits "
                            "for ever",
                 .cure =
                     "--max-batch-tokens of at least the longest text, or --auto-truncate with "
                     "a smaller --max-input-length where the server has it"};
}

// vLLM's pooling of 2025 and 2026 waits for ever for a text that is cut at just its context.
std::optional<Finding> cut_at_the_end(std::string_view line, std::span<const std::string> before) {
  constexpr std::string_view cuts[] = {"truncate_prompt_tokens="}, ends[] = {"max_model_len="};
  const auto cut = first_number(line, cuts);
  if (!cut) return std::nullopt;
  auto end = first_number(line, ends);
  for (auto above = before.rbegin(); !end && above != before.rend(); ++above)
    end = first_number(*above, ends);
  if (!end || *cut != *end) return std::nullopt;
  return Finding{.code = "texts_cut",
                 .severity = Severity::warning,
                 .expected = told(*end - 1),
                 .found = told(*cut),
                 .message = "texts are cut at just max_model_len, " + told(*end) +
                            ": with prompts read in chunks some versions of vLLM wait for ever for "
                            "such a text",
                 .cure = "truncate_prompt_tokens=" + std::to_string(std::llround(*end - 1)) +
                         ", enable_chunked_prefill=False, or pip install -U vllm"};
}

// A picture in a request whose part is of a type that OpenAI's servers do not have: LMDeploy and
// others hand its base64 to the tokenizer.
std::optional<Finding> picture_as_text(std::string_view line) {
  constexpr std::string_view types[] = {R"("type": "image",)", R"("type":"image",)",
                                        "'type': 'image',"};
  const auto* const type =
      std::ranges::find_if(types, [&](std::string_view one) { return line.contains(one); });
  if (type == std::end(types)) return std::nullopt;
  const std::string_view part = line.substr(line.find(*type));
  if (!part.substr(0, part.find('}')).contains("data:image/")) return std::nullopt;
  return Finding{.code = "picture_as_text",
                 .severity = Severity::error,
                 .message =
                     "the request has a picture's base64 under the type image, which "
                     "OpenAI's protocol does not have: a server reads it as text, some "
                     "hundred thousand tokens of it",
                 .cure =
                     R"({"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,…"}}; )"
                     "no longer context is needed"};
}

// Seconds between two frames, of which whole ones were taken.
std::optional<Finding> flat_time(std::string_view line) {
  constexpr std::string_view names[] = {
      "second_per_grid_ts = [", "second_per_grid_ts=[",          "second_per_grid_ts': [",
      "second_per_grid_ts: [",  "second_per_grid_ts = tensor([", "second_per_grid_ts': tensor(["};
  const auto seconds = first_number(line, names);
  if (!seconds || *seconds <= 0 || *seconds >= 1) return std::nullopt;
  return Finding{
      .code = "mrope_time_flat",
      .severity = Severity::warning,
      .found = number_text(*seconds),
      .message = "a step of the video's grid lasts " + number_text(*seconds) +
                 " seconds: code that takes whole seconds of it (Qwen 2.5 VL in transformers "
                 "before the mend of its issue 48669) makes 0 of that, and all frames stand at one "
                 "time",
      .cure =
          "sample so that a step lasts a second or more (fps of at most 2 for a temporal patch "
          "of 2), or pip install -U transformers; posenc check-positions looks at the ids"};
}

// A prompt that was taken in, and no token after it.
std::optional<Finding> empty_answer(std::string_view line) {
  constexpr std::string_view prompts[] = {"\"prompt_tokens\":"},
                             answers[] = {"\"completion_tokens\":"};
  const auto prompt = first_number(line, prompts), answer = first_number(line, answers);
  constexpr double long_prompt = 1024;
  if (!line.contains("chat.completion") || !prompt || !answer || *answer > 0 ||
      *prompt < long_prompt)
    return std::nullopt;
  return Finding{.code = "answer_empty",
                 .severity = Severity::warning,
                 .found = told(*prompt),
                 .message = "a prompt of " + told(*prompt) +
                            " tokens has no token of an answer: servers end so where the prompt "
                            "fills what a session may have, without an error",
                 .cure =
                     "LMDeploy: --session-len above prompt and answer, and a larger "
                     "--cache-max-entry-count; SGLang: --context-length and "
                     "--max-total-tokens; or a shorter prompt"};
}

}  // namespace

std::optional<Finding> cut_told(std::string_view line, std::span<const std::string> before,
                                std::string_view behind) {
  if (auto clipped = clipped_answers(line)) return clipped;
  if (auto empty = empty_answer(line)) return empty;
  if (auto ended = ended_answer(line, before, behind)) return ended;
  if (auto picture = picture_as_text(line)) return picture;
  if (auto batch = batch_below_text(line, before, behind)) return batch;
  if (auto end = cut_at_the_end(line, before)) return end;
  if (auto cut = cut_texts(line, before, behind)) return cut;
  return flat_time(line);
}

}  // namespace posenc::detail
