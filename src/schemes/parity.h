// A rotation in another engine's float arithmetic (Angles).
#pragma once

#include "posenc/schemes.h"

namespace posenc::detail {

// Turns the exact rotation that `scheme` compiled to into the engine's: its frequencies in float,
// its numbers, its amplitude. Errors: the engine has no code for the scheme.
Expected<void> take_angles(const Scheme& scheme, const Geometry& geometry, Angles angles,
                           Rotate& rotate);

// What ggml's rope is called with for these frequencies. Errors: it cannot express them.
Expected<GgmlRope> ggml_rope(const Rope& rope, const Geometry& geometry, const Rotate& exact);
Expected<GgmlRope> ggml_rope(const Axial& axial, const Geometry& geometry);

}  // namespace posenc::detail
