// What compile() asks of the type lists.
#pragma once

#include "posenc/schemes.h"

namespace posenc::detail {

// The fields of a scheme, and of RoPE's scaling, are within their ranges.
Expected<void> check_fields(const Scheme& scheme);

}  // namespace posenc::detail
