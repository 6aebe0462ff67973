#include "evidence/lab/model/shift.h"

#include <algorithm>
#include <cmath>

#include "src/core/try.h"

namespace posenc::lab {

Expected<std::vector<ShiftedLoss>> shifted_losses(const Llama& model,
                                                  std::span<const std::int32_t> tokens,
                                                  std::span<const Angles> angles,
                                                  std::span<const std::int64_t> first) {
  const auto at = [&](Angles formed, std::int64_t position) {
    return losses(
        model, tokens,
        [formed](const LayerGroup& group, std::int64_t length) {
          return compile(group, length, formed);
        },
        position);
  };
  POSENC_TRY(reference, at(Angles::exact, 0));
  std::vector<ShiftedLoss> made;
  for (const Angles formed : angles) {
    for (const std::int64_t position : first) {
      POSENC_TRY(moved, at(formed, position));
      ShiftedLoss row{.angles = formed, .first = position};
      for (std::size_t i = 0; i < moved.size(); ++i) {
        const double difference = static_cast<double>(moved[i]) - reference[i];
        row.mean += difference;
        row.rms += difference * difference;
        row.most = std::max(row.most, std::abs(difference));
      }
      const auto count = static_cast<double>(moved.size());
      row.mean /= count;
      row.rms = std::sqrt(row.rms / count);
      made.push_back(row);
    }
  }
  return made;
}

}  // namespace posenc::lab
