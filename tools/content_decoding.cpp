#include "tools/content_decoding.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "tools/http_client_request.hpp"

namespace tools {
namespace {

// For inflateInit2: 15 bits of window, and the format.
constexpr int kGzip = 15 + 16;
constexpr int kZlib = 15;
constexpr int kRawDeflate = -15;

enum class End { whole, cut, damaged };

// One inflate stream of zlib; ends with its scope.
class Inflating {
 public:
    explicit Inflating(int format) : ready_(inflateInit2(&stream_, format) == Z_OK) {}
    ~Inflating() {
        if (ready_) inflateEnd(&stream_);
    }
    Inflating(const Inflating&) = delete;
    Inflating& operator=(const Inflating&) = delete;

    // Several gzip members may follow each other (RFC 1952); bytes that are none are padding.
    // `partial`: the input itself was cut, so its end is no damage.
    End run(std::string_view input, std::size_t limit, bool partial, std::string& out) {
        if (!ready_ || input.size() > std::numeric_limits<uInt>::max()) return End::damaged;
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
        stream_.avail_in = static_cast<uInt>(input.size());
        std::array<char, 16'384> chunk{};
        while (true) {
            stream_.next_out = reinterpret_cast<Bytef*>(chunk.data());
            stream_.avail_out = static_cast<uInt>(chunk.size());
            const int status = inflate(&stream_, Z_NO_FLUSH);
            const std::size_t made = chunk.size() - stream_.avail_out;
            const std::size_t room = limit - out.size();
            out.append(chunk.data(), std::min(made, room));
            if (made > room) return End::cut;
            if (status == Z_STREAM_END) {
                if (!another_member()) return End::whole;
                if (inflateReset(&stream_) != Z_OK) return End::damaged;
                continue;
            }
            // Z_BUF_ERROR: it wants more than there is.
            if (status == Z_BUF_ERROR && partial) return End::cut;
            if (status != Z_OK) return End::damaged;
        }
    }

 private:
    [[nodiscard]] bool another_member() const {
        return stream_.avail_in >= 2 && stream_.next_in[0] == 0x1f && stream_.next_in[1] == 0x8b;
    }

    z_stream stream_{};
    bool ready_;
};

// zlib's format says so in its first two bytes; some servers leave it out.
int deflate_format(std::string_view body) {
    if (body.size() < 2) return kRawDeflate;
    const auto first = static_cast<unsigned char>(body[0]);
    const auto second = static_cast<unsigned char>(body[1]);
    const bool zlib = (first & 0x0fU) == 8 && (first * 256U + second) % 31U == 0;
    return zlib ? kZlib : kRawDeflate;
}

}  // namespace

std::optional<std::string> decode_content(HttpResponse& response, std::size_t limit) {
    const auto encoding = response.header("Content-Encoding");
    if (!encoding || response.body.empty()) return std::nullopt;
    const bool gzip = same_name(*encoding, "gzip") || same_name(*encoding, "x-gzip");
    if (!gzip && !same_name(*encoding, "deflate")) return std::nullopt;
    Inflating inflating(gzip ? kGzip : deflate_format(response.body));
    std::string decoded;
    const auto end = inflating.run(response.body, limit, response.truncated, decoded);
    if (end == End::damaged) return "The answer's " + *encoding + " body is damaged.";
    response.truncated = response.truncated || end == End::cut;
    response.body = std::move(decoded);
    return std::nullopt;
}

}  // namespace tools
