#!/bin/sh
# angles.sh POSENC [--write]: src/angles.ts says phases and cosines as `POSENC emit --to wgsl` does; --write makes it say so.
set -eu
cd "$(dirname "$0")"
text=$("$1" emit --scheme rope --head_dim 4 --to wgsl)
part() { printf '%s\n' "$text" | sed -n "/^$1/,/^$2/p"; }
made=$(cat <<END
// Phases and their cosines as the kernels of \`posenc emit --to wgsl\` have them: angles.sh writes this file.
export const angles = /* wgsl */ \`
$(part '\/\/ The upper half' '\/\/ x \[tokens\]' | sed '$d')

// position · turns modulo 1; turns are four words, the lowest first. A position is signed where it is wide, else it is one word.
fn phase_of(position: vec2u, turns: vec4u) -> vec2u {
  let t3 = turns.w;
  let t2 = turns.z;
  let t1 = turns.y;
  let t0 = turns.x;
  let p1 = select(0u, position.y, wide);
  let p0 = position.x;
$(part '  \/\/ Word 1 of' '  let word3')
  return vec2u(word2, word3);
}

fn cos_sin(phase: vec2u) -> vec2f {
  let word2 = phase.x;
  let word3 = phase.y;
$(part '  \/\/ The quarter' '  let sin_phase')
  return vec2f(cos_phase, sin_phase);
}
\`
END
)
if [ "${2:-}" = --write ]; then printf '%s\n' "$made" >src/angles.ts
elif [ "$made" != "$(cat src/angles.ts)" ]; then
  echo "src/angles.ts is not what posenc emit says; bindings/webgpu/angles.sh POSENC --write makes it so" >&2
  printf '%s\n' "$made" | diff src/angles.ts - >&2
fi
