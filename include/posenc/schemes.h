// Every positional encoding, as a value. compile() turns one into a Plan. Each has a header in
// posenc/schemes/, and its mathematics in src/schemes/<name>.cc; the list is the only place that
// names them all.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/distance_maps.h"
#include "posenc/error.h"
#include "posenc/fields.h"
#include "posenc/plan.h"
#include "posenc/scalings.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/axial.h"
#include "posenc/schemes/axis_buckets.h"
#include "posenc/schemes/clipped_bias.h"
#include "posenc/schemes/deberta.h"
#include "posenc/schemes/decomposed.h"
#include "posenc/schemes/fope.h"
#include "posenc/schemes/fourier_features.h"
#include "posenc/schemes/grid_bias.h"
#include "posenc/schemes/index.h"
#include "posenc/schemes/kerple.h"
#include "posenc/schemes/learned.h"
#include "posenc/schemes/log_cpb.h"
#include "posenc/schemes/mixed.h"
#include "posenc/schemes/nope.h"
#include "posenc/schemes/pope.h"
#include "posenc/schemes/profiles.h"
#include "posenc/schemes/rope.h"
#include "posenc/schemes/sandwich.h"
#include "posenc/schemes/shaw.h"
#include "posenc/schemes/sinusoidal.h"
#include "posenc/schemes/t5.h"
#include "posenc/schemes/transformer_xl.h"
#include "posenc/schemes/xpos.h"

namespace [[gnu::visibility("default")]] posenc {

// The list of schemes.
using Scheme =
    std::variant<NoPe, Index, Sinusoidal, Learned, Shaw, T5, Deberta, Alibi, Kerple, Sandwich, Rope,
                 XPos, Axial, Mixed, Pope, Fope, Profiles, TransformerXl, ClippedBias, GridBias,
                 LogCpb, Decomposed, AxisBuckets, FourierFeatures>;

// --- verbs ---------------------------------------------------------------------------------------

// A scheme in a model, as tables and numbers in double precision. Errors: a field outside its
// range, a geometry the scheme needs and does not have, a length it cannot reach.
// With an engine's angles a rotation is computed in that engine's float arithmetic, frequencies
// included; whatever does not rotate is as it was. Errors besides: the engine cannot express it.
Expected<Plan> compile(const Scheme& scheme, const Geometry& geometry,
                       Angles angles = Angles::exact);

// --- reflection: the lists as data ---------------------------------------------------------------

std::span<const SchemeInfo> all_schemes();  // in the list's order
std::span<const SchemeInfo> all_scalings();
const SchemeInfo& info(const Scheme& scheme);
const SchemeInfo& info(const Scaling& scaling);

// A scheme or scaling with its defaults, by name or alias. Errors: unknown name (with the nearest).
Expected<Scheme> make_scheme(std::string_view name);
Expected<Scaling> make_scaling(std::string_view name);

// Sets a field by name or alias. A Rope answers for its scaling's fields too (its scaling's first),
// and "rope_type" replaces the scaling, as "distance_map" does the map. Errors: no such field,
// wrong kind, out of range, a field of another distance map.
Expected<void> set_field(Scheme& scheme, std::string_view name, const FieldValue& value);
Expected<void> set_field(Scaling& scaling, std::string_view name, const FieldValue& value);

// Sets several that come in any order: words first, since one of them may choose what has the
// others.
template <class S>
Expected<void> set_fields(S& scheme, std::span<const FieldSetting> fields) {
  for (const bool words : {true, false})
    for (const auto& [name, value] : fields) {
      if (std::holds_alternative<std::string>(value) != words) continue;
      if (Expected<void> set = set_field(scheme, name, value); !set) return set;
    }
  return {};
}

// Gives a scheme a tensor by its name in tables(). Errors: no such table. What shape it must have
// compile() says.
Expected<void> set_table(Scheme& scheme, std::string_view name, Table table);

// All fields with their values, in declared order (a Rope's without its scaling's).
std::vector<FieldSetting> settings(const Scheme& scheme);
std::vector<FieldSetting> settings(const Scaling& scaling);

// A scaling's number by its field's name; none if it has no such field or the field is null.
std::optional<double> number_of(const Scaling& scaling, std::string_view field);

}  // namespace posenc
