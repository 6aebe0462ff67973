// Two tensors whose sizes do not match: what the numbers and the lines around them say of the cause.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.contains(word); });
}

bool is_of_pictures(std::string_view context) {
  return has_any(context, {"flux", "wan", "qwen_image", "qwenimage", "hunyuan", "ltx", "dit",
                           "diffusers", "comfy", "freqs_cis", "transformer_2d", "latent"});
}

// Areas of grids: both large, and apart by a rounded side.
bool is_rounded_grid(double a, double b) {
  return std::min(a, b) > 2000 && a != b && std::abs(a - b) < 0.08 * std::max(a, b);
}

}  // namespace

std::optional<Finding> sizes_that_differ(std::string_view line, std::string_view context) {
  const auto a = number_after(line, "size of tensor a ("), b = number_after(line, "tensor b (");
  if (!a || !b || std::abs(*a) > 0x1p50 || std::abs(*b) > 0x1p50) return std::nullopt;
  const auto told = [](double number) { return grouped(std::llround(number)); };
  Finding out{.code = "lengths_differ", .expected = told(*b), .found = told(*a)};
  const double least = std::min(*a, *b), most = std::max(*a, *b);
  constexpr double largest_head_count = 128;
  if (context.contains("rope_deltas") || context.contains("compute_3d_position_ids")) {
    out.code = "mrope_deltas_stale";
    out.message =
        "rope_deltas, by which text goes on behind pictures, are those of another batch: kept from "
        "a call before, and repeated to a batch of another size";
    out.cure = "update transformers and the trainer; until then set model.rope_deltas to None before "
               "each batch";
  } else if (has_any(context, {"thd", "cu_seqlens", "packed_seq", "varlen"})) {
    out.code = "packing_ignored";
    out.message = "queries of a packed batch (" + told(most) +
                  " tokens) are rotated by the table of one text (" + told(least) +
                  "): the offsets of the packed texts (cu_seqlens) do not reach the rotation";
    out.cure = "update the trainer's bridge, or train without packing (thd)";
  } else if (is_of_pictures(context) && least > 1 && least <= largest_head_count && most > 4 * least) {
    out.code = "axes_exchanged";
    out.message = told(least) +
                  " is a number of heads, not of tokens: the node hands over [batch, tokens, heads, "
                  "channels] where the program rotates [batch, heads, tokens, channels], or the other "
                  "way round";
    out.cure = "update the program and the node together: they are of different versions";
  } else if (is_rounded_grid(*a, *b)) {
    out.code = "grid_rounded";
    out.message = "both are areas of a grid of a picture or video, and one side was rounded: the "
                  "height or width is no multiple of what a token covers (8 or 16 of the VAE times 2 "
                  "of a patch)";
    out.cure = "take a height and width that are multiples of 32 (1080 → 1088, 720 → 704 or 736)";
  } else if (is_of_pictures(context)) {
    out.message = "the table of cos and sin has rows for " + told(least) + " of " + told(most) +
                  " tokens: the text beside the picture, or the picture, is longer than what the "
                  "program made it for";
    out.cure = "update the program; until then shorten the prompt, or take a smaller picture";
  } else if (least == 0) {
    out.message = "one of the tensors is empty: a batch, or a part of it, has no tokens";
    out.cure = "look at the line above: what it repeats or cuts to nothing";
  } else if (has_any(context, {"rotary", "rope", "cos", "sin", "position", "cache"})) {
    out.message = "a table of cos and sin, or a cache, has " + told(least) + " rows, and the text " +
                  told(most) + " tokens";
    out.cure = "raise what sizes it (max_position_embeddings, max_seq_len, the cache), or cut the "
               "text: posenc explain FILE says how far the model reaches";
  } else {
    out.severity = Severity::warning;
    out.message = "two tensors of one text have different lengths: where the smaller is a context "
                  "or a cache, the text is longer than that; else position has no part in it";
    out.cure = "give the lines above as well (the traceback): they say what was added to what";
  }
  return out;
}

}  // namespace posenc::detail
