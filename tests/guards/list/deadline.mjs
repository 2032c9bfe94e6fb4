// The deadline: on the boot clock, from before the lease statement, right before the first byte.
import { core, guard, http, store, tools, twice } from '../tests.mjs';

const client = 'tools/http_client.cpp';

export default [
  guard('boot-clock', 'the clock goes on while the machine sleeps', 'outbox/clock.cpp',
    'CLOCK_BOOTTIME', 'CLOCK_MONOTONIC', core('the boot clock counts what a suspended machine sleeps')),
  guard('deadline-starts', 'the worker\'s deadline starts before the lease statement is sent', 'outbox/leaser.cpp',
    'dispatch(std::move(leased), at);', 'dispatch(std::move(leased), BootClock::now());\n        (void)at;',
    core('a lease that took longer than the attempt may sends nothing')),
  guard('deadline-executor', 'it is read before the tool is called', 'outbox/executor.cpp',
    'if (deadline_of(dispatch).passed() || cut_) {', 'if (cut_) {',
    core('a lease that took longer than the attempt may sends nothing')),
  twice('deadline-first-byte', 'it is read right before the first byte', [
    [client, '        if (deadline.passed()) {\n            lease.reusable', '        if (cut_by_nobody) {\n            lease.reusable'],
    [client, '            if (deadline.passed()) break;\n', ''],
    [client, 'HttpFailure deadline_before_first_byte(', 'constexpr bool cut_by_nobody = false;\nHttpFailure deadline_before_first_byte('],
  ], http('a deadline that passed before the first byte sends nothing')),
  guard('deadline-half-written', 'a request half written is cut at the deadline', 'tools/http_connection.cpp',
    '    if (deadline_.passed()) {\n        expired_ = true;', '    if (deadline_.passed() && !watching_for_answer_) {\n        expired_ = true;',
    http('the deadline after the first byte', 'a request half written is cut, not finished')),
  guard('deadline-command', 'no command starts after it', 'tools/process_run.cpp',
    '    if (deadline.passed()) {\n        not_started.code = ETIME;', '    if (deadline.at == decltype(deadline.at){}) {\n        not_started.code = ETIME;',
    tools('killed, timed out, not started')),
  guard('deadline-sql', 'no statement is sent after it', 'outbox/pg/sql_database.cpp',
    '        if (call_.deadline.passed()) {\n            end.failure', '        if (call_.deadline.at == decltype(call_.deadline.at){}) {\n            end.failure',
    store('the deadline bounds everything: before, during and after the statement')),
  guard('deadline-sql-commit', 'nothing is committed after it', 'outbox/pg/sql_database.cpp',
    '            if (call_.deadline.passed()) {\n                transaction->abort', '            if (call_.deadline.at == decltype(call_.deadline.at){}) {\n                transaction->abort',
    store('the deadline bounds everything: before, during and after the statement')),
  guard('answer-at-deadline', 'an answer that arrived whole counts whenever it is read', 'tools/http_connection.cpp',
    '    co_return read_present(into);', '    co_return Transfer{asio::error::operation_aborted, 0 * into.size()};',
    http('an answer that arrived whole counts, whenever it is read')),
];
