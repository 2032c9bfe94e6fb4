#include "daemon/api_database.hpp"

#include "outbox/store.hpp"

namespace outboxd {

void ApiDatabase::refuse() {
    throw outbox::StoreError(
        outbox::StoreError::Kind::unavailable, "the database does not answer in time"
    );
}

}  // namespace outboxd
