#pragma once

#include <boost/asio/awaitable.hpp>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "outbox/ids.hpp"

namespace outbox {

namespace asio = boost::asio;

using KeepHandle = std::function<asio::awaitable<void>(OperationId, Epoch, std::string)>;

// By value: the attempt may be gone before the store answered. What cannot be stored now is asked
// for again; an attempt never ends by it.
inline asio::awaitable<bool> keep_handle_of(
    KeepHandle keep, OperationId id, Epoch attempt, std::string handle
) {
    try {
        auto keeping = keep(std::move(id), attempt, std::move(handle));
        co_await std::move(keeping);
    } catch (const std::exception&) {
        co_return false;
    }
    co_return true;
}

// ToolCall::keep_handle of one attempt.
inline std::function<asio::awaitable<bool>(std::string)> handle_keeper(
    KeepHandle keep, OperationId id, Epoch attempt
) {
    return [keep = std::move(keep), id = std::move(id), attempt](std::string handle) {
        return keep_handle_of(keep, id, attempt, std::move(handle));
    };
}

}  // namespace outbox
