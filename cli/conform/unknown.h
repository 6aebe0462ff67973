// What identify makes of a rotation that no known mistake explains.
#pragma once

#include <string>

#include "cli/conform/judge.h"

namespace posenc::cli::conform {

// A sentence; "" where the operation rotates nothing, or identify cannot tell either.
std::string said_of_unknown(const std::string& operation, const VectorTest& test,
                            const Answer& answer);

}  // namespace posenc::cli::conform
