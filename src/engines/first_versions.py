#!/usr/bin/env python3
"""Writes first_versions_table.h: the first release of each engine that has a class for a model_type.

Reads the lists of classes out of the wheels on PyPI, by ranges of bytes, and keeps the types that
posenc knows. Run it from the repository's root after a release: python3 src/engines/first_versions.py
"""
import glob
import io
import os
import re
import urllib.parse
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


class Remote(io.RawIOBase):
    """A file on a server, of which the parts that are asked for are fetched."""

    def __init__(self, url):
        self.url, self.at = url, 0
        head = urllib.request.urlopen(urllib.request.Request(url, method="HEAD"))
        self.size = int(head.headers["Content-Length"])

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = (0, self.at, self.size)[whence] + offset
        return self.at

    def readinto(self, buffer):
        count = min(len(buffer), self.size - self.at)
        if count <= 0:
            return 0
        span = {"Range": f"bytes={self.at}-{self.at + count - 1}"}
        data = urllib.request.urlopen(urllib.request.Request(self.url, headers=span)).read()
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def order(version):
    return tuple(map(int, version.split(".")))


def wheels(package):
    """{version: address}, the oldest first; of several builds one."""
    page = urllib.request.urlopen(f"{INDEX}/{package}/").read().decode()
    found = {}
    for address, name in re.findall(r'href="([^"]+)"[^>]*>([^<]+)<', page):
        match = re.match(rf"{package}-(\d+\.\d+\.\d+)-.*(x86_64|any)\.whl$", name)
        if match:
            found[match[1]] = urllib.parse.urljoin(f"{INDEX}/{package}/", address.split("#")[0])
    return dict(sorted(found.items(), key=lambda item: order(item[0])))


def of_transformers(wheel):
    types = set()
    for name in wheel.namelist():
        if re.search(r"models/auto/(configuration_auto|auto_mappings)\.py$", name):
            text = wheel.read(name).decode()
            rows = re.search(r"CONFIG_MAPPING_NAMES\b.*?\[(.*?)\n\s*\]", text, re.S)
            types |= set(re.findall(r'\(\s*"([^"]+)",', rows[1])) if rows else set()
    return types


def of_vllm(wheel):
    classes = set()
    for name in wheel.namelist():
        if re.search(r"vllm/model_executor/models/(registry|__init__)\.py$", name):
            classes |= set(re.findall(r'^\s+"(\w+)":\s*\(', wheel.read(name).decode(), re.M))
    return classes


def of_sglang(wheel):
    classes = set()
    for name in wheel.namelist():
        if re.search(r"sglang/srt/models/\w+\.py$", name):
            text = wheel.read(name).decode()
            for entry in re.finditer(r"^EntryClass\s*=\s*(\[.*?\]|\w+)", text, re.M | re.S):
                classes |= set(re.findall(r"\w+", entry[1]))
    return classes


def squashed(name):
    """A type or a class as one word: Qwen3MoeForCausalLM and qwen3_moe are qwen3moe."""
    for end in ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "Model"):
        name = name.removesuffix(end)
    return re.sub(r"[_-]", "", name).lower()


def known_types():
    types = set()
    for path in glob.glob("src/model/families/rows*.cc"):
        for row in re.findall(r'\.types\s*=\s*((?:"[^"]*"\s*)+)', open(path).read()):
            types |= set(" ".join(re.findall(r'"([^"]*)"', row)).split())
    return types


def first_versions(package, names_in, oldest):
    """{type: version} of the types that came after `oldest`."""
    by_word = {squashed(name): name for name in sorted(known_types())}
    addresses = {v: a for v, a in wheels(package).items() if order(v) >= order(oldest)}

    def read(address):
        return names_in(zipfile.ZipFile(io.BufferedReader(Remote(address), 1 << 20)))

    with ThreadPoolExecutor(6) as pool:
        all_names = dict(zip(addresses, pool.map(read, addresses.values())))
    first = {}
    for version, names in all_names.items():
        for name in names:
            if known := by_word.get(squashed(name)):
                first.setdefault(known, version)
    start = next(iter(all_names))
    return {name: version for name, version in first.items() if version != start}


def table(name, first):
    by_version = {}
    for kind, version in first.items():
        by_version.setdefault(version, []).append(kind)
    rows = []
    for version in sorted(by_version, key=order):
        words, line, lines = sorted(by_version[version]), "", []
        for word in words:
            if len(line) + len(word) > 80:
                lines.append(line)
                line = ""
            line += word + " "
        lines.append(line.rstrip())
        text = "\n     ".join(f'"{part}"' for part in lines)
        rows.append(f'    {{"{version}",\n     {text}}},')
    return f"inline constexpr Release {name}[] = {{\n" + "\n".join(rows) + "\n};\n"


HEAD = """// Written by first_versions.py: the types of models that each release was the first to have a class
// for. What the oldest release that was looked at has is not here.
#pragma once

#include <string_view>

namespace posenc {

struct Release {
  std::string_view version, types;
};

// clang-format off: as the script writes it.
"""

TAIL = """// clang-format on

}  // namespace posenc
"""

if __name__ == "__main__":
    tables = [
        table("of_transformers", first_versions("transformers", of_transformers, "4.38.0")),
        table("of_vllm", first_versions("vllm", of_vllm, "0.4.0")),
        table("of_sglang", first_versions("sglang", of_sglang, "0.3.0")),
    ]
    with open("src/engines/first_versions_table.h", "w") as file:
        file.write(HEAD + "\n".join(tables) + TAIL)
