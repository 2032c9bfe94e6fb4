# The store, its lanes and plans: a second executable with a private Postgres of its own, because
# some of these tests change the whole server's settings.
add_executable(
  store_pg_tests
  lane_listener_pg_test.cpp
  lane_migrator_pg_test.cpp
  lane_planner_pg_test.cpp
  lane_pg_test.cpp
  plan_pg_test.cpp
  race_pg_test.cpp
  search_path_pg_test.cpp
  sql_tool_pg_test.cpp
  store_announce_pg_test.cpp
  store_complete_pg_test.cpp
  store_contract_pg_test.cpp
  store_late_pg_test.cpp
  store_lease_pg_test.cpp
  store_maintain_pg_test.cpp
  timeline_pg_test.cpp
  ${PROJECT_SOURCE_DIR}/tests/support/store_fixture.cpp)
target_link_libraries(store_pg_tests PRIVATE test_database store_contract outbox_pg Catch2::Catch2WithMain)

add_test(NAME pg_store
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/pg_cluster.sh $<TARGET_FILE:store_pg_tests>)
set_tests_properties(pg_store PROPERTIES LABELS pg TIMEOUT 900)
