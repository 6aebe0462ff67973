// A rotation in an engine's words, and what those words mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/engines/profile.h"

namespace posenc::detail {

// One kind of layer.
struct SpelledRope {
  const LayerGroup* group = nullptr;
  Rope rope;               // as the words have it, which may be less than the model's
  std::string layer_type;  // "full_attention" where layers differ
  bool is_local =
      false;  // sliding layers of Gemma, for which transformers 4 has a key (rope_local_base_freq)
};

// The model's ropes, made sayable: frequencies that no words have become the nearest that some
// have. Notes say what was lost.
SpelledRope sayable(const Model& model, const LayerGroup& group, Spelling spelling,
                    std::int64_t length, std::vector<EngineNote>& notes);

// The words for all kinds of layers together, of a model with a context; `length` is what an engine
// is started for.
std::string spelled(const std::vector<SpelledRope>& ropes, Spelling spelling, std::int64_t context,
                    std::int64_t length, std::vector<EngineNote>& notes);

// The fields of a scaling that are said, by name; what our own scheme has besides is not.
std::vector<FieldSetting> said_fields(const Scaling& scaling);

// vLLM before 0.11.1 has flags of its own for base and scaling, and passes over rope_parameters.
std::string old_vllm_flags(const std::vector<SpelledRope>& ropes, std::int64_t length,
                           std::vector<EngineNote>& notes);

}  // namespace posenc::detail
