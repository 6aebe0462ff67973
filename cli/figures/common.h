// What several kinds of pictures need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments/source.h"
#include "cli/figures/draw/figure.h"
#include "posenc/positions.h"
#include "posenc/schemes.h"

namespace CLI {
class App;
}

namespace posenc::cli {

// The encoding that --model or --scheme name, or `scheme` where neither is given; of a scheme,
// extents that no flag gives are `extents`, or usual ones where those are 0.
class Encoding {
 public:
  // takes_content: it may be a scheme that reads the content (Source::content).
  Encoding(CLI::App& app, std::string_view kind, std::string_view scheme, const Geometry& extents,
           bool takes_content = false);

  // `length` 0: as the model is constructed. A learned table may be missing.
  Expected<Plan> plan(std::int64_t length = 0) { return plan(Geometry{.length = length}); }
  // For tensors that fix some of the geometry (0: they do not).
  Expected<Plan> plan(Geometry of_tensor);

  Source& source() { return source_; }

  std::string name() const { return source_.title(); }  // "RoPE", "llama-3.1-8b", "gpt2, layer 3"
  bool of_model() const;                                // rather than of --scheme
  std::int64_t width() const { return source_.width(); }
  std::int64_t heads() const { return source_.heads(); }
  std::int64_t head_dim() const { return source_.head_dim(); }

 private:
  CLI::App& app_;
  Source source_;
  std::string scheme_;
  Geometry extents_;
};

// --positions, with a text to begin with; one sequence with one axis.
void add_positions(CLI::App& app, std::string& into, std::string_view doc);
Expected<Positions> one_row(const std::string& text, std::string_view kind,
                            bool several_axes = false);

// A list of whole numbers from 0, none at or above `end`.
Expected<std::vector<std::int64_t>> indices(const std::string& text, std::string_view flag,
                                            std::int64_t end);

// Errors: more numbers than a picture of this kind can be made of.
Expected<void> check_cells(std::int64_t rows, std::int64_t columns, std::string_view kind);

// The vectors of a plan's add part, [position][width]. Errors: it has none, a learned table that is
// not given, what the library says.
Expected<std::vector<double>> vectors(const Plan& plan, const Positions& positions,
                                      std::int64_t width, std::string_view kind);

// "6.28", "1,234", "20.5 million": positions for a full turn.
std::string wavelength_text(double frequency);

// "10,000", "0.5": the base of the frequencies in a title.
std::string base_text(double base);

// The height of a figure of square panels, with `beside` points of words to their left and right.
double square_height(std::int64_t panels, std::int64_t columns, double beside);

// Of `count` square panels, up to four beside each other, with the same axes.
Figure of_squares(std::size_t count, double beside);

// The error of an angle by position, over positions `least` to `most`, with bfloat16's line.
Panel angle_errors(double least, std::int64_t most);

// "0, 50 and 99".
std::string listed(const std::vector<std::int64_t>& values);

}  // namespace posenc::cli
