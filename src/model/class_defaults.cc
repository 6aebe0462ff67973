#include "src/model/class_defaults.h"

#include "src/model/families/family.h"

namespace posenc::detail {

double theta_of_transformers4(std::string_view family) {
  const Family* found = find_family(family);
  if (!found) return 10000;
  const FamilyRope& rope = found->rope;
  const bool changed = rope.theta_before != 0 && rope.theta_changed.first >= 5;
  const double theta = changed ? rope.theta_before : rope.theta;
  return theta > 0 ? theta : 10000;
}

double part_by_default(std::string_view family) {
  const Family* found = find_family(family);
  return found ? found->slice.partial : 1;
}

}  // namespace posenc::detail
