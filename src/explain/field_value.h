// A field's value as JSON, for a scheme's own text and for the list of fields.
#pragma once

#include "posenc/fields.h"
#include "src/files/json_writer.h"

namespace posenc::detail {

void write(JsonWriter& out, const FieldValue& value);

}  // namespace posenc::detail
