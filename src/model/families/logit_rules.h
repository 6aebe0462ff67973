// The scales of logits that families have instead of 1/√head_dim, to be named in a row. A group's
// multiplier is relative to that: q·k as it is has the multiplier √head_dim.
#pragma once

#include "src/model/families/family.h"

namespace posenc::detail {

LogitRule undivided;                     // q·k as it is (Gemma 3n and 4)
LogitRule query_pre_attn;                // 1/√query_pre_attn_scalar (Gemma 3)
LogitRule capped;                        // attn_logit_softcapping (VideoPrism)
LogitRule query_pre_attn_capped;         // the same, and attn_logit_softcapping (Gemma 2)
LogitRule attention_multiplier;          // the file's number (Granite)
LogitRule attention_multiplier_if_said;  // the same, else the usual scale (HyperCLOVA X)
LogitRule scale_attn_weights;            // a switch: false leaves q·k as it is (GPT-2)

// For rules of a single family: the number that the file may say, as the group's notes have it.
double noted_number(const Section& config, LayerGroup& group, std::string_view key,
                    double otherwise);

}  // namespace posenc::detail
