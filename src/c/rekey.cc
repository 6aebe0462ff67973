// The C interface of cached keys that move; the browser's module does without.
#include "posenc/rekey.h"
#ifndef __wasm__
#include <string>

#include "posenc/reuse.h"
#include "src/c/handles.h"

using namespace posenc;
using c::misuse, c::need;

posenc_status posenc_rekey(const posenc_plan* from, const posenc_positions* from_positions,
                           const posenc_plan* to, const posenc_positions* to_positions,
                           const posenc_tensor* x, posenc_side side, const posenc_tensor* out,
                           int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_rekey";
  if (side < POSENC_QUERY || side > POSENC_VALUE)
    return misuse(where, "side must be one of posenc_side", std::to_string(side));
  return c::on_tensors(
      where,
      {{"from", from},
       {"from_positions", from_positions},
       {"to", to},
       {"to_positions", to_positions}},
      threads, {{"x", x}, {"out", out}}, [&](const Tensor& keys, const Tensor& moved) {
        return rekey({&from->value, from_positions->value}, {&to->value, to_positions->value}, keys,
                     moved, static_cast<Side>(side), Threads{threads});
      });
}

posenc_status posenc_model_reuse_json(const posenc_model* model, char** json) noexcept {
  if (const auto bad = need("posenc_model_reuse_json", "json", json, {{"model", model}}))
    return bad;
  return c::hand_out(to_json(reuse(model->value)), json);
}

#endif
