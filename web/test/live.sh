#!/bin/sh
# live.sh POSENC: web/test/live.json, what the native lab makes of texts that test/live.test.ts gives the page's model.
cd "$(dirname "$0")/.." || exit 2
posenc=$(cd .. && realpath "$1")
text=$(mktemp) && trap 'rm -f "$text"' EXIT
printf '[\n'
comma=
for scheme in rope 'rope pairing=interleaved' 'rope rope_theta=500000' 'rope rope_type=yarn factor=4 original_max_position_embeddings=128'; do
  for bytes in 90 400; do
    { tail -c "$bytes" src/assets/live.txt; printf 'My lord, '; } >"$text"
    printf '%s{"scheme":"%s","before":%d,"said":%s}' "$comma" "$scheme" "$bytes" \
      "$("$posenc" lab say src/assets/live.safetensors "$text" --scheme "$scheme" --json --bytes 0)"
    comma=",
"
  done
done
printf '\n]\n'
