#!/bin/sh
# versions.sh ROOT: what is published says the version and the address of CMakeLists.txt, where it cannot read them.
cd "$1" || exit 2
version=$(sed -nE 's/^project\(posenc VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
home=$(sed -nE 's/.*HOMEPAGE_URL "([^"]+)".*/\1/p' CMakeLists.txt)
failed=0
says() {  # FILE TEXT
  grep -qF -- "$2" "$1" || { echo "$1 must say: $2"; failed=1; }
}
says CHANGELOG.md "## [$version]"
says CITATION.cff "version: $version"
says CITATION.cff "repository-code: $home"
says bindings/npm/package.json "\"version\": \"$version\""
says bindings/npm/package.json "\"homepage\": \"$home\""
says bindings/webgpu/package.json "\"version\": \"$version\""
says bindings/webgpu/package.json "\"posenc\": \"$version\""
says bindings/webgpu/package.json "\"homepage\": \"$home\""
says bindings/rust/Cargo.toml "version = \"$version\""
says bindings/rust/Cargo.toml "homepage = \"$home\""
says bindings/rust/Cargo.toml "repository = \"$home\""
says bindings/go/go.mod "module ${home#https://}/bindings/go"
says bindings/go/posenc_test.go "e.Version() != \"$version\""
says vectors/pyproject.toml "version = \"$version\""
says vectors/package.json "\"version\": \"$version\""
says vectors/Cargo.toml "version = \"$version\""
says vectors/go.mod "module ${home#https://}/vectors"
says packaging/conda/recipe.yaml "version: $version"
says packaging/vcpkg/vcpkg.json "\"version\": \"$version\""
says packaging/vcpkg/vcpkg.json "\"homepage\": \"$home\""
says packaging/homebrew/posenc.rb "url \"$home/archive/v$version.tar.gz\""
says packaging/conan/conanfile.py "homepage = \"$home\""
says packaging/debian/control "Homepage: $home"
[ "$failed" = 0 ] && echo "everything says $version, $home"
exit "$failed"
