// Learned absolute vectors (1705.03122; BERT, GPT-2): x[p] + E[p + row_offset], E is [rows][width].
//
// A position without a row is an error here and never a wrapped or clamped index; `valid` says how
// far the table reaches. OPT and RoBERTa read row p + 2: their tables are two rows longer than the
// longest text (2050 and 514), and a reader that takes `rows` for the length is off by two.
//
// Of several axes a token reads a row of each, and their sum is added: Pix2Struct's and
// Kosmos-2.5's rows and columns, Gemma 4's tower (its table is [2][rows][width], which lies as
// [2·rows][width] here). The longest axis says how far `valid` reaches; what each has is checked
// where it is read.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Learned::compiled(const Geometry& geometry) const {
  if (auto ok = detail::known("learned", {{"width", geometry.width}, {"rows", rows}}); !ok) {
    return std::unexpected(ok.error());
  }
  if (row_offset < 0 || row_offset >= rows) {
    return fail("learned",
                "row_offset must lie within 0 and rows − 1 = " + std::to_string(rows - 1),
                std::to_string(row_offset), "use the model's padding_idx + 1, or 0");
  }
  std::int64_t longest = axis_rows.empty() ? rows : 0, in_all = longest;
  for (const std::int64_t count : axis_rows) {
    if (count < 1 || count > rows - in_all)
      return fail("learned: axis_rows", "must be rows of each axis, rows in all",
                  std::to_string(count) + " beside rows " + std::to_string(rows),
                  "give their sum as rows");
    in_all += count;
    longest = std::max(longest, count);
  }
  if (in_all != rows)
    return fail("learned: axis_rows", "must be rows in all, " + std::to_string(rows),
                std::to_string(in_all), "give their sum as rows");
  const std::int64_t reach = longest - row_offset;
  if (reach < 1)
    return fail("learned", "an axis must have more rows than row_offset",
                std::to_string(longest) + " rows", "use the model's padding_idx + 1, or 0");
  if (geometry.length > reach) {
    return fail("learned", "length must be at most rows − row_offset = " + std::to_string(reach),
                std::to_string(geometry.length), "shorten the text or extend the table");
  }
  if (auto ok = detail::shaped("learned: table", table, {rows, geometry.width}); !ok) {
    return std::unexpected(ok.error());
  }
  Plan plan;
  plan.add = Add{
      .kind = Rows{.rows = rows,
                   .width = geometry.width,
                   .row_offset = row_offset,
                   .table = table,
                   .axis_rows = axis_rows},
      .embedding_scale = scale_embedding ? std::sqrt(static_cast<double>(geometry.width)) : 1.0};
  plan.valid = Lengths{.to = reach};
  return plan;
}

}  // namespace posenc
