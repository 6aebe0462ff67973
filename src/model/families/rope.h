// rope_scaling and rope_parameters, in all their spellings, to a Rope.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/model/families/family.h"

namespace posenc::detail {

struct RopeAsk {
  std::string_view layer_type;  // entry of rope_parameters that are given by layer type
  bool local = false;           // a sliding layer: LocalRope applies
  std::int64_t head_dim = 0;
  std::optional<std::int64_t> rotary_dim;  // set by the family's rule, instead of the file's keys
  std::int64_t context = 0;                // M: max_position_embeddings
  double theta = 0;                        // the layer's own base; 0: the file has one for all
  bool unscaled = false;                   // the file's scaling is not of this layer
};

struct RopeFound {
  std::optional<Rope> rope;  // none: the file says this layer type has no position
  bool mixes = false;        // FoPE, of so many frequencies; none: those that its length keeps
  std::optional<std::int64_t> mixed = {};
  double beta = 0;            // llama_4_scaling_beta (Ministral 3)
  double beta_floor = 0;      // the length it counts by, 0: the scaling's trained one
  std::int64_t original = 0;  // trained length, 0: the scaling does not say
};

RopeFound read_rope(const Section& config, const Family& family, const RopeAsk& ask,
                    ProvenanceList& notes);

// Warns of keys that change positions in the model's own code and that no scheme here can say.
void lint_ignored(const Section& config, const Family& family);
// The class of auto_map, where the family's files name none.
void warn_of_own_class(const Section& config, const Family& family);
// Keys that by their names change the rotation and that nothing has asked for; with own code beside
// the weights that code may read them.
void lint_unasked(const Section& config, bool own_code);

// Warns where numbers of a resolved scaling contradict each other or have no effect. `where` is the
// scaling's path in the file, `context` the model's length, `stated` whether the file has the
// trained length.
void lint_scaling(const Section& config, const Family& family, const Scaling& scaling,
                  std::int64_t context, std::string_view where, bool stated);

}  // namespace posenc::detail
