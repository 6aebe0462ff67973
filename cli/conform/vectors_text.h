// The files of vectors/, which the build embeds (cmake/embed_text.cmake).
#pragma once

#include <string_view>

namespace posenc::cli {

extern const std::string_view added_vectors, bias_vectors, cos_sin_vectors, frequencies_vectors,
    mask_vectors, mistakes_vectors, model_vectors, positions_vectors, rekey_vectors, rotate_vectors,
    scores_vectors;

}  // namespace posenc::cli
