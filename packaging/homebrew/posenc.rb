# sha256 is that of the tag's archive.
class Posenc < Formula
  desc "Positional encodings of transformers: computed exactly, explained, checked in models"
  homepage "https://example.org/posenc"
  url "https://example.org/posenc/archive/v0.1.0.tar.gz"
  sha256 "0" * 64
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "cli11" => :build
  depends_on "nlohmann-json" => :build
  depends_on "fmt"
  depends_on "highway"
  depends_on "utf8proc"

  def install
    system "cmake", "-G", "Ninja", "-B", "build", "-DPOSENC_TESTS=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match "RoPE", shell_output("#{bin}/posenc explain llama-3.1-8b")
  end
end
