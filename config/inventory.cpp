#include "config/inventory.hpp"

namespace config {
namespace {

thread_local Inventory* recorded = nullptr;

}  // namespace

Inventory::Recording::Recording(Inventory& inventory) {
    recorded = &inventory;
}

Inventory::Recording::~Recording() {
    recorded = nullptr;
}

Inventory* Inventory::current() {
    return recorded;
}

}  // namespace config
