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
  std::string_view number;  // behind this stands a number of tokens that is told; "": none
  std::string_view code;
  Severity severity;
  std::string_view message, cure;
  std::string_view limit = {};  // behind this stands the number that it should be, or be below
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
    {"Missing the required key rope_scaling", "", "key_missing", error,
     "llama.cpp's converter wants LongRoPE's two lists of this family's rope_scaling, and the file "
     "has another scaling",
     "drop rope_scaling before converting, and start llama-server with its flags: posenc translate "
     "FILE --to llama.cpp"},
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
    {"positional dim", "expected positional dim ", "axes_sum", error,
     "the channels of a picture's axes do not add up to the size of a head: the program took the "
     "file for another model of its family (FLUX.1 has axes of 16, 56, 56, FLUX.2 four of 32)",
     "update the program, or the node that loads GGUF files"},
    {"cannot be broadcast to indexing result of shape [3,", "indexing result of shape [3, ",
     "mrope_mask", error,
     "M-RoPE's positions are made of input_ids, and written where the attention mask is 1: the two "
     "differ, because a prompt was cut within a picture's tokens, or padded without its mask",
     "do not truncate prompts with pictures (raise the longest prompt, or drop such rows), and "
     "pad input_ids and attention_mask on the same side",
     "value tensor of shape [3, "},
    {"get_rope_index", "", "mrope_index", warning,
     "the positions of a picture's tokens could not be made: input_ids, grid_thw and attention "
     "mask are not of one prompt",
     "do not truncate prompts with pictures; hand over image_grid_thw of just these pictures"},
    {"in get_mrope_freqs", "", "mrope_section_missing", error,
     "the engine lost mrope_section: some read it of a rope_type default or mrope alone, and drop "
     "it beside YaRN",
     "update the engine; until then run without the scaling, or without pictures"},
    {"'mrope_section'", "", "mrope_section_missing", error,
     "the class reads mrope_section, and the dictionary that it got has none: a scaling by flag or "
     "override replaced all of it",
     "write mrope_section (and mrope_interleaved) into the override, with rope_theta"},
    {"at non-singleton dimension", "size of tensor a (", "lengths_differ", error,
     "two tensors of one text have different lengths: where the line above is about rotation "
     "(apply_rotary_…, freqs_cis, position_embeddings) a table of cos and sin, or a cache, is "
     "shorter than the text",
     "raise what sizes it (max_position_embeddings, cache_lens, the prompt's longest length), or "
     "update: posenc doctor MODEL beside it tells how far the model reaches",
     "size of tensor b ("},
    {"srcIndex < srcSelectDimSize", "", "table_end", error,
     "a position or token is beyond its table: a learned table, or one of cos and sin, ends "
     "before the text does",
     "compare the text's length with max_position_embeddings: posenc explain FILE"},
    {"index out of bounds: 0 <= tmp", "tmp < ", "table_end", error,
     "an index is beyond its table. Where the number is a length, it is a table of cos and sin, "
     "that of the model or of its draft: positions run past the max_position_embeddings of one of "
     "them",
     "start it for at most so many tokens, or give the draft's config.json: posenc doctor TARGET "
     "DRAFT LINE"},
    {"is not in struct", "Key '", "override_refused", error,
     "Hydra takes no key that the configuration lacks, and stops: the scaling was not set",
     "write ++ before it (++trainer.rope_scaling.rope_type=yarn), which sets what is not there"},
    {"kaiokendev's RoPE scaling", "RoPE scaling of ", "scaling_by_length", warning,
     "Unsloth loads a model for more tokens than its file says, and divides positions (linear) "
     "whatever scaling the file has",
     "load it with max_seq_length up to the context, or set the scaling that the model's card has"},
    {"IndexError: index out of range in self", "", "table_end", error,
     "a position or token is beyond its table: models with learned positions take no longer text",
     "truncate to max_position_embeddings: posenc explain FILE says which"},
    {"exceeds the maximum sequence length for this model", "", "request_too_long", warning,
     "a text was longer than what the model was loaded for", longer},
    // vLLM, SGLang, TensorRT-LLM
    {"Sliding window for some but all layers is not supported", "`num_hidden_layers` = ",
     "window_refused", error,
     "this vLLM takes a sliding window for all layers or for none. max_window_layers counts the "
     "layers without one: where it is not below num_hidden_layers no layer slides, and the window "
     "changes nothing",
     "set use_sliding_window to false (--hf-overrides '{\"use_sliding_window\":false}'), or "
     "update vLLM (0.8.5 or later)",
     "`max_window_layers` = "},
    {"The draft model config's max_model_len", "max_model_len (", "draft_length", error,
     "the draft is made for fewer tokens than its target is started for: beyond them it has no "
     "positions",
     "start it with --max-model-len up to the draft's, or a draft that is made for as much",
     "deployment's max_model_len ("},
    {"maxInputLen:", "maxInputLen: ", "prompt_limit", warning,
     "TensorRT-LLM takes prompts up to max_num_tokens, which is no limit of the model",
     "trtllm-serve --max_num_tokens LENGTH, or enable_chunked_prefill: true in the extra options"},
    {"Setting max_tokens:", "max_model_len(", "request_too_long", error,
     "the prompt is longer than what ms-swift takes as the model's length: its own flag of the "
     "scaling does not reach the engine",
     "write rope_scaling and max_position_embeddings into the config.json, or --max_model_len "
     "with a scaling that the file has",
     "num_tokens("},
    {"is longer than the model's context length", "context length (", "request_too_long", warning,
     "a request was longer than what the server was started for", longer},
    {"is longer than the maximum model length of", "maximum model length of ", "request_too_long",
     warning, "a request was longer than what vLLM was started for", longer},
    {"inputs tokens + max_new_tokens must be <=", "must be <= ", "request_too_long", warning,
     "a request was longer than what TGI was started for", "--max-total-tokens LENGTH"},
    {"Assuming the model's maximum length is", "Assuming the model's maximum length is",
     "context_assumed", warning, "the file does not say its context, and vLLM takes this one",
     "write max_position_embeddings, or --max-model-len"},
    {"greater than the derived context_length", "context_length (", "beyond_context", warning,
     "SGLang is started for more tokens than it derives from the file: angles that training has "
     "not shown",
     extend},
    {"This model's maximum context length is", "maximum context length is", "request_too_long",
     warning, "a request was longer than what the server was started for", longer},
    {"\"type\":\"exceed_context_size_error\"", "\"n_prompt_tokens\":", "request_too_long", warning,
     "a request was longer than its slot, and refused: -c is shared among the slots of -np, and "
     "--context-shift makes room while text is made, never for a prompt",
     "-c LENGTH times the slots, -np 1, or --kv-unified", "\"n_ctx\":"},
    {"exceeds the available context size", "request (", "request_too_long", warning,
     "a request was longer than its slot, and refused: -c is shared among the slots of -np, and "
     "--context-shift makes room while text is made, never for a prompt",
     "-c LENGTH times the slots, -np 1, or --kv-unified", "context size ("},
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
    {"has wrong array length; expected", "got ", "gguf_key_shape", error,
     "llama.cpp refuses the file: the key has another number of values than it wants. Ollama's "
     "converter writes three of rope.dimension_sections, llama.cpp wants four",
     "take a GGUF that llama.cpp's own converter made, or write the sections with a 0 behind",
     "expected "},
    {"key not found in model: ", "", "gguf_key_missing", error,
     "llama.cpp refuses the file: it wants a key that the file lacks, so another converter, or an "
     "older one, made it",
     "take a GGUF that this llama.cpp's converter makes: posenc lint FILE says what it has"},
    {"invalid n_rot:", "invalid n_rot: ", "rotary_dim", error,
     "llama.cpp refuses the file: rope.dimension_count is not the size of a head",
     "convert it anew", "expected "},
    {"sequence positions remain consecutive", "", "positions_not_consecutive", error,
     "llama.cpp stops: the new tokens do not follow the last cached position. The server reused a "
     "cache that it could not cut back (recurrent layers, a sliding window, or pictures under "
     "M-RoPE, which take fewer positions than tokens)",
     "update it; until then start it without reuse: --cache-reuse 0 --no-cache-prompt, -np 1"},
    {"inconsistent sequence positions", "", "positions_not_consecutive", error,
     "llama.cpp stops: the new tokens do not follow the last cached position. The server reused a "
     "cache that it could not cut back (recurrent layers, a sliding window, or pictures under "
     "M-RoPE, which take fewer positions than tokens)",
     "update it; until then start it without reuse: --cache-reuse 0 --no-cache-prompt, -np 1"},
    {"failed to find a memory slot for batch", "", "context_full", warning,
     "the cache is full: prompt and answer have more tokens than -c, or than its share of a slot",
     longer},
    {"truncating input prompt", "limit=", "prompt_truncated", error,
     "Ollama cut the beginning of the prompt off: it was longer than num_ctx",
     "PARAMETER num_ctx in the Modelfile, or options.num_ctx of the request"},
    {"requested context size too large for model", "n_ctx_train=", "context_capped", note,
     "Ollama was asked for more tokens than the file's context, and runs that: longer prompts are "
     "cut off at their beginning",
     "ask for num_ctx up to it; Ollama cannot scale", "num_ctx="},
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
  const auto told = [&](std::string_view before) -> std::string {
    const auto number = before.empty() ? std::nullopt : number_after(line, before);
    return number && std::abs(*number) < 0x1p50 ? grouped(std::llround(*number)) : "";
  };
  finding.expected = told(known->limit);
  finding.found = told(known->number);
  if (known->limit.empty() && !finding.found.empty()) finding.found += " tokens";
  return finding;
}

}  // namespace posenc::detail
