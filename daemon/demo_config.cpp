#include "daemon/demo_config.hpp"

#include <string_view>

namespace outboxd {
namespace {

constexpr std::string_view kConfig = R"(version: 1
database: { dsn: "${env:OUTBOXD_DATABASE}", namespace: demo }
worker:
  name: demo
  concurrency: 8
  poll: { busy: 5ms, idle: 100ms }
  drain_timeout: 3s
  lease_margin: 500ms
admin: { listen: "127.0.0.1:ADMIN_PORT" }
log: { level: info, format: json }
defaults:
  timeout: 2s
  connect_timeout: 500ms
  retry: { max_attempts: 5, initial: 300ms, max: 1s, multiplier: 2, jitter: 0, give_up_after: 1h }
  reconcile: { settle: 500ms, interval: 300ms, max_interval: 1s, give_up_after: 1h }
tools:
  create_ticket:
    description: Open a ticket in the demo's ticket service.
    effect: write
    arguments:
      type: object
      required: [title]
      properties: { title: { type: string, maxLength: 200 } }
    execute:
      type: http
      method: POST
      url: http://127.0.0.1:DESK_PORT/tickets
      headers: { Idempotency-Key: "{{ operation.key }}" }
      json: { title: "{{ arguments.title }}", external_ref: "{{ operation.key }}" }
      outcomes:
        - { when: { status: 201 }, then: succeeded, result: { id: /id, url: /links/self } }
        - { when: { status: 422 }, then: rejected, code: /code, message: /message }
    reconcile:
      type: http
      method: GET
      url: http://127.0.0.1:DESK_PORT/tickets
      query: { external_ref: "{{ operation.key }}", limit: 2 }
      items: /tickets
      match: { /external_ref: "{{ operation.key }}" }
      must_equal: { /title: "{{ arguments.title }}" }
      result: { id: /id, url: /links/self }
      consistency: strong
)";

void replace_all(std::string& text, std::string_view from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

}  // namespace

std::string demo_config(int admin_port, int desk_port) {
    std::string text(kConfig);
    replace_all(text, "ADMIN_PORT", std::to_string(admin_port));
    replace_all(text, "DESK_PORT", std::to_string(desk_port));
    return text;
}

}  // namespace outboxd
