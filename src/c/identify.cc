// The C interface of identify: tensors in, JSON out.
#include "posenc/identify.h"

#include <utility>

#include "src/c/handles.h"

using namespace posenc;
using namespace posenc::c;

posenc_status posenc_identify_json(const posenc_tensor* after, const posenc_tensor* before,
                                   const posenc_positions* positions, int32_t repeated,
                                   const posenc_model* model, int64_t layer, char** json) noexcept {
  constexpr std::string_view where = "posenc_identify_json";
  if (const auto bad = need(where, "json", json, {{"after", after}})) return bad;
  const View seen = view(where, "after", after);
  if (seen.status) return seen.status;
  RotationDump dump{.after = seen.tensor, .repeated = repeated != 0};
  if (before) {
    const View unrotated = view(where, "before", before);
    if (unrotated.status) return unrotated.status;
    dump.before = unrotated.tensor;
  }
  const int last = seen.tensor.rank - 2;
  dump.positions =
      positions
          ? positions->value
          : Positions::range(0, last < 0 ? 0 : seen.tensor.shape[static_cast<std::size_t>(last)]);
  Expected<Identified> found = identify(dump);
  if (!found) return refused(found.error());
  if (model) {
    auto findings = beside_model(*found, model->value, layer);
    if (!findings) return refused(findings.error());
    add_beside(*std::move(findings), *found);
  }
  return hand_out(to_json(*found), json);
}

posenc_status posenc_identify_table_json(const posenc_tensor* cos, const posenc_tensor* sin,
                                         char** json) noexcept {
  constexpr std::string_view where = "posenc_identify_table_json";
  if (const auto bad = need(where, "json", json, {{"cos", cos}, {"sin", sin}})) return bad;
  const View cosines = view(where, "cos", cos), sines = view(where, "sin", sin);
  if (cosines.status) return cosines.status;
  if (sines.status) return sines.status;
  return hand_out_json(identify_table(cosines.tensor, sines.tensor), json);
}

posenc_status posenc_identify_vectors_json(const posenc_tensor* values, char** json) noexcept {
  constexpr std::string_view where = "posenc_identify_vectors_json";
  if (const auto bad = need(where, "json", json, {{"values", values}})) return bad;
  const View table = view(where, "values", values);
  if (table.status) return table.status;
  return hand_out_json(identify_vectors(table.tensor), json);
}
