// Lines that say by themselves what went wrong, whatever the model's file says: what they mean, and
// since which version they are gone.
#include <algorithm>
#include <cmath>

#include "src/explain/text.h"
#include "src/tools/circumstances.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

using enum Severity;

struct Message {
  std::string_view marker;  // stands in the line
  // Behind this stands a number of tokens that is told ("": none); of several with | between them
  // the first behind which one stands.
  std::string_view number;
  std::string_view code;
  Severity severity;
  std::string_view message, cure;
  std::string_view limit = {};  // behind this stands the number that it should be, or be below
};

constexpr std::string_view index_of_inductor = "index out of bounds: 0 <=";
constexpr std::string_view extend = "posenc extend MODEL --to LENGTH plans a longer context",
                           longer = "start it for more tokens, or ask for less",
                           longer_in_lm_studio =
                               "load it with a Context Length above that (the model's load "
                               "settings, or lms load MODEL --context-length LENGTH)",
                           tokens_of_client =
                               "koboldcpp prints tokens/limit: the limit is what the client asks "
                               "for (max_context_length), whatever --contextsize is",
                           raise_both =
                               "raise the context size in the client (KoboldAI Lite's settings; "
                               "Horde: --hordeconfig), and --contextsize with it: where the two "
                               "numbers are near, the beginning is dropped or the answer ends",
                           tokens_of_pictures =
                               "transformers 5 tells tokens of pictures by mm_token_type_ids: code "
                               "that does not hand it on gets one row of positions for all, and "
                               "pictures lose their rows and columns",
                           hand_them_on =
                               "hand mm_token_type_ids of the processor on to the model, or "
                               "transformers 4.57";

constexpr std::string_view no_whole_factor =
    "transformers before 4.43 takes no whole number for the factor, and stops";
constexpr std::string_view
    older_rope_function =
        "the model's own code (trust_remote_code), or a library, was written for another "
        "transformers: before 4.48 the functions of ROPE_INIT_FUNCTIONS took dim and base, newer "
        "ones read them of the configuration",
    take_its_transformers =
        "take the transformers that the model's card names, or a newer revision of its code";

constexpr std::string_view
    of_openvino =
        "OpenVINO compiles a model for an NPU with room for prompts up to MAX_PROMPT_LEN, "
        "1,024 where nobody sets it: no limit of the model",
    room_of_openvino =
        "MAX_PROMPT_LEN above the prompt, a property of the pipeline (plugin_config of OpenVINO "
        "Model Server, whose versions before model_server#3703 do not hand it on), or a smaller "
        "picture";

constexpr std::string_view
    no_shift =
        "this model's cache cannot be shifted, and --context-shift is switched off: no key is "
        "moved, and a text ends where the context is full",
    whole_talk = "a -c that prompt and answer fit into";

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
    {"GGML_ASSERT(view_src == NULL || data_size == 0", "", "context_assumed", error,
     "a view lies beyond its tensor: of a cache for millions of tokens, which -c 0 makes of what "
     "the model promises, sizes no longer fit",
     "-c as many tokens as are needed (-c 32768)"},
    {"failed to find KV cache slot", "", "context_full", error,
     "the cache has no room for the next part of the prompt: what a shift dropped is less than "
     "what "
     "came, or slots share it",
     "a client's context some 5 % below the server's, or a larger -c (--contextsize); --noshift"},
    {"Missing required keys in `rope_", "", "key_missing", error,
     "transformers stops: the scaling lacks a key that its type needs",
     "posenc lint FILE names the key and its value"},
    {"does not match the ratio implicitly set", "", "factor_vs_lengths", warning,
     "the factor is not max_position_embeddings over the trained length: transformers scales by "
     "the factor, other engines by the lengths",
     "posenc lint FILE says which of the three is wrong"},
    {"'s factor field must be a float > 1", "", "transformers_too_old", error, no_whole_factor,
     "write it with a point in rope_scaling"},
    {"'s factor field must be a float", "", "factor_spelling", note,
     "a whole number where transformers means one with a point: the same number, and a warning of "
     "transformers alone",
     ""},
    {"model context length should be greater than total sequence length", "", "context_refused",
     error, sum_beyond_context,
     "lower max_response_length or max_prompt_length until both fit together; beyond that posenc "
     "extend MODEL --to LENGTH --train"},
    {"assert rope_scaling is None", "", "transformers_mismatch", error, dictionary_of_five,
     update_the_program},
    {"run out of tokens", "", "request_too_long", warning,
     "prompt and answer have come to session_len: a talk that grows is refused from there on",
     "--session-len up to what the model reaches (posenc explain MODEL), or a client that leaves "
     "older messages out"},
    {"may only process input embeddings up to", "tokens. ", "prompt_limit", warning, of_openvino,
     room_of_openvino, "embeddings up to "},
    {"may only process prompts up to", "tokens. ", "prompt_limit", warning, of_openvino,
     room_of_openvino, "prompts up to "},
    {"Unsupported property MAX_PROMPT_LEN by CPU plugin", "", "engine_too_old", error,
     "MAX_PROMPT_LEN is of the NPU, and this OpenVINO GenAI hands it to the parts of the model "
     "that run on the CPU as well",
     "pip install -U openvino-genai; until then the text model alone (LLMPipeline) takes it"},
    {"longer than allowed ", "Input length ", "request_too_long", warning,
     "the text to embed is longer than the model's table; OpenVINO Model Server before 2025.3 does "
     "not heed --truncate there",
     "update the model server, or cut texts in the client", "longer than allowed "},
    {"in prepare_fa2_from_position_ids", "", "packing_mistaken", error,
     "FlashAttention 2 takes a row of position_ids for packed texts that begin at each 0: ids "
     "without a 0 have no beginning, and three rows of M-RoPE have three (transformers 4.54 and "
     "some after it)",
     "pip install -U transformers, ids that begin at 0, none at all, or "
     "attn_implementation='sdpa'"},
    {"object has no attribute 'rope_theta'", "", "transformers_mismatch", error,
     "code reads rope_theta of a configuration that has none: transformers 5 keeps it in "
     "rope_parameters, and before 4.33 there was none for Llama",
     "run it with transformers 4.33 to 4.57 (pip install 'transformers>=4.33,<5'), or a version of "
     "the code that reads rope_parameters"},
    {"'ModelInfo' object has no attribute 'rope_scaling'", "", "engine_too_old", error,
     "ms-swift of early 2025 looks for the scaling where this kind of model has none, as soon as "
     "--rope_scaling is given",
     "pip install -U ms-swift, or write rope_scaling into the model's config.json and drop the "
     "flag"},
    {"object has no attribute 'rope_scaling'", "", "transformers_mismatch", error,
     "code written for transformers 4 reads rope_scaling of the configuration, which transformers "
     "5 keeps in rope_parameters",
     "run it with transformers 4.57, or a version of the code that reads rope_parameters"},
    {"object has no attribute 'rope_parameters'", "", "transformers_mismatch", error,
     "code written for transformers 5 reads rope_parameters of a configuration of transformers 4",
     "pip install -U transformers (5.0 or later)"},
    {"KeyError: 'rope_theta'", "", "key_missing", error,
     "code that reads the base of rope_parameters, and a dictionary without it: an override has "
     "replaced all of it, each kind of layer has a dictionary of its own, or the file has the base "
     "at its top, as files before transformers 5 do",
     "where something overrides the file, write rope_theta beside rope_type (posenc translate FILE "
     "--to ENGINE); else the file is right: posenc doctor FILE LOG says which of them it is"},
    {"required positional argument: 'rope_theta'", "", "key_missing", error,
     "code that wants the base at the top of the file, and a file that keeps it in "
     "rope_parameters, "
     "as transformers 5 writes it",
     "write rope_theta at the top of the config.json too, with the value that rope_parameters has, "
     "or update the program"},
    {"assert \"factor\" in rope_scaling", "", "engine_too_old", error,
     "vLLM before 0.6.2 demands factor of every type that it does not know, and transformers 4.45 "
     "has made default of Qwen2-VL's mrope while it read the file",
     "pip install -U vllm (0.6.2 or later); until then rope_type in place of type in the "
     "config.json's rope_scaling"},
    {"KeyError: 'factor'", "", "key_missing", warning,
     "code that reads factor of every rope_scaling (FastChat's get_context_length, TGI 2.0.2) "
     "stops at a type that has none: longrope or su, mrope, default",
     "update the program, or read .get('factor', 1) where it stops; a file of linear, dynamic or "
     "yarn wants a factor"},
    {"KeyError: 'low_freq_factor'", "", "key_missing", error,
     "code that takes every rope_scaling for llama3's, and a file of another type (longrope of Phi "
     "3.5, yarn): the program does not know the model's scaling",
     "another program, or a later version of it: nothing in the file mends it, unless its type is "
     "llama3, which wants low_freq_factor and high_freq_factor"},
    {"KeyError: 'type'", "", "key_missing", error,
     "code that reads rope_scaling by its old key type, and a file that says rope_type",
     "update the engine; until then type may stand beside rope_type with the same word, where that "
     "code knows it: older ones have linear and dynamic alone, and want transformers' own rotary"},
    {"KeyError: 'rope_type'", "", "key_missing", error,
     "code that reads rope_type, and a dictionary that says type, as files of transformers before "
     "4.43 do, or neither",
     "write rope_type beside type, with the same word; transformers 5 does so by itself"},
    {"KeyError: 'original_max_position_embeddings'", "", "key_missing", error,
     "the trained length is not in the dictionary of the scaling: it lacks there, or there is no "
     "scaling at all, and code for transformers 4 takes the dictionary for one that 5 makes of "
     "rope_theta (rope_type default)",
     "posenc doctor FILE LOG says which; a scaling wants original_max_position_embeddings, code "
     "that takes default for a scaling an update, or transformers 4"},
    {"Sliding Window Attention is enabled but not implemented", "", "window_unread", warning,
     "this attention (sdpa, eager) of transformers knows no window: layers that slide see all of a "
     "text longer than it. Where use_sliding_window is false, as in Qwen 2.5's files, nothing "
     "slides and the line may be passed over",
     "attn_implementation=\"flash_attention_2\", or pip install -U transformers (4.50 or later)"},
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
    {"KeyError: 'default'", "", "transformers_mismatch", error,
     "code written for transformers 4 looks 'default' up in ROPE_INIT_FUNCTIONS, where "
     "transformers 5 has it no longer",
     "run it with transformers 4.57, or a version of the code that knows 5"},
    {"has no attribute 'compute_default_rope_parameters'", "", "transformers_mismatch", error,
     "a rotary class of one version of transformers meets code of another (5 has this method)",
     "pip install -U transformers, and the library that patches it"},
    {"cos, sin = position_embeddings", "", "position_embeddings_missing", error,
     "from transformers 4.48 on a model makes cos and sin once and hands them to its layers; code "
     "that calls a layer by itself hands over none",
     "position_embeddings=model.rotary_emb(hidden_states, position_ids), or update what patches "
     "it"},
    {"rope_parameters() got an unexpected keyword", "", "transformers_mismatch", error,
     older_rope_function, take_its_transformers},
    {"yarn_parameters() got an unexpected keyword", "", "transformers_mismatch", error,
     older_rope_function, take_its_transformers},
    {"dynamic_ntk_parameters() got an unexpected keyword", "", "transformers_mismatch", error,
     older_rope_function, take_its_transformers},
    {"llama3_parameters() got an unexpected keyword", "", "transformers_mismatch", error,
     older_rope_function, take_its_transformers},
    {"RotaryEmbedding.__init__() got an unexpected keyword argument", "", "transformers_mismatch",
     error,
     "code that makes a rotary class by hand meets another transformers: before 4.48 the class "
     "took dim, max_position_embeddings and base, since then the configuration",
     "update the library that makes it, or take the transformers it was made for"},
    {"RotaryEmbedding.__init__() missing", "", "transformers_mismatch", error,
     "code that makes a rotary class by hand meets another transformers: before 4.48 the class "
     "took dim, max_position_embeddings and base, since then the configuration",
     "update the library that makes it, or take the transformers it was made for"},
    {"unexpected keyword argument 'position_embeddings'", "", "transformers_mismatch", error,
     "a patched or remote attention class is older than this transformers, which hands cos and sin "
     "over",
     "update the library that patches it, or run it with the transformers it was made for"},
    {"transitioning from computing the RoPE embeddings internally", "", "old_spelling", note,
     "a notice of transformers 4.43 to 4.47, and of Qwen-VL's part for pictures up to 4.54 and "
     "later: the class makes cos and sin by itself where newer ones are given them, which are the "
     "same angles",
     "nothing is wrong; pip install -U transformers (4.48, for Qwen-VL 4.57) ends it"},
    {"inv_freq': not found or shape changed", "", "inv_freq_stored", note,
     "the frequencies of the checkpoint were not taken over: they are no weights, and the class "
     "computes the same ones of its base, so nothing is lost unless its own table stays unfilled",
     "print model.….rotary_emb.inv_freq behind loading, and give it to posenc doctor: it begins "
     "with 1 and falls"},
    {"rotary_embeddings.inv_freq", "", "inv_freq_stored", note,
     "the checkpoint has frequencies as a buffer, as files before 2023 do: they are computed anew, "
     "and nothing is lost",
     "where loading stops at it: strict=False, or drop the key"},
    {"rotary_emb.inv_freq", "", "inv_freq_stored", note,
     "the checkpoint has frequencies as a buffer, as files before 2023 do: they are computed anew, "
     "and nothing is lost",
     "where loading stops at it: strict=False, or drop the key"},
    {"field must be less than max_position_embeddings", "", "original_is_max", warning,
     "original_max_position_embeddings is not below max_position_embeddings, so the scaling has "
     "nothing to stretch by: some set max_position_embeddings alone, some the other",
     "posenc lint FILE says which of the two is wrong"},
    {"'s short_factor field must have length", "must have length ", "factors_count", error,
     "the lists have a number for each pair that rotates, and this transformers counts all of the "
     "head: it does not read partial_rotary_factor yet (Phi-4-mini before 4.49)",
     "pip install -U transformers (4.49 or later)", "got "},
    {"position_ids should be a 3D tensor of shape (4,", "", "position_rows", error,
     "the patched forward wants four rows of positions: the text's own, then time, row and column. "
     "The caller hands over one row, or three",
     "put the text's positions in front of the three: the trainer and its agent must be of "
     "versions that belong together"},
    {"batch_size, seq_length = pos.shape", "", "position_rows", error,
     "the ids of Flux's tokens have an axis too few: diffusers before 0.31 takes them for each "
     "text of the batch, [batch, tokens, 3], and newer code hands over [tokens, 3]",
     "pip install -U diffusers (0.31 or later), or code of that time"},
    {"position_ids must be", "", "position_rows", error,
     "position_ids have another shape than the class takes: [batch, seq] for text, [3, batch, seq] "
     "for pictures under M-RoPE, four rows where a trainer adds the text's own",
     "posenc check-positions shows the ids as they should be"},
    {"CLIP can only handle sequences up to", "sequences up to ", "prompt_truncated", note,
     "CLIP has a learned table of 77 rows; where another encoder reads all of the prompt (T5 of "
     "Flux and SD 3, the LLaMA of HunyuanVideo), that is harmless, and of Stable Diffusion 1, 2 "
     "and XL the words behind are not seen",
     "of a model with CLIP alone say it in fewer words"},
    {"cannot exceed the maximum allowed length of 448", "", "table_end", error,
     "Whisper's decoder has a learned table of 448 rows", "cut the labels to 448 tokens"},
    {"index-select invalid index", "invalid index ", "table_end", error,
     "a position is behind the last row of the table of cos and sin (Candle): the text has more "
     "tokens than the model's max_position_embeddings",
     "cut texts before (truncation in tokenizer.json, max_length), or embed them in pieces",
     "dim size "},
    {"Whisper expects the mel input features to be of length", "", "table_end", error,
     "Whisper's encoder has fixed sines for 30 seconds, 3,000 frames",
     "pad or cut the audio to 30 s"},
    {"doesn't match model (", "", "grid_size", error,
     "the model's learned grid of positions is for another picture size",
     "interpolate_pos_encoding=True stretches it, or resize the picture"},
    {"Merged position_ids shape mismatch", "got torch.Size([3, 1, ", "ids_not_padded", error,
     "input_ids were padded to a multiple of 8, and position_ids were not",
     "take a cutoff_len that is a multiple of 8, or update the trainer", "expected (3, 1, "},
    {"apply_rope freqs shape is not broadcastable", "", "grid_rounded", error,
     "the positions were made for another grid than the picture or video has: a side is no "
     "multiple of what a token covers (8 or 16 of the VAE times 2 of a patch), or a reference "
     "picture has sides of its own",
     "take widths and heights that are multiples of 32, of the reference picture as well"},
    {"could not derive a broadcastable token layout", "", "grid_rounded", error,
     "the positions and the tokens of the video do not make up one grid of frames, rows and "
     "columns: the number of frames or a side was rounded, or a reference has sizes of its own",
     "frames of the form 8k + 1 (for 347: 345 or 353), sides that are multiples of 32, and the "
     "reference in the video's size"},
    {"all_gather_into_tensor(position_ids", "", "mrope_parts", error,
     "the ranks of a sequence exchange position_ids of one row, and M-RoPE has three",
     "update the trainer, or train this model without sequence_parallel_size"},
    {"given cache_size (", "given cache_size (", "cache_smaller", warning,
     "tabbyAPI made a cache of so many tokens, all jobs' together: without max_seq_len and "
     "cache_size in its settings it takes 4,096, whatever the model reaches",
     "max_seq_len and cache_size in config.yml, both"},
    {"is too close to contextLength", "maxTokens (", "client_context", warning,
     "a client's own settings: its longest answer (maxTokens) leaves no room in the length that it "
     "takes for the model's (contextLength); the server is not asked",
     "a smaller maxTokens, or contextLength in the client's settings as large as the server runs",
     "contextLength ("},
    {"for '--rope-scaling", "", "flag_refused", error,
     "the program does not take this value of its flag, and stops",
     "the line below lists what it takes; another scaling must stand in the config.json"},
    {"bounded tensor with a maximum capacity of", "capacity of ", "table_end", error,
     "an exported program takes texts up to the length that it was exported for, and no more than "
     "its sliding window",
     "export with a larger --max_seq_len; prompts beyond the window go in pieces"},
    {"rope_cache.shape", "", "table_end", error,
     "the table of cos and sin is shorter than the text: its length is the seq_len of the "
     "settings, and prompt and answer have more tokens together",
     "set seq_len to the longest prompt and answer together"},
    {"cos.shape[0]", "", "table_end", error,
     "the table of cos and sin is shorter than the text: it is made for max_seq_length, and some "
     "versions of Unsloth do not make it longer",
     "load the model with a max_seq_length that covers prompt and answer, or pip install -U "
     "unsloth"},
    {"Cannot truncate prompt with n_keep", "n_keep (", "context_fitted", error,
     "the prompt is longer than the context that the model was loaded with",
     "load it with a longer context (LM Studio: Context Length in the model's load settings)",
     "n_ctx ("},
    {"requires `position_ids` in every", "", "positions_missing", error,
     "ranks that share a text want positions of the whole text: without position_ids each would "
     "count its part from 0",
     "update the trainer, or give a collator that adds position_ids"},
    {"position_ids.view(-1)", "", "positions_view", error,
     "packed texts are cut where positions begin anew, and this code cannot read positions of "
     "several rows: no fault of your settings",
     "update the trainer (.reshape in place of .view), or sample_packing: false"},
    {"gather_nd index out of bounds", "", "table_end", error,
     "a token is behind the last row of a table: a model for LiteRT or MediaPipe takes as many "
     "tokens as it was exported for (ekv1280 in its file's name: 1,280), prompt and answer "
     "together, whatever maxTokens says",
     "maxTokens up to that number, or the file of a longer one (ekv4096), or export it anew with a "
     "larger kv_cache_max_len"},
    {"AssertionError: seq_len", "", "table_end", error,
     "the table of cos and sin is shorter than the text",
     "load it with a length that covers prompt and answer"},
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
    {"'NoneType' object is not an iterator", "", "mrope_grid", error,
     "tokens of the prompt are marked as those of a picture or video for which no grid was handed "
     "over: a model that is sampled (GRPO) may have written <|image_pad|> itself, in texts alone "
     "too",
     "keep the sampler from writing such tokens (logit_bias, suppress_tokens), or drop answers "
     "that have them; a newer trainer marks them as text"},
    {"in get_rope_index", "", "mrope_index", warning,
     "the positions of a picture's tokens could not be made: input_ids, grid_thw and attention "
     "mask are not of one prompt",
     "do not truncate prompts with pictures; hand over image_grid_thw of just these pictures"},
    {"Impl.__init__() got an unexpected keyword argument 'layer_idx'", "", "chunks_refused", error,
     "the file has dual_chunk_attention_config (the 1M models of Qwen2.5 and Qwen3), which gives "
     "each layer its number, and the attention that vLLM chose knows no such chunks",
     "take dual_chunk_attention_config out of config.json, which changes nothing for texts up to "
     "253,952 tokens; longer ones run in SGLang, and in vLLM before 0.11 by "
     "VLLM_ATTENTION_BACKEND=DUAL_CHUNK_FLASH_ATTN"},
    {"patch_pos_embed.shape[-", "", "grid_rounded", error,
     "a table of positions is stretched to a picture by a scale factor, and the product was "
     "rounded down to one row too few (43 / 37 × 37 → 42)",
     "update the model's code, which stretches to a size (interpolate(size=(h, w))), or adds 0.1 "
     "to the rows (interpolate_offset, as DINOv2 was trained)"},
    {"Input 'position_ids' dimension 0 should be of size batch_size", "", "position_rows", error,
     "the export has one row of positions for all texts of a batch, and ONNX Runtime's "
     "RotaryEmbedding wants one a text",
     "export position_ids as an input (optimum-cli export onnx … text-generation-with-past) and "
     "hand one row a text, leave the fusion to RotaryEmbedding out, or batches of one"},
    {"Config' object has no attribute 'max_position_embeddings'", "", "key_missing", error,
     "rope_parameters stand in a part of the configuration that has no length, or code asks the "
     "whole for what its text's part has (text_config, thinker_config.text_config)",
     "write rope_parameters into the part that has max_position_embeddings; in code read it there, "
     "or update what reads it"},
    {"keys, values = cache.state", "", "positions_shifted", error, state_of_gemma3n,
     cure_of_gemma3n},
    {"kv-cache: above max-seq-len", "", "context_full", error,
     "candle's cache of keys has a fixed number of rows, those of the window in layers that slide, "
     "and the text went beyond",
     "update candle and what is built on it (its rotating cache drops keys behind the window); "
     "until then keep prompt and answer within the number"},
    {"in get_mrope_freqs", "", "mrope_section_missing", error,
     "the engine lost mrope_section: some read it of a rope_type default or mrope alone, and drop "
     "it beside YaRN",
     "update the engine; until then run without the scaling, or without pictures"},
    {"KeyError: 'mrope_section'", "", "mrope_section_missing", error,
     "the class reads mrope_section, and the dictionary that it got has none: a scaling by flag or "
     "override replaced all of it, or the file has it at another level than the loader reads",
     "write mrope_section (and mrope_interleaved) into the override, with rope_theta; without an "
     "override update what loads it"},
    {"'rope_type=default' (modern field) and 'type=", "", "transformers_mismatch", error,
     "rope_type and type are both there and differ: transformers 5 puts rope_type 'default' beside "
     "the type (mrope, su) that an older file has, and this vLLM takes one of them alone",
     "pip install 'transformers<5', or a newer vLLM; or drop type from rope_scaling in the "
     "config.json (mrope_section stays)"},
    {"(modern field) and 'type=", "", "type_conflict", error,
     "rope_type and type are both there and say different things, and vLLM takes one of them alone",
     "keep the one that the model was trained with"},
    {"must be < `max_total_tokens`", "(", "context_refused", error,
     "TGI counts prompt and answer together: max_total_tokens must be larger than what a prompt "
     "may "
     "have, and here it is not (the two may be swapped)",
     "--max-total-tokens (MAX_TOTAL_TOKENS) above --max-input-tokens (MAX_INPUT_TOKENS, once "
     "MAX_INPUT_LENGTH) by as much as an answer may have",
     "`max_total_tokens`("},
    {"narrow invalid args start + len > dim_len", "dim_len: [", "table_end", error,
     "candle's table of cos and sin, or its cache, ends before the text: it is made for "
     "max_position_embeddings, or for the program's own limit",
     "cut the text, or raise max_position_embeddings together with a scaling"},
    {"assert freqs_cis.shape ==", "", "table_end", error,
     "the table of cos and sin (freqs_cis) has not one row for each token: the text is longer than "
     "the max_seq_len that the table is made for, or only a part of each head is rotated",
     "max_seq_len (seq_len of the settings) of the longest text, prompt and answer together"},
    {"gather kernel index out of bounds", "", "table_end", error,
     "an index is beyond its table on the GPU: a position at or behind max_position_embeddings "
     "where positions are learned or cos and sin are a table, or a token beyond the vocabulary",
     "truncate to max_position_embeddings (posenc explain FILE), and count the tokenizer's tokens"},
    {"index < sizes[i]", "", "table_end", error,
     "an index is beyond its tensor on the GPU: a position behind the rows of cos and sin (those "
     "of max_position_embeddings, or fewer where a scaling is left out), a token beyond the "
     "vocabulary, or a page beyond the cache",
     "start it for no more than the model reaches (--max-model-len, --context-length); "
     "CUDA_LAUNCH_BLOCKING=1 puts the right line of code into the traceback, and cos_sin_cache "
     "there means a position"},
    {"srcIndex < srcSelectDimSize", "", "table_end", error,
     "a position or token is beyond its table: a learned table, or one of cos and sin, ends "
     "before the text does",
     "compare the text's length with max_position_embeddings: posenc explain FILE"},
    {index_of_inductor, "", "table_end", error,
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
    {"No position encodings are defined for positions", "but got position ", "table_end", error,
     "the model's table of positions ends there (CTranslate2 says so): Whisper's decoder has 448 "
     "rows, which the prompt before, hotwords and the answer share",
     "a shorter initial_prompt and fewer hotwords, or fewer new tokens; of other models shorter "
     "texts",
     "positions >= "},
    {"assert offset + size <= self.max_len", "", "table_end", error,
     "the table of positions of WeNet's encoder ends at max_len frames: Whisper's has 1,500, which "
     "are 30 seconds",
     "cut the audio into pieces of 30 seconds"},
    {"size mismatch for freqs_t_", "", "inv_freq_stored", error,
     "freqs_t_x and freqs_t_y are computed from the grid of patches (14 × 14 at 224 pixels) and "
     "not learned: a checkpoint of another size holds other ones",
     "leave them out of the checkpoint and load the rest with strict=False: the model makes its "
     "own (strict=False alone does not forgive another size)"},
    {"tokens and the context window is", "prompt is ", "request_too_long", error,
     "the prompt is longer than the context, and is not read",
     "a shorter prompt, or a model that is trained for more", "context window is "},
    {"Context exhausted. Slot", "", "context_full", error,
     "the context ran full in the middle of the answer, and the slot was given back",
     "a longer context where the model is trained for it: -c of llama-server, context_size in the "
     "YAML of LocalAI's model; -c is shared among slots"},
    {"IndexError: index out of range in self", "", "table_end", error,
     "a position or token is beyond its table: models with learned positions take no longer text",
     "truncate to max_position_embeddings: posenc explain FILE says which; RoBERTa and XLM-R count "
     "from 2, so that 512 tokens take a table of 514 rows (--config_overrides "
     "max_position_embeddings=514 where a model is made anew)"},
    {"exceeds the maximum sequence length for this model", "", "request_too_long", warning,
     "a text was longer than what the model was loaded for", longer},
    // vLLM, SGLang, TensorRT-LLM
    {"Sliding window for some but all layers is not supported",
     "`num_hidden_layers` = ", "window_refused", error,
     "this vLLM takes a sliding window for all layers or for none. max_window_layers counts the "
     "layers without one: where it is not below num_hidden_layers no layer slides, and the window "
     "changes nothing",
     "set use_sliding_window to false (--hf-overrides '{\"use_sliding_window\":false}'), or "
     "update vLLM (June 2025 or later)",
     "`max_window_layers` = "},
    {"The draft model config's max_model_len", "max_model_len (", "draft_length", error,
     "the draft is made for fewer tokens than its target is started for: beyond them it has no "
     "positions",
     "start it with --max-model-len up to the draft's, or a draft that is made for as much",
     "deployment's max_model_len ("},
    {"maxInputLen:", "maxInputLen: ", "prompt_limit", warning,
     "TensorRT-LLM takes prompts up to max_num_tokens, which is no limit of the model",
     "trtllm-serve --max_num_tokens LENGTH, or enable_chunked_prefill: true in the extra options"},
    {"is larger than max_position_embeddings", "max_seq_len ", "beyond_context", warning,
     "TensorRT-LLM builds an engine for more tokens than max_position_embeddings × rotary scaling "
     "of its checkpoint: texts are not limited to it, and what is longer is nonsense, unless the "
     "conversion lost the model's own scaling",
     "compare the checkpoint's config.json with the model's (max_position_embeddings, "
     "rotary_scaling), and convert again where they differ; else --max_seq_len up to it",
     "max_position_embeddings "},
    {"Setting max_tokens:", "max_model_len(", "request_too_long", error,
     "the prompt is longer than what ms-swift takes as the model's length: its own flag of the "
     "scaling does not reach the engine",
     "write rope_scaling and max_position_embeddings into the config.json, or --max_model_len "
     "with a scaling that the file has",
     "num_tokens("},
    {"Current length of row(", "length of row(", "request_too_long", error,
     "the text is longer than what ms-swift's template takes (max_length, by default the context "
     "of the config.json): --max_model_len is for the engine alone, and does not raise it",
     "--max_length LENGTH beside --max_model_len; beyond the model's context with a scaling: "
     "posenc extend MODEL --to LENGTH",
     "max_length("},
    {"Current sentence length exceeds", "", "request_too_long", error,
     "prompt and history are longer than what ms-swift takes as the model's length, which it reads "
     "of the configuration (seq_length, max_position_embeddings)",
     "raise the key in the config.json where the model was trained for as much; else cut the "
     "history"},
    {"exceeds `session_len` (", "sequence length (", "answer_shortened", note,
     "the request asks for a longer answer than fits beside its prompt, and TurboMind makes it "
     "shorter",
     "--session-len LENGTH (TurbomindEngineConfig(session_len=…)), or a smaller max_new_tokens",
     "`session_len` ("},
    {"Truncate max_new_tokens to", "max_new_tokens to", "answer_shortened", note,
     "lmdeploy makes answers no longer than session_len leaves beside the prompt: a number of "
     "thousands is no fault, and empty answers have another cause",
     "where it is small: --session-len LENGTH, up to the model's context"},
    {"Truncating context to", "context_size + max_new_tokens=", "prompt_truncated", error,
     "the evaluation keeps room for max_new_tokens and cuts the prompt to what is left of "
     "max_model_length",
     "max_new_tokens at most max_model_length less the longest prompt; where the model reaches "
     "further, a longer max_model_length",
     "self.max_length="},
    {"exceeds maximum sequence length (", "Prompt length (", "request_too_long", warning,
     "the prompt is longer than what the TensorRT-LLM engine was built for, which is no limit of "
     "the model",
     "build it anew: trtllm-build --max_seq_len LENGTH (before 0.12 --max_input_len, and "
     "--max_output_len), up to the model's context",
     "maximum sequence length ("},
    {"is longer than the model's context length", "The input (", "request_too_long", warning,
     "a request was longer than what the server was started for", longer, "context length ("},
    {"is greater than max_seq_len", "Request length |Prompt length ", "request_too_long", warning,
     "a text is longer than what tabbyAPI was started for: its prompt, or prompt and answer "
     "together (the last number is then the answer that the client asks for)",
     "max_seq_len and cache_size of config.yml as far as the model reaches (4,096 hold where "
     "neither is set and its length stands in a text_config), or a smaller context or answer in "
     "the client, whose count of tokens is often an estimate",
     "max_seq_len "},
    {"in the input for embedding generation", "you requested ", "request_too_long", warning,
     "a text was longer than the server takes for an embedding; 512 is a learned table of the "
     "model's own, which no option makes longer",
     "cut the text (truncate_prompt_tokens of the request), embed it in pieces, or take a model "
     "that is made for more; --max-model-len where posenc explain MODEL says that it reaches "
     "further",
     "maximum context length is "},
    {"shape mismatch: value tensor of shape [3, ", "value tensor of shape [3, ", "lengths_differ",
     error,
     "positions of M-RoPE, three rows of them, were made for another number of tokens than is "
     "left: "
     "ids were cut (cutoff_len, max_length) within a picture's tokens, or padded, and its grid was "
     "not",
     "a length that holds all tokens of the pictures (cutoff_len above them), or smaller pictures "
     "(max_pixels, image_resolution)"},
    {"image_rotary_emb.shape=torch.Size([", "", "lengths_differ", error,
     "one tensor of 2×2 rotations is FLUX's of diffusers up to 0.30; since 0.31 image_rotary_emb "
     "is "
     "a pair (cos, sin) without a batch, and the processor rotates: a repository's own code and "
     "diffusers are of different versions",
     "pip install diffusers==0.30.2 (what the repository's README names), or its newest code"},
    {"input tokens and requested ", "You passed ", "request_too_long", warning,
     "the text has more tokens than the server takes; a count by another tokenizer (tiktoken) is "
     "not the model's",
     "cut the text by the model's own tokenizer, or some hundred tokens below the limit "
     "(truncate_prompt_tokens of the request)",
     "context length is only "},
    {"is longer than the maximum model length of", "length |ength of ", "request_too_long", warning,
     "a request was longer than what vLLM was started for",
     "--max-model-len LENGTH where vLLM is started (max_model_len, vllm_maxlen of what starts it), "
     "as far as the model reaches; or a shorter request",
     "maximum model length of "},
    {"tokens' is too large: ", "is too large: ", "request_too_long", warning,
     "the answer that the client asks for and its prompt are longer together than what the server "
     "takes",
     "a smaller max_tokens of the request (max_completion_tokens, the client's longest answer): "
     "the context less the prompt; or a server that is started for more",
     "maximum context length is "},
    {"However, your messages resulted in ", "your messages resulted in ", "request_too_long",
     warning,
     "the messages are longer than the model that answers takes: of a provider it may be another "
     "one than was chosen (one for titles, summaries or a fallback), if the number is not that of "
     "yours",
     "fewer messages; look at which model the request names; a server of your own can be started "
     "for more tokens, one of a provider cannot",
     "maximum context length is "},
    {"exceed the configured limit of ", "", "request_too_long", warning,
     "prompt and answer share the provider's window, so that the prompt alone is limited to less: "
     "272,000 of 400,000 in GPT-5's",
     "a prompt below the limit (the client's own setting of its longest input as well)",
     "configured limit of "},
    {"Input length of input_ids is ", "input_ids is ", "request_too_long", warning,
     "transformers' max_length counts prompt and answer together, and the prompt has used it up: "
     "nothing is left to be generated",
     "max_new_tokens in its place (generation_max_length of a trainer, above its cutoff_len)",
     "`max_length` is set to |max_length is set to "},
    {"find_slot: non-consecutive token position ", "", "positions_not_consecutive", warning,
     not_consecutive, ""},
    {"forcing full prompt re-processing due to lack of cache data", "n_past = ", "prompt_again",
     warning,
     "the whole prompt is computed anew: layers with a window keep the last tokens alone, and a "
     "recurrent state cannot be taken back, so that a prompt which differs has no place to go on "
     "from; positions are right, and it costs time",
     "--swa-full keeps all tokens of layers with a window (memory); of a hybrid model a build with "
     "checkpoints (--ctx-checkpoints); a client that keeps the beginning of its prompts as it is"},
    {" tokens do not match: tokens: ", "tokens: ", "picture_cut", error,
     "the text has not as many places for pictures as the pictures have: it was cut within a "
     "picture, after its places were written",
     "a longer limit for texts (cutoff_len, max_length, max_prompt_length), or smaller pictures "
     "(max_pixels, image_max_pixels)",
     "features "},
    {"should have a 'rope_type' key", "", "type_missing", error,
     "vLLM got a scaling without rope_type: an override has none, or transformers 5 made a "
     "dictionary for each kind of layer (as of Gemma 3), which an older vLLM takes for one",
     "where nothing overrides the file: update vLLM (0.12 or later), or pip install "
     "'transformers<5'; else write rope_type into the override"},
    {"`max_new_tokens` must be <=", "Given: ", "request_too_long", warning,
     "a request was longer than what TGI was started for", "--max-total-tokens LENGTH",
     "must be <= "},
    {"must have less than", "Given: ", "request_too_long", warning,
     "a prompt was longer than what TGI was started for, or than the model of "
     "text-embeddings-inference reaches, which no flag lifts",
     "TGI: --max-input-tokens and --max-total-tokens; text-embeddings-inference: truncate: true in "
     "the request (or --auto-truncate), shorter pieces, or a model of 8,192 tokens",
     "less than "},
    {"is smaller than max_model_len", "max_num_batched_tokens (", "context_refused", error,
     "vLLM takes a whole prompt in one step where chunked prefill is off, and ends with an error "
     "where a step has room for fewer tokens than the context",
     "--max-num-batched-tokens as large as --max-model-len, chunked prefill on, or a shorter "
     "--max-model-len (versions of TRL fix 4,096: prompt and completion within that)",
     "max_model_len ("},
    {"is too long and exceeds limit of", "Input prompt (", "request_too_long", warning,
     "a prompt was longer than what vLLM's scheduler takes: the context that it was started for, "
     "or max_num_batched_tokens without chunked prefill",
     "--max-model-len, as far as the model reaches (posenc explain MODEL), or shorter prompts",
     "exceeds limit of "},
    {"exceeds the model's maximum context length of", "total of ", "request_too_long", warning,
     "a request was longer than what SGLang was started for", longer, "context length of "},
    {"exceeds the maximum allowed length", "Input length (", "request_too_long", warning,
     "a request was longer than what SGLang was started for", longer, "allowed length ("},
    {"should not exceed max_num_tokens", "prompt length (", "prompt_limit", warning,
     "max_num_tokens is what TensorRT-LLM computes at once, and without chunked prefill a prompt "
     "must fit into it whole: no limit of the model, and max_tokens has no part in it",
     "max_num_tokens above the prompt (LLM(max_num_tokens=…), trtllm-serve --max_num_tokens), or "
     "enable_chunked_prefill: true",
     "max_num_tokens ("},
    {"cannot be greater than model context_length", "max_length (", "prompt_limit", error,
     "ONNX Runtime GenAI: max_length counts prompt and answer together, and is more than "
     "context_length of genai_config.json",
     "max_length (what is set for it, or the prompt and the answer asked for) at most LIMIT; a "
     "larger context_length where the export and the model (posenc explain MODEL) reach further",
     "context_length ("},
    {"exceed context limit: ", "", "request_too_long", warning,
     "prompt and answer count together, and the server takes fewer", longer},
    {"should not exceed max_seq_len", "prompt length (", "request_too_long", warning,
     "prompt and answer are longer than what TensorRT-LLM was built or started for",
     "--max_seq_len LENGTH", "max_seq_len ("},
    {"is larger than the maximum number of tokens that can be stored in KV cache", "max seq len (",
     "cache_memory", warning,
     "memory, and no matter of position: the cache has no room for one text of that length",
     "--max-model-len of what fits, a larger --gpu-memory-utilization, or --kv-cache-dtype fp8",
     "KV cache ("},
    {"To serve at least one request with the model", "max seq len (", "cache_memory", warning,
     "memory, and no matter of position: the cache has no room for one text of that length",
     "--max-model-len of what fits, a larger --gpu-memory-utilization, or --kv-cache-dtype fp8"},
    {"larger than the cache size", "max_seq_len (", "cache_smaller", warning,
     "tabbyAPI limits a text to cache_size, which is all jobs' together",
     "set cache_size to max_seq_len or more, also in the request that loads the model",
     "limited to "},
    {" available) and cannot be enqueued", "Job requires ", "request_too_long", warning,
     "tabbyAPI (exllamav3) counts pages of 256 tokens: prompt and longest answer of the job take "
     "more of them than cache_size has",
     "cache_size (and max_seq_len) of config.yml larger, a multiple of 256; or a smaller "
     "max_tokens "
     "of the request, or a shorter prompt",
     "(only "},
    {"Total sequence length exceeds cache size", "", "context_full", error,
     "prompt and answer have more tokens than the cache", "a larger cache (max_seq_len)"},
    {"Assuming the model's maximum length is", "Assuming the model's maximum length is",
     "context_assumed", warning, "the file does not say its context, and vLLM takes this one",
     "write max_position_embeddings, or --max-model-len"},
    {"greater than the derived context_length", "context_length (", "context_refused", error,
     "SGLang refuses more tokens than it derives from the file: max_position_embeddings, which a "
     "scaling's factor multiplies only where no trained length stands beside it",
     "max_position_embeddings of the config.json as long as the scaling reaches, or "
     "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 where a scaling covers it",
     "derived context_length ("},
    {" in the output)", "you requested about ", "request_too_long", warning,
     "prompt and answer count together, and the last number in the brackets is the answer that the "
     "client asks for: one of the whole context leaves no room for a prompt",
     "max_tokens of the request, or the client's setting of its longest answer (maxTokens, output "
     "limit), to what an answer needs; a shorter prompt where that number is small already",
     "maximum context length is "},
    {" in the completion)", "you requested ", "request_too_long", warning,
     "prompt and answer count together, and the last number in the brackets is the answer that the "
     "client asks for: a request is refused where the two do not fit, however short the answer "
     "would have been",
     "a smaller max_tokens of the request (the client's longest answer), or fewer messages and "
     "tools in it; a server of your own can be started for more tokens, one of a provider cannot",
     "maximum context length is "},
    {"This model's maximum context length is", "total of at least |for a total of |you requested ",
     "request_too_long", warning, "a request was longer than what the server was started for",
     longer, "maximum context length is "},
    {"\"type\":\"exceed_context_size_error\"", "\"n_prompt_tokens\":", "request_too_long", warning,
     "a request was longer than its slot, and refused: -c is shared among the slots of -np, and "
     "--context-shift makes room while text is made, never for a prompt",
     "-c LENGTH times the slots, -np 1, or --kv-unified", "\"n_ctx\":"},
    {"Context auto-reduced: ", " -> ", "context_fitted", warning,
     "Unsloth Studio starts llama-server with as much context as the free memory of the GPU holds "
     "beside the weights, whatever the model reaches",
     "a smaller quantization of the weights or of the cache, or layers on the CPU; or the context "
     "set by hand",
     "auto-reduced: "},
    {"context size reduced from", " to ", "context_fitted", warning,
     "llama.cpp took fewer tokens than the file's context, by the memory that was free (--fit)",
     "-c LENGTH sets it by hand; a smaller quantization of the cache (-ctk q8_0 -ctv q8_0) makes "
     "room",
     "reduced from "},
    {"prompt is too long: ", "too long: ", "request_too_long", warning,
     "a request was longer than what the server was started for", longer, "tokens > "},
    {"Context size has been exceeded", "", "context_full", error,
     "the slots were full: where -np is left out, llama-server takes several slots over one cache "
     "of -c tokens, and texts at the same time share it",
     "-c of all texts at the same time together, -np 1, or -np SLOTS, which gives each its part"},
    {"exceeds the available context size", "request (|\"n_prompt_tokens\":", "request_too_long",
     warning,
     "a request was longer than its slot, and refused: -c is shared among the slots of -np, and "
     "--context-shift makes room while text is made, never for a prompt",
     "-c LENGTH times the slots, -np 1, or --kv-unified", "context size (|\"n_ctx\":"},
    {"`rope_config_validation` is deprecated", "", "old_spelling", note,
     "the model's own code (trust_remote_code) is of transformers 4, and calls what 5 has removed: "
     "the line itself harms nothing, an error behind it may be of the same cause",
     "where it fails, run it with transformers 4.57, or a newer revision of the model's code"},
    {"Replacing legacy 'type' key with 'rope_type'", "", "old_spelling", note,
     "the file says type where engines read rope_type by now: the same", ""},
    // llama.cpp, Ollama, LM Studio
    {"\"compatibility_type\":\"mlx\"", "\"loaded_context_length\":", "context_fitted", warning,
     "LM Studio's runtime of MLX weights loads a model for the length that memory allows, whatever "
     "-c or the Context Length asks for",
     "the same model as a GGUF, whose runtime takes the length", ""},
    {"possible training context overflow", "> n_ctx_train (", "beyond_context", warning,
     "llama.cpp is started for more tokens than the file's context: angles that training has not "
     "shown",
     extend},
    {"n_ctx of the none causal attention model", "n_ctx_train(", "context_capped", warning,
     "the context of an embedding model is cut to the file's, whatever -c says, unless a scaling "
     "stretches it",
     "--rope-scaling yarn with the --rope-freq-scale that the model's card has (0.75 of "
     "nomic-embed-text 1.5 for -c 8192)",
     "given n_ctx("},
    {"the full capacity of the model will not be utilized", "n_ctx_per_seq (|n_ctx_seq (|n_ctx (",
     "context_shorter", note, "llama.cpp is started for fewer tokens than the file's context",
     "where texts are longer than that: -c LENGTH, 0 for the file's own (Ollama: num_ctx, LM "
     "Studio: Context Length, text-generation-webui: ctx-size)",
     "< n_ctx_train ("},
    {"unknown model architecture: ", "", "engine_too_old", error,
     "this build of llama.cpp, or what is built on it, knows no such architecture, and loads "
     "nothing: no position is wrong",
     "update it; where the newest does not know it either, another engine"},
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
     "older one, made it, or it is no model: an adapter (LoRA) has a dozen keys and none of "
     "position",
     "an adapter goes beside its model (-m MODEL.gguf --lora FILE); else take a GGUF that this "
     "llama.cpp's converter makes: posenc lint FILE says what it has"},
    {"rope_cache    = 1", "", "rope_cache", warning,
     "ik_llama.cpp keeps cosines for later (-rcache), which some of its versions do wrongly for "
     "some models (GLM-4.6 writes garbage, reports say): it is off by default since then",
     "leave -rcache (--rope-cache) out, or update"},
    {"No page can be allocated", "", "context_full", error,
     "the cache of keys and values is full: prompt and answer together are more than "
     "context_window_size, for which MLC (web-llm) made it",
     "a shorter text, a larger context_window_size where the model reaches it, or a "
     "sliding_window_size with attention_sink_size; update web-llm (0.2.42 or later)"},
    {"must be less than the model's max_context_limit", "max_context[", "context_refused", error,
     "the RKLLM file was converted for fewer tokens than are asked for, and does not load: no text "
     "is too long",
     "num_ctx of at most LIMIT (rkllama's Modelfile), or convert the model again with a larger "
     "max_context",
     "max_context_limit["},
    {"Prompt sequence length is greater than ", "greater than ", "request_too_long", warning,
     "mistral.rs refuses what is longer than the context that it took: 4,096 where it could not "
     "read context_length of a GGUF, whatever the file says",
     "update mistral.rs, and compare with llama.context_length of the file (posenc explain FILE); "
     "where the two agree, shorten the text"},
    {"of input tensor should be smaller than max_seq_len", "seq_len (", "prompt_limit", error,
     "a row of the training has more tokens than torchtune's attention has room for: what cuts "
     "texts is max_seq_len of the tokenizer, and that of a dataset does nothing since 2024",
     "tokenizer.max_seq_len: LIMIT in the YAML", "max_seq_len ("},
    {"cu_seqlens_q must have shape (batch_size + 1)", "", "packing_mistaken", error,
     "the bounds of packed texts have an axis too many, or too few: flash-attention wants [n + 1] "
     "numbers, and collators of some versions make [1, n + 1]",
     "squeeze cu_seqlens (cu_seq_lens_q) in the collator, or another version of the trainer "
     "(TRL 0.15.2; the newest)"},
    {"TR must be >= T", "", "table_end", error,
     "flash-linear-attention's table of cos and sin is shorter than the padded batch: it was made "
     "for a single text, or for cached ones, and is not made longer",
     "pip install -U flash-linear-attention; until then one text at a time"},
    {"invalid n_rot:", "invalid n_rot: ", "rotary_dim", error,
     "llama.cpp refuses the file: rope.dimension_count is not the size of a head",
     "convert it anew by llama.cpp's convert_hf_to_gguf.py (ollama create's own converter takes "
     "hidden_size over heads where head_dim is another: 160 for Mistral Nemo's 128)",
     "expected "},
    // Which of the causes it is, other lines tell.
    {"sequence positions remain consecutive", "", "positions_not_consecutive", error,
     not_consecutive, ""},
    {"inconsistent sequence positions", "", "positions_not_consecutive", error, not_consecutive,
     ""},
    {"failed to find free space in the KV cache", "", "context_full", warning,
     "the cache is full: prompts and answers of all slots have more tokens than -c together",
     longer},
    {"failed to find a memory slot for batch", "", "context_full", warning,
     "the cache is full: prompt and answer have more tokens than -c, or than its share of a slot, "
     "or several requests at once share it (the lines name their slots by id)",
     "more tokens for all texts at the same time together, or one at a time: -np 1, in LM Studio "
     "Max Concurrent Predictions 1"},
    {"is too large to process. increase the physical batch size", "input (", "batch_size", warning,
     "an embedding's text must be within one physical batch: no matter of position",
     "-ub LENGTH -b LENGTH, up to the model's context", "current batch size: "},
    {"is too large to process, please increase the physical batch size", "input (", "batch_size",
     warning, "an embedding's text must be within one physical batch (512 tokens unless told)",
     "-ub LENGTH -b LENGTH, up to the model's context: BERT's kind (bge, e5, gte) has rows for "
     "512, "
     "whatever the batch, and takes shorter pieces; bge-m3 reaches 8,192"},
    {"context limit hit - shifting", "", "context_shifted", warning,
     "the slot was full: the oldest tokens were dropped, and cached keys moved to lower positions",
     "PARAMETER num_ctx in the Modelfile, or options.num_ctx of the request"},
    {"exceeds `max_position_embeddings`", "input length ", "request_too_long", error,
     "prompt and answer are longer than what Unsloth loaded the model for: the larger of "
     "max_seq_length and the file's context",
     "from_pretrained(max_seq_length=LENGTH) above prompt and answer; beyond the file's context "
     "it stretches positions by itself",
     "`max_position_embeddings` "},
    {"do not support RoPE scaling! The maximum sequence length", "--max_seq_length ",
     "context_refused", error,
     "this Unsloth scales no model of its Mistral class, which has Phi-3 as well, and refuses a "
     "max_seq_length beyond the file's context",
     "max_seq_length up to the file's, a model that is made for more (Phi-3's 128k), or pip "
     "install -U unsloth (July 2024 or later scales these, too)",
     "length supported is "},
    {"base model only supports context sizes no greater than", "tokens (", "beyond_context",
     warning,
     "the llama.cpp of 2023 warns of more than 2,048 tokens whatever the file is made for: Llama 2 "
     "has 4,096. Beyond the file's own context text breaks where no scaling is asked for",
     "a newer llama.cpp reads the GGUF's own context; --rope-freq-scale 0.5 (--rope-scale 2) "
     "stretches it twice",
     "no greater than "},
    {"The longest sentence", "longest sentence ", "prompt_truncated", warning,
     "mlx-lm's trainer cuts texts of the data at --max-seq-length, 2,048 where nobody says it: "
     "what stands behind is not learned. The model has no part in it",
     "--max-seq-length LENGTH, up to what the model is made for, or texts that are split "
     "beforehand",
     "truncated to "},
    {"`max_target_positions` of the Whisper model", "and `max_new_tokens` is: ", "request_too_long",
     error,
     "Whisper's decoder has a learned table: prompt, special tokens and answer share its rows",
     "max_new_tokens of at most the rows less what stands before (444 of 448 without a prompt)",
     "of the Whisper model: "},
    {"cos_cache dimension 0 sh", "", "table_end", error,
     "the exported model holds cosines and sines for fewer positions than prompt and answer have "
     "together: ONNX Runtime refuses what is longer. Exports for NPUs often hold 4,096; LongRoPE "
     "(Phi 3 with 128k) has a table of 4,096 for short prompts, which older versions refuse under "
     "a longer max_length",
     "ask for less, prompt and answer counted (max_length, maxTokens); of LongRoPE a newer "
     "onnxruntime, of others an export for more"},
    {"is too long to fit into the model", "total length ", "request_too_long", error,
     "text and pictures together are more tokens than the model was started for: a picture alone "
     "may be thousands",
     "--max-model-len as far as the model reaches (posenc explain MODEL), smaller pictures "
     "(--mm-processor-kwargs '{\"max_pixels\": N}'), or fewer",
     "context length "},
    {"exceed session max length", "", "context_full", warning,
     "LMDeploy's session is full: --session-len is what prompt, answers and talk before have "
     "together",
     "--session-len LENGTH, as far as the model reaches, or a new session"},
    {"exceeds the character limit of", "limit of ", "prompt_limit", warning,
     "XTTS was trained on so many characters a sentence in this language, and cuts sound off that "
     "is longer",
     "shorter sentences (enable_text_splitting=True), in the data of a training as well"},
    {"XTTS can only generate text with a maximum of", "maximum of ", "table_end", error,
     "XTTS's positions of text are rows of a learned table, and this text has more tokens",
     "shorter sentences (enable_text_splitting=True)"},
    {"Only one of context_window_size and sliding_window_size", "", "flag_refused", error,
     "MLC runs a model either by a context or by a window: the other must be -1",
     "sliding_window_size -1 for models without a window (Llama, Mistral 7B v0.2 and later), "
     "context_window_size -1 for Mistral 7B v0.1"},
    {"video_grid_thw[video_index]", "", "mrope_index", error,
     "the prompt has more blocks of videos than video_grid_thw has entries: the text was made for "
     "other frames than the grids (Qwen3-VL has a block for each time)",
     "hand the same frames and video metadata to the processor and the engine "
     "(do_sample_frames=False), or update both"},
    {"ContextLimit: ", "", "prompt_limit", note, tokens_of_client, raise_both},
    {"CtxLimit:", "", "prompt_limit", note, tokens_of_client, raise_both},
    {"Available context length: 0", "", "context_shorter", warning,
     "text-generation-webui takes max_new_tokens off its truncation length, and nothing is left "
     "for the prompt",
     "max_new_tokens of some hundred, or a truncation length (and ctx-size) of prompt and answer "
     "together"},
    {"Truncation length: ", "Truncation length: ", "prompt_limit", warning,
     "text-generation-webui cuts prompts at its truncation length, which neither alpha_value nor "
     "compress_pos_emb raises",
     "raise ctx-size (max_seq_len) and Truncate the prompt up to this length together, and stretch "
     "by one of the two only where the model is made for less"},
    {"positional_embedding' has wrong size", "", "table_rows", error,
     "the header of this Whisper says another number of positions than its table has rows: the "
     "converter took max_length of config.json, which is a setting of generation",
     "set max_length to max_target_positions (448) in config.json, and convert anew"},
    {"inconsistent last dim size in rope", "", "channels_differ", error,
     "candle's table of cos and sin has other channels than the heads: it was made of hidden_size "
     "/ heads, where the file has a head_dim of its own (Mistral Nemo, Gemma, Qwen 3)",
     "a newer candle, or build the table from head_dim"},
    {"longer than the KV cache pool size", "", "cache_memory", warning,
     "SGLang has memory for fewer tokens than the text has, whatever --context-length says: no "
     "matter of position",
     "--mem-fraction-static higher, a smaller or quantized model, keys in fp8 (--kv-cache-dtype), "
     "more GPUs (--tp)"},
    {"argument: 'mm_token_type_ids'", "", "mrope_index", warning, tokens_of_pictures, hand_them_on},
    {"argument 'mm_token_type_ids'", "", "mrope_index", warning, tokens_of_pictures, hand_them_on},
    {"missing mm_token_type_ids", "", "mrope_index", warning, tokens_of_pictures, hand_them_on},
    {"KeyError: 'mm_token_type_ids'", "", "mrope_index", warning, tokens_of_pictures, hand_them_on},
    {"without `mm_token_type_ids`", "", "mrope_index", warning, tokens_of_pictures, hand_them_on},
    {"Maximum decoding length", "", "request_too_long", warning,
     "Whisper's 448 positions are filled before the answer begins: the initial prompt, hotwords "
     "and the text before may take 223 each",
     "shorter hotwords and initial_prompt, condition_on_previous_text=False"},
    {"Left truncating context", "Context length (", "prompt_truncated", warning,
     "lm-evaluation-harness cuts prompts at its own max_length, 2,048 for models behind an API "
     "where nobody says it, whatever the server takes",
     "--model_args …,max_length=LENGTH (and max_gen_toks=N for longer answers), which gen_kwargs "
     "do not reach",
     "max_length ("},
    {"osition_embeddings/Gather", "idx=", "table_end", error,
     "a learned table of positions ends before the text: BERT's kind has 512 rows, RoBERTa's 514, "
     "of which two stand in front",
     "cut texts to 512 tokens, special ones counted (model_max_length of the tokenizer, "
     "truncation=True)"},
    {"Wrong rotaryCoeff", "rotaryCoeff: ", "channels_differ", error,
     "Ascend's kernel was told to rotate whole heads, and the model rotates a part of each "
     "(partial_rotary_factor)",
     "pip install -U vllm-ascend, or run the model where a part of a head can rotate"},
    {"input length exceeds", "", "request_too_long", warning,
     "the text to embed is longer than the context that Ollama gave the model, which is its file's "
     "at most: 512 of mxbai-embed-large, all-minilm and other BERTs, 2,048 of nomic-embed-text and "
     "snowflake-arctic-embed:137m, whatever num_ctx says",
     "texts in pieces that fit, truncate: true, or a model made for more (bge-m3, 8,192); "
     "options.num_ctx helps up to the file's context alone"},
    {"Automatic RoPE Scaling: Using (", "base:", "stretched_by_engine", note,
     "koboldcpp raised the base by itself (NTK-aware), as --contextsize is beyond what the file is "
     "made for: texts reach further, and short ones lose a little",
     "--contextsize as the file has it, where that is not wanted; --ropeconfig SCALE BASE sets a "
     "scaling that the model was trained with"},
    {"\"prompt_eval_count\":", "prompt_eval_count\":", "prompt_counted", note,
     "so many tokens of the prompt were evaluated: Ollama counts neither what its cache held of "
     "the prompt before nor what it cut off",
     "the server's log says 'truncating input prompt' with both numbers where it cuts; num_ctx "
     "above the whole prompt and the answer keeps it whole"},
    {"Reached context length of", "context length of ", "context_full", warning,
     "the context that the model was loaded with in LM Studio is full",
     "load it with a longer one"},
    {"tokens to keep from the initial prompt is greater than the context length",
     "n_keep: ", "context_fitted", error,
     "the prompt is longer than the context that the model was loaded with in LM Studio",
     longer_in_lm_studio, "n_ctx: "},
    {"full context length for VRAM overflow calculations", "Original context length: '",
     "cache_memory", note,
     "LM Studio says a smaller number of its estimate of memory alone: the model is loaded for all "
     "of this Context Length",
     ""},
    {"We shall truncate it ourselves", "with length ", "prompt_truncated", error,
     "Unsloth cut the text to the max_seq_length that the model was loaded with",
     "from_pretrained(max_seq_length=LENGTH)", "max sequence length of "},
    {"truncating input prompt", "prompt=", "prompt_truncated", error,
     "Ollama cut the beginning of the prompt off: it was longer than num_ctx",
     "PARAMETER num_ctx in the Modelfile, or options.num_ctx of the request", "limit="},
    {"capping the max length to the sliding window size", "sliding window size (", "context_capped",
     warning,
     "this vLLM cannot run the windows of some layers beside others, and serves the model up to "
     "its window",
     "a newer vLLM, which runs them; no scaling is wanted"},
    {"block size is only ", "Cannot attend to ", "request_too_long", warning,
     "litgpt makes its table of cos and sin for block_size tokens: of a model whose file has a "
     "scaling that litgpt does not know (LongRoPE of Phi 3) that is the length before it",
     "texts up to it (train.max_seq_length), or a trainer that reads the scaling (transformers, "
     "axolotl, LLaMA-Factory)",
     "block size is only "},
    {"cache_position[-1]", "", "positions_empty", warning,
     "past_key_values hold as many tokens as input_ids has: generate() takes these for done, and "
     "none is left to begin with",
     "input_ids of the whole text, cached tokens and one or more new ones; or "
     "past_key_values.crop(-1)"},
    {"Context Shifting: Erased", "at position ", "context_shifted", warning,
     "koboldcpp dropped tokens behind a beginning that the prompts share, and moved the cached "
     "keys after them to lower positions: that is its way to read no prompt twice, and a report of "
     "Gemma 4 has it crash there",
     "--noshift (or --smartcache), and a newer koboldcpp"},
    {"requested context size too large for model", "n_ctx_train=", "context_capped", warning,
     "Ollama was asked for more tokens than the file's context, and runs that: longer prompts are "
     "cut off at their beginning",
     "ask for num_ctx up to it; Ollama cannot scale", "num_ctx="},
    {"input truncated", "n_ctx = |n_ctx=", "prompt_truncated", error,
     "llama-server cut the middle of the prompt out: it was longer than the slot", longer},
    {"slot context shift", "n_discard = ", "context_shifted", warning,
     "the slot was full: the oldest tokens were dropped, and cached keys moved to lower positions",
     longer},
    {"shifting is not supported", "", "context_full", note, no_shift, whole_talk},
    {"ctx_shift is not supported", "", "context_full", note, no_shift, whole_talk},
    {"GGML_ASSERT(sections.v[0] > 0", "", "context_full", error,
     "the context was full and keys of M-RoPE (three rows of positions) were to be moved, which "
     "llama.cpp cannot",
     "a -c that the whole talk fits into, --no-context-shift, and a newer llama.cpp"},
    {"context shift is not supported", "", "context_full", warning,
     "a context is full and cannot be shifted (recurrent layers, whose state is kept in "
     "checkpoints): that of the draft (-cd) then drafts no more, that of the model ends the text",
     "-c, and -cd where a draft has it, of prompt and answer together"},
    {"exceed context window of", "Requested tokens (", "request_too_long", error,
     "llama-cpp-python was made with fewer tokens than the request has: without n_ctx it takes "
     "512, whatever the model reaches",
     "Llama(n_ctx=LENGTH), or --n_ctx of its server; 0 takes the model's own",
     "context window of "},
    {"truncating input messages which exceed context length", "", "prompt_truncated", error,
     "Ollama left the oldest messages out: the talk was longer than num_ctx, which is its default "
     "unless the request, the Modelfile or the server's variable says more",
     "options.num_ctx of the request (/api/chat), PARAMETER num_ctx in the Modelfile, or "
     "OLLAMA_CONTEXT_LENGTH in the environment of the server"},
    {"Deepseek2 does not support K-shift", "", "context_full", error, latent_unshifted,
     "--no-context-shift, by which the answer ends there and the server stays; or -c up to the "
     "model's own length (posenc explain MODEL), or shorter talks"},
    {"does not support K-shift", "", "context_full", warning,
     "the cached keys cannot be moved (latent or quantised ones, a window's cache, a recurrent "
     "state): where the context is full the program ends, or goes on without a shift, and what "
     "koboldcpp calls erased still stands in the cache",
     "a context that prompt and answer fit into (Ollama: num_ctx, and num_predict below the rest; "
     "llama.cpp: -c), a cache of keys in f16; koboldcpp: --noshift, or --useswa false"},
    {"+ current sequence length", "input_ids size (", "request_too_long", error,
     "ONNX Runtime GenAI: max_length, of prompt and answer together, is smaller than the prompt; "
     "it is a search option and not the model's context (builds for an NPU have it fixed)",
     "set_search_options(max_length=LENGTH), or search.max_length in genai_config.json",
     "exceeds max length ("},
    {"original_max_position_embeddings must be set in rope_scaling or cfg", "", "unknown_key", note,
     "vllm.rs finds no trained length beside the sections of M-RoPE (rope_type default), which "
     "scale nothing: no fault",
     "nothing, where the file's rope_type is default"},
    {"context shift is disabled", "", "context_full", warning,
     "the slot is full, and generation stopped", longer},
    {"Model context auto-fit", "fitted=", "context_fitted", warning,
     "LM Studio loaded the model for fewer tokens than it has, by the memory that was free",
     "set the context length by hand when loading, or free memory: a shorter context, a smaller "
     "quantization of the cache"},
    {"Trying to keep the first", "Trying to keep the first", "context_fitted", error,
     "the prompt is longer than the context that the model was loaded with in LM Studio",
     longer_in_lm_studio, "context length of only"},
    {"RoPE cache is not built", "", "inv_freq_stored", error,
     "torchtune 0.5 and later fill the tables of Llama 3's rotation when the module is made, and "
     "leave them out on the meta device, on which from_pretrained builds: nobody has filled them "
     "since",
     "call rope_init() of each such module once the weights are loaded, as torchtune's recipes do "
     "(for m in model.modules(): if hasattr(m, 'rope_init'): m.rope_init()), or torchtune 0.4"},
    // mlx-lm, exllamav2
    {"rope_scaling must contain keys", "", "engine_too_old", error,
     "this mlx-lm reads type and factor alone", "pip install -U mlx-lm"},
    {"rope_scaling 'type' currently only supports", "", "engine_too_old", error,
     "this mlx-lm knows no other scaling", "pip install -U mlx-lm"},
    {"Unknown RoPE scaling type default", "", "transformers_mismatch", error,
     "rope_type default is no scaling: transformers 5 writes it where 4 has null, and this older "
     "code takes it for one",
     "rope_scaling null in the config.json, with rope_theta at its top; or update the code, or run "
     "it with transformers 4.57"},
    {"Unknown RoPE scaling type", "", "scaling_unread", error,
     "this version of the engine does not know the file's scaling, and stops; the file may be "
     "right",
     "update it, or posenc translate FILE --to ENGINE"},
    {"Unsupported RoPE type", "", "scaling_unread", error,
     "the engine does not know the file's scaling, and stops",
     "update it, or posenc translate FILE --to ENGINE"},
};

// A head of thousands of channels was read from weights that several of them share a byte of.
void of_axes(Finding& finding, double channels) {
  constexpr double widest_head = 1024;
  if (channels <= widest_head) return;
  finding.message =
      "the size of a head was read from the shape of packed weights (NF4, int4), which says "
      "nothing of it: the node that loads them does not fit the program";
  finding.cure =
      "update the node of that quantization, or take a file in fp8 or a GGUF with their own nodes";
}

// "must be one of ['su', 'yarn'], got longrope": a class that has the name of before.
void of_old_words(Finding& finding, std::string_view line) {
  if (!line.contains("'su'") || !line.contains("longrope")) return;
  finding.message =
      "this class of Phi-3 is of before August 2024, when longrope was called su: it is in an "
      "older transformers, or a copy that another program keeps (the traceback says whose folder)";
  finding.cure =
      "update what has the class; until then su in place of longrope in a copy of the config.json "
      "is the same rotation";
}

// "must be a float > 1, got 8": a whole number, or one that is too small.
void of_factor(Finding& finding, std::string_view line) {
  constexpr std::string_view got = ", got ";
  const std::size_t at = line.find(got);
  if (at == line.npos) return;
  const std::string_view value = line.substr(at + got.size());
  finding.found = printable(value.substr(0, value.find_first_of(" \"'\n\r")), 20);
  const bool is_whole = number_after(finding.found, "").value_or(0) > 1 &&
                        finding.found.find_first_not_of("0123456789") == std::string::npos;
  const bool stops = finding.severity == error || line.contains("ValueError");
  if (!is_whole) {
    finding.code = "factor_vs_lengths";
    finding.severity = stops ? error : warning;
    finding.message =
        "transformers takes a factor of more than 1, and the file has " + finding.found;
    finding.cure = "the factor is the new length over the trained one: posenc lint FILE";
  } else if (stops) {
    finding.code = "transformers_too_old";
    finding.severity = error;
    finding.message = no_whole_factor;
    finding.cure = "write " + finding.found +
                   ".0 in rope_scaling, which is the same number, or pip install -U transformers "
                   "(4.43 or later)";
  }
}

// The number that ends just before `behind`.
std::optional<double> number_before(std::string_view line, std::string_view behind) {
  const std::size_t end = line.find(behind);
  if (end == line.npos) return std::nullopt;
  std::size_t start = end;
  while (start > 0 &&
         ((line[start - 1] >= '0' && line[start - 1] <= '9') || line[start - 1] == ','))
    --start;
  const auto number = number_after(line.substr(start, end - start), "");
  return number && *number < 0x1p50 ? number : std::nullopt;
}

// What a refusal says of the prompt and of the answer that the client asks for: OpenAI's words and
// those of older vLLM, vLLM's since 2026, SGLang's.
void of_prompt_and_answer(Finding& finding, std::string_view line, std::string_view limit) {
  auto most = number_after(line, limit);
  // "174167 + 64000 > 200000", of Anthropic.
  constexpr std::string_view sum = "context limit: ";
  if (const std::size_t at = line.find(sum); at != line.npos) line.remove_prefix(at);
  auto prompt = number_before(line, " in the messages"),
       answer = number_before(line, " in the completion");
  if (!prompt || !answer)
    prompt = number_before(line, " input tokens"), answer = number_before(line, " output tokens");
  if (!prompt || !answer)
    prompt = number_before(line, " tokens from the input messages"),
    answer = number_before(line, " tokens for the completion");
  if (line.contains("is too large: "))
    prompt = number_before(line, " input tokens"), answer = number_after(line, "is too large: ");
  if (line.starts_with(sum)) {
    prompt = number_after(line, sum), answer = number_after(line, " + "),
    most = number_after(line, " > ");
  }
  // Since 2026 vLLM stops counting at what the answer leaves: the prompt is as long, or longer.
  constexpr std::string_view asks = "you requested ";
  const auto reserved = number_after(line, asks);
  const auto letters = number_before(line, " characters");
  if (line.contains(" output tokens and your prompt contains") && reserved && most &&
      *most < 0x1p50 && *reserved < 0x1p50 && (letters || line.contains("prompt contains at"))) {
    finding.expected = told(*most);
    finding.found = "at least " + told(*most + 1);
    finding.message =
        "the client reserves " + told(*reserved) + " of " + told(*most) +
        " tokens for its answer, and the prompt is longer than what that leaves: " +
        (letters ? "it has " + told(*letters) + " characters"
                 : std::string("counting stopped there, so that the number is no "
                               "length of the prompt, and one token less will not do"));
    finding.cure =
        "a much smaller max_tokens of the request (the client's longest answer, output "
        "limit; some thousands do), or older messages left out earlier";
    return;
  }
  if (!prompt || !answer || !most || *most > 0x1p50 || *prompt + *answer > 0x1p50) return;
  constexpr std::string_view owner =
      "; a server of your own can be started for more tokens, one of a provider cannot";
  finding.expected = told(*most), finding.found = told(*prompt + *answer);
  if (*prompt >= *most) {
    finding.message = "the messages alone have " + told(*prompt) +
                      " tokens, more than the server takes; the answer has no part in it";
    finding.cure =
        "shorter messages (older ones left out, or put into a few words), or a model that takes "
        "more" +
        std::string(owner);
  } else if (*answer > 0) {
    finding.message = "the prompt has " + told(*prompt) +
                      " tokens, and the client asks for an answer of up to " + told(*answer) +
                      ": together more than " + told(*most) +
                      ", which is refused however short the answer would have been";
    finding.cure = "max_tokens of the request (the client's longest answer) at most " +
                   std::to_string(std::llround(*most - *prompt)) +
                   " beside this prompt; some thousands do" + std::string(owner);
  }
}

// TurboMind counts one token more than there is: a client that asks for all that is left is told of
// one that is not there, and nothing is lost.
void of_answer(Finding& finding, std::string_view line, std::string_view limit) {
  const auto most = number_after(line, limit), prompt = number_after(line, "sequence length ("),
             asked = number_before(line, ") exceeds");
  if (!most || !prompt || !asked || *most > 0x1p50 || *prompt > 0x1p50) return;
  finding.found = told(*prompt + *asked);
  constexpr double enough = 1024;
  const double left = *most - *prompt;
  if (std::abs(*asked - left) <= 1) {
    finding.message = "the answer may have " + told(std::max(left - 1, 0.0)) +
                      " tokens, one less than was asked for: a request without max_tokens asks for "
                      "all that the prompt of " +
                      told(*prompt) + " leaves, and TurboMind keeps one back";
    finding.expected.clear(), finding.found.clear();
    finding.cure = "harmless: set max_tokens (max_new_tokens) in the request, and it is gone";
  } else if (left < enough) {
    finding.severity = Severity::warning;
    finding.message = "the prompt has " + told(*prompt) + " tokens, and leaves " +
                      told(std::max(left, 0.0)) + " of " + told(*most) + " for the answer";
  }
}

// SGLang's own words of a length that it was told to take all the same.
void of_derived(Finding& finding, std::string_view line) {
  // The error has the warning's words within.
  if (!line.contains("Warning: ") || line.contains("ValueError") ||
      line.contains("To allow overriding"))
    return;
  finding.code = "beyond_context";
  finding.severity = Severity::warning;
  finding.message =
      "SGLang was told to take more tokens than it derives from the file, and runs: right where "
      "the file's scaling reaches so far, which it does not count in beside a trained length; "
      "else texts beyond come out as nonsense";
  finding.cure =
      "posenc explain FILE says how far the scaling reaches; without one, --context-length up to "
      "the derived number, or posenc extend MODEL --to LENGTH";
}

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
    while (!before.empty()) {
      const std::size_t end = std::min(before.find('|'), before.size());
      const auto number = number_after(line, before.substr(0, end));
      if (number && std::abs(*number) < 0x1p50) return grouped(std::llround(*number));
      before.remove_prefix(std::min(end + 1, before.size()));
    }
    return "";
  };
  finding.expected = told(known->limit);
  finding.found = told(known->number);
  if (known->marker == index_of_inductor)  // "0 <= tmp16 < 40960", "0 <= tl.broadcast_to(…) < 2048"
    if (const auto rows = number_after(line.substr(line.rfind('<')), "<"); rows && *rows < 0x1p50)
      finding.found = grouped(std::llround(*rows));
  if (const std::size_t of_table = finding.message.find("; 512 is a learned table");
      of_table != finding.message.npos && !finding.expected.empty() && finding.expected != "512")
    finding.message.resize(of_table);
  if (finding.code == "transformers_too_old") of_old_words(finding, line);
  if (const std::size_t at = finding.cure.find("LIMIT"); at != finding.cure.npos)
    if (const auto most = number_after(line, known->limit); most && *most < 0x1p50)
      finding.cure.replace(at, std::string_view("LIMIT").size(),
                           std::to_string(std::llround(*most)));
  if (finding.code == "context_refused" && line.contains("derived context_length"))
    of_derived(finding, line);
  if (finding.code == "answer_shortened") of_answer(finding, line, known->limit);
  if (finding.code == "request_too_long") of_prompt_and_answer(finding, line, known->limit);
  if (finding.code == "scaling_by_length") {
    if (!finding.found.empty()) finding.found = "factor " + finding.found;
  } else if (finding.code == "stretched_by_engine") {
    if (const auto base = number_after(line, known->number))
      finding.found = "base " + number_text(*base);
  } else if (finding.code == "axes_sum") {
    of_axes(finding, number_after(line, known->number).value_or(0));
  } else if (known->limit.empty() && finding.expected.empty() && !finding.found.empty()) {
    finding.found += " tokens";
  }
  if (line.contains("'s factor field must be")) of_factor(finding, line);
  return finding;
}

}  // namespace posenc::detail
