// How far cosines and sines are from the exact ones, on everything of this machine that runs an
// emitted kernel: `posenc bench exactness`.
#pragma once

#include <string>

#include "posenc/error.h"

namespace posenc::cli {

// Rows for people or as JSON; exit code 1 where one of ours is off by more than 6e-8, or by other
// bits than the rest. python: the interpreter that has triton, torch and jax.
Expected<int> bench_exactness(const std::string& python, bool json);

}  // namespace posenc::cli
