// From a scheme to its plan: the fields checked, the scheme's own compiled(), another engine's
// angles where they are asked for, and the plan checked as one written by hand would be.
#include <string>
#include <utility>

#include "posenc/schemes.h"
#include "src/schemes/parity.h"
#include "src/schemes/reflection.h"

namespace posenc {

Expected<Plan> compile(const Scheme& scheme, const Geometry& geometry, Angles angles) {
  for (const std::int64_t extent :
       {geometry.width, geometry.heads, geometry.kv_heads, geometry.head_dim, geometry.length,
        geometry.grid_height, geometry.grid_width}) {
    if (extent < 0)
      return fail("compile", "a geometry has no negative sizes", std::to_string(extent));
  }
  if (auto ok = detail::check_fields(scheme); !ok) return std::unexpected(ok.error());
  auto plan = std::visit([&](const auto& s) { return s.compiled(geometry); }, scheme);
  if (!plan) return plan;
  if (plan->rotate && angles != Angles::exact) {
    auto ok = detail::take_angles(scheme, geometry, angles, *plan->rotate);
    if (!ok) return std::unexpected(ok.error());
  }
  return checked(std::move(*plan), geometry.head_dim);
}

}  // namespace posenc
