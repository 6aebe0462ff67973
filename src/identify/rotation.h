// What a dump's channels say, whatever the dump was made of.
#pragma once

#include "src/identify/dump.h"

namespace posenc::detail {

// `repeated`: rows before rotation are that of the first token, rotated.
Identified identified(Dump dump, bool repeated);

}  // namespace posenc::detail
