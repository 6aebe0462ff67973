// A plan as JSON: docs/json.md, "A plan". read_plan() of posenc/explain.h reads it back.
#pragma once

#include "posenc/plan.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"

namespace posenc::detail {

// With the lengths that it holds for, or without where they stand beside the plan.
void write_plan(JsonWriter& out, const Plan& plan, bool with_valid = true);

// What it writes, read back (read_plan() of posenc/explain.h).
Expected<Plan> read_plan(const Json& json, std::int64_t head_dim);

}  // namespace posenc::detail
