#include "tests/http/certificates.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace tests {

namespace {

constexpr const char* kNewKey = " -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ";

void openssl(const std::string& arguments) {
    std::string command = "openssl " + arguments + " 2>/dev/null";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

}  // namespace

Certificates::Certificates() {
    std::string pattern = std::filesystem::temp_directory_path() / "outbox-tls-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    openssl(
        "req -x509 -days 2 -subj /CN=outbox-test-ca" + std::string(kNewKey) + "-keyout " + folder_ +
        "/ca.key -out " + authority()
    );
}

Certificates::~Certificates() {
    std::filesystem::remove_all(folder_);
}

void Certificates::issue(const std::string& name, const std::string& names, int days) {
    std::string base = folder_ + "/" + name;
    std::ofstream(base + ".ext") << "subjectAltName=" << names << "\n";
    openssl("req -subj /CN=" + name + kNewKey + "-keyout " + key(name) + " -out " + base + ".csr");
    openssl(
        "x509 -req -in " + base + ".csr -CA " + authority() + " -CAkey " + folder_ +
        "/ca.key -CAcreateserial -days " + std::to_string(days) + " -extfile " + base +
        ".ext -out " + certificate(name)
    );
}

std::string Certificates::certificate(const std::string& name) const {
    return folder_ + "/" + name + ".pem";
}

std::string Certificates::key(const std::string& name) const {
    return folder_ + "/" + name + ".key";
}

}  // namespace tests
