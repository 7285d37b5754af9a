# Manual pages and completion scripts, made by the command itself after each build of it, and where they are installed.
set(pages ${PROJECT_BINARY_DIR}/pages)
set(shells bash zsh fish)
set(scripts)
foreach(shell IN LISTS shells)
  list(APPEND scripts COMMAND reprise_cli completion ${shell} > ${pages}/${shell})
endforeach()
add_custom_command(TARGET reprise_cli POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}  # a command that is gone must not leave its page
  COMMAND reprise_cli man --all ${pages}/man1
  ${scripts}
  COMMENT "Manual pages and completion scripts")

if(REPRISE_INSTALL)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${pages}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME reprise)
  install(FILES ${pages}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _reprise)
  install(FILES ${pages}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME reprise.fish)
endif()
