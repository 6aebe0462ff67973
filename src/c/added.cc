// The C interface: what is added at real positions, and learned tables of a grid for one of another size.
#ifndef __wasm__
#include <string>

#include "posenc/apply.h"
#include "posenc/resample.h"
#include "src/c/handles.h"

using namespace posenc;
using c::done, c::misuse, c::need, c::View, c::view;

posenc_status posenc_add_at(const posenc_plan* plan, const posenc_tensor* embedding,
                            const posenc_tensor* at, const posenc_tensor* out,
                            int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_add_at";
  if (const auto bad = need(where, {{"plan", plan}})) return bad;
  if (const auto bad = c::need_threads(where, threads)) return bad;
  const View x = view(where, "embedding", embedding), from = view(where, "at", at),
             to = view(where, "out", out);
  if (x.status || from.status) return x.status ? x.status : from.status;
  return to.status ? to.status
                   : done(add(plan->value, x.tensor, from.tensor, to.tensor, Threads{threads}));
}

posenc_status posenc_position_vectors_at(const posenc_plan* plan, const posenc_tensor* at,
                                         const posenc_tensor* out, int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_position_vectors_at";
  if (const auto bad = need(where, {{"plan", plan}})) return bad;
  if (const auto bad = c::need_threads(where, threads)) return bad;
  const View from = view(where, "at", at), to = view(where, "out", out);
  if (from.status) return from.status;
  return to.status ? to.status
                   : done(position_vectors(plan->value, from.tensor, to.tensor, Threads{threads}));
}

namespace posenc::c {
namespace {

using Resample = Expected<void> (*)(const Tensor&, GridSize, GridSize, const Resampling&,
                                    const Tensor&);

posenc_status resampled(std::string_view where, Resample verb, std::string_view from_name,
                        const posenc_tensor* from, const posenc_resampling* how,
                        std::string_view to_name, const posenc_tensor* to) {
  if (const auto bad = need(where, {{"how", how}})) return bad;
  if (how->struct_size != sizeof *how)
    return misuse(where, "how.struct_size must be " + std::to_string(sizeof *how),
                  std::to_string(how->struct_size), "set it to sizeof(posenc_resampling)");
  const View source = view(where, from_name, from), out = view(where, to_name, to);
  if (source.status) return source.status;
  if (out.status) return out.status;
  const Resampling said{
      .interpolation = how->bicubic ? Interpolation::bicubic : Interpolation::bilinear,
      .align_corners = how->align_corners != 0,
      .antialias = how->antialias != 0,
      .zeros_outside = how->zeros_outside != 0,
      .spatial_merge_size = how->merge == 0 ? 1 : how->merge,
      .kept_rows = how->kept_rows};
  return done(verb(source.tensor, {how->from_height, how->from_width},
                   {how->to_height, how->to_width}, said, out.tensor));
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
