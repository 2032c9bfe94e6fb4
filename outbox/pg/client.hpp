#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/pg/retention.hpp"
#include "outbox/pg/session.hpp"

namespace outbox::pg {

// Parameters of outbox.enqueue; what is empty takes the function's default.
struct EnqueueCall {
    std::string tool;
    std::string arguments = "{}";  // JSON text
    std::optional<std::string> operation_id;
    std::optional<std::string> run_id;
    std::optional<int> occurrence;
    std::optional<int> priority;
    std::optional<std::string> run_at;  // as Postgres reads a timestamptz
    std::optional<std::string> expires_at;
    std::optional<int> max_attempts;
    std::optional<std::string> traceparent;
    std::optional<std::string> labels;  // JSON text
    bool retry_failed = false;
};

// Parameters of outbox.compensate.
struct CompensateCall {
    std::string operation_id;
    std::optional<std::string> name;  // empty: the only one
    std::string arguments = "{}";     // JSON text
    std::optional<std::string> reason;
};

// The three calls of a planner, on whatever session; rows as Client gives them.
[[nodiscard]] std::string enqueue(Session& session, const EnqueueCall& call);
[[nodiscard]] std::string compensate(Session& session, const CompensateCall& call);
// Empty: unknown id.
[[nodiscard]] std::optional<std::string> get(Session& session, const std::string& operation_id);

struct ListFilter {
    std::vector<std::string> statuses;  // empty: all
    std::optional<std::string> tool;
    std::optional<std::chrono::milliseconds> older_than;
    bool attention = false;
    std::int64_t limit = 100;
    std::optional<std::int64_t> after;  // seq behind which to go on
};

// As outbox.list takes them: statuses, tool, age in ms, attention, after, limit.
[[nodiscard]] Parameters list_parameters(const ListFilter& filter);

// What a person found out about an operation that is unknown; parameters of outbox.resolve.
struct ResolveCall {
    std::string operation_id;
    std::string verdict;  // applied | not_applied
    std::string reason;
    std::string actor;
    int expected_epoch = 0;
    std::optional<std::string> result;  // JSON text
};

// What to do with everything that a filter matches.
enum class Bulk { match, cancel, retry };

// How many were answered with which word.
using Answers = std::map<std::string, std::int64_t>;

// The schema does not fit this build: missing, too old, or changed by a newer one.
class SchemaMismatch : public StoreError {
 public:
    explicit SchemaMismatch(const std::string& what) : StoreError(Kind::bug, what) {}
};

// One-shot, blocking calls for the command line; rows are JSON text with stable keys.
// The constructor throws SchemaMismatch; all throw StoreError: unavailable when the database cannot
// be reached, SqlError (pg_error.hpp) with SQLSTATE, DETAIL and HINT for what the server refused,
// OB4xx among them.
class Client {
 public:
    explicit Client(const std::string& dsn);
    // On a session of somebody else, whose schema was looked at already; it outlives the client.
    explicit Client(Session& session) : session_(session) {}

    [[nodiscard]] std::string enqueue(const EnqueueCall& call);
    [[nodiscard]] std::string compensate(const CompensateCall& call);
    // Empty: unknown id.
    [[nodiscard]] std::optional<std::string> get(const std::string& operation_id);
    // How the last attempt of an open operation ended, as JSON text; empty when it has none, or
    // when this role may not look into the view.
    [[nodiscard]] std::optional<std::string> last_error(const std::string& operation_id);
    [[nodiscard]] std::vector<std::string> events(const std::string& operation_id);
    [[nodiscard]] std::vector<std::string> list(const ListFilter& filter);

    // The words of the contract: cancelled, too_late, armed, not_failed, paused, …
    [[nodiscard]] std::string cancel(
        const std::string& operation_id, const std::optional<std::string>& reason
    );
    [[nodiscard]] std::string retry(const std::string& operation_id, const std::string& reason);
    [[nodiscard]] std::string probe(const std::string& operation_id);
    [[nodiscard]] std::string acknowledge(
        const std::string& operation_id, const std::string& reason, const std::string& actor
    );
    [[nodiscard]] std::string resolve(const ResolveCall& call);
    // All that match, up to the filter's limit, in transactions of a few rows each. What was done
    // before an error stays done, and is in `answers`.
    void bulk(Bulk what, const ListFilter& filter, const std::string& reason, Answers& answers);
    [[nodiscard]] std::string pause_tool(const std::string& tool, const std::string& reason);
    [[nodiscard]] std::string resume_tool(const std::string& tool);
    [[nodiscard]] std::vector<std::string> tools();
    // outbox.stats(): what is open, and what was enqueued and replayed.
    [[nodiscard]] std::vector<std::string> stats();
    [[nodiscard]] std::vector<std::string> workers();

    // As in retention.hpp.
    [[nodiscard]] PrunePage prune(
        Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
    );
    [[nodiscard]] ForgetPage forget_keys(
        std::chrono::milliseconds older_than, std::int64_t after, int rows, bool dry_run
    );

    // The namespace recorded in this database, which is `wanted` when none was yet. The daemon
    // refuses to start when it is another one: every provider key depends on it.
    [[nodiscard]] std::string claim_namespace(const std::string& wanted);
    // derive_id over the tool's dedup.fields, as enqueue uses it.
    [[nodiscard]] std::string derive_id(
        const std::string& tool,
        const std::string& arguments,
        const std::string& run_id,
        int occurrence
    );

 private:
    // Calls on_row with seq and second column of every row, newest first, up to the filter's limit.
    template <class OnRow>
    void walk(
        const std::string& statement,
        const ListFilter& filter,
        std::int64_t page,
        const std::optional<std::string>& reason,
        OnRow on_row
    );

    std::unique_ptr<Session> own_;  // null: somebody else's
    Session& session_;
};

}  // namespace outbox::pg
