#include "outbox/pg/done_listener.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "outbox/json.hpp"

namespace outbox::pg {

using namespace std::chrono_literals;

DoneListener::DoneListener(std::string dsn, asio::any_io_executor executor, OnDone on_done)
    : executor_(std::move(executor)),
      on_done_(std::move(on_done)),
      thread_({std::move(dsn), "outbox_done", 5000ms}, *this) {}

// A JSON array of operation ids; what is none of ours is left alone.
void DoneListener::heard(std::string_view payload) {
    const auto parsed = parse_json(payload);
    const auto* array = parsed.value ? parsed.value->as_array() : nullptr;
    if (array == nullptr) {
        return;
    }
    std::vector<std::string> ids;
    for (const auto& one : *array) {
        if (const auto* id = one.as_string()) {
            ids.push_back(*id);
        }
    }
    asio::post(executor_, [this, ids = std::move(ids)] { on_done_(ids); });
}

}  // namespace outbox::pg
