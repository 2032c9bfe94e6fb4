#pragma once

#include <chrono>
#include <string>
#include <variant>

namespace tools {

// What TLS shows of this side: a certificate, its chain behind it, and its private key.
struct ClientCertificate {
    std::string credential;  // its name in the file, for messages
    std::string chain;       // PEM, the certificate first
    std::string key;         // PEM; never in a message
    std::chrono::sys_seconds expires{};
};

// Why it cannot be used: everything that the other side would refuse in the middle of a request,
// where a write could no longer be told from one that was done.
struct CertificateProblem {
    bool in_key = false;  // the key's file is at fault, not the certificate's
    std::string message;
    std::string hint;
};

[[nodiscard]] std::variant<ClientCertificate, CertificateProblem> read_client_certificate(
    std::string credential,
    std::string chain,
    std::string key,
    std::chrono::system_clock::time_point now
);

}  // namespace tools
