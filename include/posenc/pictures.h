// Pictures and videos that are larger than a diffusion transformer was trained with: what each axis
// of its positions meets, what each scaling makes of it, and the words of the tools that people use
// (docs/extend.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/axis_scalings.h"
#include "posenc/error.h"
#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {

// Of a picture, in pixels, or of a video.
struct PictureSize {
  std::int64_t frames = 1, height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

// "4096x4096", "1080x1920", "161x720x1280": [frames, ]height and width. Errors: other forms, and
// sides outside 1 to 2^20.
Expected<PictureSize> picture_size(std::string_view text);

// What extend_picture() is asked for.
struct PictureOptions {
  PictureSize to = {};
  PictureSize trained = {};  // height 0: as its family is known to have it
};

// One axis of the positions that the picture runs along.
struct PictureAxis {
  std::string name = {};                   // "time", "height", "width"
  std::int64_t axis = 0;                   // of axes_dim
  std::int64_t trained = 0, wanted = 0;    // positions
  double factor = 1;                       // wanted over trained, at least 1
  std::int64_t pairs = 0, turning = 0;     // of the axis; of those: a full turn within training
  std::vector<std::int64_t> repeats = {};  // pairs that come round within the wanted positions and
                                           // did not in training, counted from 0 on this axis
  // Where positions are fractions of a range: where the last one stands, in seconds or pixels, and
  // where the range ends. 0: they are counted.
  double coordinate = 0, range = 0;
};

// A scaling, and what it does beside none.
struct PictureOption {
  std::string name = {};  // "as_is", "linear", "ntk", "yarn", "vision_yarn", "riflex"
  AxisScaling scaling = {};
  // [of PicturePlan::axes] pairs that meet angles which training has not shown.
  std::vector<std::vector<std::int64_t>> unseen = {};
  // [of PicturePlan::axes][pair] radians per position.
  std::vector<std::vector<double>> frequencies = {};
  // How many times smaller the angle between neighbours is than in training, of the fastest pair
  // and of the middle one of the axis that is stretched most.
  double fastest_pair = 1, middle_pair = 1;
  double magnitude = 1;  // the largest on cos and sin
};

// A plan for a larger picture or a longer video.
struct PicturePlan {
  PictureSize to = {}, trained = {};
  std::string trained_by = {};  // a sentence: who says so
  std::vector<PictureAxis> axes = {};
  std::vector<PictureOption> options = {};
  std::string recommended = {}, rule = {}, reason = {}, source = {};
  // The recommended option in the words of a tool, a line each: "ComfyUI-DyPE", "width 4096, …".
  std::vector<std::array<std::string, 2>> said = {};
  std::vector<std::string> unknown = {};  // sentences: what only looking tells
};
std::string to_json(const PicturePlan& plan);

// The same of a class that no scheme says, and whose coordinates are fractions of a fixed range:
// which share of it each axis takes, without pairs and options. Nothing: another class.
std::optional<PicturePlan> extend_fractions(std::string_view type, const PictureOptions& options);

// What a diffusion transformer was trained with, as its family is known to have it. Nothing: a
// family that is not known so.
std::optional<PictureSize> trained_size(const Model& model);

// Everything is computed from the model's file and its family's published sizes, nothing measured.
// Of an encoder whose patches each have a learned row: the grid that its table is stretched to
// (2010.11929), in patches, and no options. Errors: a model that is neither that nor a diffusion
// transformer with axial positions, one whose pixels per token nobody says.
Expected<PicturePlan> extend_picture(const Model& model, const PictureOptions& options);

}  // namespace posenc
