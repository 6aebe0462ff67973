// What llama.cpp knows of an architecture beyond its GGUF file. The rest is shared with
// config.json: the family in Hugging Face's names, its reader, its lints.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/model/families/family.h"
#include "src/model/gguf_values.h"

namespace posenc::detail {

// Which channels llama.cpp's kernel pairs. Its converter permutes the rows of q and k where Hugging
// Face's code pairs otherwise (llama), so both rotate the same channels of the model.
enum class Rotation {
  none,
  normal,  // (2r, 2r + 1)
  neox,    // (r, r + d/2)
  mrope,   // neox, with an axis for each section of pairs
};

// Whether layers have a window. llama.cpp passes over the keys of one in most architectures.
enum class Slides {
  never,
  if_said,  // where the file has a window above 0
  always,   // a file without one is refused, unless the row has its size
};

// Says what llama.cpp knows of an architecture and no key of its files does.
using GgufRule = void(GgufTranslation& gguf);

struct Architecture {
  std::string_view names;        // general.architecture, separated by spaces
  std::string_view family = {};  // in Hugging Face's names; "": the generic rotary one
  Rotation rotation = Rotation::neox;
  bool may_have_sections = false;  // position axes where the file has two or more; mrope must
  // Models that reach beyond their original length have LongRoPE's lists.
  bool stretched_by_lists = false;
  bool causal = true;            // where no key says it
  LayerRule* rotates = nullptr;  // which layers do; null: the family's rule
  LogitRule* logits = nullptr;   // null: the family's rule

  // Layers that are not alike. A list in the file beats the pattern, and where it has none and the
  // row no pattern the file is refused.
  Slides slides = Slides::never;
  LayerPattern pattern = {};
  std::int64_t every = 0;             // its period
  std::int64_t window = 0;            // where no key says it
  bool window_fixed = false;          // nor is one read, but that it is there
  LocalRope local = LocalRope::same;  // what layers that slide rotate by
  double local_theta = 0;             // their base where no key says it; 0: that of all
  // Of these names, layers without key-value heads hold nothing in attention's place.
  std::string_view leaves_out = {};
  Sinks sinks = Sinks::none;     // beside the family's
  bool sinks_if_stored = false;  // in layers whose sinks are a tensor of the file

  // Keys that llama.cpp reads for some architectures (gguf_keys.cc) and this is one of them, and
  // keys that it reads for most and not for this.
  std::string_view reads = {}, unread = {};
  double beta_fast = 0;        // YaRN's where no key says it; 0: 32
  bool equal_mscales = false;  // DeepSeek's mscale is mscale_all_dim, and else 1

  std::span<const GgufKey> keys = {};  // of the family's own words, beside those of all
  GgufRule* rule = nullptr;
  // Of these names models rotate a part of each head, which their files say; beside the family's.
  std::string_view rotates_part = {};
  // What the converter writes as context, whatever the config.json promises; 0: what that has.
  std::int64_t converted_context = 0;
  bool only_encoder = false;          // of a family that has both stacks
  std::string_view refused = {};      // "is ...": what the file is, if it is no model
  std::string_view not_covered = {};  // why its positions cannot be explained
  std::string_view remark = {};       // a warning every file of the architecture deserves
};

const Architecture* find_architecture(std::string_view name);  // null: not known
std::span<const Architecture> all_architectures();

// --- what llama.cpp reads: gguf_keys.cc ----------------------------------------------------------

bool reads_key(const Architecture& row, std::string_view key);

// Warns of every key that the file has, that would mean something, and that is not read.
void warn_of_unread_keys(const GgufTranslation& gguf);

// Warns of factors that are larger than any sense of them, whoever reads them.
void warn_of_ranges(GgufTranslation& gguf);

// --- the translation, part by part: gguf_layers.cc, gguf_rope.cc ---------------------------------

void translate_layers(GgufTranslation& gguf);
void translate_rope(GgufTranslation& gguf);
bool has_sections(const GgufTranslation& gguf);  // of two axes or more

}  // namespace posenc::detail
