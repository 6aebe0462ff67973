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

// Says what llama.cpp knows of an architecture and no key of its files does.
using GgufRule = void(GgufTranslation& gguf);

struct Architecture {
  std::string_view names;        // general.architecture, separated by spaces
  std::string_view family = {};  // in Hugging Face's names; "": the generic rotary one
  Rotation rotation = Rotation::neox;
  bool may_have_sections = false;  // position axes where the file has them (GLM-4V); mrope must
  bool causal = true;              // where no key says it
  std::int64_t window = 0;         // of sliding layers where no key says it
  double local_theta = 0;          // of sliding layers, which are unscaled; 0: the family's rule
  bool reads_betas = false;        // YaRN's, which others have by default whatever the file says
  // The layers slide only where the file has a window; else a missing one is an error.
  bool may_slide = false;
  std::span<const GgufKey> keys = {};  // of the family's own words, beside those of all
  GgufRule* rule = nullptr;
  bool only_encoder = false;      // of a family that has both stacks
  std::string_view refused = {};  // "is ...": what the file is, if it is no model
  std::string_view remark = {};   // a warning every file of the architecture deserves
};

const Architecture* find_architecture(std::string_view name);  // null: not known

}  // namespace posenc::detail
