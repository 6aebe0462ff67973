#!/bin/sh
# test.sh [fetch]: the package's tests, without a network but to fetch what it depends on. 77:
# skipped, and why.
skip() { echo "skipped: $1"; exit 77; }
cd "$(dirname "$0")" || exit 1
command -v go >/dev/null 2>&1 || skip "there is no go here"
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOWORK=off
least=$(sed -n 's/^go //p' go.mod)
has=$(go env GOVERSION | sed 's/^go//; s/[- ].*//')
[ "$(printf '%s\n' "$least" "$has" | sort -V | head -n 1)" = "$least" ] || skip "Go $has is older than $least"
./build.sh || exit $?
[ "${1:-}" != fetch ] || go mod download || exit 1
export GOPROXY=off
why=$(go list -deps ./... 2>&1 >/dev/null) || skip "make go fetches what the package depends on: $(echo "$why" | head -n 1)"
odd=$(gofmt -l .)
[ -z "$odd" ] || { echo "gofmt would write otherwise: $odd"; exit 1; }
go vet ./... && exec go test ./...
