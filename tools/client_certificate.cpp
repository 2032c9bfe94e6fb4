#include "tools/client_certificate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <optional>

namespace tools {
namespace {

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Bio reading(const std::string& pem) {
    return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// A key under a passphrase is an error, not a question on the terminal.
int no_passphrase(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
}

std::optional<std::chrono::sys_seconds> time_of(const ASN1_TIME* time) {
    std::tm fields{};
    if (ASN1_TIME_to_tm(time, &fields) != 1) return std::nullopt;
    return std::chrono::sys_seconds(std::chrono::seconds(timegm(&fields)));
}

std::string day(std::chrono::sys_seconds at) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(at.time_since_epoch().count()));
}

CertificateProblem of_certificate(std::string message, std::string hint) {
    return {.in_key = false, .message = std::move(message), .hint = std::move(hint)};
}

CertificateProblem of_key(std::string message, std::string hint) {
    return {.in_key = true, .message = std::move(message), .hint = std::move(hint)};
}

}  // namespace

std::variant<ClientCertificate, CertificateProblem> read_client_certificate(
    std::string credential,
    std::string chain,
    std::string key,
    std::chrono::system_clock::time_point now
) {
    constexpr const char* kPem = "a PEM file begins with -----BEGIN";
    const Certificate leaf(PEM_read_bio_X509(reading(chain).get(), nullptr, nullptr, nullptr));
    bool asked = false;
    const Key secret(PEM_read_bio_PrivateKey(reading(key).get(), nullptr, no_passphrase, &asked));
    ERR_clear_error();
    if (!leaf) return of_certificate("holds no certificate", kPem);
    if (asked)
        return of_key("the key is under a passphrase", "openssl pkey -in KEY -out KEY.plain");
    if (!secret) return of_key("holds no private key", kPem);
    if (X509_check_private_key(leaf.get(), secret.get()) != 1) {
        ERR_clear_error();
        return of_key(
            "the key is not that of the certificate",
            "both come from one request: renew them together"
        );
    }
    const auto begins = time_of(X509_get0_notBefore(leaf.get()));
    const auto expires = time_of(X509_get0_notAfter(leaf.get()));
    if (!begins || !expires) return of_certificate("the certificate says no valid time", kPem);
    if (now >= *expires) {
        return of_certificate("the certificate expired at " + day(*expires), "renew it");
    }
    if (now < *begins) {
        return of_certificate(
            "the certificate is not valid before " + day(*begins), "is this machine's clock right?"
        );
    }
    return ClientCertificate{
        .credential = std::move(credential),
        .chain = std::move(chain),
        .key = std::move(key),
        .expires = *expires
    };
}

}  // namespace tools
