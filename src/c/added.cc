// The C interface: what is added at real positions, and learned tables of a grid for one of another
// size.
#ifndef __wasm__
#include <string>

#include "posenc/apply.h"
#include "posenc/resample.h"
#include "src/c/handles.h"

using namespace posenc;
using c::misuse, c::need;

posenc_status posenc_add_at(const posenc_plan* plan, const posenc_tensor* embedding,
                            const posenc_tensor* at, const posenc_tensor* out,
                            int32_t threads) noexcept {
  return c::on_tensors("posenc_add_at", {{"plan", plan}}, threads,
                       {{"embedding", embedding}, {"at", at}, {"out", out}},
                       [&](const Tensor& x, const Tensor& from, const Tensor& to) {
                         return add(plan->value, x, from, to, Threads{threads});
                       });
}

posenc_status posenc_position_vectors_at(const posenc_plan* plan, const posenc_tensor* at,
                                         const posenc_tensor* out, int32_t threads) noexcept {
  return c::on_tensors("posenc_position_vectors_at", {{"plan", plan}}, threads,
                       {{"at", at}, {"out", out}}, [&](const Tensor& from, const Tensor& to) {
                         return position_vectors(plan->value, from, to, Threads{threads});
                       });
}

namespace posenc::c {
namespace {

using Resample = Expected<void> (*)(const Tensor&, GridSize, GridSize, const Resampling&,
                                    const Tensor&);

posenc_status resampled(std::string_view where, Resample verb, std::string_view from_name,
                        const posenc_tensor* from, const posenc_resampling* how,
                        std::string_view to_name, const posenc_tensor* to) {
  if (const auto bad = need(where, {{"how", how}})) return bad;
  if (const auto bad = need_size(where, "how", "posenc_resampling", *how)) return bad;
  const Resampling said{.interpolation = how->repeated  ? Interpolation::repeated
                                         : how->bicubic ? Interpolation::bicubic
                                                        : Interpolation::bilinear,
                        .align_corners = how->align_corners != 0,
                        .antialias = how->antialias != 0,
                        .zeros_outside = how->zeros_outside != 0,
                        .spatial_merge_size = how->merge == 0 ? 1 : how->merge,
                        .kept_rows = how->kept_rows,
                        .offset = how->offset};
  return on_tensors(where, {}, 0, {{from_name, from}, {to_name, to}},
                    [&](const Tensor& source, const Tensor& out) {
                      return verb(source, {how->from_height, how->from_width},
                                  {how->to_height, how->to_width}, said, out);
                    });
}

}  // namespace
}  // namespace posenc::c

posenc_status posenc_resample_grid(const posenc_tensor* table, const posenc_resampling* how,
                                   const posenc_tensor* out) noexcept {
  return c::resampled("posenc_resample_grid", resample_grid, "table", table, how, "out", out);
}

posenc_status posenc_resample_grid_gradient(const posenc_tensor* out_gradient,
                                            const posenc_resampling* how,
                                            const posenc_tensor* table_gradient) noexcept {
  return c::resampled("posenc_resample_grid_gradient", resample_grid_gradient, "out_gradient",
                      out_gradient, how, "table_gradient", table_gradient);
}

#endif
