// Keys in pages, from one rotation and place to another (posenc/rekey.h).
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/cache/rekey_parts.h"
#include "src/core/try.h"
#include "src/kernels/threads.h"

namespace posenc {
namespace {

constexpr std::int64_t most_pages_at_once = 64;  // so that threads have something to share

}  // namespace

namespace detail {

Expected<std::vector<PageRun>> page_runs(std::int64_t pool_pages, std::int64_t page_size,
                                         std::span<const std::int32_t> table,
                                         std::span<const std::int64_t> tokens) {
  const auto sequences = static_cast<std::int64_t>(tokens.size());
  const std::int64_t columns =
      sequences == 0 ? 0 : static_cast<std::int64_t>(table.size()) / sequences;
  std::vector<std::uint8_t> taken(static_cast<std::size_t>(pool_pages));
  std::vector<PageRun> runs;
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t count = tokens[static_cast<std::size_t>(s)];
    if (count < 0 || (count + page_size - 1) / page_size > columns)
      return fail("rekey", "a sequence's tokens must fit its pages of the table",
                  std::to_string(count) + " tokens, " + std::to_string(columns) + " pages of " +
                      std::to_string(page_size),
                  "give the table a column for each page");
    for (std::int64_t first = 0; first < count; first += page_size) {
      const std::int64_t page = table[static_cast<std::size_t>(s * columns + first / page_size)];
      if (page < 0 || page >= pool_pages)
        return fail("rekey", "the pool must have the pages of the table", std::to_string(page),
                    "it has " + std::to_string(pool_pages));
      if (taken[static_cast<std::size_t>(page)]++ > 0)
        return fail("rekey", "a page must be of one sequence", std::to_string(page) + " twice",
                    "its tokens would move twice: copy it, or move it once");
      const std::int64_t here = std::min(page_size, count - first);
      PageRun* const last = runs.empty() ? nullptr : &runs.back();
      if (last && last->sequence == s && last->page + last->pages == page && last->tokens == here &&
          last->pages < most_pages_at_once)
        ++last->pages;
      else
        runs.push_back({s, page, 1, first, here});
    }
  }
  return runs;
}

}  // namespace detail

namespace {

using detail::PageRun;

// A row for each page of a run.
Expected<Positions> rows_of(const Positions& at, const PageRun& run, std::int64_t page_size) {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(at.axes() * run.pages * run.tokens));
  for (std::int64_t axis = 0; axis < at.axes(); ++axis)
    for (std::int64_t page = 0; page < run.pages; ++page)
      for (std::int64_t t = 0; t < run.tokens; ++t)
        ids.push_back(at.at(run.first + page * page_size + t, run.sequence, axis));
  return Positions::signed_ids(ids, at.axes(), run.pages);
}

}  // namespace

Expected<void> rekey(const Stand& from, const Stand& to, const KeyPages& pages, Side side,
                     Threads threads) {
  POSENC_CHECK(detail::check_stands(from, to, side));
  const auto sequences = static_cast<std::int64_t>(pages.tokens.size());
  if (pages.keys.rank != 4 || pages.keys.shape[2] < 1)
    return fail("rekey", "pages must be [page, kv_head, token of the page, head_dim]",
                shape_text(pages.keys), "swap the axes of NHD pages");
  POSENC_TRY(
      runs, detail::page_runs(pages.keys.shape[0], pages.keys.shape[2], pages.table, pages.tokens));
  const std::int64_t longest = pages.tokens.empty() ? 0 : *std::ranges::max_element(pages.tokens);
  POSENC_CHECK(detail::check_positions(from, to, sequences, longest));
  const auto move = [&](const PageRun& run) -> Expected<void> {
    Tensor keys = pages.keys;
    keys.data = static_cast<std::byte*>(keys.data) +
                run.page * keys.stride[0] * static_cast<std::int64_t>(size_of(keys.dtype));
    keys.shape[0] = run.pages;
    keys.shape[2] = run.tokens;
    POSENC_TRY(old_rows, rows_of(from.at, run, pages.keys.shape[2]));
    POSENC_TRY(new_rows, rows_of(to.at, run, pages.keys.shape[2]));
    return detail::move_keys({from.plan, old_rows}, {to.plan, new_rows}, keys, keys, side, {1});
  };
  if (runs.empty()) return {};
  POSENC_CHECK(move(runs[0]));  // what is wrong with the tensor is wrong here
  std::vector<Expected<void>> done(runs.size());
  std::int64_t tokens = 0;
  for (const std::int64_t each : pages.tokens) tokens += each;
  const std::int64_t bytes = tokens * pages.keys.shape[1] * pages.keys.shape[3] *
                             static_cast<std::int64_t>(size_of(pages.keys.dtype));
  detail::share_out(static_cast<std::int64_t>(runs.size()) - 1,
                    detail::thread_count(threads, 2 * bytes),
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t i = first + 1; i <= last; ++i)
                        done[static_cast<std::size_t>(i)] = move(runs[static_cast<std::size_t>(i)]);
                    });
  for (const Expected<void>& each : done) POSENC_CHECK(each);
  return {};
}

}  // namespace posenc
