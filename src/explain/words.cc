// The sentences of an explanation: what each scheme and scaling does, with the numbers of this
// model.
#include "src/explain/words.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string_view>
#include <variant>

#include "src/explain/pairs.h"
#include "src/explain/text.h"
#include "src/model/compare.h"

namespace posenc::detail {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

std::string s(std::int64_t count, std::string_view noun) {
  return grouped(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string listed(std::span<const std::int64_t> numbers) {
  std::string text;
  for (const std::int64_t each : numbers) text += (text.empty() ? "" : ", ") + grouped(each);
  return text;
}

std::string turns(double count) { return shown(count) + (count == 1 ? " turn" : " turns"); }

std::string pair_rule(Pairing pairing, std::int64_t pairs) {
  return pairing == Pairing::halves ? "(r, r + " + std::to_string(pairs) + ")" : "(2r, 2r + 1)";
}

// A window as long as the context cuts nothing off, and keys that stand for several tokens reach
// behind it.
std::optional<std::int64_t> window_of(const Subject& subject) {
  const auto& window = subject.group.window;
  if (!window || subject.group.compressed > 0 ||
      (subject.model.context > 0 && *window >= subject.model.context))
    return {};
  return window;
}

// Many files say how long a text the model takes, but not on how long a text it was trained.
bool known_training(const Model& model) {
  return model.trained_context > 0 && model.trained_context < model.context;
}

// The factor of position interpolation, whose file says no trained length.
double interpolation(const Model& model) {
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const auto* rope = std::get_if<Rope>(&scheme))
        if (const auto* linear = std::get_if<Linear>(&rope->scaling)) return linear->factor;
  return 1;
}

std::string say_lengths(const Lengths& valid) {
  if (valid.from == valid.to) return "the length " + grouped(valid.to) + " alone";
  return "lengths " + (valid.from > 0 ? "from " + grouped(valid.from) + " " : std::string()) +
         "up to " + grouped(valid.to);
}

// Keys behind the window that stand for several tokens each, all of them or as many as an indexer
// picks.
std::string say_compressed(const LayerGroup& group) {
  const std::int64_t window = group.window.value_or(0);
  const std::string keys = "one key for every " + s(group.compressed, "token");
  return "Each token sees the " + grouped(window) +
         " nearest tokens, itself included, and of the whole text before it " +
         (group.picked
              ? "at most " + s(group.picked->count, "key") + " that an indexer picks: " + keys
              : keys) +
         ", at the position of the first.";
}

// Layers without an indexer of their own take the picks of one before.
bool others_pick(const Subject& subject) {
  return !subject.group.indexer &&
         std::ranges::any_of(subject.model.groups,
                             [](const LayerGroup& each) { return each.indexer.has_value(); });
}

std::string say_picked(const Subject& subject) {
  const Picked& picked = *subject.group.picked;
  std::string text = "Of what came before it each token sees at most " + picked_text(picked) +
                     ", which " +
                     (others_pick(subject) ? "the indexer of a layer before" : "an indexer") +
                     " picks by what they say";
  if (picked.local > 0)
    text +=
        ", always among them " +
        (picked.local == 1 ? std::string("its own block")
                           : "its own block and the " + s(picked.local - 1, "block") + " before");
  return text + "; the plan is of all.";
}

// "Its indexer's 64 heads of 128 channels rotate the first 64, pairing halves …"
std::string say_indexer(const Subject& subject) {
  const Indexer& own = *subject.group.indexer;
  const std::string heads = own.heads > 0
                                ? s(own.heads, "head") + " of " + s(own.head_dim, "channel")
                                : "heads of " + s(own.head_dim, "channel");
  std::string text = "The indexer's queries have " + heads + ", its keys one for all of them";
  const std::optional<Plan>& plan = subject.facts.indexer;
  if (!plan || !plan->rotate) {
    text += ": nothing rotates there";
  } else {
    const Slice& slice = plan->rotate->slice;
    text += ": " + std::string(slice.first_dim == 0 ? "the first " : "the last ") +
            s(slice.rotary_dim, "channel") + " rotate by the same frequencies";
    const auto& main = subject.facts.plan.rotate;
    const bool alike = main && main->slice.pairing == slice.pairing;
    text += ", and the pairs are " + std::string(name(slice.pairing)) +
            (alike  ? ", as those of the heads"
             : main ? ", where those of the heads are " + std::string(name(main->slice.pairing))
                    : "");
  }
  return text + ". It caches " + s(own.keys.elements, "number") + " for " +
         (own.keys.every == 1 ? "each token." : "every " + s(own.keys.every, "token") + ".");
}

// What carries the order of tokens between layers that attend: recurrences, convolutions.
std::string carriers(const Subject& subject) {
  bool recurrence = false, convolution = false, unsaid = false;
  for (const LayerGroup& group : subject.model.groups) {
    if (group.stack != subject.group.stack) continue;
    recurrence |= group.mixer == Mixer::recurrence;
    convolution |= group.mixer == Mixer::convolution;
    unsaid |= group.mixer == Mixer::unsaid;
  }
  if (recurrence && convolution) return "recurrences and convolutions";
  if (recurrence || unsaid) return "recurrences";
  return convolution ? "convolutions" : "";
}

std::string say_mixer(Mixer mixer) {
  switch (mixer) {
    case Mixer::attention: return {};
    case Mixer::recurrence:
      return "A recurrence stands in place of attention: its state carries the order of tokens.";
    case Mixer::convolution:
      return "A convolution over neighbouring tokens stands in place of attention and knows their "
             "order.";
    case Mixer::none:
      return "Nothing mixes tokens here: a perceptron or experts take each by itself, wherever it "
             "stands.";
    case Mixer::unsaid: break;
  }
  return "No attention: the file does not say whether a recurrence stands here or nothing that "
         "mixes tokens.";
}

std::string say_window(const LayerGroup& group, std::int64_t window) {
  if (group.stack == Stack::vision)
    return "Each patch sees only the " + grouped(window) + " of its own window.";
  if (group.chunked && !group.causal)
    return "Each token sees only its own chunk of " + grouped(window) +
           " tokens, on either side; the rest reaches it only through other layers.";
  if (group.chunked)
    return "Each token sees only itself and what came before it in its own chunk of " +
           grouped(window) + " tokens; the rest reaches it only through other layers.";
  return "Each token sees at most the " + grouped(window) + " nearest tokens, " +
         (group.causal   ? "itself included"
          : group.behind ? "of which " + grouped(*group.behind) + " before it and " +
                               grouped(window - 1 - *group.behind) + " behind"
                         : "half of them on either side") +
         "; the rest reaches it only through other layers.";
}

// --- what the scalings do ------------------------------------------------------------------------

// What the struct says of itself, for those without a sentence below.
template <class S>
std::string say(const S&) {
  return "This is " + std::string(S::title) + ": " + std::string(S::formula) + ".";
}
std::string say(const Unscaled&) { return {}; }
std::string say(const Linear& x) {
  return "Position interpolation: every frequency is divided by " + shown(x.factor) +
         ", so neighbouring tokens look " + shown(x.factor) + " times closer.";
}
std::string say(const NtkAware& x) {
  return "NTK-aware scaling raises the base until the slowest pair is " + shown(x.factor) +
         " times slower; the fastest pair keeps its speed.";
}
std::string say(const DynamicNtk& x) {
  return "Dynamic NTK: nothing changes up to " + grouped(x.max_position_embeddings) +
         " tokens; beyond them the base grows with the length.";
}
std::string say(const NtkByParts& x) {
  return "NTK-by-parts: pairs with fewer than " + turns(x.alpha) + " in " +
         grouped(x.original_max_position_embeddings) + " tokens are " + shown(x.factor) +
         "× slower, those with more than " + shown(x.beta) +
         " untouched, those between blended by their turns.";
}
std::string say(const Yarn& x) {
  const std::string by = x.dynamic  ? "slowed by length/L"
                         : x.factor ? shown(*x.factor) + "× slower"
                                    : "slower by M/L";
  return "YaRN: pairs with fewer than " + turns(x.beta_slow) + " in the " +
         grouped(x.original_max_position_embeddings) + " trained tokens are " + by +
         ", those with more than " + shown(x.beta_fast) +
         " untouched, those between blended in equal steps from pair to pair.";
}
std::string say(const LongRope& x) {
  return "LongRoPE divides each pair by its own factor: the short list up to " +
         grouped(x.original_max_position_embeddings) + " tokens, the long list beyond.";
}
std::string say(const Llama3& x) {
  return "Llama-3 scaling: pairs with fewer than " + turns(x.low_freq_factor) + " in " +
         grouped(x.original_max_position_embeddings) + " tokens are " + shown(x.factor) +
         "× slower, those with more than " + shown(x.high_freq_factor) +
         " untouched, those between blended.";
}
std::string say(const Proportional& x) {
  std::string text = "Proportional RoPE: only the fastest " + shown(100 * x.partial_rotary_factor) +
                     "% of the pairs rotate; the rest carry content without position";
  if (x.factor != 1) text += ", and all frequencies are divided by " + shown(x.factor);
  return text + ".";
}
std::string say(const Clipped& x) {
  return "Clipped RoPE: " +
         (x.clip_low_n ? "the slowest " + s(*x.clip_low_n, "pair")
                       : "the pairs with less than one turn in " +
                             s(x.original_max_position_embeddings, "token")) +
         " are slowed more and more, until the last stands still.";
}
std::string say(const Explicit&) { return "The frequencies are given one by one."; }

// --- what the distance maps do -------------------------------------------------------------------

struct SayMap {
  std::string operator()(const NoMap&) const { return {}; }
  std::string operator()(const ReRope& x) const {
    const std::string window = s(x.window, "token"), title(x.title);
    return "A distance of " + window + " or more " +
           (x.growth == 1 ? "counts as " + window + " (" + title + ")."
                          : "grows " + std::to_string(x.growth) +
                                " times as slowly from there on (leaky " + title + ").");
  }
  std::string operator()(const SelfExtend& x) const {
    return "From a distance of " + s(x.window, "token") +
           " on, positions are counted in groups of " + std::to_string(x.group) + " (" +
           std::string(x.title) + ").";
  }
  std::string operator()(const DualChunk& x) const {
    return "Positions are counted within chunks of " + s(x.chunk(), "token") + " (" +
           std::string(x.title) + "): a key of the chunk before is at its distance, at most " +
           s(x.chunk_size, "token") + ", one further back at " + s(x.far_query(), "token") +
           " less its place in its chunk. Within the first chunk this is plain RoPE.";
  }
};

// --- what the schemes do -------------------------------------------------------------------------

struct Say {
  const Subject& subject;
  std::vector<std::string>& out;

  const Plan& plan() const { return subject.facts.plan; }
  // Which channels rotate, and how fast. Common to all rotations.
  void rotation() {
    if (!plan().rotate) return;
    const Rotate& rotate = *plan().rotate;
    const std::int64_t head_dim = subject.group.geometry.head_dim;
    if (head_dim > rotate.slice.rotary_dim)
      out.push_back("Only the " + std::string(rotate.slice.first_dim == 0 ? "first " : "last ") +
                    grouped(rotate.slice.rotary_dim) + " of a head's " + s(head_dim, "channel") +
                    " rotate; the other " + grouped(head_dim - rotate.slice.rotary_dim) +
                    " carry no position.");
    const auto& pairs = subject.facts.pairs;
    double fastest = 0, slowest = std::numeric_limits<double>::infinity();
    // No distance is longer than what a layer sees.
    const std::int64_t reach = is_tower(subject.group.stack)
                                   ? 0
                                   : window_of(subject).value_or(subject.model.trained_context);
    std::int64_t turning = 0, complete = 0;
    for (const PairFact& pair : pairs) {
      if (pair.frequency == 0) continue;
      turning++;
      complete += pair.wavelength <= static_cast<double>(reach);
      fastest = std::max(fastest, std::abs(pair.frequency));
      slowest = std::min(slowest, std::abs(pair.frequency));
    }
    if (turning == 0) return;
    const double full_turn = 2 * std::numbers::pi;
    std::string text = "A full turn takes " + shown(full_turn / fastest, 3) +
                       " positions for the fastest pair and " + shown(full_turn / slowest, 3) +
                       " for the slowest";
    if (reach > 0)
      text += "; " + std::to_string(complete) + " of " + std::to_string(turning) +
              " complete one within " + grouped(reach) + " tokens, the " +
              (!window_of(subject) ? known_training(subject.model) ? "trained length" : "context"
               : subject.group.chunked ? "chunk"
                                       : "window");
    out.push_back(text + ".");
  }

  template <class S>
  void operator()(const S& x) {
    out.push_back(say(x));
    rotation();
  }
  void operator()(const NoPe&) {
    const std::string carried = carriers(subject);
    const bool causal = subject.group.causal;
    if (!subject.group.carried.empty())
      out.push_back("No positional encoding in attention: what tells the order of tokens is " +
                    subject.group.carried +
                    (causal ? ", beside what the causal mask hides." : "."));
    else if (carried.empty())
      out.push_back(causal ? "No positional encoding: these layers tell order only by what the "
                             "causal mask hides."
                           : "No positional encoding: these layers see their tokens as a set.");
    else
      out.push_back("No positional encoding: these layers tell order by what the " + carried +
                    " of other layers have put into each token" +
                    (causal ? ", and by what the causal mask hides." : "."));
  }
  void operator()(const Index& x) {
    out.push_back("The position itself, times " + shown(x.scale) +
                  ", is added to one channel of the embedding.");
  }
  // Where vectors are added; `once`: where most models do.
  std::string added_to(std::string_view once) const {
    if (!subject.group.added_each_layer) return "to " + std::string(once);
    return "in every layer to what queries and keys are projected from, and not to values";
  }
  void operator()(const Sinusoidal& x) {
    const bool axes = x.axes_dim.size() > 1;
    out.push_back(
        std::string("Sines and cosines of ") +
        (axes ? "each of " + grouped(std::ssize(x.axes_dim)) + " coordinates" : "the position") +
        " are added " + added_to("each token's embedding before the first layer") +
        "; nothing is learned and any position has its vector.");
    if (axes) out.push_back("Each coordinate has channels of its own: " + listed(x.axes_dim) + ".");
    if (!x.position_scale.empty())
      out.push_back("A coordinate is multiplied by " + shown(x.position_scale[0]) +
                    (x.position_scale.size() > 1 ? " and its like first." : " first."));
    if (x.layout == WaveLayout::concatenated || x.spacing == WaveSpacing::ends || x.cosine_first)
      out.push_back(std::string(x.layout == WaveLayout::concatenated
                                    ? x.cosine_first ? "All cosines stand before all sines"
                                                     : "All sines stand before all cosines"
                                : x.cosine_first ? "Cosines and sines take turns"
                                                 : "Sines and cosines take turns") +
                    (x.spacing == WaveSpacing::ends
                         ? ", and the frequencies reach 1/base: ω_r = base^(−r/(d/2−1))."
                         : "."));
    if (x.row_offset != 0)
      out.push_back("Position p has the vector of p + " + grouped(x.row_offset) + ".");
    if (x.divide_vectors) out.push_back("The vectors are divided by the root of the width.");
    scaled_embedding(x.scale_embedding);
  }
  void operator()(const FourierFeatures& x) {
    out.push_back("Sines and cosines of 2π times mixtures of " + s(x.axes, "coordinate") +
                  " stand for a point; the mixtures are drawn at random before training and kept.");
    if (!x.frequencies) out.push_back("Those here are drawn anew: the checkpoint has its own.");
    if (subject.group.added_each_layer)
      out.push_back("They are added " + added_to("the embedding") + ".");
  }
  void operator()(const Learned& x) {
    if (!x.axis_rows.empty()) {
      out.push_back("A learned vector for each of " + grouped(std::ssize(x.axis_rows)) +
                    " coordinates is added to the patch's embedding: " + listed(x.axis_rows) +
                    " rows.");
      scaled_embedding(x.scale_embedding);
      return;
    }
    const std::int64_t positions = x.rows - x.row_offset;
    std::string text = "A learned vector for each position is added " +
                       added_to(subject.group.stack == Stack::vision ? "the patch's embedding"
                                                                     : "the token's embedding") +
                       ". The table has " + s(x.rows, "row");
    if (x.row_offset > 0) text += " and position p reads row p + " + grouped(x.row_offset);
    out.push_back(text + ".");
    if (!is_tower(subject.group.stack))
      out.push_back("Position " + grouped(positions) +
                    " has no vector: the context ends there, whatever memory allows.");
    scaled_embedding(x.scale_embedding);
  }
  void operator()(const Shaw& x) {
    out.push_back("Each key" + std::string(x.use_values ? " and value" : "") +
                  " gets a learned vector for its distance from the query, clipped to ±" +
                  grouped(x.max_distance) + " tokens.");
    if (x.zero_beyond) out.back() = before_clipping(x);
  }
  void operator()(const Profiles& x) {
    const std::string who = x.of_keys ? "key" : "query";
    std::string text = "Nothing is added to embeddings or rotated: each " + who + " says by " +
                       (x.profiles == 1 ? std::string("a number") : s(x.profiles, "number")) +
                       " of each head how its logits look by distance, ";
    switch (x.curves) {
      case ProfileCurves::distances:
        text += "mixing learned curves of the distances 0 to " + grouped(x.extent - 1) +
                "; keys farther back, and keys ahead, get nothing.";
        break;
      case ProfileCurves::buckets:
        text += "times a learned number of each of " + s(x.num_buckets, "bucket") +
                " of distances, the last for " + grouped(x.max_distance) + " and beyond.";
        break;
      case ProfileCurves::ramp: text += "by how much they fall with each token between."; break;
    }
    out.push_back(text);
    out.push_back("It stands after the division of q·k, and is not divided itself.");
  }
  void operator()(const TransformerXl& x) {
    out.push_back(
        std::string("Queries meet a sinusoid of the distance, projected for each head, as they "
                    "meet keys") +
        (x.biases ? "; two learned vectors of each head are added to the query, one where it meets "
                    "keys, one where it meets distances."
                  : "."));
  }
  void operator()(const ClippedBias& x) {
    out.push_back(
        "Every head adds a learned number to the logit of a query and a key, one for each "
        "distance; keys more than " +
        grouped(x.left) + " behind share one, and so do those more than " + grouped(x.right) +
        " ahead.");
  }
  void operator()(const GridBias& x) {
    out.push_back(
        std::string("Patches of a picture: every head adds a learned number to the logit, "
                    "by how many rows and columns two patches are apart") +
        (x.absolute ? ", whichever stands first." : "."));
    if (x.class_token)
      out.push_back(
          "The class token has three numbers of its own: as query, as key, and with itself.");
    if (x.reach > 0)
      out.push_back("A query sees " + std::to_string(x.reach) + " × " + std::to_string(x.reach) +
                    " patches, itself in their middle but for the borders of the picture.");
  }
  void operator()(const LogCpb& x) {
    out.push_back(
        "Patches of a picture: a small network makes each head's number for a logit of how "
        "many rows and columns two patches are apart, on a logarithmic scale, so that "
        "windows of other sizes have theirs too.");
    if (x.pretrained_height > 0)
      out.push_back("Distances are counted in shares of the training's window, " +
                    std::to_string(x.pretrained_height) + " × " +
                    std::to_string(x.pretrained_width) + ".");
  }
  void operator()(const AxisBuckets& x) {
    out.push_back(
        "Every head adds a learned number for the distance of two tokens in the text and one for " +
        std::string(x.axes == 2   ? "their distances to the right and downwards on the page"
                    : x.axes == 1 ? "that on another axis of their positions"
                                  : "those on each further axis of their positions") +
        ", all in buckets as T5's: near distances one by one, far ones in steps that grow as a "
        "logarithm.");
    if (x.divided) out.push_back("Their sum is divided by √head_dim, as the product is.");
  }
  void operator()(const Decomposed&) {
    out.push_back(
        "Patches of a picture: each query meets a learned vector of how many rows a key is "
        "away and one of how many columns, neither divided by √head_dim.");
  }
  void operator()(const T5& x) {
    out.push_back(
        "Every head adds a learned number to the logit of a query and a key, looked up by "
        "their distance in " +
        s(x.num_buckets, "bucket") +
        ": near distances one by one, "
        "far ones in steps that grow as a logarithm.");
    out.push_back("All distances of " + grouped(x.max_distance) +
                  " and more share the last bucket" +
                  (x.bidirectional ? "; half of the buckets are for keys ahead of the query."
                                   : "; keys ahead of the query share bucket 0."));
  }
  void operator()(const Deberta& x) {
    out.push_back("Content meets position apart from content meeting content: " +
                  std::string(x.c2p ? "query content with the key's relative position" : "") +
                  (x.c2p && x.p2c ? ", and " : "") +
                  (x.p2c ? "key content with the query's relative position" : "") + ".");
    out.push_back("Distances fall into " + s(x.position_buckets, "bucket") +
                  " a side, the last for " + grouped(x.max_relative_positions) + " and beyond.");
  }
  void operator()(const Alibi& x) {
    if (!plan().bias) return;
    const Slopes* slopes = std::get_if<Slopes>(&*plan().bias);
    if (!slopes || slopes->slope.empty()) return;
    const auto [least, most] = std::minmax_element(slopes->slope.begin(), slopes->slope.end());
    out.push_back(
        "Nothing is added to embeddings or rotated: each head subtracts its slope × the "
        "distance from the logit, so that far keys count less.");
    out.push_back("The " + s(static_cast<std::int64_t>(slopes->slope.size()), "slope") +
                  " run from " + shown(*most, 4) + " to " + shown(*least, 4) +
                  ": a key loses a factor e of its weight every " + shown(1 / *most, 3) +
                  " tokens in the sharpest head and every " + shown(1 / *least, 3) +
                  " in the widest.");
    if (x.rounding == SlopeRounding::bfloat16)
      out.push_back("The slopes are rounded to bfloat16, as the model was trained.");
    if (x.before_scale) out.push_back("The bias is added before the division by √head_dim.");
    if (x.symmetric) out.push_back("Keys ahead of the query are treated like those behind it.");
  }
  void operator()(const Kerple& x) {
    out.push_back(std::string("The logit falls with the ") +
                  (x.kernel == KerpleKernel::log ? "logarithm" : "power") +
                  " of the distance, by learned numbers of each head.");
  }
  void operator()(const Sandwich& x) {
    out.push_back("The logit gets the inner product of two sinusoidal vectors of " +
                  s(x.dim, "channel") + ", which falls with the distance.");
  }
  void operator()(const Rope& x) {
    if (!plan().rotate) return;
    const Rotate& rotate = *plan().rotate;
    out.push_back("Queries and keys are rotated: each of " + s(rotate.pairs(), "channel pair") +
                  " " + pair_rule(rotate.slice.pairing, rotate.pairs()) +
                  " rotates by position × frequency, " +
                  (rotate.regions()
                       ? "of positions that are counted anew for each query and key."
                       : "so a logit depends on the distance between two tokens and not on where "
                         "they stand."));
    if (!x.mrope_section.empty()) sections(x);
    if (!x.pair_axes.empty()) pair_axes();
    const std::vector<Provenance>& notes = subject.group.provenance;
    if (const auto ntk = std::ranges::find(notes, "ntk", &Provenance::field); ntk != notes.end())
      out.push_back("NTK-aware scaling of this family's own: " + ntk->value + ".");
    else if (std::string text = say_scaling(x.scaling); !text.empty())
      out.push_back(text);
    if (!x.frequency_factors.empty())
      out.push_back("Each frequency is first divided by a factor of its own from the file.");
    rotation();
    if (x.reversed) out.push_back("Every pair rotates the other way: by −p·f.");
    if (x.rotate_values && !x.values_stay)
      out.push_back("Values are rotated too, and the attention's output is rotated back.");
    if (x.rotate_values && x.values_stay)
      out.push_back(
          "Values are rotated too, and the attention's output is not rotated back: it tells where "
          "its keys stand, and not only how far off.");
    if (rotate.frequencies.heads > 1 && x.rotated_heads)
      out.push_back(
          *x.rotated_heads == 1
              ? "Head 0 alone rotates; the other " + s(rotate.frequencies.heads - 1, "head") + " " +
                    (rotate.frequencies.heads == 2 ? "has" : "have") + " no position."
              : "Heads 0 to " + std::to_string(*x.rotated_heads - 1) + " alone rotate; the other " +
                    s(rotate.frequencies.heads - *x.rotated_heads, "head") + " have no position.");
    if (std::string text = std::visit(SayMap{}, x.distance_map); !text.empty()) out.push_back(text);
    if (rotate.phase())
      out.push_back(
          "The queries of " + std::string(rotate.phase()->heads == 1 ? "all" : "half of the") +
          " heads are a quarter turn behind: their logits are the imaginary part of the products.");
  }
  void operator()(const XPos& x) {
    out.push_back(
        "Queries and keys are rotated as by RoPE and also grow and shrink with position, so "
        "that far keys fade: the base is " +
        shown(x.rope_theta) + ", the decay is per " + shown(x.scale_base) + " tokens.");
    rotation();
  }
  void stretched(const NoAxisScaling&) {}
  void stretched(const Riflex& x) {
    out.push_back("RIFLEx: pair " + std::to_string(x.pair) + " of axis " + std::to_string(x.axis) +
                  " turns 0.9 times in " + grouped(x.length) +
                  " positions, so that nothing comes round within them.");
  }
  void stretched(const auto& x) {
    std::string factors;
    for (const double s : x.axis_factor) factors += (factors.empty() ? "×" : ", ×") + shown(s);
    std::string text = "Axes longer than in training by " + factors + ": " + std::string(x.title);
    if constexpr (requires { *x.timestep; })
      if (x.timestep) text += " at step t = " + shown(*x.timestep);
    out.push_back(text + ".");
  }
  void operator()(const Axial& x) {
    if (!x.axes_dim.empty()) {
      std::string text = "Patches of a picture or a video: a head's channels are dealt out, ";
      for (std::size_t a = 0; a < x.axes_dim.size(); ++a) {
        text += (a ? ", " : "") + std::to_string(x.axes_dim[a]) + " by axis " + std::to_string(a);
        if (!x.axis_theta.empty()) text += " (base " + shown(x.axis_theta[a]) + ")";
      }
      out.push_back(text + "; the frequencies of each axis begin anew.");
      std::visit([&](const auto& scaling) { stretched(scaling); }, x.axis_scaling);
      if (!x.position_scale.empty()) {
        text = "Positions are multiplied first: ";
        for (std::size_t a = 0; a < x.position_scale.size(); ++a)
          text += (a ? ", " : "") + shown(x.position_scale[a]);
        out.push_back(text + (x.position_scale.size() > 1 ? " by axis." : "."));
      }
      if (x.tiled)
        out.push_back(
            "The two channels of a pair rotate by angles of their own, since cos and sin are laid "
            "out for " +
            std::string(x.pairing == Pairing::halves ? "neighbours and halves"
                                                     : "halves and neighbours") +
            " make the pairs: lengths change, and a logit depends on where both patches lie and "
            "not on their distance alone.");
      rotation();
      return;
    }
    out.push_back("Patches of a picture: half of the pairs rotate by the row, half by the column" +
                  std::string(x.normalised ? ", measured from the centre of the picture" : "") +
                  ".");
    if (x.position_scale.size() == 1)
      out.push_back("Rows and columns are multiplied by " + shown(x.position_scale[0]) + " first.");
    rotation();
  }
  void operator()(const Pope&) {
    if (!plan().rotate) return;
    const Rotate& rotate = *plan().rotate;
    out.push_back("Each of " + s(rotate.pairs(), "channel") +
                  " is the length of a pair, by softplus, and the pair's angle is position × "
                  "frequency alone, so a logit depends on the distance between two tokens and not "
                  "on where they stand.");
    if (rotate.phase()) out.push_back("Keys have learned phases besides.");
  }
  void operator()(const Fope& x) {
    if (!plan().rotate) return;
    const Rotate& rotate = *plan().rotate;
    const auto& mix = std::get<Mix>(rotate.kind);
    out.push_back("Queries and keys are rotated: of " + s(rotate.pairs(), "channel pair") + " " +
                  pair_rule(rotate.slice.pairing, rotate.pairs()) + " the first " +
                  std::to_string(mix.outputs) + " turn by learned sums of " +
                  s(mix.inputs, "wave") + (mix.heads > 1 ? ", of each key head" : "") +
                  ", so a logit depends on where both tokens stand and not on their distance "
                  "alone.");
    if (!x.num_inv_freq)
      out.push_back("Frequencies that turn less than once in " +
                    s(x.max_position_embeddings, "token") + " are left out.");
    if (mix.outputs < rotate.pairs() && x.rest_sine != 0)
      out.push_back("The other pairs have cosine 1 and sine " + shown(x.rest_sine) +
                    " at every position: their share of a logit is multiplied by " +
                    shown(1 + x.rest_sine * x.rest_sine) + ".");
    if (x.cos_coef.empty() && x.sin_coef.empty())
      out.push_back("No mixture is given: each pair turns by its own wave.");
  }
  void operator()(const Mixed&) {
    out.push_back(
        "Patches of a picture: each pair of each head rotates along a direction of its own, "
        "a learned mixture of row and column.");
    rotation();
  }

 private:
  static std::string before_clipping(const Shaw& x) {
    const std::int64_t ahead = x.max_ahead.value_or(x.max_distance);
    return "Each key" + std::string(x.use_values ? " and value" : "") + " within " +
           grouped(x.max_distance) + " tokens" +
           (ahead == x.max_distance ? std::string(" on either side")
                                    : " before the query and " + grouped(ahead) + " ahead") +
           " gets a learned vector for its distance from the query; those farther off get none.";
  }
  static std::string say_scaling(const Scaling& scaling) {
    return std::visit([](const auto& x) { return say(x); }, scaling);
  }
  void scaled_embedding(bool scaled) {
    if (scaled) out.push_back("Token embeddings are multiplied by √width before the sum.");
  }
  void pair_axes() {
    const Rotate& rotate = *plan().rotate;
    std::vector<std::int64_t> count(static_cast<std::size_t>(rotate.frequencies.axes));
    for (std::int64_t r = 0; r < rotate.pairs(); ++r)
      for (std::int64_t a = 0; a < rotate.frequencies.axes; ++a)
        if (rotate.at(0, a, r) != 0) ++count[static_cast<std::size_t>(a)];
    std::string text = "Pairs take their position from ids of their own, each as a list says: ";
    for (std::size_t a = 0; a < count.size(); ++a)
      text += (a ? ", " : "") + std::to_string(count[a]) + " by " + axis_name(a, count.size());
    out.push_back(text + ". Text has the same id in all of them.");
  }
  // Two axes are NeoMME's, four HunYuan VL's.
  static std::string axis_name(std::size_t axis, std::size_t axes) {
    constexpr std::string_view two[] = {"row", "column"}, three[] = {"time", "height", "width"},
                               four[] = {"place in the text", "width", "height", "picture"};
    if (axes == 2) return std::string(two[axis]);
    if (axes == 4) return std::string(four[axis]);
    return axis < 3 ? std::string(three[axis]) : "axis " + std::to_string(axis);
  }
  void sections(const Rope& x) {
    std::string text = "Pairs take their position from ids of their own: ";
    for (std::size_t i = 0; i < x.mrope_section.size(); i++)
      text += (i ? ", " : "") + std::to_string(x.mrope_section[i]) + " by " +
              axis_name(i, x.mrope_section.size());
    out.push_back(text +
                  (x.mrope_interleaved ? ", alternating from pair to pair." : ", in blocks.") +
                  " Text has the same id in all of them.");
  }
};

std::string scheme_heading(const Scheme& scheme, const Plan& plan, std::int64_t head_dim,
                           const std::vector<Provenance>& notes) {
  const Rope* rope = std::get_if<Rope>(&scheme);
  const Axial* axial = std::get_if<Axial>(&scheme);
  if (axial && plan.rotate && !axial->axes_dim.empty())
    return "axial RoPE, " + std::string(name(axial->pairing)) + ", " +
           std::to_string(plan.rotate->frequencies.axes) + " axes";
  if (!rope || !plan.rotate) return std::string(info(scheme).title);
  std::string text = "RoPE, " + std::string(name(rope->pairing));
  if (!rope->mrope_section.empty() || !rope->pair_axes.empty()) text += ", M-RoPE";
  if (rope->imaginary_heads != ImaginaryHeads::none) text += ", imaginary heads";
  if (plan.rotate->frequencies.heads > 1 && rope->rotated_heads)
    text += ", " + std::to_string(*rope->rotated_heads) + " of " +
            std::to_string(plan.rotate->frequencies.heads) + " heads";
  if (plan.rotate->slice.rotary_dim < head_dim)
    text += ", " + std::to_string(plan.rotate->slice.rotary_dim) + " of " +
            std::to_string(head_dim) + " channels";
  if (!std::holds_alternative<Unscaled>(rope->scaling)) {
    const std::string_view title = info(rope->scaling).title;
    const double factor = number_of(rope->scaling, "factor").value_or(1);
    const bool own_ntk = std::ranges::find(notes, "ntk", &Provenance::field) != notes.end();
    text += own_ntk ? ", NTK-aware scaling of its own"
                    : ", " + std::string(title.substr(0, title.find(',')));
    if (factor != 1 && !own_ntk) text += " ×" + shown(factor);
  }
  return text;
}

// "the query at position p × (1 + 0.1·ln(1 + ⌊(p + 1)/8192⌋)), which grows with the position"
std::string temperature_words(const Logits& logits) {
  const bool moved = logits.offset != 0;
  const std::string p = moved ? "p + " + shown(logits.offset) : "p";
  const std::string u = (moved ? "(" + p + ")" : p) + "/" + shown(logits.floor);
  switch (logits.temperature) {
    case Temperature::steps:
      return "the query at position p × (1 + " + shown(logits.beta) + "·ln(1 + ⌊" + u +
             "⌋)), which grows with the position";
    case Temperature::log:
      return "the query at position p × (1 + " + shown(logits.beta) + "·ln(max(1, " + u +
             "))), which grows with the position";
    case Temperature::power:
      return "the query at position p × (1 + " + u + ")^" + shown(logits.beta) +
             ", which grows with the position";
    case Temperature::heads: break;
  }
  return "the query at position p × (s·ln(" + p + ") + b), with s and b of each head, learned";
}

}  // namespace

std::string heading(const Subject& subject) {
  const LayerGroup& group = subject.group;
  const auto count = static_cast<std::int64_t>(group.layers.size());
  std::string text(group.stack == Stack::text ? "" : std::string(name(group.stack)) + " ");
  text += (count == 1 ? "layer " : "layers ") + layer_list(group.layers);
  if (!group.label.empty()) text += ", " + group.label;
  text += ": ";
  constexpr std::string_view instead[] = {"", "a recurrence", "a convolution",
                                          "no mixing of tokens", "no attention"};
  if (group.mixer != Mixer::attention)
    return text + std::string(instead[static_cast<std::size_t>(group.mixer)]);
  for (std::size_t i = 0; i < group.schemes.size(); i++)
    text += (i ? " + " : "") + scheme_heading(group.schemes[i], subject.facts.plan,
                                              group.geometry.head_dim, group.provenance);
  return text;
}

std::vector<std::string> sentences(const Subject& subject) {
  // All that follows is of attention.
  if (subject.group.mixer != Mixer::attention) return {say_mixer(subject.group.mixer)};
  std::vector<std::string> out;
  for (const Scheme& scheme : subject.group.schemes) std::visit(Say{subject, out}, scheme);
  if (const auto window = window_of(subject)) out.push_back(say_window(subject.group, *window));
  if (subject.group.compressed > 0)
    out.push_back(say_compressed(subject.group));
  else if (subject.group.picked)
    out.push_back(say_picked(subject));
  if (subject.group.indexer) out.push_back(say_indexer(subject));
  if (subject.group.sink_logits)
    out.push_back(
        "The softmax of each head counts a learned logit that has no value, a sink: weights sum to "
        "less than 1, and attention needs the sinks beside q, k and v.");
  const auto& valid = subject.facts.plan.valid;
  // A table that ends limits the length as well, and says so itself.
  const Rope* rope = rope_of(subject.group);
  if (rope && !std::holds_alternative<Unscaled>(rope->scaling) && valid && valid->to != unlimited)
    out.push_back(std::string(subject.asked > 0 ? "These" : "As constructed these") +
                  " frequencies hold for " + say_lengths(*valid) +
                  "; a longer context has others, and keys cached before the change are stale.");
  return out;
}

std::string amplitude_note(const Subject& subject) {
  if (subject.group.mixer != Mixer::attention) return {};
  const Plan& plan = subject.facts.plan;
  const std::int64_t head_dim = subject.group.geometry.head_dim;
  const std::string root = head_dim > 0 ? "√" + std::to_string(head_dim) : "√head_dim";
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (plan.rotate && plan.rotate->amplitude != 1) {
    const double a = plan.rotate->amplitude;
    add("cos and sin of both q and k × " + shown(a) + ", so rotated logits × " + shown(a * a));
    if (head_dim > plan.rotate->slice.rotary_dim) add("unrotated channels unchanged");
  } else if (plan.rotate) {
    add("cos and sin are not scaled");
  }
  const Logits& logits = plan.logits;
  const double plain = std::sqrt(static_cast<double>(head_dim));
  const std::string cap = logits.softcap == 0 ? std::string()
                                              : "; then c·tanh(z/c), c = " + shown(logits.softcap) +
                                                    ", before the mask";
  if (head_dim > 0 && std::abs(logits.multiplier - plain) <= 1e-12 * plain) {
    add("q·k is not divided by " + root);
    return text + cap;
  }
  if (logits.multiplier != 1) {
    add("logits × " + shown(logits.multiplier) + "/" + root + " instead of 1/" + root);
    const Rope* rope = rope_of(subject.group);
    const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
    if (yarn && yarn->scale_logits) text += " (YaRN's (0.1·mscale_all_dim·ln s + 1)²)";
  } else {
    add("logits × the usual 1/" + root);
  }
  if (logits.has_temperature()) add(temperature_words(logits));
  if (!subject.group.logits_note.empty()) text += " (" + subject.group.logits_note + ")";
  return text + cap;
}

namespace {

std::string base_name(std::string_view path) {
  return printable(path.substr(path.find_last_of('/') + 1));
}

std::string say_files(const Model& model) {
  std::string compared;
  std::int64_t weights = 0;
  for (const ModelFile& file : model.files) {
    if (file.role == FileRole::compared)
      compared += (compared.empty() ? "" : ", ") + base_name(file.path);
    weights += file.role == FileRole::weights;
  }
  std::string text = "All of this is what " + base_name(model.files.front().path) + " says";
  if (!compared.empty()) text += "; compared with it: " + compared;
  if (weights > 0) text += "; beside it: " + s(weights, "file") + " of weights";
  return text + ".";
}

// The two files of one Mistral model look different and are not.
void say_permuted(const Model& model, std::vector<std::string>& out) {
  const auto has = [&](FileFormat format) {
    return std::ranges::any_of(model.files, [&](const ModelFile& file) {
      return file.format == format &&
             (file.role == FileRole::model || file.role == FileRole::compared);
    });
  };
  const bool attends = std::ranges::any_of(
      model.groups, [](const LayerGroup& group) { return group.mixer == Mixer::attention; });
  if (!has(FileFormat::params) || !attends) return;
  out.push_back(
      has(FileFormat::config)
          ? "params.json pairs neighbours and config.json halves: no contradiction, their weights "
            "have the rows of queries and keys in different orders."
          : "params.json pairs neighbours; Hugging Face's files of the same model pair halves, "
            "with "
            "the rows of queries and keys in the weights in another order.");
}

}  // namespace

std::vector<std::string> model_words(const Explanation& explanation) {
  const Model& model = explanation.model;
  std::vector<std::string> out;
  if (model.context == 0) {
    out.push_back("The file does not say how long a context the model takes.");
  } else if (const double factor = interpolation(model); known_training(model) && factor > 1) {
    out.push_back("Made for up to " + s(model.context, "token") + ": positions are divided by " +
                  shown(factor) + ", so that they stay within " + grouped(model.trained_context) +
                  ".");
  } else if (known_training(model)) {
    out.push_back("Made for up to " + s(model.context, "token") + ": a scaling stretches the " +
                  grouped(model.trained_context) + " it was first trained on.");
  } else {
    out.push_back("Made for up to " + s(model.context, "token") + ".");
  }
  std::int64_t of_stack[5] = {};
  for (const GroupExplanation& facts : explanation.groups)
    of_stack[static_cast<std::size_t>(model.groups[facts.group].stack)]++;
  for (const Stack stack : {Stack::text, Stack::encoder, Stack::decoder}) {
    const std::int64_t groups = of_stack[static_cast<std::size_t>(stack)];
    if (groups > 1)
      out.push_back(
          (stack == Stack::text ? "Its layers" : "The " + std::string(name(stack)) + "'s layers") +
          " fall into " + std::to_string(groups) + " groups.");
  }
  std::int64_t borrowing = 0;
  for (const LayerGroup& group : model.groups)
    if (group.cache_note.starts_with("an earlier layer's keys"))
      borrowing += std::ssize(group.layers);
  if (borrowing > 0)
    out.push_back(s(borrowing, "layer") +
                  " cache nothing: they read the keys and values of an earlier layer.");
  if (of_stack[static_cast<std::size_t>(Stack::encoder)] > 0 &&
      of_stack[static_cast<std::size_t>(Stack::decoder)] > 0)
    out.push_back("Encoder and decoder have positions of their own.");
  if (of_stack[static_cast<std::size_t>(Stack::vision)] > 0 &&
      of_stack[static_cast<std::size_t>(Stack::text)] > 0)
    out.push_back("A vision tower counts the patches of pictures.");
  if (of_stack[static_cast<std::size_t>(Stack::audio)] > 0 &&
      of_stack[static_cast<std::size_t>(Stack::text)] > 0)
    out.push_back("An audio tower counts the frames of sound.");
  say_permuted(model, out);
  if (model.files.size() > 1) out.push_back(say_files(model));
  return out;
}

}  // namespace posenc::detail
