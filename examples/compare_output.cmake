# cmake -D PROGRAM=… [-D ARGUMENT=…] -D EXPECTED=… -P compare_output.cmake: the program must succeed and print exactly the expected text.
execute_process(COMMAND ${PROGRAM} ${ARGUMENT} OUTPUT_VARIABLE actual RESULT_VARIABLE code)
file(READ ${EXPECTED} expected)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}:\n${actual}")
endif()
if(NOT actual STREQUAL expected)
  message(FATAL_ERROR "expected:\n${expected}\nactual:\n${actual}")
endif()
