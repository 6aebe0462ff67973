#include "src/tools/symptom.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include "posenc/engines.h"
#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/tools/programs.h"

namespace posenc::detail {
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
     "gib* jib* garbage garbl* nonsens* incoheren* rubbish corrupt* word-salad salad "
     "meaningless unreadable unusable degenerate* hallucinat* babbl* scrambled gobbledygook mangl* "
     "unrelated random breaks !!!* ???* @@@* :::* noise static flicker* artifact* "
     "stripe*",
     "no sense|not make sense|make no sense|lose coheren|loses coheren|lost "
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
     "wrongly "
     "incorrect* inaccura* deteriorat* collaps* fail* terrible lost empty crash* shifted exception",
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
    {When::in_batch, "in a batch",
     "batch batches batched batching batch_generate padding padded left-pad* left-padded",
     "批量|填充"},
    {When::in_turns, "from the second message on",
     "multi-turn multiturn follow-up prefix-cach* prefix_cach*",
     "long conversation|chat history|conversation history|reuse of|cache reuse|kv reuse|earlier "
     "messages|previous messages|latest message|subsequent response|subsequent repl|few "
     "rounds|few turns|several turns|more turns|prefix cach|多轮|第二轮"},
    {When::shifted, "after a context shift", "k-shift",
     "context shift|context-shift|kv shift|cache shift|slot shift|shifts the slot|defragment|kv "
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
     "1d rope|1-d rope|one-dimensional rope|2d position_ids"},
    {When::constant, "always at the same place", "consistently",
     "always at|same time|exact same|same place"},
    {When::of_sides, "of pictures that are no squares", "non-square nonsquare rectangular",
     "not a square|not square"},
    {When::of_time, "when things happen in videos",
     "fps second_per_grid_ts tokens_per_second timestamp*", "time stamp|temporal position|时间"},
    {When::packed, "with packed texts",
     "packing packed multipack* padding-free padding_free cu_seqlens sample_packing "
     "neat_packing",
     "打包"},
    {When::unscaled, "without the scaling", "",
     "rope_scaling not|rope scaling not|scaling is not|scaling is ignored|rope_scaling is "
     "ignored|ignores rope_scaling|ignores the rope_scaling|not implement rope_scaling|yarn is not "
     "supported|scaling not implemented"},
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
    {When::of_offset, "by a table that keeps rows for padding"},
};

// Whether the comma at `at` groups a number's digits: "4,096", and not "8, 512".
bool groups_digits(std::string_view text, std::size_t at) {
  constexpr std::size_t group = 3;
  if (at == 0 || at + group >= text.size() || text[at] != ',' || !is_digit(text[at - 1]))
    return false;
  const std::string_view behind = text.substr(at + 1);
  return std::ranges::all_of(behind.substr(0, group), is_digit) &&
         (behind.size() == group || !is_digit(behind[group]));
}

// What is no fault of position, and how it is called.
struct OtherFault {
  std::string_view text, words = {}, phrases = {};
};
constexpr OtherFault of_others[] = {
    {"memory", "oom ooms vram", "out of memory|memory usage|显存不足|爆显存"},
    {"speed", "slow slower slowly speed latency throughput tps sluggish",
     "tokens/s|tok/s|time to first|变慢"},
    {"the price or a quota", "cost costs price* pricing expensive cheap* billing quota",
     "rate limit|tokens per minute|requests per minute|限流"},
    {"training", "",
     "training loss|loss is nan|loss spikes|loss diverges|training diverges|training of"},
    {"the machine, the network or the installation",
     "downloads downloading installation login password disk wifi ssl",
     "cuda error|log in|deadline exceeded|connection refused|drops my connection|broken "
     "pipe|segmentation fault|segfault|500 error|my gpu|ollama list|ollama pull|cannot "
     "install|can't install|download a|is corrupted"},
};

// Words of small letters, without the signs around them.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view between = " \t\r\n,;()[]{}\"'`*|", around = ".:!?<>_~/";
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_not_of(between, at);
    if (first == text.npos) break;
    at = std::min(text.find_first_of(between, first), text.size());
    while (groups_digits(text, at)) at = std::min(text.find_first_of(between, at + 1), text.size());
    // Chinese stands without blanks beside numbers and names.
    const auto is_foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
    for (std::size_t n = first + 1; n < at; ++n)
      if (is_foreign(text[n]) != is_foreign(text[n - 1])) at = n;
    std::string_view word = text.substr(first, at - first);
    // Signs alone are what such a model writes.
    if (word.find_first_not_of("!?@") == word.npos) {
      words.push_back(word);
      continue;
    }
    while (word.size() > 1 && around.contains(word.back())) word.remove_suffix(1);
    while (word.size() > 1 && around.contains(word.front()) && word.front() != '>')
      word.remove_prefix(1);
    if (!word.ends_with("_penalty")) words.push_back(word);  // a setting, and no complaint
  }
  return words;
}

using Text = std::span<const std::string_view>;

bool begins_with_one(std::string_view word, std::string_view stems) {
  return std::ranges::any_of(split(stems),
                             [&](std::string_view stem) { return word.starts_with(stem); });
}

bool is_one(std::string_view word, std::string_view words) {
  return std::ranges::any_of(split(words), [&](std::string_view one) {
    if (!one.ends_with('*')) return word == one;
    one.remove_suffix(1);
    return one.starts_with('*') ? word.contains(one.substr(1)) : word.starts_with(one);
  });
}

template <class Row>
bool tells(const Row& row, Text words, std::string_view text) {
  if (std::ranges::any_of(words, [&](std::string_view word) { return is_one(word, row.words); }))
    return true;
  for (std::string_view left = row.phrases; !left.empty();) {
    const std::size_t end = std::min(left.find('|'), left.size());
    if (text.contains(left.substr(0, end))) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

// Whether a word of `second` stands within so many words behind one of `first`.
bool followed_by(Text words, std::string_view first, std::string_view second, std::size_t within) {
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (!contains_word(first, words[n])) continue;
    for (std::size_t k = n + 1; k < std::min(words.size(), n + 1 + within); ++k)
      if (begins_with_one(words[k], second)) return true;
  }
  return false;
}

// Whether the beginning of what was said is passed over, and not a GPU or a file.
bool is_lost(Text words) {
  constexpr std::size_t near = 5;
  return followed_by(words,
                     "ignores ignored ignoring ignore see exceed exceeds exceeded exceeding "
                     "overflows",
                     "context prompt history beginning earlier previous first system message "
                     "instruction document conversation text",
                     near);
}

// A count as people write it: "4096", "4,096", "8k", "32K", "1m".
struct Count {
  std::int64_t value = 0;
  bool thousands = false;  // written with a k or an m
};
std::optional<Count> count_of(std::string_view grouped_word) {
  std::string whole_word(grouped_word);
  std::erase(whole_word, ',');
  std::string_view word = whole_word;
  while (!word.empty() && (word.front() == '>' || word.front() == '~' || word.front() == '='))
    word.remove_prefix(1);
  const std::size_t digits = std::min(word.find_first_not_of("0123456789."), word.size());
  if (digits == 0 || digits > 9 || word.front() == '.') return std::nullopt;
  std::string_view unit = word.substr(digits);
  if (unit.starts_with('-')) unit.remove_prefix(1);  // 8192-token prompts
  const std::string_view number = word.substr(0, digits);
  double value = 0, place = 1;
  bool point = false;
  for (const char c : number) {
    if (c == '.' && point) return std::nullopt;  // a version
    if (c == '.') {
      point = true;
      continue;
    }
    value = 10 * value + (c - '0');
    if (point) place *= 10;
  }
  value /= place;
  const bool thousands = unit == "k" || unit.starts_with("k+") || unit.starts_with("ktok") ||
                         unit.starts_with("k-") || unit.starts_with("kctx");
  const bool millions = unit == "m" || unit.starts_with("m-tok");
  const bool plain = unit.empty() || unit == "+" || unit.starts_with("tok") ||
                     unit.starts_with("ctx") || unit == "th" || unit == "rd" || unit == "nd" ||
                     unit == "st";
  if (!(thousands || millions || (plain && !point))) return std::nullopt;
  // 4k is 4,096 where it is a power of two, as lengths are.
  if (thousands) {
    const auto whole = std::llround(value);
    const bool power =
        static_cast<double>(whole) == value && whole > 0 && (whole & (whole - 1)) == 0;
    value *= power ? 1024 : 1000;
  }
  if (millions) value *= 1e6;
  return Count{std::llround(value), thousands || millions};
}

bool is_unit(std::string_view word) {
  return begins_with_one(word, "token context ctx tok window 个token 词元");
}

bool is_other_unit(std::string_view word) {
  return begins_with_one(word,
                         "char word second sec minute min hour gb mb gib mib vram ram layer step "
                         "epoch times time% % param head user request line file page token/s "
                         "tokens/s tok/s t/s ms message turn image frame fps px pixel gpu day week "
                         "try tries attempt dimension dim channel resolution video picture "
                         "concurrent sample iteration byte dollar update error");
}

// Little words that sentences are made of, and names, flags and messages hardly.
constexpr std::string_view little_words =
    "the a an is are was it this that these those to of in into on with when but not and for if my "
    "i we you how why does do can cannot be as at by from or only after then than so any most its "
    "there no has have";

// Whether a bare number is no length: a year, a graphics card, or what follows "build", "port"….
bool is_no_length(std::int64_t value, std::string_view before) {
  constexpr std::int64_t first_year = 1990, last_year = 2047;
  constexpr std::array<std::int64_t, 12> cards = {1080, 2080, 3060, 3070, 3080, 3090,
                                                  4060, 4070, 4080, 4090, 5080, 5090};
  return (value >= first_year && value <= last_year) ||
         std::ranges::find(cards, value) != cards.end() ||
         begins_with_one(before,
                         "build step epoch port pr request commit issue update version iteration "
                         "http status code error batch gpu seed line page");
}

// Where it begins, and how long the text is.
void read_lengths(Text words, Symptom& out) {
  constexpr std::string_view begins =
      "after beyond past over exceed exceeds exceeding exceeded above than > >= until up reaches "
      "reach reaching reached crosses hits hit at around about approximately roughly outside "
      "passes surpasses from longer larger bigger near close";
  constexpr std::string_view weak =
      "until up at around about approximately roughly from than near close";
  constexpr std::string_view of_texts =
      "token context prompt input length sequence seq text ctx position";
  for (std::size_t n = 0; n < words.size(); ++n) {
    const auto count = count_of(words[n]);
    if (!count) continue;
    const std::string_view before = n > 0 ? words[n - 1] : "",
                           unit = n + 1 < words.size() ? words[n + 1] : "";
    const std::int64_t value = count->value;
    if (begins_with_one(unit, "frame")) {
      if (out.frames == 0) out.frames = value;
      continue;
    }
    // A flag's, or of other things.
    if (before.starts_with('-') || is_other_unit(unit)) continue;
    const bool counted = is_unit(unit) || words[n].contains("tok") || words[n].contains("ctx");
    bool told = words[n].starts_with('>'), strong = told;
    const std::size_t first = n >= 4 ? n - 4 : 0;
    const auto is_less = [](std::string_view word) {
      return contains_word("less under below shorter fewer within", word);
    };
    const bool within = std::ranges::any_of(words.subspan(first, n - first), is_less);
    for (const std::string_view sign : {"超过", "超出", "大于", "达到"})
      strong = strong || before.ends_with(sign);
    told = told || strong;
    for (std::size_t k = first; k < n && !within; ++k)
      if (contains_word(begins, words[k])) {
        told = true;
        strong = strong || !contains_word(weak, words[k]);
      }
    constexpr std::int64_t least = 100, most = 20'000'000;
    if (value < least || value > most || within) continue;
    if (!counted && !count->thousands) {
      // "past 4096": the sentence says no other thing, or speaks of texts just there.
      const std::size_t last = std::min(words.size(), n + 3), near = n >= 3 ? n - 3 : 0;
      const bool speaks = std::ranges::any_of(words.subspan(near, last - near), [&](auto word) {
        return begins_with_one(word, of_texts);
      });
      const bool alone = unit.empty() || contains_word(little_words, unit) ||
                         contains_word("vllm sglang ollama llama.cpp", unit);
      if (!strong || value < 512 || is_no_length(value, before) || !(speaks || alone)) continue;
    }
    if (told && (strong || out.seen != Seen::nothing)) {
      if (out.from == 0) out.from = value;
    } else if (counted || count->thousands) {
      if (out.length == 0) out.length = value;  // of several the first, which a title has
    }
  }
}

// The length that settings among the words give: "num_ctx=32768", "max-model-len 32768".
void read_settings(Text words, Symptom& out) {
  constexpr std::string_view names =
      "num_ctx n_ctx ctx-size --ctx-size context_length --context-length max-model-len "
      "--max-model-len max_model_len max_seq_len ollama_context_length";
  for (std::size_t n = 0; n < words.size(); ++n) {
    const std::size_t sign = words[n].find_first_of("=:");
    if (!contains_word(names, words[n].substr(0, sign))) continue;
    for (const std::string_view value :
         {sign == words[n].npos ? std::string_view() : words[n].substr(sign + 1),
          n + 1 < words.size() ? words[n + 1] : std::string_view(),
          n + 2 < words.size() ? words[n + 2] : std::string_view()})
      if (const auto count = count_of(value); count && out.set_to == 0) out.set_to = count->value;
  }
}

// 2048x6144, 1920*1080
void read_sizes(Text words, Symptom& out) {
  // "2K resolution"
  for (std::size_t n = 0; n + 1 < words.size(); ++n)
    if (const auto side = count_of(words[n]);
        side && side->thousands && side->value <= 16'384 &&
        contains_word("resolution image picture", words[n + 1])) {
      out.width = out.height = side->value;
      return;
    }
  for (const std::string_view word : words) {
    const std::size_t sign = word.find_first_of("x*");
    if (sign == word.npos || sign == 0) continue;
    const auto one = count_of(word.substr(0, sign)), other = count_of(word.substr(sign + 1));
    if (!one || !other || one->thousands || other->thousands) continue;
    constexpr std::int64_t least = 100, most = 100'000;
    if (std::min(one->value, other->value) < least || std::max(one->value, other->value) > most)
      continue;
    out.width = one->value, out.height = other->value;
    return;
  }
}

// Kinds of models by name: the frames that makers of videos were trained on.
void read_makers(Text words, Symptom& out) {
  struct Maker {
    std::string_view words;
    std::int64_t frames = 0, side = 0;  // sides of pictures in pixels
  };
  constexpr Maker makers[] = {{"wan wan2* wanvideo*", 81},
                              {"*hunyuan*", 129},
                              {"cogvideo*", 49},
                              {"flux flux.1*", 0, 1448},
                              {"sd3*", 0, 1024}};
  for (const Maker& one : makers)
    if (std::ranges::any_of(words, [&](std::string_view word) { return is_one(word, one.words); }))
      out.frames_of_model = one.frames, out.side_of_model = one.side;
  // "loops at 201": the number of what else is spoken of.
  constexpr std::int64_t most_frames = 1000;
  for (std::size_t n = 1; n < words.size() && out.frames_of_model > 0 && out.frames == 0; ++n)
    if (const auto count = count_of(words[n]);
        count && !count->thousands && count->value > out.frames_of_model &&
        count->value < most_frames && !(n + 1 < words.size() && is_other_unit(words[n + 1])) &&
        contains_word("at after beyond past over to of around length than is", words[n - 1]))
      out.frames = count->value;
}

// And those whose positions are rows of a learned table.
void read_tables(Text words, Symptom& out) {
  struct Table {
    std::string_view words, model;
    std::int64_t rows;
  };
  constexpr Table tables[] = {
      {"clip-l clip-g openclip open_clip", "CLIP's text encoder", 77},
      {"whisper* faster-whisper whisperx", "Whisper's decoder", 448},
      {"bert bert-base* bert-large* *minilm* bge-small* bge-base* bge-large* e5-small* e5-base* "
       "e5-large* sentence-transformer* sentencetransformer* fastembed*",
       "BERT and what is built like it", 512}};
  // Embedders of another build.
  if (std::ranges::any_of(words, [](std::string_view word) {
        return is_one(word, "modernbert* e5-mistral* bge-m3* nomic* jina*");
      }))
    return;
  for (const Table& one : tables)
    if (std::ranges::any_of(words, [&](std::string_view word) { return is_one(word, one.words); }))
      out.rows_of_model = one.rows, out.model = one.model;
}

// "0.6.1" of "v0.6.1" or "0.6.1.post1", "b3015", "3015" behind "build"; "": it is none.
std::string version_of_word(std::string_view word, bool behind_build) {
  constexpr std::size_t most_parts = 3, most_digits = 6;
  if (word.size() > 4 && word.size() <= most_digits + 1 && word.front() == 'b' &&
      std::ranges::all_of(word.substr(1), is_digit))
    return std::string(word);
  if (behind_build && word.size() >= 4 && word.size() <= most_digits &&
      std::ranges::all_of(word, is_digit))
    return "b" + std::string(word);
  if (word.starts_with('v')) word.remove_prefix(1);
  std::size_t end = 0, parts = 0;
  while (end < word.size() && is_digit(word[end])) {
    const std::size_t first = end;
    while (end < word.size() && is_digit(word[end])) ++end;
    if (++parts > most_parts || end - first > most_digits) return "";
    if (end + 1 < word.size() && word[end] == '.' && is_digit(word[end + 1])) ++end;
  }
  const std::string_view suffix = word.substr(end);
  const bool ends = suffix.empty() || begins_with_one(suffix, ".post post rc .dev dev .rc + a b");
  return parts > 1 && ends ? std::string(word.substr(0, end)) : "";
}

// What stands behind a name as its version: "vllm 0.6.1", "vllm version 0.6.1", "build 3015".
std::string version_behind(Text words, std::size_t name) {
  const std::size_t sign = words[name].find_last_of("@=");
  if (sign != words[name].npos) return version_of_word(words[name].substr(sign + 1), false);
  if (name + 1 >= words.size()) return "";
  const bool announced = contains_word("version v build release", words[name + 1]);
  const std::size_t at = name + (announced ? 2 : 1);
  return at < words.size() ? version_of_word(words[at], words[name + 1] == "build") : "";
}

// Whether the engine that word `n` names is the one that answers rightly.
bool is_right(Text words, std::size_t n) {
  constexpr std::string_view right =
                                 "works work worked working right fine ok correct good well "
                                 "perfect correctly",
                             no = "not no never stopped without nor";
  // "does not work in vllm" praises nothing.
  const auto says = [&](std::size_t at) {
    if (at >= words.size() || !contains_word(right, words[at])) return false;
    const std::size_t first = at >= 4 ? at - 4 : 0;
    return std::ranges::none_of(words.subspan(first, at - first), [&](std::string_view word) {
      return contains_word(no, word) || word.ends_with("n't");
    });
  };
  if (n + 1 < words.size() && contains_word("works work worked", words[n + 1]) && says(n + 1))
    return true;
  if (n + 2 < words.size() && contains_word("is was are", words[n + 1]) && says(n + 2)) return true;
  if (n == 0) return false;
  if (words[n - 1] == "unlike" || words[n - 1] == "than") return true;
  const bool within = contains_word("in with on under using by", words[n - 1]);
  return within && ((n >= 2 && says(n - 2)) || (n >= 3 && says(n - 3)));
}

// Programs by words that sentences have as well, or months, or songs.
bool is_common_word(std::string_view name) {
  return contains_word("jan tune swift burn candle dynamo trl mlc", name);
}

// The name of an engine, as lists have it.
std::string engine_of_word(Text words, std::size_t n) {
  std::string name(words[n].substr(0, words[n].find_first_of("@=")));
  if (name == "lm" && n + 1 < words.size() && words[n + 1] == "studio") return "lmstudio";
  if (name == "llamacpp") return "llama.cpp";
  if (name == "mlx") return "mlx-lm";
  if (name == "trt-llm" || name == "tensorrtllm") return "tensorrt-llm";
  if (name == "kobold") return "koboldcpp";
  if (name == "oobabooga") return "text-generation-webui";
  if (name == "exllama") return "";                      // of 2023, and no version of it is known
  if (name == "huggingface" || name == "hf") return "";  // where files come from
  if (const std::string_view within = engine_within(name);
      !within.empty() && name != "koboldcpp" && name != "lms")
    name = within;
  if (is_common_word(name) && n > 0 &&
      !contains_word("in with by using on of from", words[n - 1]) &&
      version_behind(words, n).empty())
    return "";
  return name;
}

// Engines and programs, each with the version that stands behind its name. Of several that which
// answers rightly is what the others are compared with.
void read_engines(Text words, Symptom& out) {
  struct Named {
    std::string name, id;
    bool right = false;
  };
  std::vector<Named> all;
  for (std::size_t n = 0; n < words.size(); ++n) {
    std::string name = engine_of_word(words, n);
    const bool known = name.size() > 2 && is_letter(name.front()) && find_engine(name);
    if (!known) name = program_without_profile(name);
    if (name.empty()) continue;
    std::string id = name;
    if (const std::string version = version_behind(words, n);
        known && !version.empty() && find_engine(name + "@" + version))
      id += "@" + version;
    const bool right = is_right(words, n);
    const auto same = std::ranges::find(all, name, &Named::name);
    if (same == all.end()) {
      all.push_back({name, id, right});
    } else {
      if (id.size() > same->id.size()) same->id = id;
      same->right = same->right && right;
    }
  }
  const auto is_wrong = [](const Named& one) { return !one.right; };
  if (std::ranges::any_of(all, is_wrong))
    std::erase_if(all, [](const Named& one) { return one.right; });
  if (all.size() > 1)
    std::erase_if(all, [](const Named& one) { return one.name == "transformers"; });
  for (Named& one : all) out.engines.push_back(std::move(one.id));
}

void read_when(Text words, std::string_view text, Symptom& out) {
  for (const WhenRow& row : of_when)
    if (tells(row, words, text)) out.when.push_back(row.when);
  if (out.from > 0) std::erase(out.when, When::at_once);
  // Packed texts are one row, and none is padded.
  if (out.is(When::packed) || text.contains("batch size 1 ") || text.contains("physical batch") ||
      text.contains("batch size (current"))
    std::erase(out.when, When::in_batch);
  constexpr std::string_view right = "fine good well work ok correct normal right perfect";
  const bool short_right = followed_by(words, "short shorter small brief", right, 5);
  const bool even_short = followed_by(words, "even", "short simple hi hello", 4) ||
                          followed_by(words, "any every", "prompt input question", 1) ||
                          text.contains("the first token") || text.contains("the first word");
  if (short_right && !out.is(When::long_texts)) out.when.push_back(When::long_texts);
  // A refusal of a short text is none of its angles.
  const bool refused =
      text.contains("exceed") || text.contains("refuse") || text.contains("reject");
  if (even_short && !refused && !short_right && out.from == 0 && !out.is(When::at_once))
    out.when.push_back(When::at_once);
  // "v0.6.2 works correctly", "worked in 0.11.1"
  constexpr std::string_view works = "works worked correct fine right";
  for (std::size_t n = 0; n < words.size(); ++n) {
    const bool is_version = !version_of_word(words[n], false).empty() &&
                            (words[n].starts_with('v') || words[n].starts_with('b') ||
                             std::ranges::count(words[n], '.') > 1);
    const bool before = n + 1 < words.size() && begins_with_one(words[n + 1], works);
    const std::size_t first = n >= 3 ? n - 3 : 0;
    const bool behind = n > first &&
                        std::ranges::any_of(words.subspan(first, n - first),
                                            [&](auto w) { return begins_with_one(w, works); }) &&
                        std::ranges::any_of(words.subspan(first, n - first),
                                            [](auto w) { return contains_word("in on with", w); });
    if (is_version && (before || behind) && !out.is(When::regressed))
      out.when.push_back(When::regressed);
  }
  const bool of_trl =
      text.contains("trl") || text.contains("sfttrainer") || text.contains("sftconfig");
  if (of_trl && text.contains("max_seq_length")) out.when.push_back(When::of_trl);
  if (text.contains("rope_theta") && text.contains("rope_parameters"))
    out.when.push_back(When::moved_keys);
  if (followed_by(words, "f16 fp16 bf16 q8_0 unquantized 16-bit original", right, 4) &&
      std::ranges::any_of(words, [](std::string_view word) {
        return is_one(
            word,
            "quant* 4-bit* 3-bit* 2-bit* 4bit 2bit q4* q2* q3* iq* awq gptq exl2 exl3 nvfp4 fp4");
      }))
    out.when.push_back(When::quantized);
  const bool of_roberta = std::ranges::any_of(
      words, [](std::string_view word) { return is_one(word, "roberta* xlm-roberta* *_roberta"); });
  if (of_roberta && (text.contains("512") || text.contains("514") ||
                     text.contains("index out of range") || text.contains("padding_idx")))
    out.when.push_back(When::of_offset);
  const bool second = followed_by(words, "second 2nd next third later",
                                  "turn message prompt request question round", 2);
  if (second && !out.is(When::in_turns)) out.when.push_back(When::in_turns);
}

// A line of a log that a person wrote: words with hardly a sign between.
bool is_sentence(std::string_view line) {
  line = trimmed(line);
  constexpr std::size_t longest = 1000;
  if (line.size() < 20 || line.size() > longest) return false;
  if (line.contains(" = ") || line.contains("::") || line.contains(" | ") || line.contains("INFO"))
    return false;
  const auto blanks = std::ranges::count(line, ' ');
  const auto others = std::ranges::count_if(small_letters(line), [](char c) {
    return c != ' ' && !is_letter(c) && static_cast<unsigned char>(c) < 128;
  });
  return blanks >= 4 && 6 * others < std::ssize(line);
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
std::string_view other_fault(Text words, std::string_view text, Seen seen) {
  const auto* const other = std::ranges::find_if(
      of_others, [&](const OtherFault& one) { return tells(one, words, text); });
  // A line that installs a version complains of nothing, and one of a draft counts its guesses
  // beside tokens a second.
  const bool of_guesses = text.contains("accept");
  if (other == std::end(of_others) || text.contains("==") || (of_guesses && other->text == "speed"))
    return "";
  // Outputs that diverge are texts, and a training that does is none.
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

bool is_of_a_person(std::string_view text) {
  constexpr std::size_t longest = 4000;
  constexpr std::ptrdiff_t most_lines = 60, few = 3, many = 6, most_signs = 2;
  const std::string_view trimmed_text = trimmed(text);
  if (text.size() > longest || std::ranges::count(trimmed_text, '\n') > most_lines ||
      trimmed_text.starts_with('{'))
    return false;
  const std::string small = small_letters(without_comments(trimmed_text));
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
  const std::vector<std::string_view> words = words_of(unquoted);
  const auto little = std::ranges::count_if(
      words, [](std::string_view word) { return contains_word(little_words, word); });
  // Code and settings are made of signs.
  const bool of_signs = settings_in(unquoted) > most_signs ||
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

std::optional<Symptom> symptom_of(std::string_view prose) {
  constexpr std::size_t longest = 16'384;
  const std::string text = small_letters(prose.substr(0, longest));
  const std::vector<std::string_view> words = words_of(text);
  Symptom out;
  for (const SeenRow& row : of_seen)
    if (out.seen == Seen::nothing &&
        (tells(row, words, text) || (row.seen == Seen::forgets && is_lost(words))))
      out.seen = row.seen;
  read_lengths(words, out);
  read_sizes(words, out);
  read_tables(words, out);
  read_engines(words, out);
  read_when(words, text, out);
  if (out.is(When::of_pictures)) read_makers(words, out);
  read_settings(words, out);
  if (const std::string_view other = other_fault(words, text, out.seen); !other.empty())
    return Symptom{.engines = std::move(out.engines), .other = other};
  const bool placed = out.from > 0 || out.length > 0 || out.frames > 0 || out.height > 0;
  const std::size_t parts = words.size() + (text.size() > words.size() * 12 ? 4 : 0);
  out.of_embeddings = text.contains("embed");
  out.seconds_per_grid = text.contains("second_per_grid") || text.contains("qwen2.5-vl") ||
                         text.contains("tokens_per_second");
  if (parts < 3) return std::nullopt;
  // Somebody who names an engine or a length asks about it, in whatever words.
  out.of_table = text.contains("cache covers") || text.contains("precomputed") ||
                 text.contains("hard-coded") || text.contains("hardcoded") ||
                 text.contains("cos/sin") || text.contains("table of cos") ||
                 text.contains("rope cache") || text.contains("cache is capped");
  out.of_position = std::ranges::any_of(
      std::array<std::string_view, 11>{"rope", "rotary", "position_id", "position id", "positional",
                                       "yarn", "alibi", "sliding window", "context length",
                                       "context size", "位置"},
      [&](std::string_view word) { return text.contains(word); });
  out.of_window = text.contains("sliding window") || text.contains("sliding-window") ||
                  text.contains("attention window");
  out.asks_longer =
      out.seen == Seen::nothing && is_of_a_person(prose) &&
      (text.contains("extrapolat") || text.contains("rope_scaling") ||
       text.contains("rope scaling") || text.contains("yarn") || text.contains("longer context") ||
       text.contains("extend the context") || text.contains("context extension"));
  const bool circumstances = std::ranges::any_of(out.when, [](When one) {
    return one != When::long_texts && one != When::of_pictures && one != When::at_once &&
           one != When::constant && one != When::in_turns;
  });
  const bool told =
      placed || circumstances || out.of_position || !out.engines.empty() || out.rows_of_model > 0;
  // "with the latest mlx-lm v0.22.1"
  constexpr std::size_t most_words = 8;
  const bool names_version =
      words.size() <= most_words && !out.engines.empty() &&
      std::ranges::any_of(words, [](auto word) { return contains_word("with in on using", word); });
  if (out.seen == Seen::nothing && names_version) return out;
  if (out.seen == Seen::nothing)
    return told && (is_of_a_person(prose) || is_sentence(prose)) ? std::optional(out)
                                                                 : std::nullopt;
  return told || !out.when.empty() || out.seen != Seen::worse ? std::optional(out) : std::nullopt;
}

std::optional<Symptom> symptom_alone(std::string_view text) {
  constexpr std::size_t longest = 4000;
  if (is_of_a_person(text)) return symptom_of(text);
  // Columns, code and flags; what a model wrote may stand among the words.
  constexpr std::ptrdiff_t most_bars = 4;
  if (text.size() > longest || text.contains(" -") || text.find_first_of("{}$") != text.npos ||
      std::ranges::count(text, '|') > most_bars)
    return std::nullopt;
  // A log has the hour in front, settings a word or two in each line.
  constexpr std::ptrdiff_t most_settings = 2;
  if (std::ranges::count(text.substr(0, 24), ':') > 1 || settings_in(text) > most_settings)
    return std::nullopt;
  const auto lines = std::ranges::count(trimmed(text), '\n') + 1,
             blanks = std::ranges::count(text, ' ');
  if (lines > 1 && blanks < 4 * lines) return std::nullopt;
  return symptom_of(text);
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
  const auto* const seen = std::ranges::find(of_seen, symptom.seen, &SeenRow::seen);
  std::string out(seen == std::end(of_seen) ? "a question" : seen->text);
  if (symptom.from > 0) out += " from " + grouped(symptom.from) + " tokens on";
  for (const When one : symptom.when)
    if (one != When::long_texts || symptom.from == 0)
      out += ", " + std::string(std::ranges::find(of_when, one, &WhenRow::when)->text);
  if (symptom.length > 0) out += ", with " + grouped(symptom.length) + " tokens";
  if (symptom.frames > 0) out += ", " + grouped(symptom.frames) + " frames";
  if (symptom.height > 0)
    out += ", " + std::to_string(symptom.width) + "×" + std::to_string(symptom.height);
  for (const std::string& engine : symptom.engines) out += ", by " + engine;
  return out;
}

}  // namespace posenc::detail
