#include "tests/support/store_contract.hpp"

#include "outbox/json.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/memory_store.hpp"

namespace {

class MemoryDriver : public tests::StoreDriver {
 public:
    MemoryDriver() { tests::publish_contract_tools(store_); }
    outbox::Store& store() override { return store_; }
    void insert(Insert op) override {
        store_.insert(op.tool, op.id, {}, op.priority, op.run_in, op.expires_in);
    }
    bool cancel(const std::string& id) override { return store_.cancel(id); }
    bool retry(const std::string& id) override { return store_.retry(id); }
    std::string compensate(const std::string& id) override { return store_.compensate(id); }
    void ask(const std::string& id) override { store_.ask(id); }
    void pause(const std::string& tool, bool paused) override {
        paused ? store_.pause(tool) : store_.resume(tool);
    }
    void pass(std::chrono::milliseconds time) override { store_.advance(time); }
    tests::Seen see(const std::string& id) override {
        const auto& row = store_.row(id);
        return {
            .status = std::string(to_string(row.status)),
            .epoch = row.epoch,
            .attempts = row.attempts,
            .attention = row.attention ? std::string(to_string(*row.attention)) : "",
            .result = outbox::to_text(row.result),
            .error = row.error ? row.error->code : "",
            .events = row.event_kinds(),
            .ambiguous = row.ambiguous,
        };
    }

 private:
    test::MemoryStore store_;
};

}  // namespace

TEST_CASE("the store in memory keeps the store contract") {
    for (const auto& one : tests::store_contract()) {
        DYNAMIC_SECTION(one.name) {
            MemoryDriver driver;
            one.run(driver);
        }
    }
}
