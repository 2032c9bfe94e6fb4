#include "tools/link_header.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

#include "tools/answer.hpp"
#include "tools/encoding.hpp"
#include "tools/url_template.hpp"

namespace tools {
namespace {

namespace urls = boost::urls;

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// rel=next, rel="next", rel="prev next".
bool is_next(std::string_view parameters) {
    while (!parameters.empty()) {
        const auto end = parameters.find(';');
        const auto one = trimmed(parameters.substr(0, end));
        parameters =
            end == std::string_view::npos ? std::string_view{} : parameters.substr(end + 1);
        const auto equals = one.find('=');
        if (equals == std::string_view::npos) continue;
        if (!same_header_name(trimmed(one.substr(0, equals)), "rel")) continue;
        auto value = trimmed(one.substr(equals + 1));
        if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
        while (!value.empty()) {
            const auto space = value.find(' ');
            if (same_header_name(value.substr(0, space), "next")) return true;
            value = space == std::string_view::npos ? std::string_view{} : value.substr(space + 1);
        }
    }
    return false;
}

struct Parameters {
    std::string_view path;
    std::string_view query;
};

Parameters split_target(std::string_view target) {
    const auto question = target.find('?');
    if (question == std::string_view::npos) return {target, {}};
    return {target.substr(0, question), target.substr(question + 1)};
}

// Calls use(name, whole) for every "name=value" of a query.
template <class Use>
void each_parameter(std::string_view query, Use use) {
    while (!query.empty()) {
        const auto end = query.find('&');
        const auto whole = query.substr(0, end);
        use(whole.substr(0, whole.find('=')), whole);
        query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    }
}

}  // namespace

std::optional<std::string> next_link(std::string_view header) {
    while (true) {
        const auto open = header.find('<');
        if (open == std::string_view::npos) return std::nullopt;
        const auto close = header.find('>', open);
        if (close == std::string_view::npos) return std::nullopt;
        const auto url = header.substr(open + 1, close - open - 1);
        header = header.substr(close + 1);
        // Parameters end where the next link begins.
        const auto next = header.find('<');
        auto parameters = header.substr(0, next);
        if (next != std::string_view::npos) {
            parameters = parameters.substr(0, parameters.rfind(','));
        }
        if (is_next(parameters)) return std::string(url);
        if (next == std::string_view::npos) return std::nullopt;
    }
}

std::optional<std::string> same_origin_target(const HttpRequest& request, const std::string& url) {
    const auto here = origin_text(request.origin) + request.target;  // the parsed views borrow it
    const auto base = urls::parse_uri(here);
    const auto reference = urls::parse_uri_reference(url);
    if (!base || !reference) return std::nullopt;
    urls::url resolved(*base);
    if (!resolved.resolve(*reference)) return std::nullopt;
    resolved.remove_fragment();
    const std::string absolute(resolved.buffer());
    const auto origin = origin_of(absolute);
    if (!origin || *origin != request.origin || resolved.has_userinfo()) return std::nullopt;
    std::string target(resolved.encoded_target());
    return target.empty() || target.front() != '/' ? "/" + target : target;
}

std::string with_parameter(std::string_view target, std::string_view name, std::string_view value) {
    const auto [path, query] = split_target(target);
    const auto encoded = percent_encode(name);
    std::string out(path);
    char separator = '?';
    each_parameter(query, [&](std::string_view key, std::string_view whole) {
        if (key == encoded) return;
        out += separator;
        out += whole;
        separator = '&';
    });
    out += separator;
    return out += encoded + '=' + percent_encode(value);
}

std::optional<std::string> parameter(std::string_view target, std::string_view name) {
    std::optional<std::string> found;
    const auto encoded = percent_encode(name);
    each_parameter(split_target(target).query, [&](std::string_view key, std::string_view whole) {
        if (key == encoded && key.size() < whole.size()) found = whole.substr(key.size() + 1);
    });
    return found;
}

}  // namespace tools
