// What somebody saw of a model that answers badly, as people write it: "gibberish after 4k tokens
// in ollama", "right alone, wrong in a batch". They say where to look first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::detail {

enum class Seen { nothing, garbled, repeats, forgets, worse, differs };
enum class When {
  long_texts,  // and short ones are right
  at_once,     // from the first words on, whatever the text
  of_draft,    // with a draft model, whose guesses are not taken
  in_batch,    // and alone it is right
  in_turns,    // from the second message on, or after cached keys were used again
  shifted,     // after a context shift, which moves cached keys
  converted,   // after another file was made of it
  of_answers,  // by how many tokens are kept for the answer
  of_pictures,
  of_places,          // in pictures: where things are
  one_row,            // a model of three axes that is told to be rotated by one
  constant,           // always at the same place
  of_sides,           // of pictures that are no squares
  of_time,            // of videos: when things happen
  packed,             // where several texts stand in one row
  unscaled,           // a scaling that is said not to be read
  chunked,            // by the chunks in which a prompt is read
  window_cache,       // by how much of a window's keys is kept
  among_ranks,        // where a text is shared out
  regressed,          // and another version was right
  pairs,              // by which channels are paired
  of_trl,             // by the length at which TRL cuts the texts of a training
  compiled,           // for an NPU, with fixed lengths
  moved_keys,         // rope_theta and rope_parameters, old keys and new ones
  quantized,          // and with weights of 16 bits it is right
  of_offset,          // by a table whose first rows are for padding (RoBERTa)
  read_again,         // prompts whose cached keys are not used again
  of_prompt_limit,    // by a trainer's limit of prompts
  times_slots,        // a context of several times what was asked for
  axes_as_packed,     // ids of three rows, taken for texts that are packed
  side_by_side,       // while another text runs
  of_front_end,       // by a length that a front end sets, and the server does not hear
  in_cloud,           // on machines of Ollama's, and not here
  after_eviction,     // by a cache that drops keys, and counts those that are left
  in_buffers,         // by frequencies that nothing was written into
  no_positions,       // of a model that has none (RWKV, Mamba)
  cache_quantized,    // with cached keys of few bits
  of_mscale,          // by YaRN's two factors in DeepSeek's models
  padded_apart,       // ids are padded on another side than their tokens
  cut_apart,          // texts to embed, beside sentence-transformers
  of_client,          // by the num_ctx that a client sends with its requests
  of_claude_code,     // by the window that Claude Code takes for granted
  of_half_table,      // after half of the rows of Whisper's decoder
  of_cache_state,     // by a cache of four arrays where two are read
  of_corners,         // by a table of pictures that is stretched to other corners
  of_riflex,          // by RIFLEx, which makes no video longer by itself
  of_cutoff,          // by the length at which LLaMA-Factory cuts texts
  of_latents,         // by frames whose latents do not fill their patches
  of_permuted,        // by rows of q and k that are permuted for another pairing
  of_exllama,         // by a scaling of exllamav2's, which old releases do not know
  of_reserved,        // by a context that tabbyAPI reserves, and no request moves
  of_doubled,         // by tokens that are added to themselves in place of a table
  of_goose,           // by goose's own prompt in Ollama's default
  of_ps,              // by a context that `ollama ps` shows, and not the one that was set
  of_nemo,            // by the length that Mistral Nemo's file promises
  of_v1,              // by Ollama's /v1, which takes no num_ctx
  of_state,           // of layers with a state, which cannot be shifted
  of_short_draft,     // by a draft that is shorter than its target
  of_vram,            // by Ollama's default, which memory decides
  of_wan_sizes,       // of Wan at sizes that are no multiple of 32
  of_bf16_buffer,     // by frequencies that were rounded before they were used
  of_layer_count,     // by a cache whose first layer counts for all
  of_mistral_mscale,  // by the factors of Mistral Medium's first upload
  of_rotating_cache,  // by kept prompts beside a window's ring
  of_regression_vl,   // by releases of transformers that place pictures wrongly
  of_missing_llama3,  // by code without Llama 3's scaling
  of_cache_lens,      // by KTransformers' cache
  of_lms_offer,       // by the length that LM Studio offers
  of_one_batch,       // by llama.cpp's physical batch, which a text to embed must fit
  of_mrope_on_npu,    // by an M-RoPE of vllm-ascend's that rotates halves
  of_demo_indexer,    // by the indexer of DeepSeek's own first code
  of_rolled_inputs,   // by inputs of a training that are shifted for guesses of further tokens
  of_saved_deltas,    // by a cache that is read back without what pictures moved
  of_full_prompt,     // by a prompt that is longer than a slot, where a shift is awaited
  of_part_of_head,    // by a part of a head that is rotated as if it were all of it
  of_silent_cut,      // by a text to embed that is cut without an error
  of_proteins,        // by how long a protein may be
  of_mlx_release,     // by a release of mlx-vlm
  of_whole_japanese,  // by a release of transformers that rotates whole heads of GPT-NeoX Japanese
  of_agent_length,    // of an agent whose context is a number of its own
  of_four_rows,       // by ids of pictures that have a row of text in front
  of_cut_pictures,    // by a tokenizer that cuts the places of pictures
  of_kobold_release,  // by a release of koboldcpp
  of_shard_bounds,    // by bounds of packed texts that count the whole
  of_more_frames,     // of a video that goes on beyond its training
  of_captions,        // by how long a prompt of a picture may be
  of_ascend_kernel,   // by a kernel of an NPU that wants whole heads
  of_qwen3_promise,   // by what Qwen 3's files promise beside what was trained
  of_lists_speed,     // by speed where LongRoPE changes its list
  of_merge_size,      // by patches that are merged otherwise than pictures are sized
  of_merge,           // of two models whose weights are to be averaged
};

struct Symptom {
  Seen seen = Seen::nothing;
  std::vector<When> when = {};
  std::int64_t from = 0;    // tokens: where it begins; 0: nobody says
  std::int64_t length = 0;  // tokens that the text has or is to have; 0: nobody says
  std::int64_t set_to = 0;  // tokens that a setting among the words allows (num_ctx); 0: none is
  std::int64_t answer = 0;  // tokens that are kept for the answer; 0: nobody says
  // Slots of a server, and tokens that are the sum of theirs; 0: no such two numbers are there.
  std::int64_t slots = 0, sum_of_slots = 0;
  std::int64_t frames = 0, height = 0, width = 0;  // of a video or picture; 0: nobody says
  // Of the kind of model that the words name: frames it was trained on, rows of its table, pixels
  // of a side; 0: none is named.
  std::int64_t frames_of_model = 0, rows_of_model = 0, side_of_model = 0;
  std::int64_t trained_by_longlora = 0;   // tokens that a name of LongLoRA's says
  std::string_view model = {};            // whose rows these are
  std::vector<std::string> engines = {};  // "vllm@0.6.1", "ollama"
  double difference = 0;                  // of numbers that are said to differ; 0: nobody says
  bool long_right = false;                // what begins beyond that length is right
  bool of_embeddings = false, seconds_per_grid = false;
  bool of_table = false;        // it speaks of a table or cache that was made for so many positions
  bool of_position = false;     // it speaks of position at all
  bool of_window = false;       // it speaks of a sliding window
  bool of_rotation = false;     // it speaks of a factor, base or frequency of RoPE
  bool asks_less = false;       // it asks whether a scaling may be left out
  bool of_port = false;         // it speaks of a program that somebody wrote for the model
  bool asks_longer = false;     // it asks how texts become longer, and complains of nothing
  std::string_view other = {};  // what it is about where that is no position: "memory", "speed"

  bool is(When one) const;
};

// Whether somebody wrote it to somebody else, and no program printed it: sentences with 'I', 'my',
// a question, the title of a report. Such a text may name flags, numbers and messages.
bool is_of_a_person(std::string_view text);
// A line that a person wrote, in a log as well: words with hardly a sign between.
bool is_sentence(std::string_view line);
// A few lines that tell something, whatever settings and flags stand among their words: before the
// first flag stand words that no command has.
bool narrates(std::string_view text);
// A person's sentences, and what stands between backquotes, on lines of their own, as messages are
// read by the line.
std::string sentences_on_lines(std::string_view text);
// What one or a few sentences say. Nothing: they do not complain, and name no engine and no length.
std::optional<Symptom> symptom_of(std::string_view prose);
// The same of a text that may be another thing: a command line, settings, code.
std::optional<Symptom> symptom_alone(std::string_view text);
// Whether words of it tell a cause by name (prose_causes.cc).
bool names_a_cause(std::string_view text);
// What somebody says behind the flags of a line, "--contextsize 8192, garbles after 4k"; "":
// nothing.
std::string_view told_behind(std::string_view line);
// The same of the sentences that stand among the lines of a log.
std::optional<Symptom> symptom_in_log(std::string_view log);

// One line: "garbled from 4,096 tokens on, in a batch, by vllm@0.6.1".
std::string symptom_text(const Symptom& symptom);

}  // namespace posenc::detail
