#include "daemon/api_database.hpp"

namespace outboxd {

void ApiDatabase::refuse(Late kind) {
    throw outbox::StoreError(kind, "the database does not answer in time");
}

}  // namespace outboxd
