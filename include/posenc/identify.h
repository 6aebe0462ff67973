// Which convention an engine rotated by, from tensors that it showed: queries or keys, its table of
// cosines and sines, or a table of position vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tools.h"

namespace [[gnu::visibility("default")]] posenc {

// Queries or keys that an engine was asked to show, [head][seq][dim] or [batch][head][seq][dim].
struct RotationDump {
  Tensor after = {};         // as they enter the products
  Tensor before = {};        // as they left the projection; absent: `after` is all there is
  Positions positions = {};  // of the tokens; of pictures several axes
  // Every token is the same one, so that keys before rotation were equal. Required where `before` is
  // absent; the first position then stands for the vectors before.
  bool repeated = false;
};

enum class Rotated {
  rotation,
  no_rotation,     // nothing changes with position
  not_a_rotation,  // vectors change with position, but not by rotating pairs
  cannot_tell,     // this dump does not show it; `cannot_tell` says which would
};
constexpr std::string_view name(Rotated verdict) {
  constexpr std::string_view names[] = {"rotation", "no rotation", "not a rotation", "cannot tell"};
  return names[static_cast<std::size_t>(verdict)];
}

// A base and a scaling that may have made the frequencies.
struct FrequencyFit {
  double base = 0;
  Scaling scaling = {};
  DType kept =
      DType::f64;  // bf16, f16: the frequencies were rounded to it, as model.to(bfloat16) does
  // Root mean square of what the frequencies are off, in units of what the dump can resolve: about
  // 1 where it explains them.
  double misfit = 0;
};

// Two channels that rotate together.
struct IdentifiedPair {
  std::int64_t a = 0, b = 0;  // channels
  double frequency = 0;       // radians per position; negative: the other way round
  double resolution = 0;      // uncertainty of it; above it: too slow to be seen here
  std::int64_t axis = 0;      // of the positions; -1: it turns too little to be told
};

// How several axes share the pairs out.
enum class AxisLayout { one, sections, interleaved, mixed };
constexpr std::string_view name(AxisLayout layout) {
  constexpr std::string_view names[] = {"one", "sections", "interleaved", "mixed"};
  return names[static_cast<std::size_t>(layout)];
}

// The convention that an engine rotated by, as far as a dump shows it.
struct Identified {
  Rotated verdict = Rotated::cannot_tell;
  Pairing pairing = Pairing::halves;
  std::int64_t first_dim = 0, rotary_dim = 0;
  std::int64_t blocks = 1;  // the slice is cut into equal blocks, each paired by itself
  std::vector<IdentifiedPair> pairs = {};
  AxisLayout axis_layout = AxisLayout::one;
  std::vector<std::int64_t> axis_pairs = {};  // of each axis, as far as they can be told
  bool axes_restart = false;                  // frequencies begin anew with each axis
  std::int64_t sign = 1;                      // −1: rotated backwards
  std::optional<std::int64_t> offset = {};    // added to the positions
  std::optional<double> amplitude = {};  // on cos and sin; absent with `repeated`, where it cancels
  double residual = 0;                   // what rotation leaves unexplained of what changed, 0 to 1
  std::optional<FrequencyFit> frequencies = {}, runner_up = {};
  // How the angles were formed, as posenc precision names it: all ways that explain them ("exact",
  // "hf_float", "float_product" …); empty: none that is known.
  std::vector<std::string> angles = {};
  // Slips that explain what is seen: no rotation at all (interleaved_table, head_index …), or one
  // applied twice (rotated_twice). docs/codes.md has every code.
  std::vector<Finding> findings = {};
  std::vector<std::string> cannot_tell = {};  // sentences
  std::int64_t dim = 0;                       // channels of the dump
};
std::string to_json(const Identified& identified);

// A table of cosines and sines: what is rotated by it.
enum class TableColumns {
  pairs,         // one for each pair
  concatenated,  // each twice, the second half as the first
  interleaved,   // each twice, side by side
};
constexpr std::string_view name(TableColumns columns) {
  constexpr std::string_view names[] = {"pairs", "concatenated", "interleaved"};
  return names[static_cast<std::size_t>(columns)];
}

// What tables of cosines and sines are made of.
struct IdentifiedTable {
  TableColumns columns = TableColumns::pairs;
  bool exchanged = false;   // cosines and sines were given the other way round
  DType kept = DType::f32;  // the narrowest type that holds every number
  Identified rotation =
      {};  // its pairs are those of the table; `offset` is the position of the first row
};
std::string to_json(const IdentifiedTable& table);

// cos and sin [position][pair or channel]. Errors: shapes that differ, fewer than two rows, more
// than 2^26 numbers, numbers that are not finite.
Expected<IdentifiedTable> identify_table(const Tensor& cos, const Tensor& sin);

// A table of vectors that are added to embeddings.
struct IdentifiedVectors {
  bool sinusoidal = false;  // else nothing is periodic: learned, or of a kind that is not known
  WaveLayout layout = WaveLayout::interleaved;
  bool cosine_first = false;
  WaveSpacing spacing = WaveSpacing::width;
  double base = 0, scale = 1;               // scale multiplies the vectors
  std::optional<std::int64_t> offset = {};  // row p has the vector of position p + offset
  std::vector<std::int64_t> zero_rows = {};
  DType kept = DType::f32;
  double residual = 0;
  std::vector<std::string> cannot_tell = {};
};
std::string to_json(const IdentifiedVectors& vectors);

// values [position][channel]. Errors: as above.
Expected<IdentifiedVectors> identify_vectors(const Tensor& values);

// What was found of one layer of several.
struct IdentifiedLayer {
  std::string name = {};  // of the tensor
  Identified found = {};
};
// Layers that rotate alike as far as their dumps show it, by their place in the list; the largest
// group first.
std::vector<std::vector<std::size_t>> alike(std::span<const IdentifiedLayer> layers);
// {"layers": [{"name", …}], "groups": [["name"]]}
std::string to_json(std::span<const IdentifiedLayer> layers);

// What llama-eval-callback printed of a rotation: the entries at both ends of each axis.
struct PrintedRotation {
  std::string name = {};    // "Kcur-0"
  std::int64_t layer = -1;  // -1: the name has none
  std::int64_t dim = 0;
  std::vector<std::int64_t> heads = {}, tokens = {}, channels = {};  // that were printed
  std::vector<double> before = {}, after = {};                       // [head][token][channel]
};
// Every result of ROPE in the text, with its source. Errors: none, numbers that are not
// finite.
Expected<std::vector<PrintedRotation>> read_eval_callback(std::string_view text,
                                                          std::string_view where);

// Token indices are taken for positions. Only interleaved pairing can be recognized: `cannot_tell`
// says so.
Expected<Identified> identify(const PrintedRotation& printed);

// Which pairs of channels an engine rotated, by which angles, from tensors alone. Errors: shapes
// that do not agree, fewer than two tokens, more than 8 axes of positions, more than 2^26 numbers,
// numbers that are not finite.
Expected<Identified> identify(const RotationDump& dump);

// Whose queries or keys a dump shows: the heads', or those of the indexer that picks keys.
enum class DumpedPart {
  by_width,  // the indexer's where it is as wide as they are, and no tensor of the heads is
  attention,
  indexer,
};

// Findings where `found` differs from the model's own plan in a layer of its text, compiled for
// `length` (0: as constructed): slips that are known (rotated_twice, backwards, other_layers,
// denominator …) before others. docs/codes.md has every code. Errors: no such layer, no indexer
// there where its tensors are told, what compile() says.
Expected<std::vector<Finding>> beside_model(const Identified& found, const Model& model,
                                            std::int64_t layer = 0, std::int64_t length = 0,
                                            DumpedPart part = DumpedPart::by_width);

// Adds to what was found without the model what beside_model() says, each code once. Of one pair
// that is odd the model knows more.
void add_beside(std::vector<Finding> beside, Identified& found);

// The same of a table: the note table_agrees for layers that it is right for, else how it differs
// from the nearest. layer −1: of any layer. length: of the text, for scalings that depend on it; a
// table as constructed serves as well. Errors: no such layer, what compile() says.
Expected<std::vector<Finding>> beside_model(const IdentifiedTable& table, const Model& model,
                                            std::int64_t layer = -1, std::int64_t length = 0);

// Where tokens really stand: the position that explains each one's rotation.
struct SolvedPositions {
  std::vector<std::int64_t> at = {};  // [token]
  Finding slip = {};  // how they came there: positions_restart, positions_wrapped, padding …
};

// Positions of a dump's tokens, if the model's own plan of the layer rotated them and they stand
// elsewhere than from.positions says: caches put together, ring buffers, padding on the left,
// prefixes of another text. nullopt: they stand where they are said to, or the plan does not
// explain every token. Errors: those of identify() and compile().
Expected<std::optional<SolvedPositions>> solve_positions(const RotationDump& from,
                                                         const Model& model, std::int64_t layer = 0,
                                                         std::int64_t length = 0);

}  // namespace posenc
