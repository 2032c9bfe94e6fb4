#pragma once

// A thin client of outboxd on libpqxx. Every call but wait and retry_transaction joins the
// transaction it is given, and neither commits nor opens one.

#include "outboxd/calls.hpp"
#include "outboxd/errors.hpp"
#include "outboxd/receipt.hpp"
#include "outboxd/request.hpp"
#include "outboxd/wait.hpp"
