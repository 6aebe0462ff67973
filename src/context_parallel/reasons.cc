// Each kind of layer against who holds what. A rank computes from its own tokens and from keys and
// values, or heads, that others hand it: what a layer reads besides decides.
#include "src/context_parallel/reasons.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "src/context_parallel/sharding.h"
#include "src/explain/text.h"

namespace posenc::layout::detail {
namespace {

using posenc::detail::grouped;

std::string tokens(std::int64_t count) {
  return grouped(count) + (count == 1 ? " token" : " tokens");
}

std::string order_words(const Sharding& sharding) {
  switch (sharding.order) {
    case Order::contiguous: return "one run of tokens";
    case Order::zigzag: return "two runs, from both halves of the text";
    case Order::round_robin:
      return "one block of " + tokens(sharding.block) + " in " + std::to_string(sharding.ranks);
    case Order::balanced: break;
  }
  return "blocks from all over the text";
}

Reason reason(std::string_view code, Verdict verdict, Basis basis, std::string why,
              std::string cure, std::string source = {}) {
  return {std::string(code), verdict, basis, std::move(why), std::move(cure), std::move(source)};
}

// The largest number up to `ranks` that divides both it and the heads.
std::int64_t most_head_ranks(std::int64_t heads, std::int64_t ranks) {
  for (std::int64_t n = std::min(heads, ranks); n > 1; --n)
    if (heads % n == 0 && ranks % n == 0) return n;
  return 1;
}

// --- heads that are dealt out --------------------------------------------------------------------

void by_heads(const Case& one, std::vector<Reason>& out) {
  const Geometry& sizes = one.group.geometry;
  const std::int64_t among = one.sharding.head_ranks, heads = sizes.heads, keys = sizes.kv_heads;
  if (among == 1 || one.sharding.exchange == Exchange::cache || heads == 0) return;
  if (heads % among != 0) {
    const std::int64_t fits = most_head_ranks(heads, one.sharding.ranks);
    out.push_back(reason("heads", Verdict::breaks, Basis::layout,
                         std::to_string(heads) + " query heads cannot be dealt out among " +
                             std::to_string(among) + " ranks in equal parts",
                         fits > 1 ? "ring+heads:" + std::to_string(one.sharding.ranks) +
                                        ":heads=" + std::to_string(fits) + ", or a ring (zigzag:" +
                                        std::to_string(one.sharding.ranks) + ")"
                                  : "zigzag:" + std::to_string(one.sharding.ranks)));
    return;
  }
  if (keys > 0 && keys % among != 0 && among % keys != 0)
    out.push_back(
        reason("key_heads", Verdict::breaks, Basis::engine,
               std::to_string(keys) + " key heads neither divide into " + std::to_string(among) +
                   " ranks nor repeat evenly on them: a rank's query heads read parts of two",
               "ring+heads:" + std::to_string(one.sharding.ranks) +
                   ":heads=" + std::to_string(most_head_ranks(keys, one.sharding.ranks))));
}

// --- layers without keys -------------------------------------------------------------------------

void by_state(const Case& one, std::vector<Reason>& out) {
  const bool recurrence = one.group.mixer == Mixer::recurrence;
  const std::string what = recurrence ? "a state that each token hands to the next"
                                      : "a convolution over the tokens just before";
  if (one.sharding.exchange == Exchange::cache) {
    out.push_back(reason("states", Verdict::unknown, Basis::engine,
                         "its cache is " + what +
                             ", which cannot be shared out by position: every rank must keep it "
                             "whole, and address it by positions of the text",
                         "a version of the engine that leaves such layers out of the sharing",
                         "vllm#57260"));
    return;
  }
  if (one.by_heads_alone()) {
    out.push_back(reason(
        "states", Verdict::unknown, Basis::engine,
        "it carries " + what +
            ": an exchange around attention does not touch it, and each rank would begin anew",
        "an engine that exchanges heads inside these layers too (Megatron-LM does)",
        "accelerate#4177"));
    return;
  }
  if (one.sharding.order == Order::round_robin || one.sharding.order == Order::balanced) {
    out.push_back(reason("states", Verdict::breaks, Basis::layout,
                         "it carries " + what +
                             ", and a rank's next token is not the text's: it holds " +
                             order_words(one.sharding),
                         "contiguous:" + std::to_string(one.sharding.ranks) +
                             ", with an engine that hands states on"));
    return;
  }
  const bool zigzag = one.sharding.order == Order::zigzag;
  out.push_back(reason(
      "states", Verdict::unknown, Basis::engine,
      "it carries " + what +
          (zigzag ? ": from chunk to chunk in the order of the text, up the ranks "
                    "and down again, and not from rank to rank"
                  : ": the engine must hand it from rank to rank; where each "
                    "begins anew, all ranks but the first are wrong"),
      zigzag
          ? "an engine that puts the tokens in order inside these layers (Megatron-LM), or chains "
            "chunks (fla since its layout='zigzag'); else contiguous"
          : "an engine that does (fla's context parallelism, Megatron-LM's linear_cp_mode "
            "chunkwise)",
      zigzag ? "Megatron-LM#5664, fla#1221" : "accelerate#4177"));
}

// --- keys that are made of several tokens --------------------------------------------------------

void by_compression(const Case& one, std::vector<Reason>& out) {
  const std::int64_t m = one.group.compressed;
  const std::string stands = "a key behind the window is made of " + tokens(m) + " in a row";
  const std::string ranks = std::to_string(one.sharding.ranks);
  if (one.sharding.exchange == Exchange::cache || one.by_heads_alone()) {
    out.push_back(
        reason("compressed_keys", Verdict::unknown, Basis::engine,
               stands + ", before " +
                   (one.by_heads_alone() ? "heads are exchanged" : "it is put into a cache") +
                   ": the engine must hand its compressor the whole text",
               "contiguous:" + ranks, one.by_heads_alone() ? "VeOmni#949" : ""));
    return;
  }
  switch (one.sharding.order) {
    case Order::contiguous: return;
    case Order::zigzag:
      out.push_back(reason(
          "compressed_keys", Verdict::breaks, Basis::layout,
          stands +
              " and numbered from the first of the text; a rank holds two runs (chunks r and " +
              std::to_string(2 * one.ring() - 1) +
              " − r), so that keys are made across their seam, and those of the second are "
              "numbered "
              "as if they followed the first: wrong without an error",
          "contiguous:" + ranks +
              " (cp_partition_mode contiguous); a ring that hands on the tail of "
              "both chunks would survive",
          "verl#7221"));
      return;
    default:
      out.push_back(
          reason("compressed_keys", Verdict::breaks, Basis::layout,
                 stands + ", and a rank holds " + order_words(one.sharding) +
                     (one.sharding.block % m == 0
                          ? ": each of its blocks begins without the tokens before it"
                          : ": no rank has the tokens of one"),
                 "contiguous:" + ranks +
                     ", or an engine that gathers the layer's input before it compresses"));
  }
}

void by_picking(const Case& one, std::vector<Reason>& out) {
  const std::string picks = "an indexer ranks all keys of the text and picks " +
                            posenc::detail::picked_text(*one.group.picked);
  if (one.sharding.exchange == Exchange::ring) {
    out.push_back(reason("indexer", Verdict::breaks, Basis::layout,
                         picks + ": a ring shows a query one block of keys at a time, and what is "
                                 "best within a block need not be best of all",
                         "by=gather: keys, and the indexer's own, of all ranks first"));
    return;
  }
  if (one.sharding.exchange == Exchange::heads ||
      one.sharding.exchange == Exchange::ring_and_heads) {
    out.push_back(reason("indexer", Verdict::unknown, Basis::engine,
                         picks + " by a sum over all of its own heads: dealt out like the others, "
                                 "each rank would pick other keys",
                         "an engine that keeps the indexer whole on every rank"));
    return;
  }
  if (one.sharding.exchange == Exchange::cache) {
    out.push_back(
        reason("indexer", Verdict::unknown, Basis::engine,
               picks + ": from the whole cache, not from each rank's part",
               "an engine that keeps the indexer's cache whole, or merges what ranks pick "
               "before it attends",
               "sglang#31821"));
    return;
  }
  if (one.sharding.order == Order::contiguous) return;
  out.push_back(reason(
      "indexer", Verdict::unknown, Basis::engine,
      picks + ", by ids of the text, and rotates by them: keys that are gathered from " +
          std::string(name(one.sharding.order)) +
          " ranks stand in another order, and a backend that counts positions itself takes local "
          "ones",
      "put gathered keys in the order of the text before the indexer, and hand each rank's ids to "
      "whatever rotates; or contiguous:" +
          std::to_string(one.sharding.ranks) + ":by=gather",
      "sglang#28463"));
}

void by_length(const Case& one, std::vector<Reason>& out) {
  const std::int64_t pieces = one.sharding.order == Order::zigzag ? 2 * one.ring() : one.ring();
  if (one.sharding.exchange == Exchange::cache || one.length >= pieces) return;
  out.push_back(reason("short_text", Verdict::unknown, Basis::engine,
                       tokens(one.length) + " do not fill " + std::to_string(pieces) +
                           " pieces: some ranks have none, at which balancers fail",
                       "fewer ranks, or pad to " + grouped(pieces), "pytorch#183968"));
}

// "0–8,191 and 122,880–131,071": positions of a rank's tokens, the first runs of them.
std::string ids_of_rank(const Case& one, std::int64_t rank) {
  const auto whole = layout_of(one.sharding, one.length, {});
  if (!whole || rank >= whole->ranks()) return "";
  std::string out;
  int shown = 0;
  for (const Layout::Stretch& stretch : whole->stretches(rank)) {
    const std::int64_t runs =
        stretch.count == 0 ? 0 : (stretch.count + stretch.run - 1) / stretch.run;
    for (std::int64_t r = 0; r < runs; ++r) {
      if (++shown > 2) return out + ", …";
      const std::int64_t first = stretch.first + r * stretch.step,
                         last = first + std::min(stretch.run, stretch.count - r * stretch.run) - 1;
      out += (out.empty() ? "" : ", ") + grouped(first);
      if (last > first) out += "–" + grouped(last);
    }
  }
  return out;
}

bool reads_ids(const Case& one) {
  return one.plan.rotate || one.plan.add || one.plan.logits.has_temperature();
}

void need_ids(const Case& one, std::vector<std::string>& out) {
  if (!reads_ids(one)) return;
  const std::int64_t ranks = one.ring();
  if (one.sharding.exchange == Exchange::cache) {
    out.push_back(
        "positions of the text for queries and keys; the token at position p is on rank ⌊p / " +
        std::to_string(one.sharding.block) + "⌋ mod " + std::to_string(ranks) +
        " whenever it is appended, read, shifted or dropped");
    return;
  }
  if (ranks == 1) {
    out.push_back(
        "ids of the whole text where heads are exchanged first; where a rank rotates its own " +
        tokens(one.share()) + " before, rank 1's begin at " + grouped(one.share()));
    return;
  }
  const std::string ids = ids_of_rank(one, 1);
  if (!ids.empty()) out.push_back("position ids of the whole text: those of rank 1 are " + ids);
}

// Whether a plan compiled for a rank's part rotates otherwise.
void need_length(const Case& one, std::vector<std::string>& out) {
  const std::string scaling = posenc::detail::scaling_by_length(one.group);
  if (scaling.empty()) return;
  const std::int64_t part = std::max<std::int64_t>(one.share(), 1);
  const auto local = compile(one.group, part);
  const bool same = local && local->rotate == one.plan.rotate;
  out.push_back(scaling + " computed for the whole text's " + tokens(one.length) +
                ", not for a rank's " + tokens(part) +
                (same ? " (between these two it happens not to change)"
                      : ", by which it would rotate differently"));
}

void need_mask(const Case& one, std::vector<std::string>& out) {
  if (!one.windowed()) return;
  const std::string size = tokens(*one.group.window);
  out.push_back(one.group.chunked
                    ? "chunks of " + size + " that begin at multiples of it in the whole text"
                    : "a window of " + size +
                          " measured between positions of the text, across ranks");
}

// Exchanges of keys alone ask these of who merges parts.
void need_parts(const Case& one, std::vector<std::string>& out) {
  const bool parts = !one.by_heads_alone() && one.sharding.ranks > 1;
  if (one.plan.bias)
    out.push_back("biases by the distance in the whole text" +
                  std::string(one.by_heads_alone() ? ", and each rank's heads their own" : ""));
  if (one.plan.relative)
    out.push_back("vectors by distance in the whole text: keys travel as they left the projection");
  if (one.group.sink_logits)
    out.push_back(parts ? "sink logits counted once for a query, not once for each block of keys"
                        : "each rank's sink logits those of its own heads");
  if (parts && one.is_attention())
    out.push_back("parts merged by the logarithms of their sums, and rounded once");
}

void need_axes(const Case& one, std::vector<std::string>& out) {
  if (!one.plan.rotate || one.plan.rotate->frequencies.axes < 2) return;
  const std::string axes = std::to_string(one.plan.rotate->frequencies.axes);
  out.push_back("ids [" + axes + "][batch][tokens] cut along the tokens, never along the " + axes);
}

void need_compressor(const Case& one, std::vector<std::string>& out) {
  const std::int64_t m = one.group.compressed;
  if (m == 0 || one.sharding.order != Order::contiguous) return;
  const std::int64_t over = one.share() % m;
  out.push_back(
      "the tokens before a rank's first from its neighbour, so that each " + tokens(m) +
      " in a row make one key, numbered from the first of the text" +
      (over != 0 ? "; a rank's " + tokens(one.share()) + " are no multiple of " + std::to_string(m)
                 : ""));
}

void need_indexer(const Case& one, std::vector<std::string>& out) {
  if (!one.group.picked || one.sharding.exchange == Exchange::ring) return;
  if (one.sharding.exchange == Exchange::keys || one.sharding.exchange == Exchange::gather)
    out.push_back(
        "the indexer's keys of all ranks before it picks, and ids that count from the first "
        "of the text");
}

void need_key_heads(const Case& one, std::vector<std::string>& out) {
  const std::int64_t keys = one.group.geometry.kv_heads, among = one.sharding.head_ranks;
  if (keys == 0 || among <= keys || among % keys != 0 || one.sharding.exchange == Exchange::cache)
    return;
  out.push_back("each of the " + std::to_string(keys) + " key heads on " +
                std::to_string(among / keys) + " ranks (repeated before the exchange)");
}

void need_padding(const Case& one, std::vector<std::string>& out) {
  if (one.sharding.exchange == Exchange::cache) return;
  const std::int64_t pieces = one.sharding.order == Order::zigzag ? 2 * one.ring() : one.ring();
  const std::int64_t even =
      pieces * one.sharding.head_ranks * std::max<std::int64_t>(one.sharding.block, 1);
  if (one.length % even == 0 || even > one.length) return;
  out.push_back("padding to a multiple of " + grouped(even) +
                " where the engine cuts equal parts, behind the "
                "last token and hidden by the mask");
}

// A window that is shorter than what a rank holds in a row: who holds neighbours sends the least.
void by_window(const Case& one, std::vector<Reason>& out) {
  if (!one.windowed() || one.sharding.order == Order::contiguous || one.ring() == 1 ||
      one.sharding.exchange == Exchange::cache)
    return;
  const std::int64_t window = *one.group.window;
  if (window > one.length / one.ring()) return;
  out.push_back(
      reason("window_below_share", Verdict::survives, Basis::layout,
             std::string(one.group.chunked ? "a chunk" : "a window") + " of " + tokens(window) +
                 " is no longer than a rank's " + tokens(one.length / one.ring()) + ": with " +
                 std::string(name(one.sharding.order)) + " it reaches " +
                 (one.sharding.order == Order::zigzag ? "two neighbours" : "all ranks") +
                 ", where contiguous parts ask one",
             "contiguous:" + std::to_string(one.sharding.ranks) + ", if all layers are such"));
}

}  // namespace

std::int64_t Case::run() const {
  switch (sharding.order) {
    case Order::contiguous: return length / ring();
    case Order::zigzag: return length / (2 * ring());
    default: return sharding.block;
  }
}

std::vector<Reason> reasons_of(const Case& one) {
  std::vector<Reason> out;
  if (one.sharding.ranks == 1 || one.group.mixer == Mixer::none) return out;
  if (one.group.mixer == Mixer::unsaid) {
    out.push_back(reason("mixer_unsaid", Verdict::unknown, Basis::layout,
                         "the file does not say what mixes tokens here: a state, or nothing",
                         "the model's own code tells"));
    return out;
  }
  if (!one.is_attention()) {
    by_state(one, out);
  } else {
    by_heads(one, out);
    if (one.group.compressed > 0) by_compression(one, out);
    if (one.group.picked) by_picking(one, out);
    by_window(one, out);
  }
  if (!one.group.carried.empty())
    out.push_back(reason("carried_order", Verdict::unknown, Basis::engine,
                         "the order of tokens also comes from " + one.group.carried +
                             ", which must see the tokens around a rank's own",
                         "run it on the whole text before tokens are dealt out"));
  by_length(one, out);
  add_facts(one, out);
  std::ranges::stable_sort(out, std::greater(), &Reason::verdict);
  return out;
}

std::vector<std::string> needs_of(const Case& one) {
  std::vector<std::string> out;
  if (one.sharding.ranks == 1 || !one.is_attention()) return out;
  need_ids(one, out);
  need_axes(one, out);
  need_length(one, out);
  need_mask(one, out);
  need_compressor(one, out);
  need_indexer(one, out);
  need_parts(one, out);
  need_key_heads(one, out);
  need_padding(one, out);
  return out;
}

}  // namespace posenc::layout::detail
