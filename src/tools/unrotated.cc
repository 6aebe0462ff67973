// A table ends, biases go on, buckets saturate: what a longer context means where nothing rotates.
#include "src/tools/unrotated.h"

#include <algorithm>
#include <cmath>

#include "src/explain/text.h"
#include "src/model/compare.h"

namespace posenc::detail {
namespace {

// Of the layers that read texts; of a tower where there are no others.
template <class S>
const S* scheme_in(const Model& model) {
  const bool towers_alone = std::ranges::all_of(
      model.groups, [](const LayerGroup& group) { return is_tower(group.stack); });
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const S* one = std::get_if<S>(&scheme); one && (towers_alone || !is_tower(group.stack)))
        return one;
  return nullptr;
}

}  // namespace

std::optional<Holds> by_scheme(const Model& model, std::int64_t to, const Plan& plan) {
  // Of pictures and videos: what grows is an axis, and no length says which.
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (std::holds_alternative<Axial>(scheme) || std::holds_alternative<Mixed>(scheme))
        return Holds{"as_is", "axes", "2502.15894",
                     "each pair rotates by one axis of a picture or a video: more frames, rows or "
                     "columns than were trained give angles that training has not shown, and a "
                     "longer video repeats where the pair whose full turn is as long as the "
                     "trained one comes round (RIFLEx slows that pair); of a diffusion transformer "
                     "--to HEIGHTxWIDTH in pixels says which, and posenc explain MODEL --pairs "
                     "prints the full turns of each axis"};
  if (const auto* learned = scheme_in<Learned>(model)) {
    const std::int64_t most = learned->rows - learned->row_offset;
    if (to <= most)
      return Holds{"as_is", "rows", "1705.03122",
                   "the table has a row for each of " + grouped(most) + " positions"};
    return Holds{"longer_table", "rows", "1705.03122",
                 "a position without a row has no vector: the table ends at " + grouped(most) +
                     (is_tower(model.groups.front().stack)
                          ? ", and --to HEIGHTxWIDTH in pixels says how it is stretched over more "
                            "patches"
                          : ", and rows beyond must be trained")};
  }
  if (rope_of(model.groups.front())) return {};
  if (const auto* slopes = plan.bias ? std::get_if<Slopes>(&*plan.bias) : nullptr) {
    const double flattest = *std::ranges::min_element(slopes->slope);
    return Holds{"as_is", "slopes", "2108.12409",
                 "biases go on along the same lines, so there is nothing to set: the flattest head "
                 "lowers a logit by " +
                     shown(flattest * static_cast<double>(to - 1), 3) + " at distance " +
                     grouped(to - 1) + ", the steepest sees little beyond distance " +
                     grouped(std::llround(20 / *std::ranges::max_element(slopes->slope)))};
  }
  if (const auto* table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr)
    return Holds{"as_is", "buckets", "1910.10683",
                 "all distances from " + grouped(table->max_distance) +
                     " on share the last bucket, so nothing is new, and nothing tells them apart"};
  if (plan.add)
    return Holds{"as_is", "waves", "1706.03762",
                 "every position has a vector, but those beyond the trained length were never "
                 "added in training: the weights must be trained at it"};
  if (std::ranges::none_of(model.groups,
                           [](const LayerGroup& group) { return group.mixer == Mixer::attention; }))
    return Holds{"as_is", "no_attention", "2312.00752",
                 "no layer attends, so there is nothing to set: what is kept of a longer text, "
                 "training decides"};
  return Holds{"as_is", "no_position", "2305.19466",
               "position enters by the mask alone, so there is nothing to set"};
}

}  // namespace posenc::detail
