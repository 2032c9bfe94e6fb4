#include "outbox/ids.hpp"
