// The rules of a plan that loops rely on, said once for checked() and for every call. A Plan is a
// plain value that anyone may change after it was checked, so that each call asks again whether
// sizes agree, which takes no longer than a part has members; its numbers only checked() looks at.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/plan.h"

namespace posenc::detail {

Expected<void> check_sizes(std::string_view where, const Rotate& rotate);
Expected<void> check_sizes(std::string_view where, const Waves& waves);
Expected<void> check_sizes(std::string_view where, const Rows& rows);
Expected<void> check_sizes(std::string_view where, const Ramp& ramp);

// The channels that rotate lie within a head.
Expected<void> check_slice(std::string_view where, const Rotate& rotate, std::int64_t head_dim);

}  // namespace posenc::detail
