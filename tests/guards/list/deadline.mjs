// The deadline: on the boot clock, from before the lease statement, right before the first byte.
import { core, guard, http, store, tools, twice } from '../tests.mjs';

const client = 'tools/http_client.cpp';

export default [
  guard('boot-clock', 'the clock goes on while the machine sleeps', 'outbox/clock.cpp',
    'clock_gettime(«CLOCK_BOOTTIME», &now)', 'CLOCK_MONOTONIC', core('the boot clock counts what a suspended machine sleeps')),
  guard('deadline-starts', 'the worker\'s deadline starts before the lease statement is sent', 'outbox/leaser.cpp',
    'dispatch(std::move(leased), «at»);', 'BootClock::now()',
    core('a lease that took longer than the attempt may sends nothing')),
  guard('deadline-executor', 'it is read before the tool is called', 'outbox/executor.cpp',
    'if («deadline_of(dispatch).passed() || cut_») {', 'cut_',
    core('a lease that took longer than the attempt may sends nothing')),
  twice('deadline-first-byte', 'it is read right before the first byte', [
    [client, 'if («deadline.passed()») {\n            lease.reusable', 'false'],
    [client, 'if («deadline.passed()») break;', 'false'],
  ], http('a deadline that passed before the first byte sends nothing')),
  guard('deadline-half-written', 'a request half written is cut at the deadline', 'tools/http_connection.cpp',
    'if («deadline_.passed()») {\n        expired_ = true;', 'deadline_.passed() && !watching_for_answer_',
    http('the deadline after the first byte', 'a request half written is cut, not finished')),
  twice('deadline-command', 'no command starts after it', [
    ['tools/process_run.cpp', 'if («deadline.passed()») {\n        not_started.code = ETIME;', 'false'],
    ['tools/command_keeper.cpp', 'if («passed(plan.deadline)») {\n        errno = ETIME;', 'false'],
    ['tools/command_keeper.cpp', 'if («error == 0 && passed(plan.deadline)») error = ETIME;', 'false'],
  ], tools('killed, timed out, not started')),
  guard('deadline-sql', 'no statement is sent after it', 'outbox/pg/sql_run.cpp',
    'if («call_.deadline.passed()») {\n            end.failure', 'false',
    store('the deadline bounds everything: before, during and after the statement')),
  guard('deadline-sql-commit', 'nothing is committed after it', 'outbox/pg/sql_run.cpp',
    'if («call_.deadline.passed()») {\n                transaction->abort', 'false',
    store('the deadline bounds everything: before, during and after the statement')),
  guard('answer-at-deadline', 'an answer that arrived whole counts whenever it is read', 'tools/http_connection.cpp',
    'co_return «read_present(into)»;', 'Transfer{asio::error::operation_aborted, 0}',
    http('an answer that arrived whole counts, whenever it is read')),
];
