# REPO and SHA512 are those of the released archive.
vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO OWNER/posenc REF "v${VERSION}" SHA512 0 HEAD_REF main)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DPOSENC_CLI=OFF -DPOSENC_TESTS=OFF -DPOSENC_SHARED=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/posenc)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
