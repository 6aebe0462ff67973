// Cached keys that move to other positions, and whether a model's may.
#include "posenc/rekey.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/reuse.h"

namespace posenc::python {
namespace {

// From `keys` into `moved`, which may be the same object.
void move_keys(const char* where, nb::handle keys, nb::handle moved, const CompiledPlan& from,
               nb::handle from_ids, const CompiledPlan* to, nb::handle to_ids,
               std::string_view side, std::string_view layout, int threads) {
  if (is_recorded(keys))
    refuse(where, "keys must need no gradient", "a tensor that requires one",
           "pass keys.detach(): what is cached is a constant");
  const bool in_place = keys.is(moved);
  const Array read = array_of(keys, where, "keys", in_place ? Access::write : Access::read);
  const Array written = in_place ? read : array_of(moved, where, "out", Access::write);
  const Tensor in = in_layout(read.tensor, layout, where),
               out = in_layout(written.tensor, layout, where);
  const Positions stood = positions_of(from_ids, in.shape[2], where),
                  stand = positions_of(to_ids, in.shape[2], where);
  const Side whose = side_of(side);
  const Plan& anew = to ? to->plan : from.plan;
  unlocked([&] { return rekey({&from.plan, stood}, {&anew, stand}, in, out, whose, {threads}); });
}

nb::object rekeyed(nb::handle keys, const CompiledPlan& from, nb::handle from_ids,
                   const CompiledPlan* to, nb::handle to_ids, std::string_view side,
                   std::string_view layout, int threads) {
  nb::object made = empty_like(keys);
  move_keys("rekey", keys, made, from, from_ids, to, to_ids, side, layout, threads);
  return handed_back(std::move(made), keys);
}

void rekey_in_place(nb::handle keys, const CompiledPlan& from, nb::handle from_ids,
                    const CompiledPlan* to, nb::handle to_ids, std::string_view side,
                    std::string_view layout, int threads) {
  move_keys("rekey_", keys, keys, from, from_ids, to, to_ids, side, layout, threads);
}

template <class Verb>
void bind(nb::module_& m, const char* name, Verb verb, const char* doc) {
  m.def(name, verb, nb::arg("keys"), nb::arg("plan_from"), nb::arg("from_positions").none(),
        nb::arg("plan_to").none() = nb::none(), nb::arg("to_positions").none() = nb::none(),
        nb::kw_only(), nb::arg("side") = "key", nb::arg("layout") = "", nb::arg("threads") = 0,
        doc);
}

}  // namespace

void bind_rekey(nb::module_& m) {
  bind(m, "rekey", &rekeyed,
       "Keys [batch, kv_head, seq, head_dim] (or as layout names their axes) that plan_from "
       "rotated at from_positions, as plan_to (the same) rotates at to_positions: a new array, "
       "equal to a fresh rotation of the unrotated keys but for one rounding. Positions are as in "
       "Plan.rotate, None counts from 0. side: \"value\" for values of plans that rotate them. "
       "Raises posenc.Error for rotations that cannot be taken back, by their names; ids that are "
       "not as many as the keys; keys that PyTorch records. posenc.reuse says whether a model's "
       "keys may be moved.");
  bind(m, "rekey_", &rekey_in_place, "As rekey, in the array's own memory.");
  m.def(
      "reuse_json", [](const ReadModel& read) { return text(to_json(reuse(read.model))); },
      nb::arg("model"));
}

}  // namespace posenc::python
