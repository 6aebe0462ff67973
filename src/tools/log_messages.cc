// Lines that say by themselves what went wrong, whatever the model's file says: what they mean, and
// since which version they are gone.
#include <algorithm>
#include <cmath>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

using enum Severity;

struct Message {
  std::string_view marker;  // stands in the line
  std::string_view number;  // behind this stands a number that is told; "": none
  std::string_view code;
  Severity severity;
  std::string_view message, cure;
};

constexpr std::string_view extend = "posenc extend MODEL --to LENGTH plans a longer context",
                           longer = "start it for more tokens, or ask for less";

// The first that a line has counts.
constexpr Message messages[] = {
    // transformers
    {"must be a dictionary with two fields", "", "transformers_too_old", error,
     "transformers before 4.43 takes type and factor alone and stops at Llama 3.1's scaling; the "
     "file is right",
     "pip install -U transformers (4.43 or later); do not cut the dictionary down to two fields, "
     "which is another rotation"},
    {"must be a dictionary with with two fields", "", "transformers_too_old", error,
     "transformers before 4.43 takes type and factor alone and stops at Llama 3.1's scaling; the "
     "file is right",
     "pip install -U transformers (4.43 or later); do not cut the dictionary down to two fields, "
     "which is another rotation"},
    {"must be a dictionary with three fields", "", "transformers_too_old", error,
     "Phi-3's class before transformers 4.57 takes type, short_factor and long_factor, and nothing "
     "else",
     "pip install -U transformers, or write type longrope with its two lists alone"},
    {"`rope_scaling`'s type field must be one of", "", "transformers_too_old", error,
     "this version of transformers does not know the file's scaling, and stops; the file may be "
     "right",
     "pip install -U transformers; posenc explain FILE says which scaling it is"},
    {"Missing required keys in `rope_", "", "key_missing", error,
     "transformers stops: the scaling lacks a key that its type needs",
     "posenc lint FILE names the key and its value"},
    {"does not match the ratio implicitly set", "", "factor_vs_lengths", warning,
     "the factor is not max_position_embeddings over the trained length: transformers scales by "
     "the "
     "factor, other engines by the lengths",
     "posenc lint FILE says which of the three is wrong"},
    {"'s factor field must be a float", "", "factor_spelling", note,
     "a factor written as 4 instead of 4.0: the same number, and a warning of transformers alone",
     ""},
    {"object has no attribute 'rope_theta'", "", "transformers_mismatch", error,
     "code written for transformers 4 reads rope_theta of the configuration, which transformers 5 "
     "keeps in rope_parameters",
     "run it with transformers 4.57, or a version of the code that reads rope_parameters"},
    {"object has no attribute 'rope_scaling'", "", "transformers_mismatch", error,
     "code written for transformers 4 reads rope_scaling of the configuration, which transformers "
     "5 "
     "keeps in rope_parameters",
     "run it with transformers 4.57, or a version of the code that reads rope_parameters"},
    {"object has no attribute 'rope_parameters'", "", "transformers_mismatch", error,
     "code written for transformers 5 reads rope_parameters of a configuration of transformers 4",
     "pip install -U transformers (5.0 or later)"},
    {"KeyError: 'rope_theta'", "", "key_missing", error,
     "a scaling dictionary without the base: an override replaces all of rope_parameters",
     "write rope_theta beside rope_type: posenc translate FILE --to ENGINE writes all of it"},
    {"KeyError: 'type'", "", "key_missing", error,
     "code that reads rope_scaling by its old key type, and a file that says rope_type",
     "update the engine; until then type may stand beside rope_type with the same word"},
    {"KeyError: 'rope_type'", "", "key_missing", error,
     "code that reads rope_type, and a dictionary without it", "write rope_type"},
    {"KeyError: 'original_max_position_embeddings'", "", "key_missing", error,
     "the scaling's trained length is not in its dictionary",
     "write original_max_position_embeddings into rope_scaling: posenc lint FILE says which"},
    {"right-padding was detected", "", "right_padding", error,
     "prompts of a batch are padded on the right, so new tokens follow padding and stand at its "
     "positions",
     "tokenizer.padding_side = 'left'; posenc check-positions shows the ids as they should be"},
    {"The attention mask is not set and cannot be inferred", "", "mask_missing", warning,
     "without a mask padding is counted and seen, and positions shift by it",
     "hand attention_mask to generate()"},
    {"The attention mask and the pad token id were not set", "", "mask_missing", warning,
     "without a mask padding is counted and seen, and positions shift by it",
     "hand attention_mask to generate()"},
    // vLLM, SGLang
    {"Assuming the model's maximum length is", "Assuming the model's maximum length is",
     "context_assumed", warning, "the file does not say its context, and vLLM takes this one",
     "write max_position_embeddings, or --max-model-len"},
    {"greater than the derived context_length", "context_length (", "beyond_context", warning,
     "SGLang is started for more tokens than it derives from the file: angles that training has "
     "not shown",
     extend},
    {"This model's maximum context length is", "maximum context length is", "request_too_long",
     warning, "a request was longer than what the server was started for", longer},
    {"the request exceeds the available context size", "", "request_too_long", warning,
     "a request was longer than its slot: -c is shared among the slots of -np", longer},
    {"Replacing legacy 'type' key with 'rope_type'", "", "old_spelling", note,
     "the file says type where engines read rope_type by now: the same", ""},
    // llama.cpp, Ollama, LM Studio
    {"possible training context overflow", "> n_ctx_train (", "beyond_context", warning,
     "llama.cpp is started for more tokens than the file's context: angles that training has not "
     "shown",
     extend},
    {"the full capacity of the model will not be utilized", "< n_ctx_train (", "context_shorter",
     note, "llama.cpp is started for fewer tokens than the file's context", ""},
    {"wrong number of tensors; expected 292, got 291", "", "engine_too_old", error,
     "this llama.cpp, or what is built on it, does not know rope_freqs.weight, by which a GGUF of "
     "Llama 3.1 says its scaling",
     "update it to a build of 28 July 2024 or later"},
    {"truncating input prompt", "limit=", "prompt_truncated", error,
     "Ollama cut the beginning of the prompt off: it was longer than num_ctx",
     "PARAMETER num_ctx in the Modelfile, or options.num_ctx of the request"},
    {"requested context size too large for model", "n_ctx_train=", "beyond_context", warning,
     "Ollama was asked for more tokens than the file's context, and takes that",
     "ask for num_ctx up to it; Ollama cannot scale"},
    {"input truncated", "n_ctx = ", "prompt_truncated", error,
     "llama-server cut the middle of the prompt out: it was longer than the slot", longer},
    {"slot context shift", "n_discard = ", "context_shifted", warning,
     "the slot was full: the oldest tokens were dropped, and cached keys moved to lower positions",
     longer},
    {"context shift is disabled", "", "context_full", warning,
     "the slot is full, and generation stopped", longer},
    {"Model context auto-fit", "fitted=", "context_fitted", warning,
     "LM Studio loaded the model for fewer tokens than it has, by the memory that was free",
     "set the context length by hand when loading, or free memory: a shorter context, a smaller "
     "quantization of the cache"},
    {"Trying to keep the first", "context length of only", "context_fitted", error,
     "the prompt is longer than the context that the model was loaded with in LM Studio",
     "load it with a longer context"},
    // mlx-lm, exllamav2
    {"rope_scaling must contain keys", "", "engine_too_old", error,
     "this mlx-lm reads type and factor alone", "pip install -U mlx-lm"},
    {"rope_scaling 'type' currently only supports", "", "engine_too_old", error,
     "this mlx-lm knows no other scaling", "pip install -U mlx-lm"},
    {"Unsupported RoPE type", "", "scaling_unread", error,
     "the engine does not know the file's scaling, and stops",
     "update it, or posenc translate FILE --to ENGINE"},
};

}  // namespace

std::optional<Finding> message_of(std::string_view line) {
  const auto* known =
      std::ranges::find_if(messages, [&](const Message& one) { return line.contains(one.marker); });
  if (known == std::end(messages)) return std::nullopt;
  Finding finding{.code = std::string(known->code),
                  .severity = known->severity,
                  .message = std::string(known->message),
                  .cure = std::string(known->cure)};
  if (!known->number.empty())
    if (const auto number = number_after(line, known->number); number && std::abs(*number) < 0x1p50)
      finding.found = grouped(std::llround(*number)) + " tokens";
  return finding;
}

}  // namespace posenc::detail
