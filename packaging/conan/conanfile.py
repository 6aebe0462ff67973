import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy

root = Path(__file__).parents[2]


class Posenc(ConanFile):
    name = "posenc"
    description = "Positional encodings for transformers: computed exactly, explained, and checked in models' files"
    license = "Apache-2.0"
    homepage = "https://example.org/posenc"
    author = "posenc developers"
    topics = ("transformer", "positional-encoding", "rope", "alibi", "yarn")
    settings = "os", "compiler", "build_type", "arch"
    package_type = "static-library"
    no_copy_source = True

    def set_version(self):
        text = (root / "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(posenc VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        for name in ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
            copy(self, name, root, self.export_sources_folder)
        for name in ("include", "src", "cmake", "models", "docs", "examples", "bindings/npm", "backends", "evidence", "cli"):
            copy(self, "*", root / name, Path(self.export_sources_folder) / name)

    def requirements(self):
        self.requires("highway/[>=1.0.3]")
        self.requires("nlohmann_json/[>=3.11]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        tools = CMakeToolchain(self)
        tools.variables.update({"POSENC_CLI": False, "POSENC_TESTS": False, "POSENC_SHARED": False})
        tools.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()  # what install() takes: the libraries of claims and bench as well

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["posenc"]
        self.cpp_info.set_property("cmake_file_name", "posenc")
        self.cpp_info.set_property("cmake_target_name", "posenc::posenc")
