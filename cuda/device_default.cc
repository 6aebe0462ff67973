// Where there is CUDA, plans go to the current device.
#include "cuda/backend.h"
#include "posenc/cuda.h"

namespace posenc::cuda {

Expected<Rotations> Rotations::make(std::span<const Plan> plans) { return make(plans, device()); }

}  // namespace posenc::cuda
