// A scheme's field as JSON, both ways.
#pragma once

#include "posenc/fields.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"

namespace posenc::detail {

// A value as set_field takes it; what has no such form is a word, which set_field refuses.
FieldValue to_field(const Json& json);

void write(JsonWriter& out, const FieldValue& value);

}  // namespace posenc::detail
