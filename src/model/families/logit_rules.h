// The scales of logits that families have instead of 1/√head_dim, to be named in a row. A group's
// multiplier is relative to that: q·k as it is has the multiplier √head_dim.
#pragma once

#include "src/model/families/family.h"

namespace posenc::detail {

LogitRule undivided;             // q·k as it is (Gemma 3n and 4)
LogitRule query_pre_attn;        // 1/√query_pre_attn_scalar (Gemma 2 and 3)
LogitRule attention_multiplier;  // the file's number (Granite)
LogitRule scale_attn_weights;    // a switch: false leaves q·k as it is (GPT-2)

}  // namespace posenc::detail
