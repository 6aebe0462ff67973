// Diffusion transformers: a row for each kind, named by the class of diffusers that its config.json
// has as _class_name (diffusers 0.42.1). Those that no scheme says stand in rows_uncovered.cc.
// sizes: width, layers, heads, key-value heads, head_dim, single layers.
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// clang-format off: one row a family, as dense as it can be read.
constexpr Family diffusion[] = {
    {.types = "FluxTransformer2DModel ChromaTransformer2DModel LongCatImageTransformer2DModel",
     .read = read_diffusion, .sizes = {0, 19, 24, 0, 128, 38}, .rope = {.theta = 10000},
     .axes = {.keys = "axes_dims_rope", .dims = "16 56 56"}},
    {.types = "BriaTransformer2DModel", .read = read_diffusion, .sizes = {0, 19, 24, 0, 128, 38},
     .rope = {.theta = 10000, .theta_keys = "rope_theta"},
     .axes = {.keys = "axes_dims_rope", .dims = "16 56 56"}},
    {.types = "OvisImageTransformer2DModel", .read = read_diffusion,
     .sizes = {0, 6, 24, 0, 128, 27}, .rope = {.theta = 10000},
     .axes = {.keys = "axes_dims_rope", .dims = "16 56 56"}},
    {.types = "Flux2Transformer2DModel", .read = read_diffusion, .sizes = {0, 8, 48, 0, 128, 48},
     .rope = {.theta = 2000, .theta_keys = "rope_theta"},
     .axes = {.keys = "axes_dims_rope", .dims = "32 32 32 32"}},
    {.types = "HiDreamImageTransformer2DModel", .read = read_diffusion,
     .sizes = {0, 16, 20, 0, 128, 32}, .rope = {.theta = 10000},
     .axes = {.keys = "axes_dims_rope", .dims = "32 32"}},
    {.types = "QwenImageTransformer2DModel", .read = read_diffusion, .sizes = {0, 60, 24, 0, 128},
     .rope = {.theta = 10000}, .axes = {.keys = "axes_dims_rope", .dims = "16 56 56"},
     .remark = "rows and columns of a picture are counted from its middle, to both sides, and text goes on behind "
               "the half of the larger; positions here are not negative: add the same number to all of an axis, "
               "which changes no logit"},
    {.types = "HunyuanVideoTransformer3DModel", .read = read_diffusion,
     .sizes = {0, 20, 24, 0, 128, 40}, .rope = {.theta = 256, .theta_keys = "rope_theta"},
     .axes = {.keys = "rope_axes_dim", .dims = "16 56 56"},
     .remark = "text tokens are not rotated"},
    {.types = "HunyuanVideo15Transformer3DModel", .read = read_diffusion,
     .sizes = {0, 54, 16, 0, 128}, .rope = {.theta = 256, .theta_keys = "rope_theta"},
     .axes = {.keys = "rope_axes_dim", .dims = "16 56 56"},
     .remark = "text tokens are not rotated"},
    {.types = "HunyuanImageTransformer2DModel", .read = read_diffusion,
     .sizes = {0, 20, 28, 0, 128, 40}, .rope = {.theta = 256, .theta_keys = "rope_theta"},
     .axes = {.keys = "rope_axes_dim", .dims = "64 64"}, .remark = "text tokens are not rotated"},
    {.types = "ZImageTransformer2DModel", .read = read_diffusion, .sizes = {3840, 30, 30},
     .rope = {.theta = 256, .theta_keys = "rope_theta"},
     .axes = {.keys = "axes_dims", .dims = "32 48 48"}},
    {.types = "Lumina2Transformer2DModel", .read = read_diffusion, .sizes = {2304, 26, 24, 8},
     .rope = {.theta = 10000}, .axes = {.keys = "axes_dim_rope", .dims = "32 32 32"}},
    {.types = "WanTransformer3DModel WanVACETransformer3DModel", .read = read_diffusion,
     .sizes = {0, 40, 40, 0, 128}, .rope = {.theta = 10000}},
    // The same, as the repository of Wan itself writes it: dim and num_heads.
    {.types = "WanModel", .read = read_diffusion, .sizes = {2048, 32, 16},
     .rope = {.theta = 10000}},
    {.types = "SkyReelsV2Transformer3DModel", .read = read_diffusion, .sizes = {0, 32, 16, 0, 128},
     .rope = {.theta = 10000}},
};
// clang-format on

}  // namespace

std::span<const Family> rows_diffusion() { return diffusion; }

}  // namespace posenc::detail
