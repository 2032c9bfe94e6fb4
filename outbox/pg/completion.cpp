#include "outbox/pg/completion.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sql/queries.hpp"

namespace outbox::pg {

Completion::Completion(
    Session& session,
    const std::vector<Transition>& batch,
    const WorkerId& worker,
    Failpoints* failpoints
)
    : session_(session),
      batch_(batch),
      worker_(worker),
      failpoints_(failpoints),
      fates_(batch.size()),
      locked_(batch.size()) {}

std::vector<Fate> Completion::run() {
    Group finals;
    Group moves;
    for (const auto& transition : batch_) {
        (is_final(transition.to) ? finals : moves).push_back(&transition);
    }
    write_or_split(finals, true);
    if (failpoints_ != nullptr) failpoints_->hit_blocking(FailpointId::between_finish_and_move);
    write_or_split(moves, false);
    ask_for_fates();
    if (conflict_) {
        throw *conflict_;
    }
    std::vector<Fate> fates;
    fates.reserve(fates_.size());
    for (const auto& fate : fates_) {
        fates.push_back(fate.value_or(Fate::fenced));
    }
    return fates;
}

void Completion::write(const Group& group, bool final) {
    note(
        final ? session_.write(sql::finish_operations, finish_parameters(group))
              : session_.write(sql::move_operations, move_parameters(group, worker_)),
        final
    );
}

void Completion::write_or_split(const Group& group, bool final) {
    if (group.empty()) {
        return;
    }
    try {
        write(group, final);
        return;
    } catch (const StoreError& error) {
        bool conflict = error.kind() == StoreError::Kind::conflict;
        if (!conflict && error.kind() != StoreError::Kind::data) {
            throw;
        }
        if (group.size() == 1) {
            if (conflict) {
                locked_[index_of(*group.front())] = true;
                conflict_ = error;
            } else {
                last_resort_of(*group.front(), final, error.what());
            }
            return;
        }
    }
    auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
    write_or_split(Group(group.begin(), middle), final);
    write_or_split(Group(middle, group.end()), final);
}

void Completion::last_resort_of(const Transition& transition, bool final, const std::string& why) {
    auto safe = last_resort(transition, why);
    write(Group{&safe}, final);
}

// What found no row under its epoch: written by an earlier try whose acknowledgement was lost,
// fenced by somebody, or to be ended because a late answer proved an effect meanwhile.
void Completion::ask_for_fates() {
    Group open;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
        if (!fates_[i] && !locked_[i]) {
            open.push_back(&batch_[i]);
        }
    }
    Answers answers;
    ask(open, answers);
    for (const auto* transition : open) {
        const auto& answer = answers[transition->seq.value];
        auto& fate = fates_[index_of(*transition)];
        if (answer == "settle") {
            end_with_late_effect(*transition);
            fate = fate.value_or(Fate::fenced);
        } else {
            fate = answer == "applied" ? Fate::applied : Fate::fenced;
            if (answer == "applied" && is_final(transition->to)) {
                ended_.push_back(transition->id.value);
            }
        }
    }
}

void Completion::ask(const Group& group, Answers& answers) {
    if (group.empty()) {
        return;
    }
    try {
        for (const auto& row : session_.read(sql::read_fates, fate_parameters(group))) {
            answers.emplace(row["seq"].as<std::int64_t>(), row["fate"].c_str());
        }
        return;
    } catch (const StoreError& error) {
        if (error.kind() != StoreError::Kind::data) {
            throw;
        }
    }
    if (group.size() == 1) {
        auto safe = last_resort(*group.front(), {});  // as an earlier try would have written it
        ask(Group{&safe}, answers);
        return;
    }
    auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
    ask(Group(group.begin(), middle), answers);
    ask(Group(middle, group.end()), answers);
}

// The statement turns this failure into the success that the late answer proved.
void Completion::end_with_late_effect(const Transition& transition) {
    auto end = transition;
    end.to = Status::failed;
    try {
        write(Group{&end}, true);
    } catch (const StoreError& error) {
        if (error.kind() != StoreError::Kind::data) {
            throw;
        }
        last_resort_of(end, true, error.what());
    }
}

void Completion::note(const pqxx::result& written, bool final) {
    if (written.empty()) {
        return;
    }
    std::unordered_map<std::int64_t, std::size_t> index;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
        index.emplace(batch_[i].seq.value, i);
    }
    for (const auto& row : written) {
        auto found = index.find(row[0].as<std::int64_t>());
        if (found != index.end()) {
            const bool duplicate = row.size() > 1 && row[1].as<bool>();
            fates_[found->second] = duplicate ? Fate::duplicate : Fate::applied;
            if (final) ended_.push_back(batch_[found->second].id.value);
        }
    }
}

std::size_t Completion::index_of(const Transition& transition) const {
    return static_cast<std::size_t>(&transition - batch_.data());
}

}  // namespace outbox::pg
