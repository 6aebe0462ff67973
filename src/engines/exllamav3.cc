// exllamav3 (tabbyAPI runs it).
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void exllamav3_reads(EngineRope& rope) {
  if (rope.scaling<DynamicNtk>()) rope.refuse("it knows no dynamic scaling, and raises ValueError");
  if (auto* yarn = rope.scaling<Yarn>();
      yarn && rope.states("original_max_position_embeddings") && rope.model.context > 0) {
    const double ratio = static_cast<double>(rope.model.context) /
                         static_cast<double>(yarn->original_max_position_embeddings);
    if (yarn->factor && *yarn->factor != ratio)
      rope.lost(rope.key("factor") +
                " is not read where the trained length is given: the factor is " +
                number_text(ratio) + ", max_position_embeddings over that length");
    yarn->factor = ratio;
  }
  if (const auto* longrope = rope.scaling<LongRope>())
    fix_longrope(rope, rope.length > longrope->original_max_position_embeddings);
}

}  // namespace

const EngineProfile exllamav3_profile{
    {"exllamav3", "exl3 tabbyapi", "exllamav3", "1.6.5", "exllamav3/util/rope.py"},
    "config.json",
    exllamav3_reads};

}  // namespace posenc::detail
