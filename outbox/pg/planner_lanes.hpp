#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/bell.hpp"
#include "outbox/pg/client.hpp"
#include "outbox/pg/done_listener.hpp"

namespace outbox::pg {

class Lane;

// A planner's calls for coroutines on the io thread: one lane that writes, one that reads, and the
// listener for ends. Connections are opened by the first call that needs them. Calls throw
// StoreError as those of Client do.
class PlannerLanes {
 public:
    PlannerLanes(const std::string& dsn, asio::any_io_executor executor);
    ~PlannerLanes();
    PlannerLanes(const PlannerLanes&) = delete;
    PlannerLanes& operator=(const PlannerLanes&) = delete;

    asio::awaitable<std::string> enqueue(EnqueueCall call);
    asio::awaitable<std::string> compensate(CompensateCall call);
    // Empty text: unknown id.
    asio::awaitable<std::string> get(std::string operation_id);

    // Rings the bell, on the io thread, when the operation has ended, as long as the watch is kept.
    // A hint: look again after poll_interval() as well.
    [[nodiscard]] std::shared_ptr<void> watch(const std::string& operation_id, Bell& bell);
    [[nodiscard]] std::chrono::milliseconds poll_interval() const;

 private:
    void ended(const std::vector<std::string>& operation_ids);

    std::unique_ptr<Lane> write_;
    std::unique_ptr<Lane> read_;
    std::multimap<std::string, Bell*> waiting_;
    DoneListener listener_;  // last: it posts to the above
};

}  // namespace outbox::pg
