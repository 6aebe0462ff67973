// Where there is CUDA, plans go to the current device.
#include "backends/cuda/backend.h"
#include "posenc/cuda.h"

namespace posenc::cuda {

Expected<Rotations> Rotations::make(std::span<const Plan> plans) { return make(plans, device()); }
Expected<Additions> Additions::make(const Plan& plan) { return make(plan, device()); }
Expected<Biases> Biases::make(const Plan& plan) { return make(plan, device()); }

}  // namespace posenc::cuda
