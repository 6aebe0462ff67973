// Dumps and tables of any numbers: an answer, whose pairs are channels of the dump, or a refusal.
// The first bytes choose sizes and kind; those that follow are the numbers, of 16 bits, again and
// again.
#include <vector>

#include "posenc/identify.h"
#include "tests/fuzz/check.h"

namespace {

using namespace posenc;

void check(const Identified& found, std::int64_t dim) {
  for (const IdentifiedPair& pair : found.pairs)
    fuzz::must(pair.a >= 0 && pair.a < pair.b && pair.b < dim, "a pair is two channels");
  fuzz::must(found.residual >= 0 && found.residual <= 1, "a residual is a share");
  for (const std::string& sentence : found.cannot_tell) fuzz::check_text(sentence);
  for (const Finding& finding : found.findings) fuzz::check_text(finding.message);
  fuzz::check_json(to_json(found));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  const std::int64_t heads = 1 + data[0] % 3, tokens = 2 + data[1] % 24, dim = 2 + data[2] % 31;
  const std::int64_t axes = 1 + data[3] % 3;
  std::size_t at = 4;
  const auto byte = [&] { return data[4 + at++ % (size - 4)]; };
  const auto numbers = [&](std::int64_t count) {
    std::vector<double> list;
    for (std::int64_t i = 0; i < count; ++i) {
      const unsigned low = byte(), high = byte();
      list.push_back(half_to_float(static_cast<std::uint16_t>(low | high << 8)));
    }
    return list;
  };
  std::vector<double> after = numbers(heads * tokens * dim), before = numbers(heads * tokens * dim);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < axes * tokens; ++i)
    ids.push_back(data[3] < 128 ? i % tokens : static_cast<std::int64_t>(byte()) - 100);
  const auto positions = Positions::signed_ids(ids, axes);
  fuzz::must(positions.has_value(), "small ids are positions");
  RotationDump dump{.after = Tensor::dense(after.data(), {heads, tokens, dim}),
                    .positions = *positions,
                    .repeated = data[0] >= 128};
  if (!dump.repeated) dump.before = Tensor::dense(before.data(), {heads, tokens, dim});
  if (const auto found = identify(dump))
    check(*found, dim);
  else
    fuzz::check_error(found.error());
  const Tensor a = Tensor::dense(after.data(), {heads * tokens, dim}),
               b = Tensor::dense(before.data(), {heads * tokens, dim});
  if (const auto found = identify_table(a, b))
    check(found->rotation, 2 * dim);
  else
    fuzz::check_error(found.error());
  if (const auto found = identify_vectors(a))
    fuzz::check_json(to_json(*found));
  else
    fuzz::check_error(found.error());
  return 0;
}
