#include "daemon/ticket_desk.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <exception>
#include <iostream>
#include <utility>

#include "daemon/ticket_desk_rules.hpp"

namespace outboxd {

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::int64_t kPageLimit = 100;

ServerResponse json(int status, const outbox::Json& body) {
    ServerResponse response;
    response.status = status;
    response.body = outbox::to_text(body);
    return response;
}

ServerResponse done() {
    return json(200, outbox::Json(outbox::Json::Object{}));
}

// "/tickets/7/close" → 7 and "close".
std::pair<std::int64_t, std::string> ticket_path(const std::string& path) {
    std::string rest = path.substr(std::min(path.size(), std::string_view("/tickets/").size()));
    auto slash = std::min(rest.find('/'), rest.size());
    auto id = to_number(rest.substr(0, slash)).value_or(0);
    return {id, rest.substr(std::min(slash + 1, rest.size()))};
}

}  // namespace

TicketDesk::TicketDesk(asio::any_io_executor executor)
    : released_(executor, asio::steady_timer::time_point::max()),
      server_(executor, ServerOptions{}, [this](ServerRequest request) {
          return handle(std::move(request));
      }) {}

std::optional<std::string> TicketDesk::listen(int port) {
    return server_.listen("127.0.0.1", port);
}

asio::awaitable<ServerResponse> TicketDesk::handle(ServerRequest request) {
    const auto& method = request.method;
    const auto& path = request.path;
    if (path == "/tickets" && method == "POST") {
        auto creating = create(std::move(request));
        co_return co_await std::move(creating);
    }
    if (path == "/tickets" && method == "GET") {
        auto listing = list(std::move(request));
        co_return co_await std::move(listing);
    }
    if (path == "/count" && method == "GET") co_return count(request);
    if (path.starts_with("/tickets/")) co_return one(request);
    if (path == "/mode" && method == "POST") co_return set_mode(request);
    if (path == "/mode" && method == "DELETE") {
        rules_.clear();
        released_.cancel();
        co_return done();
    }
    if (path == "/release" && method == "POST") {
        released_.cancel();
        co_return done();
    }
    if (path == "/settings" && method == "POST") co_return set_settings(request);
    co_return problem(404, "Not found", "The ticket desk has nothing at this path.");
}

asio::awaitable<ServerResponse> TicketDesk::create(ServerRequest request) {
    ++creates_;
    auto parsed = outbox::parse_json(request.body);
    bool is_object = parsed.value && parsed.value->as_object() != nullptr;
    auto title = is_object ? text_member(*parsed.value, "title") : std::nullopt;
    if (!title || title->empty()) {
        outbox::Json body;
        body.set("code", "invalid_title");
        body.set("message", "A ticket needs a title.");
        co_return json(422, body);
    }
    auto reference = text_member(*parsed.value, "external_ref").value_or("");
    auto rule = take_rule(false, reference, *title);
    auto before = misbehave(rule, false);
    auto instead = co_await std::move(before);
    if (instead.status != 0) co_return instead;

    auto key = idempotency_ ? request.header("Idempotency-Key") : std::nullopt;
    auto response = json(201, describe(open_ticket(std::move(*parsed.value), key)));
    auto after = misbehave(rule, true);
    instead = co_await std::move(after);
    co_return instead.status != 0 ? instead : response;
}

asio::awaitable<ServerResponse> TicketDesk::list(ServerRequest request) {
    ++lists_;
    auto rule = take_rule(
        true,
        request.parameter("external_ref").value_or(""),
        request.parameter("title").value_or("")
    );
    auto before = misbehave(rule, false);
    auto instead = co_await std::move(before);
    if (instead.status != 0) co_return instead;
    auto response = page(request);
    auto after = misbehave(rule, true);
    instead = co_await std::move(after);
    co_return instead.status != 0 ? instead : response;
}

// What a rule says for the moment before or after the effect; status 0: nothing, go on.
asio::awaitable<ServerResponse> TicketDesk::misbehave(std::optional<DeskRule> rule, bool after) {
    ServerResponse go_on;
    go_on.status = 0;
    if (!rule) co_return go_on;
    auto is = [&](Behaviour at_first, Behaviour at_last) {
        return rule->behaviour == (after ? at_last : at_first);
    };
    if (is(Behaviour::drop_before, Behaviour::drop_after)) {
        ServerResponse drop;
        drop.drop = true;
        co_return drop;
    }
    if (is(Behaviour::error_before, Behaviour::error_after)) {
        co_return problem(500, "Internal error", "The ticket desk fell over.");
    }
    if (is(Behaviour::delay_before, Behaviour::delay_after)) {
        asio::steady_timer timer(
            co_await asio::this_coro::executor, std::chrono::milliseconds(rule->delay_ms)
        );
        co_await timer.async_wait(kTuple);
    }
    if (is(Behaviour::hold_before, Behaviour::hold_after)) {
        auto waiting = wait_for_release();
        co_await std::move(waiting);
    }
    if (rule->behaviour == Behaviour::refuse && !after) {
        outbox::Json body;
        body.set("code", "refused");
        body.set("message", "The ticket desk does not want this ticket.");
        auto response = json(rule->status, body);
        if (rule->retry_after) {
            response.headers.emplace_back("Retry-After", std::to_string(*rule->retry_after));
        }
        co_return response;
    }
    co_return go_on;
}

asio::awaitable<void> TicketDesk::wait_for_release() {
    ++held_;
    co_await released_.async_wait(kTuple);
    --held_;
}

std::optional<DeskRule> TicketDesk::take_rule(
    bool on_list, const std::string& external_ref, const std::string& title
) {
    auto found = std::find_if(rules_.begin(), rules_.end(), [&](const DeskRule& rule) {
        return matches(rule, on_list, external_ref, title);
    });
    if (found == rules_.end()) return std::nullopt;
    DeskRule rule = *found;
    if (found->next > 0 && --found->next == 0) rules_.erase(found);
    return rule;
}

TicketDesk::Ticket& TicketDesk::open_ticket(
    outbox::Json body, const std::optional<std::string>& key
) {
    if (key) {
        auto known = by_key_.find(*key);
        if (known != by_key_.end()) return tickets_[known->second];
        by_key_[*key] = tickets_.size();
    }
    Ticket ticket;
    ticket.id = static_cast<std::int64_t>(tickets_.size()) + 1;
    ticket.title = text_member(body, "title").value_or("");
    ticket.external_ref = text_member(body, "external_ref").value_or("");
    ticket.body = std::move(body);
    tickets_.push_back(std::move(ticket));
    return tickets_.back();
}

outbox::Json TicketDesk::describe(const Ticket& ticket) const {
    outbox::Json body = ticket.body;
    outbox::Json links;
    links.set(
        "self",
        "http://127.0.0.1:" + std::to_string(port()) + "/tickets/" + std::to_string(ticket.id)
    );
    body.set("id", ticket.id);
    body.set("state", ticket.closed ? "closed" : "open");
    body.set("links", std::move(links));
    return body;
}

ServerResponse TicketDesk::page(const ServerRequest& request) const {
    auto reference = request.parameter("external_ref");
    auto title = request.parameter("title");
    auto limit = to_number(request.parameter("limit").value_or("")).value_or(kPageLimit);
    auto after = to_number(request.parameter("cursor").value_or("")).value_or(0);
    limit = std::clamp<std::int64_t>(limit, 1, kPageLimit);
    outbox::Json::Array items;
    std::int64_t last = 0;
    bool more = false;
    for (const auto& ticket : tickets_) {
        if (ticket.id <= after || (reference && ticket.external_ref != *reference) ||
            (title && ticket.title != *title)) {
            continue;
        }
        more = static_cast<std::int64_t>(items.size()) == limit;
        if (more) break;
        items.push_back(describe(ticket));
        last = ticket.id;
    }
    outbox::Json body;
    body.set("tickets", std::move(items));
    body.set("has_more", more);
    body.set("next_cursor", more ? outbox::Json(std::to_string(last)) : outbox::Json());
    return json(200, body);
}

ServerResponse TicketDesk::count(const ServerRequest& request) const {
    auto reference = request.parameter("external_ref");
    auto title = request.parameter("title");
    auto matching = std::count_if(tickets_.begin(), tickets_.end(), [&](const Ticket& ticket) {
        return (!reference || ticket.external_ref == *reference) &&
               (!title || ticket.title == *title);
    });
    outbox::Json body;
    body.set("count", static_cast<std::int64_t>(matching));
    body.set("creates", creates_);
    body.set("lists", lists_);
    body.set("held", held_);
    return json(200, body);
}

ServerResponse TicketDesk::one(const ServerRequest& request) {
    auto [id, action] = ticket_path(request.path);
    if (id < 1 || id > static_cast<std::int64_t>(tickets_.size())) {
        return problem(404, "Not found", "There is no such ticket.");
    }
    auto& ticket = tickets_[static_cast<std::size_t>(id - 1)];
    if (action.empty() && request.method == "GET") return json(200, describe(ticket));
    if (action == "close" && request.method == "POST") {
        ticket.closed = true;
        return json(200, describe(ticket));
    }
    return problem(405, "Method not allowed", "A ticket can be read and closed.");
}

ServerResponse TicketDesk::set_mode(const ServerRequest& request) {
    auto rule = read_rule(request.body);
    if (const auto* wrong = std::get_if<std::string>(&rule)) {
        return problem(422, "Not understood", *wrong);
    }
    rules_.push_back(std::move(std::get<DeskRule>(rule)));
    return done();
}

ServerResponse TicketDesk::set_settings(const ServerRequest& request) {
    auto parsed = outbox::parse_json(request.body);
    const auto* member = parsed.value ? parsed.value->find("idempotency") : nullptr;
    const auto* on = member != nullptr ? member->as_bool() : nullptr;
    if (on == nullptr) return problem(422, "Not understood", "{\"idempotency\": true or false}");
    idempotency_ = *on;
    return done();
}

int run_ticket_desk(int port) {
    asio::io_context context{1};
    TicketDesk desk(context.get_executor());
    if (auto problem = desk.listen(port)) {
        std::cerr << *problem << "\n";
        return 1;
    }
    asio::signal_set signals(context, SIGTERM, SIGINT);
    signals.async_wait([&](const auto& ec, int) {
        if (!ec) desk.stop();
    });
    std::exception_ptr failure;
    auto ended = [&](const std::exception_ptr& error) {
        failure = error;
        signals.cancel();
    };
    asio::co_spawn(context, desk.run(), std::move(ended));
    std::cout << "{\"port\": " << desk.port() << "}" << std::endl;
    context.run();
    if (failure) std::rethrow_exception(failure);
    return 0;
}

}  // namespace outboxd
