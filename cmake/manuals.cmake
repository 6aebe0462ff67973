# Pages for man and completion for three shells, printed by the command itself and installed where each is looked for.
set(manuals ${CMAKE_CURRENT_BINARY_DIR}/manuals)
set(completions)
foreach(shell IN ITEMS bash zsh fish)
  list(APPEND completions COMMAND posenc_command completion ${shell} > ${manuals}/posenc.${shell})
endforeach()
add_custom_command(OUTPUT ${manuals}/posenc.bash
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manuals}
  COMMAND posenc_command man --into ${manuals}/man1 ${completions}
  DEPENDS posenc_command VERBATIM)
add_custom_target(posenc_manuals ALL DEPENDS ${manuals}/posenc.bash)
if(POSENC_INSTALL)
  install(DIRECTORY ${manuals}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
  set(share ${CMAKE_INSTALL_DATADIR})
  install(FILES ${manuals}/posenc.bash DESTINATION ${share}/bash-completion/completions RENAME posenc OPTIONAL)
  install(FILES ${manuals}/posenc.zsh DESTINATION ${share}/zsh/site-functions RENAME _posenc OPTIONAL)
  install(FILES ${manuals}/posenc.fish DESTINATION ${share}/fish/vendor_completions.d OPTIONAL)
endif()
