// Layouts as stretches of tokens, so that any of them takes memory by its pieces and not by its
// tokens; and pairs of queries and keys, counted.
#include "posenc/layout.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "src/attention/visible.h"
#include "src/core/try.h"

namespace posenc {
namespace {

constexpr std::string_view layout_where = "layout";
constexpr std::int64_t most_ranks = std::int64_t{1} << 20;

Expected<void> check_sizes(std::int64_t tokens, std::int64_t ranks) {
  if (ranks < 1 || ranks > most_ranks)
    return fail(layout_where, "ranks must be 1 to 2^20", std::to_string(ranks));
  if (tokens < 0 || tokens > furthest_position)
    return fail(layout_where, "tokens must be 0 to 2^62", std::to_string(tokens));
  return {};
}

// Where chunk `chunk` of `chunks` begins, without a product that overflows.
std::int64_t chunk_start(std::int64_t tokens, std::int64_t chunks, std::int64_t chunk) {
  return tokens / chunks * chunk + tokens % chunks * chunk / chunks;
}

// How many of the keys at positions [0, length) a query at `query` sees.
std::int64_t keys_seen(const Mask& mask, std::int64_t query, std::int64_t length) {
  std::int64_t first = 0, last = length;
  if (mask.causal) last = std::min(last, query + 1);
  if (mask.window > 0) {
    if (query >= mask.window) first = query - mask.window + 1;
    if (mask.window < last - query) last = query + mask.window;
  }
  if (mask.chunk > 0) {
    const std::int64_t start = query / mask.chunk * mask.chunk;
    first = std::max(first, start);
    if (mask.chunk < last - start) last = start + mask.chunk;
  }
  const std::int64_t prefix = std::clamp<std::int64_t>(mask.prefix, 0, length);
  return prefix + std::max<std::int64_t>(last - std::max(first, prefix), 0);
}

// The ends of texts whose positions count 0, 1, 2, ... from where each begins; none where they do
// not. `documents` has the first token of each, and the number of all at the end.
bool count_from_zero(const Positions& whole, std::vector<std::int64_t>& documents) {
  if (whole.axes() != 1 || whole.batch() != 1) return false;
  if (whole.contiguous()) {
    documents = {0, whole.size()};
    return whole.size() == 0 || whole.at(0) == 0;
  }
  for (std::int64_t t = 0; t < whole.size(); ++t) {
    if (t == 0 || whole.segment(t) != whole.segment(t - 1)) documents.push_back(t);
    if (whole.at(t) != t - documents.back()) return false;
  }
  documents.push_back(whole.size());
  return true;
}

}  // namespace

void Layout::Share::add(std::int64_t first, std::int64_t last) {
  if (first >= last) return;
  size += last - first;
  if (!stretches.empty()) {  // one that goes on
    Stretch& before = stretches.back();
    if (before.run == before.count && before.first + before.count == first) {
      before.count = before.run = before.step = last - before.first;
      return;
    }
  }
  stretches.push_back({first, last - first, last - first, last - first});
}

void Layout::Share::sort() {
  std::vector<Stretch> sorted;
  std::swap(sorted, stretches);
  std::ranges::sort(sorted, {}, &Stretch::first);
  size = 0;
  for (const Stretch& each : sorted) add(each.first, each.first + each.count);
}

void Layout::deal_zigzag(std::int64_t first, std::int64_t last) {
  const std::int64_t chunks = 2 * ranks();
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    shares_[static_cast<std::size_t>(std::min(chunk, chunks - 1 - chunk))].add(
        first + chunk_start(last - first, chunks, chunk),
        first + chunk_start(last - first, chunks, chunk + 1));
}

Expected<Layout> Layout::contiguous(std::int64_t tokens, std::int64_t ranks) {
  POSENC_CHECK(check_sizes(tokens, ranks));
  Layout layout;
  layout.tokens_ = tokens;
  layout.shares_.resize(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    layout.shares_[static_cast<std::size_t>(rank)].add(chunk_start(tokens, ranks, rank),
                                                       chunk_start(tokens, ranks, rank + 1));
  return layout;
}

Expected<Layout> Layout::zigzag(std::int64_t tokens, std::int64_t ranks) {
  POSENC_CHECK(check_sizes(tokens, ranks));
  Layout layout;
  layout.tokens_ = tokens;
  layout.shares_.resize(static_cast<std::size_t>(ranks));
  layout.deal_zigzag(0, tokens);
  return layout;
}

Expected<Layout> Layout::striped(std::int64_t tokens, std::int64_t ranks, std::int64_t block) {
  POSENC_CHECK(check_sizes(tokens, ranks));
  if (block < 1)
    return fail(layout_where, "a block must have 1 token or more", std::to_string(block));
  block = std::min(block, std::max<std::int64_t>(tokens, 1));
  Layout layout;
  layout.tokens_ = tokens;
  layout.shares_.resize(static_cast<std::size_t>(ranks));
  const std::int64_t blocks = tokens / block, rest = tokens % block;
  for (std::int64_t rank = 0; rank < std::min(ranks, blocks + (rest > 0)); ++rank) {
    const std::int64_t whole = blocks / ranks + (rank < blocks % ranks);
    const std::int64_t count = whole * block + (rank == blocks % ranks ? rest : 0);
    const std::int64_t step = block > tokens / ranks ? tokens : block * ranks;
    layout.shares_[static_cast<std::size_t>(rank)] = {count, {{rank * block, count, block, step}}};
  }
  return layout;
}

Expected<Layout> Layout::by_document(std::span<const std::int64_t> cu_seqlens, std::int64_t ranks,
                                     const Mask& mask) {
  POSENC_CHECK(Positions::packed(cu_seqlens));
  POSENC_CHECK(check_sizes(cu_seqlens.back(), ranks));
  Layout layout;
  layout.tokens_ = cu_seqlens.back();
  layout.shares_.resize(static_cast<std::size_t>(ranks));
  struct Document {
    std::int64_t first, last, pairs;
  };
  std::vector<Document> rest;
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(ranks));
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    const std::int64_t first = cu_seqlens[d], last = cu_seqlens[d + 1], length = last - first;
    std::int64_t own = 0;
    if (length < 2 * ranks) {
      for (std::int64_t p = 0; p < length; ++p) own += keys_seen(mask, p, length);
      rest.push_back({first, last, own});
      continue;
    }
    layout.deal_zigzag(first, last);
    const std::int64_t chunks = 2 * ranks;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      std::int64_t& of_rank = pairs[static_cast<std::size_t>(std::min(chunk, chunks - 1 - chunk))];
      for (std::int64_t p = chunk_start(length, chunks, chunk);
           p < chunk_start(length, chunks, chunk + 1); ++p)
        of_rank += keys_seen(mask, p, length);
    }
  }
  // The longest first, each to whom has the least to do.
  std::ranges::stable_sort(rest, std::greater(), &Document::pairs);
  for (const Document& document : rest) {
    const auto least = std::ranges::min_element(pairs);
    *least += document.pairs;
    layout.shares_[static_cast<std::size_t>(least - pairs.begin())].add(document.first,
                                                                        document.last);
  }
  for (Share& share : layout.shares_) share.sort();
  return layout;
}

Expected<Layout> Layout::balanced(std::span<const std::int64_t> cu_seqlens, std::int64_t ranks,
                                  const Mask& mask, std::int64_t block) {
  POSENC_CHECK(Positions::packed(cu_seqlens));
  const std::int64_t tokens = cu_seqlens.back();
  POSENC_CHECK(check_sizes(tokens, ranks));
  if (block < 0)
    return fail(layout_where, "a block must have 0 tokens or more", std::to_string(block));
  constexpr std::int64_t usual = 128, enough = 16;
  if (block == 0)
    for (block = usual; block > 1 && block * ranks * enough > tokens;) block /= 2;
  struct Block {
    std::int64_t first, last, pairs;
  };
  std::vector<Block> blocks;
  std::size_t document = 0;
  for (std::int64_t first = 0; first < tokens;) {
    const std::int64_t last = block < tokens - first ? first + block : tokens;
    std::int64_t pairs = 0;
    for (std::int64_t t = first; t < last; ++t) {
      while (cu_seqlens[document + 1] <= t) ++document;
      const std::int64_t start = cu_seqlens[document];
      pairs += keys_seen(mask, t - start, cu_seqlens[document + 1] - start);
    }
    blocks.push_back({first, last, pairs});
    first = last;
  }
  std::ranges::stable_sort(blocks, std::greater(), &Block::pairs);
  Layout layout;
  layout.tokens_ = tokens;
  layout.shares_.resize(static_cast<std::size_t>(ranks));
  // In rounds of a block for each rank: the one with the least to do takes the largest.
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> turn(pairs.size());
  for (std::size_t next = 0; next < blocks.size();) {
    std::iota(turn.begin(), turn.end(), std::size_t{0});
    std::ranges::stable_sort(turn, {}, [&](std::size_t rank) { return pairs[rank]; });
    for (const std::size_t rank : turn) {
      if (next == blocks.size()) break;
      const Block& one = blocks[next++];
      pairs[rank] += one.pairs;
      layout.shares_[rank].stretches.push_back(
          {one.first, one.last - one.first, one.last - one.first, one.last - one.first});
    }
  }
  for (Share& share : layout.shares_) share.sort();
  return layout;
}

Expected<Layout> Layout::ranges(std::span<const std::vector<Range>> of_ranks) {
  Layout layout;
  std::vector<Range> all;
  for (const std::vector<Range>& ranges : of_ranks) {
    Share& share = layout.shares_.emplace_back();
    for (const Range& range : ranges) {
      if (range.first > range.last)
        return fail(layout_where, "a range must end where it begins or later",
                    std::to_string(range.first) + ":" + std::to_string(range.last));
      share.add(range.first, range.last);
      if (range.first < range.last) all.push_back(range);
    }
  }
  std::ranges::sort(all, {}, &Range::first);
  for (const Range& range : all) {
    if (range.first != layout.tokens_)
      return fail(layout_where, "every token from 0 on must be of one rank",
                  std::string(range.first < layout.tokens_ ? "two have " : "nobody has ") +
                      std::to_string(std::min(range.first, layout.tokens_)),
                  "let each range begin where another ends");
    layout.tokens_ = range.last;
  }
  POSENC_CHECK(check_sizes(layout.tokens_, layout.ranks()));
  return layout;
}

Expected<Layout> Layout::for_mask(const Mask& mask, std::span<const std::int64_t> cu_seqlens,
                                  std::int64_t ranks) {
  POSENC_CHECK(Positions::packed(cu_seqlens));
  POSENC_CHECK(check_sizes(cu_seqlens.back(), ranks));
  const std::int64_t tokens = cu_seqlens.back();
  if (cu_seqlens.size() > 2) return by_document(cu_seqlens, ranks, mask);
  const auto short_enough = [&](std::int64_t reach) {
    return reach > 0 && reach <= tokens / ranks;
  };
  const bool near = short_enough(mask.window) || short_enough(mask.chunk);
  return near || !mask.causal ? contiguous(tokens, ranks) : zigzag(tokens, ranks);
}

std::span<const std::string_view> Layout::names() {
  static constexpr std::string_view all[] = {"contiguous",  "zigzag",   "striped",
                                             "by-document", "balanced", "auto"};
  return all;
}

Expected<Layout> Layout::named(std::string_view name, std::span<const std::int64_t> cu_seqlens,
                               std::int64_t ranks, const Mask& mask, std::int64_t block) {
  POSENC_CHECK(Positions::packed(cu_seqlens));
  const std::int64_t tokens = cu_seqlens.back();
  if (name == "contiguous") return contiguous(tokens, ranks);
  if (name == "zigzag") return zigzag(tokens, ranks);
  if (name == "striped") return striped(tokens, ranks, block);
  if (name == "by-document") return by_document(cu_seqlens, ranks, mask);
  if (name == "balanced") return balanced(cu_seqlens, ranks, mask, block > 1 ? block : 0);
  if (name == "auto") return for_mask(mask, cu_seqlens, ranks);
  return fail(layout_where, "there must be a layout of that name", name, suggestion(name, names()));
}

std::int64_t Layout::token(std::int64_t rank, std::int64_t index) const {
  for (const Stretch& stretch : share(rank).stretches) {
    if (index < stretch.count) return stretch.at(index);
    index -= stretch.count;
  }
  return tokens_;
}

std::vector<std::int64_t> Layout::tokens_of(std::int64_t rank) const {
  std::vector<std::int64_t> all;
  all.reserve(static_cast<std::size_t>(size(rank)));
  for (const Stretch& stretch : share(rank).stretches)
    for (std::int64_t index = 0; index < stretch.count; ++index) all.push_back(stretch.at(index));
  return all;
}

namespace {

// Tokens of a stretch before `end`.
std::int64_t before(const Layout::Stretch& stretch, std::int64_t end) {
  if (end <= stretch.first || stretch.count == 0) return 0;
  const std::int64_t past = end - stretch.first;
  if (stretch.run >= stretch.count) return std::min(past, stretch.count);
  return std::min(past / stretch.step * stretch.run + std::min(past % stretch.step, stretch.run),
                  stretch.count);
}

}  // namespace

std::int64_t Layout::held_before(std::int64_t rank, std::int64_t end) const {
  std::int64_t held = 0;
  for (const Stretch& stretch : share(rank).stretches) held += before(stretch, end);
  return held;
}

Expected<Layout::Place> Layout::place(std::int64_t token) const {
  for (std::int64_t rank = 0; rank < ranks(); ++rank) {
    std::int64_t index = 0;
    for (const Stretch& stretch : share(rank).stretches) {
      if (const std::int64_t held = before(stretch, token); before(stretch, token + 1) > held)
        return Place{rank, index + held};
      index += stretch.count;
    }
  }
  return fail(layout_where, "a token must be one of the " + std::to_string(tokens_),
              std::to_string(token));
}

Expected<Positions> Layout::positions(std::int64_t rank, const Positions& whole) const {
  if (whole.size() == tokens_) return whole.select(tokens_of(rank));
  return fail(layout_where, "positions must be of all " + std::to_string(tokens_) + " tokens",
              std::to_string(whole.size()), "give those of the whole text, not a rank's");
}

Expected<std::vector<std::int64_t>> pairs_per_rank(const Layout& layout, const Mask& mask,
                                                   const Positions& whole) {
  POSENC_CHECK(detail::refuse_keys("pairs_per_rank", mask, "the mask must show keys by position",
                                   "what an indexer picks is known to the model alone"));
  std::vector<std::int64_t> pairs, documents;
  const bool counted =
      mask.keep == nullptr && mask.blocks == nullptr && count_from_zero(whole, documents);
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
    POSENC_TRY(own, layout.positions(rank, whole));
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < own.size(); ++i) {
      const std::int64_t token = layout.token(rank, i);
      if (counted) {
        const auto end = std::ranges::upper_bound(documents, token);
        sum += keys_seen(mask, token - end[-1], *end - end[-1]);
        continue;
      }
      for (std::int64_t b = 0; b < whole.batch(); ++b)
        for (std::int64_t j = 0; j < whole.size(); ++j)
          sum += detail::visible(mask, whole, whole, b, token, j);
    }
    pairs.push_back(sum);
  }
  return pairs;
}

double balance(std::span<const std::int64_t> pairs) {
  const std::int64_t most = pairs.empty() ? 0 : std::ranges::max(pairs);
  if (most == 0) return 1;
  const double sum = std::accumulate(pairs.begin(), pairs.end(), 0.0);
  return sum / static_cast<double>(pairs.size()) / static_cast<double>(most);
}

}  // namespace posenc
