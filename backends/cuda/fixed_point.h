#pragma once

#include "backends/cuda/turns.h"

namespace posenc::cuda {

// frequency / 2π modulo 1, rounded to 2^-128 turns. frequency is finite and below 2^200; radians
// per position.
Turns turns_of(double frequency);

}  // namespace posenc::cuda
