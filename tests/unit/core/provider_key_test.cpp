#include "outbox/provider_key.hpp"

#include <set>
#include <string>

#include "outbox/sha256.hpp"
#include "tests/support/catch.hpp"

using outbox::check_key_settings;
using outbox::KeySettings;
using outbox::OperationId;
using outbox::provider_key;
using Encoding = outbox::KeySettings::Encoding;

namespace {

std::string key(Encoding encoding, std::string prefix = "", std::size_t max_length = 255) {
    KeySettings settings;
    settings.encoding = encoding;
    settings.prefix = std::move(prefix);
    settings.max_length = max_length;
    return provider_key("default", OperationId("op-1"), settings);
}

bool fits(Encoding encoding, std::string prefix, std::size_t max_length) {
    KeySettings settings;
    settings.encoding = encoding;
    settings.prefix = std::move(prefix);
    settings.max_length = max_length;
    return !check_key_settings(settings).has_value();
}

}  // namespace

TEST_CASE("sha256 is SHA-256") {
    CHECK(
        outbox::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    CHECK(outbox::to_hex(outbox::sha256({"a", "", "bc"})) == outbox::sha256_hex("abc"));
}

TEST_CASE("the provider key in every encoding") {
    // Computed with Python: hashlib.sha256(b"default\0op-1"), base64.
    CHECK(key(Encoding::hex) == "62c1505d88e7c89538317da9ff2fe517059be9134225a2572d8188192928400f");
    CHECK(key(Encoding::uuid) == "62c1505d-88e7-4895-b831-7da9ff2fe517");
    CHECK(key(Encoding::base64url) == "YsFQXYjnyJU4MX2p_y_lFwWb6RNCJaJXLYGIGSkoQA8");
    CHECK(key(Encoding::base32hex) == "cb0l0nc8sv49ae1hfmkvubv52s2pnq8j88iq4lpdg641ia98807g");
    CHECK(key(Encoding::short_) == "YsFQXYjnyJU4MX2p_y_lFw");
    CHECK(
        key(Encoding::hex, "ob_", 30) ==
        std::string("ob_62c1505d88e7c89538317da9ff2fe517059be9134225a2572d8188192928400f")
            .substr(0, 30)
    );
}

TEST_CASE("another namespace or operation is another key") {
    const KeySettings settings;
    std::set<std::string> keys;
    keys.insert(provider_key("default", OperationId("op-1"), settings));
    keys.insert(provider_key("default", OperationId("op-2"), settings));
    keys.insert(provider_key("other", OperationId("op-1"), settings));
    keys.insert(provider_key("defaulto", OperationId("p-1"), settings));
    CHECK(keys.size() == 4);
}

TEST_CASE("at least 96 bits of the key must remain") {
    CHECK(fits(Encoding::hex, "", 24));
    CHECK_FALSE(fits(Encoding::hex, "", 23));
    CHECK_FALSE(fits(Encoding::hex, "p", 24));
    CHECK(fits(Encoding::base64url, "", 16));
    CHECK_FALSE(fits(Encoding::base64url, "", 15));
    CHECK(fits(Encoding::base32hex, "", 20));
    CHECK_FALSE(fits(Encoding::base32hex, "", 19));
    CHECK(fits(Encoding::short_, "", 255));
    CHECK_FALSE(fits(Encoding::short_, "", 15));
    CHECK(fits(Encoding::uuid, "", 36));
    CHECK_FALSE(fits(Encoding::uuid, "", 35));
    CHECK_FALSE(fits(Encoding::uuid, "p", 36));
    CHECK_FALSE(fits(Encoding::hex, std::string(300, 'p'), 255));
}
