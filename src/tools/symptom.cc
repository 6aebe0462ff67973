#include "src/tools/symptom.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/tools/log_lines.h"
#include "src/tools/prose.h"

namespace posenc::detail {
namespace prose {
namespace {

// Rows have words (with * behind they go on, with one before they begin anyhow), and phrases that a
// text contains; | parts these, as Chinese parts no words.

// What is seen, of which the first that is said counts.
struct SeenRow {
  Seen seen;
  std::string_view text, words = {}, phrases = {};
};
constexpr SeenRow of_seen[] = {
    {Seen::garbled, "garbled",
     "gibb* giber* jibb* jiber* garbage garbl* abnormal nonsens* incoheren* rubbish corrupt* "
     "word-salad salad meaningless unreadable unusable degenerate* hallucinat* babbl* scrambled "
     "gobbledygook mangl* unrelated random breaks !!!* ???* @@@* :::* noise static flicker* "
     "artifact* stripe* doubled duplicated",
     "doubles limbs|doubles objects|no sense|not make sense|make no sense|lose coheren|loses "
     "coheren|lost "
     "coheren|乱码|胡言|胡说|崩"},
    {Seen::repeats, "repeats itself",
     "repeat* repeti* looping loops loop endless* infinit* ping-pong* pingpong*",
     "重复|复读|回到第一帧"},
    {Seen::forgets, "forgets, or is cut off", "forget* forgot* remember* amnesia truncat* blind",
     "not taking|no longer taking|no system prompt|no internal system prompt|cut off|cuts "
     "off|context is full|context full|context "
     "overflow|忘记|遗忘|忘了|截断"},
    {Seen::worse, "worse",
     "worse broken broke degrad* drop drops dropped lower poor poorly declin* bad badly wrong "
     "wrongly incorrect* inaccura* deteriorat* collaps* fail* terrible lost empty crash* shifted "
     "exception",
     "not work|n't work|no output|px off|pixels off|cannot go higher|can't go "
     "higher|变差|下降|错误|偏移|不准|为空|空白"},
    {Seen::differs, "other text", "differ* mismatch* inconsisten* diverge* discrepan*",
     "不一致|不同"},
};

// When it happens, how that is said again, and how people say it.
struct WhenRow {
  When when;
  std::string_view text, words = {}, phrases = {};
};
constexpr WhenRow of_when[] = {
    {When::long_texts, "in long texts", "long longer lengthy", "长文本|长上下文|长度|超过|超长"},
    {When::at_once, "from the first words on", "immediately instantly",
     "every response|every answer|一开始"},
    {When::of_draft, "with a draft model", "drafter drafters speculative dflash eagle2 eagle3 mtp",
     "draft model|draft acceptance|acceptance rate|acceptance length|accept length|accept "
     "rate|投机"},
    {When::of_mscale, "by YaRN's mscale", "mscale_all_dim"},
    {When::in_batch, "in a batch",
     "batch batches batched batching batch_generate padding padding-* padding_side padded "
     "left-pad* left-padded",
     "批量|填充"},
    {When::in_turns, "from the second message on",
     "multi-turn multiturn follow-up prefix-cach* prefix_cach*",
     "long conversation|chat history|conversation history|reuse of|cache reuse|kv reuse|earlier "
     "messages|previous messages|latest message|subsequent response|subsequent repl|few "
     "rounds|few turns|several turns|more turns|prefix cach|多轮|第二轮"},
    {When::shifted, "after a context shift", "k-shift",
     "context shift|context-shift|context is shifted|context was shifted|kv shift|cache shift|slot "
     "shift|shifts the slot|defragment|kv "
     "defrag"},
    {When::converted, "after a conversion", "convert* conversion", "转换"},
    {When::of_answers, "by the tokens kept for the answer",
     "max_new_tokens max_tokens n_predict num_predict max_output_tokens max_completion_tokens "
     "maxtokens",
     "max new tokens|generated tokens|response length"},
    {When::of_pictures, "with pictures",
     "image images picture pictures photo vision video videos frame frames resolution resolutions "
     "endframe",
     "图片|视频|分辨率"},
    {When::of_places, "where things are in pictures", "coordinates grounding bbox bboxes boxes",
     "bounding box|click position|定位|坐标"},
    {When::one_row, "rotated by one row", "1d-rope 1d-rotary",
     "1d rope|1-d rope|one-dimensional rope|2d position_ids|2-d position_ids|position_ids (b, l)"},
    {When::constant, "always at the same place", "consistently",
     "always at|same time|exact same place|exact same position|exact same token|same place"},
    {When::of_sides, "of pictures that are no squares", "non-square nonsquare rectangular",
     "not a square|not square"},
    {When::of_time, "when things happen in videos",
     "fps second_per_grid_ts tokens_per_second timestamp*",
     "time stamp|temporal position|how long the video|length of the video|时间"},
    {When::packed, "with packed texts",
     "packing packed multipack* padding-free padding_free cu_seqlens sample_packing "
     "neat_packing",
     "打包|pack samples|packs samples|pack texts|pack sequences"},
    {When::unscaled, "without the scaling", "",
     "rope_scaling not|rope scaling not|scaling is not|scaling is ignored|rope_scaling is "
     "ignored|ignores rope_scaling|ignores the rope_scaling|not implement rope_scaling|yarn is not "
     "supported|scaling not implemented|rope_theta alone|yarn is not applied|scaling isn't "
     "applied|reads only rope_parameters|only reads rope_parameters|without rope scaling|drops "
     "rope_scaling|not apply rope_scaling|not apply the scaling|without the scaling"},
    {When::chunked, "by chunks of the prompt",
     "prefill_step_size prefill-step-size chunked-prefill", "chunked prefill|prefill chunk"},
    {When::window_cache, "by the window's cache", "swa swa-full rotatingkvcache", "window cache"},
    {When::among_ranks, "among ranks", "ulysses sequence_parallel* context_parallel*",
     "sequence parallel|context parallel|ring attention|序列并行"},
    {When::regressed, "and not in another version", "regression regressed downgrade* downgrading",
     "worked before|last version that work|downgrading to"},
    {When::pairs, "by which channels are paired", "neox neox-style neox-type gptj-style rope_i",
     "rope convention|rotate half|rotate_half|interleaved rope|wrong pairing"},
    {When::of_trl, "by TRL's length"},
    {When::compiled, "on an NPU", "npu vpux* qnn npu-optimized"},
    {When::moved_keys, "by keys that transformers 5 has moved"},
    {When::quantized, "with quantized weights"},
    {When::read_again, "with prompts that are read again", "",
     "full prompt re-processing|full prompt reprocess|full prompt always gets reprocess|prompt "
     "gets reprocess|re-process the|reprocesses the|reprocessing the|re-reads the"},
    {When::of_prompt_limit, "by a trainer's limit of prompts", "max_prompt_length",
     "max prompt length|maximum prompt length"},
    {When::times_slots, "with several times the context", "",
     "num_parallel|times num_ctx|4x num_ctx|4x the context|four times the|around 4x|4 times the"},
    {When::axes_as_packed, "with ids of three rows"},
    {When::of_offset, "by a table that keeps rows for padding"},
    {When::side_by_side, "beside another", "concurrently simultaneously",
     "concurrent request|concurrent prediction|concurrent chat|requests in parallel|chats in "
     "parallel|parallel request|two chats|two long chats|both chats|both generations|several users "
     "at|multiple users at|two requests at|同时"},
    {When::of_front_end, "by what a front end sets"},
    {When::in_cloud, "in Ollama's cloud"},
    {When::after_eviction, "after keys were dropped"},
    {When::in_buffers, "by frequencies that are not filled"},
    {When::no_positions, "of a model without positions",
     "rwkv* mamba mamba2* mamba-* falcon-mamba*"},
    {When::cache_quantized, "with cached keys of few bits", "",
     "kv-cache-dtype fp8|cache-type-k q|kv cache is fp8|kv cache is q4|kv cache is q8|fp8 kv|kv "
     "cache quant|quantized kv|kv "
     "quantiz|cache in fp8|cache to q4|cache to q8"},
    {When::padded_apart, "padded on two sides"},
    {When::cut_apart, "beside sentence-transformers",
     "sentencetransformer* sentence-transformer* sentence_transformer*"},
    {When::of_client, "by the num_ctx of a client"},
    {When::of_claude_code, "by Claude Code's window"},
    {When::of_half_table, "after half of Whisper's rows"},
    {When::of_cache_state, "by the state of a cache"},
    {When::of_corners, "by a table that is stretched"},
    {When::of_riflex, "by RIFLEx"},
    {When::of_cutoff, "by LLaMA-Factory's cutoff_len"},
    {When::of_latents, "by latent frames"},
    {When::of_permuted, "by rows that are permuted"},
    {When::of_exllama, "by exllamav2's scaling"},
    {When::of_reserved, "by the context of tabbyAPI"},
    {When::of_doubled, "by tokens in place of a table"},
    {When::of_goose, "by goose in Ollama's default"},
    {When::of_ps, "by what ollama ps shows"},
    {When::of_nemo, "by Mistral Nemo's promise"},
    {When::of_v1, "by Ollama's /v1"},
    {When::of_state, "of layers that keep a state"},
    {When::of_short_draft, "by a shorter draft"},
    {When::of_vram, "by Ollama's default"},
    {When::of_wan_sizes, "by sizes of Wan"},
    {When::of_bf16_buffer, "by frequencies in bfloat16"},
    {When::of_layer_count, "by what a cache counts"},
    {When::of_mistral_mscale, "by Mistral Medium's factors"},
    {When::of_rotating_cache, "by kept prompts of a window"},
    {When::of_regression_vl, "by a release of transformers"},
    {When::of_missing_llama3, "by a scaling that code lacks"},
    {When::of_cache_lens, "by KTransformers' cache"},
    {When::of_lms_offer, "by the length that LM Studio offers"},
    {When::of_one_batch, "by llama.cpp's physical batch"},
    {When::of_mrope_on_npu, "by the M-RoPE of vllm-ascend"},
    {When::of_demo_indexer, "by the indexer of DeepSeek's demo"},
    {When::of_rolled_inputs, "by inputs that are shifted in training"},
    {When::of_saved_deltas, "by a cache that was saved"},
    {When::of_full_prompt, "by a prompt that fills the context"},
    {When::of_part_of_head, "by the part of a head that rotates"},
    {When::of_silent_cut, "by a text that is cut"},
    {When::of_proteins, "by the length of proteins"},
    {When::of_mlx_release, "by a release of mlx-vlm"},
    {When::of_whole_japanese, "by a release of transformers"},
    {When::of_agent_length, "by what an agent takes the context for"},
    {When::of_four_rows, "with ids of four rows"},
    {When::of_cut_pictures, "by a tokenizer that cuts pictures"},
    {When::of_kobold_release, "by a release of koboldcpp"},
    {When::of_shard_bounds, "by bounds of packed texts on a rank"},
    {When::of_more_frames, "by more frames than Wan was trained on"},
    {When::of_captions, "by the length of a caption"},
    {When::of_ascend_kernel, "by a kernel for whole heads"},
    {When::of_qwen3_promise, "by what Qwen 3's files promise"},
    {When::of_lists_speed, "where lists change"},
    {When::of_merge_size, "by the merging of patches"},
    {When::of_merge, "about a merge"},
};

// What is no fault of position, and how it is called.
struct OtherFault {
  std::string_view text, words = {}, phrases = {};
};
constexpr OtherFault of_others[] = {
    {"memory", "oom ooms vram", "out of memory|outofmemory|memory usage|显存不足|爆显存"},
    {"speed", "slow slower slowly speed latency throughput tps sluggish",
     "tokens/s|tok/s|time to first|变慢"},
    {"the price or a quota", "costs price* pricing expensive cheap* billing quota",
     "the cost|it cost|cost of|cost is|cost more|cost per|cost too|my cost|rate limit|tokens per "
     "minute|requests per minute|限流"},
    {"training", "",
     "training loss|loss is nan|loss spikes|loss diverges|training diverges|training of"},
    {"the machine, the network or the installation",
     "downloads downloading installation login password disk wifi ssl",
     "cuda error|log in|deadline exceeded|connection refused|drops my connection|broken "
     "pipe|segmentation fault|segfault|500 error|my gpu|ollama list|ollama pull|cannot "
     "install|can't install|download a|is corrupted"},
};

bool any_is_one(Words words, std::string_view list) {
  return std::ranges::any_of(words, [&](std::string_view word) { return is_one(word, list); });
}

template <class Row>
bool tells(const Row& row, Words words, std::string_view text) {
  return any_is_one(words, row.words) ||
         (!row.phrases.empty() && contains_one_of(text, row.phrases));
}

// What of position it speaks of, and what it asks.
void read_topics(std::string_view prose, Words words, std::string_view text, Symptom& out) {
  out.of_table = contains_any(text, {"cache covers", "precomputed", "hard-coded", "hardcoded",
                                     "cos/sin", "table of cos", "rope cache", "cache is capped"});
  out.of_position =
      contains_any(text, {"rope", "rotary", "position_id", "position id", "positional", "yarn",
                          "alibi", "sliding window", "context length", "context size", "位置"});
  out.of_window = contains_any(text, {"sliding window", "sliding-window", "attention window"});
  out.of_rotation = contains_any(text, {"rope factor", "rope_freq", "freq_base", "freq_scale",
                                        "rope_theta", "rope scal", "local base", "rope base"});
  out.asks_less = contains_any(text, {"strip", "remove the", "remove it", "delete the", "drop the",
                                      "disable", "leave out"}) &&
                  contains_any(text, {"yarn", "rope_scaling", "rope scaling"});
  // "is the missing yarn in layers 0-2 a bug?"
  if (text.contains("layer") && contains_any(text, {"yarn", "rope_scaling", "rope scaling"}))
    out.of_rotation = true;
  out.of_port =
      any_is_one(words, "ported porting") ||
      contains_any(text, {"my port", " port of ", "our engine", "own engine", "own implementation",
                          "my implementation", "reimplement", "自己实现"});
  out.asks_longer = out.seen == Seen::nothing && is_of_a_person(prose) &&
                    contains_any(text, {"extrapolat", "rope_scaling", "rope scaling", "yarn",
                                        "longer context", "extend the context", "context extension",
                                        "increasing the context", "increase the context"});
}

// Whether the beginning of what was said is passed over, and not a GPU or a file.
bool is_lost(Words words) {
  constexpr std::size_t near = 5;
  return followed_by(words,
                     "ignores ignored ignoring ignore see exceed exceeds exceeded exceeding "
                     "overflows",
                     "context prompt history beginning earlier previous first system message "
                     "instruction document conversation text",
                     near);
}

// "context length is ignored in Open WebUI"
bool is_set_in_vain(Words words, std::string_view text) {
  const bool of_front_end =
      any_is_one(words, "openwebui open-webui sillytavern anythingllm librechat chatbox lobechat");
  const bool unheard = contains_any(
      text, {"ignored", "not applied", "no effect", "not respected", "does not apply",
             "doesn't apply", "not propagate", "doesn't appear to", "despite the setting",
             "not honored", "not being applied", "isn't applied"});
  return (of_front_end || text.contains("open webui")) && unheard &&
         contains_any(text, {"context", "num_ctx"});
}

// What does it by itself, whatever the length.
void read_causes(Words words, std::string_view text, Symptom& out) {
  // "gpt-oss:120b-cloud"
  const bool cloud = std::ranges::any_of(
      words, [](std::string_view word) { return word.contains(':') && word.ends_with("cloud"); });
  if (cloud && text.contains("ollama")) {
    out.when.push_back(When::in_cloud);
    std::erase_if(out.engines, [](const std::string& one) { return one.starts_with("ollama"); });
  }
  if (any_is_one(words,
                 "evict* eviction pruned pruning snapkv* pyramidkv* squeezeattention* h2o "
                 "streamingllm* kvpress") &&
      contains_any(text, {"cache", "kv"}) &&
      (contains_any(text, {"offset", "position", "rope", "rotat"}) ||
       (text.contains("kvpress") && out.seen != Seen::nothing)))
    out.when.push_back(When::after_eviction);
  if (contains_any(text, {"inv_freq", "freqs_cis", "freqs_cos", "rope buffer", "rotary buffer"}) &&
      (contains_any(text, {"uninit", "to_empty", "meta device", "garbage", "not initialized",
                           "not initialised", "corrupt", "non-persistent", "persistent=false"}) ||
       any_is_one(words, "nan nans meta")))
    out.when.push_back(When::in_buffers);
  if (contains_any(text, {"position_ids", "position ids"}) && text.contains("left pad") &&
      text.contains("right pad"))
    out.when.push_back(When::padded_apart);
  read_named_causes(words, text, out);
  // What the engine refuses is not done.
  if (contains_any(text, {"shifting is not supported", "shift is not supported"}) ||
      out.is(When::of_full_prompt))
    std::erase(out.when, When::shifted);
}

void read_when(Words words, std::string_view text, Symptom& out) {
  for (const WhenRow& row : of_when)
    if (tells(row, words, text)) out.when.push_back(row.when);
  if (out.from > 0) std::erase(out.when, When::at_once);
  // Packed texts are one row, and none is padded.
  if (out.is(When::packed) || text.contains("batch size 1 ") || text.contains("physical batch") ||
      text.contains("batch size (current") || text.contains("the input batch"))
    std::erase(out.when, When::in_batch);
  constexpr std::string_view right = "fine good well work ok correct normal right perfect";
  const bool short_right = followed_by(words, "short shorter small brief", right, 5);
  const bool even_short = followed_by(words, "even", "short simple hi hello", 4) ||
                          followed_by(words, "any every", "prompt input question", 1) ||
                          text.contains("the first token") || text.contains("the first word");
  // "prompts longer than 4096 are fine"
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (!contains_word("beyond longer above over", words[n])) continue;
    const auto behind = words.subspan(n + 1, std::min<std::size_t>(words.size() - n - 1, 5));
    const auto has = [&](std::string_view any) {
      return std::ranges::any_of(behind, [&](auto word) { return contains_word(any, word); });
    };
    out.long_right |= has(right) && !has(
                                        "short shorter small brief below under less not no never "
                                        "nothing don doesn isn aren won stops don't doesn't");
  }
  if (short_right && !out.is(When::long_texts)) out.when.push_back(When::long_texts);
  // A refusal of a short text is none of its angles.
  const bool refused =
      text.contains("exceed") || text.contains("refuse") || text.contains("reject");
  if (even_short && !refused && !short_right && out.from == 0 && !out.is(When::at_once))
    out.when.push_back(When::at_once);
  // "v0.6.2 works correctly", "worked in 0.11.1"
  constexpr std::string_view works = "works worked correct fine right";
  for (std::size_t n = 0; n < words.size(); ++n) {
    // "under mlx-vlm==0.6.3"
    const std::size_t pinned = words[n].rfind('=');
    const std::string_view version =
        pinned == words[n].npos ? words[n] : words[n].substr(pinned + 1);
    const bool is_version = !version_of_word(version, false).empty() &&
                            (version.starts_with('v') || version.starts_with('b') ||
                             std::ranges::count(version, '.') > 1);
    const bool before = (n + 1 < words.size() && begins_with_one(words[n + 1], works)) ||
                        (n + 3 < words.size() && words[n + 1] == "it" && words[n + 2] == "was" &&
                         begins_with_one(words[n + 3], works));
    const std::size_t first = n >= 3 ? n - 3 : 0;
    const bool behind = n > first &&
                        std::ranges::any_of(words.subspan(first, n - first),
                                            [&](auto w) { return begins_with_one(w, works); }) &&
                        std::ranges::any_of(words.subspan(first, n - first), [](auto w) {
                          return contains_word("in on with under", w);
                        });
    // What is no engine, and what was changed besides, says nothing of a version.
    const bool is_other =
        begins_with_one(words[n], "torch== python== cuda== triton== numpy== flash-attn==") ||
        contains_any(text,
                     {"chat template", "thanks", "unrecognized arg", "removed by me", "n_ctx="});
    if (is_version && !is_other && (before || behind) && !out.is(When::regressed))
      out.when.push_back(When::regressed);
  }
  const bool of_trl =
      text.contains("trl") || text.contains("sfttrainer") || text.contains("sftconfig");
  if (of_trl && text.contains("max_seq_length")) out.when.push_back(When::of_trl);
  if (out.is(When::packed) && text.contains("position_ids") &&
      contains_any(text, {"3d", "three", "3 times", "3 rows", "[3,", "(3,"}))
    out.when.push_back(When::axes_as_packed);
  if (text.contains("rope_theta") && text.contains("rope_parameters"))
    out.when.push_back(When::moved_keys);
  if (followed_by(words, "f16 fp16 bf16 q8_0 unquantized 16-bit original", right, 4) &&
      any_is_one(
          words,
          "quant* 4-bit* 3-bit* 2-bit* 4bit 2bit q4* q2* q3* iq* awq gptq exl2 exl3 nvfp4 fp4"))
    out.when.push_back(When::quantized);
  const bool of_roberta = any_is_one(words, "roberta* xlm-roberta* *_roberta");
  if (of_roberta && contains_any(text, {"512", "514", "index out of range", "padding_idx"}))
    out.when.push_back(When::of_offset);
  if (is_set_in_vain(words, text)) out.when.push_back(When::of_front_end);
  read_causes(words, text, out);
  const bool second = followed_by(words, "second 2nd next third later",
                                  "turn message prompt request question round", 2);
  if (second && !out.is(When::in_turns)) out.when.push_back(When::in_turns);
}

// Signs that set something: those of ">=" and "==" compare.
std::ptrdiff_t settings_in(std::string_view text) {
  std::ptrdiff_t count = 0;
  for (std::size_t n = 0; n < text.size(); ++n)
    count += text[n] == '=' && (n == 0 || !std::string_view("<>=!").contains(text[n - 1])) &&
             (n + 1 == text.size() || text[n + 1] != '=');
  return count;
}

// Comments of scripts and settings are not what somebody tells.
std::string without_comments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.starts_with('#') && !line.starts_with("//")) out.append(line).append("\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// What a text is about where that is no position; "": it may be one. Memory, speed and the like are
// mentioned beside what is wrong, too.
std::string_view other_fault(Words words, std::string_view text, Seen seen) {
  const auto* const other = std::ranges::find_if(
      of_others, [&](const OtherFault& one) { return tells(one, words, text); });
  // A line that installs a version complains of nothing, and one of a draft counts its guesses
  // beside tokens a second.
  const bool of_guesses = text.contains("accept");
  // Of a draft, of ids or of a long text, an illegal access is a table's end.
  const bool of_table_end =
      contains_any(text, {"draft", "speculative", "position_ids", "max_position", "long context",
                          "long input", "long prompt", "longer than"}) ||
      (text.contains("device-side assert") && text.contains("token"));
  if (other == std::end(of_others) || text.contains("==") ||
      (of_guesses && other->text == "speed") ||
      (of_table_end && other->text.starts_with("the machine")))
    return "";
  // Outputs that diverge are texts, and a training that does is none.
  // "no OOM any more"
  if (other->text == "memory" &&
      contains_any(text, {"no oom", "no more oom", "oom solved", "oom is solved", "oom fixed",
                          "oom is gone", "memory usage is great", "memory usage is fine",
                          "memory is fine", "memory? no", "not memory", "not the memory"}))
    return "";
  const bool texts = seen == Seen::garbled || seen == Seen::repeats || seen == Seen::forgets ||
                     (seen == Seen::differs && other->text != "training");
  const bool says_wrong = std::ranges::any_of(words, [](std::string_view word) {
    return contains_word("wrong worse incorrect incorrectly shifted inaccurate bad poor", word);
  });
  // "speed drops", "throughput is poor": the complaint is about that.
  const bool of_speed = other->text == "speed" && followed_by(words, "speed latency throughput",
                                                              "poor bad worse drop low", 3);
  return !texts && (!says_wrong || of_speed) ? other->text : "";
}

}  // namespace
}  // namespace prose

bool is_sentence(std::string_view line) {
  line = trimmed(line);
  constexpr std::size_t longest = 1000;
  if (line.size() < 20 || line.size() > longest) return false;
  if (line.contains(" = ") || line.contains("::") || line.contains(" | ") || line.contains("INFO"))
    return false;
  const auto blanks = std::ranges::count(line, ' ');
  std::ptrdiff_t others = 0;
  const std::string small = small_letters(line);
  for (const std::string_view word : prose::words_of(small)) {
    // "phi-3-medium-128k-instruct" is a name.
    constexpr std::ptrdiff_t some = 6;
    const auto letters = std::ranges::count_if(word, is_letter);
    if (letters >= some) others -= std::ssize(word) - letters;
  }
  others += std::ranges::count_if(small, [](char c) {
    return c != ' ' && !is_letter(c) && static_cast<unsigned char>(c) < 128;
  });
  return blanks >= 4 && 6 * others < std::ssize(line);
}

bool is_of_a_person(std::string_view text) {
  constexpr std::size_t longest = 4000;
  constexpr std::ptrdiff_t most_lines = 60, few = 3, many = 6, most_signs = 2;
  const std::string_view trimmed_text = trimmed(text);
  if (text.size() > longest || std::ranges::count(trimmed_text, '\n') > most_lines ||
      trimmed_text.starts_with('{'))
    return false;
  const std::string small = small_letters(prose::without_comments(trimmed_text));
  // What a line says between quotes is a prompt.
  std::string unquoted;
  bool within = false;
  for (const char c : small) {
    if (c == '"') within = !within;
    if (!within) unquoted += c;
  }
  // Settings have a key in front of most lines, and comments in any language.
  std::ptrdiff_t keyed = 0;
  for (std::size_t at = 0; at < unquoted.size();
       at = std::min(unquoted.find('\n', at), unquoted.size() - 1) + 1) {
    const std::string_view line = std::string_view(unquoted).substr(at, 60);
    const std::size_t blank = line.find_first_of(" \n"), colon = line.find(": ");
    keyed += colon != line.npos && colon < blank;
  }
  constexpr std::ptrdiff_t few_keys = 3;
  if (keyed >= few_keys) return false;
  constexpr std::ptrdiff_t some_chinese = 8;
  const auto chinese = std::ranges::count_if(unquoted, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xe4 && byte <= 0xe9;  // the first of three
  });
  if (chinese >= some_chinese) return true;
  const std::vector<std::string_view> words = prose::words_of(unquoted);
  const auto little = std::ranges::count_if(
      words, [](std::string_view word) { return contains_word(prose::little_words, word); });
  constexpr std::size_t some = 3;
  if (words.size() > some && trimmed_text.ends_with('?') &&
      contains_word("is are does do can could will why what which how", words.front()))
    return true;
  // Code and settings are made of signs.
  const bool of_signs = prose::settings_in(unquoted) > most_signs ||
                        std::ranges::count(unquoted, '{') > (little < many ? 0 : 3);
  if (little < few || 7 * little < std::ssize(words) || of_signs) return false;
  const auto is_own = [](std::string_view word) {
    return contains_word("i my we our i'm i've me", word);
  };
  // "[00:00<?, ?it/s]" asks nothing.
  bool asks = false;
  for (std::size_t n = 1; n < unquoted.size(); ++n)
    asks =
        asks || (unquoted[n] == '?' && (is_letter(unquoted[n - 1]) || is_digit(unquoted[n - 1])));
  const bool titled =
      std::ranges::any_of(std::array<std::string_view, 6>{"[bug]", "[feature]", "[question]",
                                                          "bug:", "misc. bug:", "eval bug:"},
                          [&](std::string_view title) { return unquoted.starts_with(title); });
  // Messages of programs have one sentence, or name what was raised.
  const bool is_message = unquoted.contains("error: ") || unquoted.contains("traceback") ||
                          unquoted.contains("level=") || unquoted.contains("warning ") ||
                          unquoted.contains("[info") || unquoted.contains("[debug");
  const bool tells =
      little >= many && 7 * little >= std::ssize(words) && unquoted.contains(". ") && !is_message;
  return std::ranges::any_of(words, is_own) || asks || titled || tells;
}

bool narrates(std::string_view text) {
  constexpr std::size_t longest = 1500;
  constexpr std::ptrdiff_t most_lines = 5, few = 2, many = 3;
  const std::string small = small_letters(prose::without_comments(trimmed(text)));
  if (small.size() > longest || std::ranges::count(small, '\n') > most_lines ||
      small.find_first_of("{}$") != small.npos ||
      contains_any(small, {"import ", "def ", "return ", "level=", "error: ", "warning: ", "\\\n"}))
    return false;
  std::string unquoted;
  bool within = false;
  for (const char c : small.substr(0, small.find(" -"))) {
    if (c == '"') within = !within;
    if (!within) unquoted += c;
  }
  const std::vector<std::string_view> words = prose::words_of(unquoted);
  // "ollama run llama3.1:8b why is the sky blue"
  if (words.size() > 2 && words[0] == "ollama" && words[1] == "run" &&
      std::ranges::any_of(words[2], is_digit))
    return false;
  const auto count_in = [&](std::string_view list) {
    return std::ranges::count_if(words, [&](auto word) { return contains_word(list, word); });
  };
  const auto little = count_in(prose::little_words),
             verbs = count_in(
                 "is are was were does shows show reports says thinks gives cannot "
                 "can't stops makes defaults leaves fails loads becomes");
  return verbs > 0 && (little >= many || (little >= few && 8 * little >= std::ssize(words)));
}

std::string sentences_on_lines(std::string_view text) {
  std::string out;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const bool ends = (text[n] == '.' || text[n] == '?' || text[n] == '!') && n + 1 < text.size() &&
                      text[n + 1] == ' ';
    out += text[n] == '`' ? '\n' : text[n];
    if (ends) out += '\n';
  }
  return out;
}

bool Symptom::is(When one) const { return std::ranges::find(when, one) != when.end(); }

// "Thanks, the larger context fixed it": who says that all is well complains of nothing.
bool is_settled(std::string_view text) {
  return contains_any(text,
                      {"fixed it", "this fixed", "fixed the ", "works now", "works great now",
                       "works fine now", "solved it", "all good", "no longer forgets",
                       "no longer repeats", "no longer garbled", "no longer breaks", "no garbage",
                       "no gibberish", "remembers everything", "it is supported now"}) &&
         !contains_any(text, {"?", "but ", "still", "yet ", "however", "except", "unless", "until",
                              "not fixed", "never", "again"});
}

std::optional<Symptom> symptom_of(std::string_view prose) {
  constexpr std::size_t longest = 16'384;
  const std::string text = small_letters(prose.substr(0, longest));
  if (is_settled(text)) return std::nullopt;
  const std::vector<std::string_view> words = prose::words_of(text);
  Symptom out;
  for (const prose::SeenRow& row : prose::of_seen)
    if (out.seen == Seen::nothing &&
        (prose::tells(row, words, text) || (row.seen == Seen::forgets && prose::is_lost(words))))
      out.seen = row.seen;
  // "This is is is is"
  for (std::size_t n = 2; n < words.size() && out.seen == Seen::nothing; ++n)
    if (words[n].size() > 1 && is_letter(words[n][0]) &&
        !contains_word("very so really much many too long no nan none true false pad", words[n]) &&
        words[n] == words[n - 1] && words[n] == words[n - 2])
      out.seen = Seen::repeats;
  prose::read_lengths(words, out);
  prose::read_sizes(words, out);
  prose::read_tables(words, out);
  prose::read_engines(words, out);
  prose::read_when(words, text, out);
  if (out.is(When::of_pictures) || out.height > 0) prose::read_makers(words, out);
  prose::read_settings(words, out);
  prose::read_slots(words, out);
  // Memory that a client's num_ctx takes is no fault of the memory.
  if (const std::string_view other = prose::other_fault(words, text, out.seen);
      !other.empty() && !names_a_cause(text))
    return Symptom{.engines = std::move(out.engines), .other = other};
  const bool placed = out.from > 0 || out.length > 0 || out.frames > 0 || out.height > 0;
  const std::size_t parts = words.size() + (text.size() > words.size() * 12 ? 4 : 0);
  // "differ by 0.002"
  if (const auto by = number_after(text, "differ by "); by && *by > 0) out.difference = *by;
  out.of_embeddings = text.contains("embed");
  out.seconds_per_grid = text.contains("second_per_grid") || text.contains("qwen2.5-vl") ||
                         text.contains("tokens_per_second");
  if (parts < 3) return std::nullopt;
  if (out.is(When::of_qwen3_promise)) out.length = 0;  // one of the lengths that are compared
  prose::read_topics(prose, words, text, out);
  // Somebody who names an engine or a length asks about it, in whatever words.
  const bool circumstances = std::ranges::any_of(out.when, [](When one) {
    return one != When::long_texts && one != When::of_pictures && one != When::at_once &&
           one != When::constant && one != When::in_turns;
  });
  const bool told = placed || circumstances || out.of_position || out.of_port ||
                    !out.engines.empty() || out.rows_of_model > 0 || out.sum_of_slots > 0;
  // "with the latest mlx-lm v0.22.1"
  constexpr std::size_t most_words = 8;
  const bool names_version =
      words.size() <= most_words && !out.engines.empty() &&
      std::ranges::any_of(words, [](auto word) { return contains_word("with in on using", word); });
  if (out.seen == Seen::nothing && names_version) return out;
  if (out.seen == Seen::nothing) {
    const bool named = circumstances || out.sum_of_slots > 0 || !out.engines.empty();
    const bool speaks = is_of_a_person(prose) || is_sentence(prose) || (named && narrates(prose)) ||
                        names_a_cause(prose);
    return told && speaks ? std::optional(out) : std::nullopt;
  }
  return told || !out.when.empty() || out.seen != Seen::worse ? std::optional(out) : std::nullopt;
}

std::optional<Symptom> symptom_alone(std::string_view text) {
  constexpr std::size_t longest = 4000;
  if (is_of_a_person(text)) return symptom_of(text);
  // Columns, code and flags; what a model wrote may stand among the words.
  constexpr std::ptrdiff_t most_bars = 4;
  // "with --enforce-eager it runs"
  const bool told = narrates(text),
             in_passing = told || (is_sentence(text) &&
                                   contains_any(text, {"with --", "without --", "using --"}));
  if (text.size() > longest || (text.contains(" -") && !in_passing) ||
      text.find_first_of("{}$") != text.npos || std::ranges::count(text, '|') > most_bars)
    return std::nullopt;
  // A log has the hour in front, settings a word or two in each line.
  constexpr std::ptrdiff_t most_settings = 2;
  const std::string_view start = text.substr(0, 24);
  std::ptrdiff_t of_hours = 0;  // 10:02:31, and not "llama3.2:3b in Ollama:"
  for (std::size_t n = 1; n + 1 < start.size(); ++n)
    of_hours += start[n] == ':' && is_digit(start[n - 1]) && is_digit(start[n + 1]);
  if ((told ? of_hours : std::ranges::count(start, ':')) > 1 ||
      (prose::settings_in(text) > most_settings && !told))
    return std::nullopt;
  const auto lines = std::ranges::count(trimmed(text), '\n') + 1,
             blanks = std::ranges::count(text, ' ');
  if (lines > 1 && blanks < 4 * lines) return std::nullopt;
  return symptom_of(text);
}

std::string_view told_behind(std::string_view line) {
  for (std::size_t at = line.find(", "); at != line.npos; at = line.find(", ", at + 1)) {
    const std::string_view rest = line.substr(at + 2);
    const bool behind_a_number = at > 0 && is_digit(line[at - 1]);
    if (!behind_a_number || contains_any(rest, {" -", "{", "}", "="})) continue;
    const auto symptom = symptom_of(rest);
    return symptom && symptom->seen != Seen::nothing ? rest : "";
  }
  return "";
}

std::optional<Symptom> symptom_in_log(std::string_view log) {
  std::string sentences;
  for (std::size_t lines = 0; !log.empty() && lines < 2000; ++lines) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    if (const std::string_view line = log.substr(0, end); is_sentence(line))
      sentences.append(line).append("\n");
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  // What a program prints asks nothing.
  auto symptom = sentences.empty() ? std::nullopt : symptom_of(sentences);
  return symptom && symptom->seen != Seen::nothing ? symptom : std::nullopt;
}

std::string symptom_text(const Symptom& symptom) {
  if (!symptom.other.empty()) {
    std::string out = "trouble with " + std::string(symptom.other);
    for (const std::string& engine : symptom.engines) out += ", by " + engine;
    return out;
  }
  const auto* const seen = std::ranges::find(prose::of_seen, symptom.seen, &prose::SeenRow::seen);
  std::string out(seen == std::end(prose::of_seen) ? "a question" : seen->text);
  if (symptom.from > 0) out += " from " + grouped(symptom.from) + " tokens on";
  for (const When one : symptom.when)
    if (one != When::long_texts || symptom.from == 0)
      out +=
          ", " + std::string(std::ranges::find(prose::of_when, one, &prose::WhenRow::when)->text);
  if (symptom.length > 0) out += ", with " + grouped(symptom.length) + " tokens";
  if (symptom.frames > 0) out += ", " + grouped(symptom.frames) + " frames";
  if (symptom.height > 0)
    out += ", " + std::to_string(symptom.width) + "×" + std::to_string(symptom.height);
  for (const std::string& engine : symptom.engines) out += ", by " + engine;
  return out;
}

}  // namespace posenc::detail
