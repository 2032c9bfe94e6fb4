#pragma once

#include <string>

namespace tests {

// A certificate authority and server certificates, made by the openssl command in a temporary
// folder that goes with the object.
class Certificates {
 public:
    Certificates();
    ~Certificates();
    Certificates(const Certificates&) = delete;
    Certificates& operator=(const Certificates&) = delete;

    // names: "DNS:localhost,IP:127.0.0.1"; days may be negative: expired.
    void issue(const std::string& name, const std::string& names, int days);
    [[nodiscard]] std::string authority() const { return folder_ + "/ca.pem"; }
    [[nodiscard]] std::string certificate(const std::string& name) const;
    [[nodiscard]] std::string key(const std::string& name) const;

 private:
    std::string folder_;
};

}  // namespace tests
