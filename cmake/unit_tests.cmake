# What ctest knows of posenc_tests. A process for each of its more than three thousand tests would start for longer than
# it tests, so that they are dealt to a few, called shards. The output of one that fails names the test, which
#   build/release/posenc_tests --gtest_filter=NAME
# runs alone. POSENC_TEST_EACH makes each a test of ctest's, in a process of its own.
option(POSENC_TEST_EACH "ctest lists every unit test, and runs it in a process of its own")

# In one process, which computes each claim once.
set(claims Claims.* */EveryClaim.* Verify.*)
# What runs programs (the command, gnuplot) again and again, or computes for seconds.
set(slow *Command.* AnglesFlag.* Bench.* Hostile* */Hostile* Link.* NoPlainFile* */Page.* Plot.* Serve*
    */Attend.* */AttendBackward.* */ContentGradients.* */DamagedModel.* */RotateKernel.*)

# The tests that the filter lets through, in `count` processes.
function(shards name count filter)
  foreach(shard RANGE 1 ${count})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND posenc_tests --gtest_brief=1 "--gtest_filter=${filter}")
    # tests/main.cc stops a test that does not end.
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 3600 LABELS ${name}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

if(POSENC_TEST_EACH)
  include(GoogleTest)
  gtest_discover_tests(posenc_tests DISCOVERY_TIMEOUT 60)
else()
  list(JOIN claims ":" claims)
  list(JOIN slow ":" slow)
  shards(claims 1 "${claims}")
  shards(slow 8 "${slow}")
  shards(quick 4 "-${claims}:${slow}")
endif()
