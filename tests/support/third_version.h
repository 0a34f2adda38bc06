// A schema version after the newest, which only tests know. It proves that what carries versions
// carries more than there are: several steps, both ways, refused, killed and cut.

#ifndef WAYBILL_TESTS_SUPPORT_THIRD_VERSION_H_
#define WAYBILL_TESTS_SUPPORT_THIRD_VERSION_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/engine/database/tables.h"
#include "store/node/records/pulled_record.h"
#include "waybill/limits.h"

namespace waybill::testing {

inline constexpr std::uint32_t kThirdVersion = kNewestSchema + 1;

// This process knows the version while one of these lives. Version 3 has a note in each record.
class ThirdVersion {
 public:
  ThirdVersion() {
    internal::Steps() = steps_;
    internal::newest_schema = kThirdVersion;
  }
  ~ThirdVersion() {
    internal::Steps() = before_;
    internal::newest_schema = kNewestSchema;
  }
  ThirdVersion(const ThirdVersion&) = delete;
  ThirdVersion& operator=(const ThirdVersion&) = delete;

 private:
  using Payload = std::vector<std::uint8_t>;

  static Result<void> Note(internal::StepRun& run, std::uint32_t version, const std::string& note) {
    run.total = run.txn.state().digest(internal::Table::kPulled).count;
    return internal::Rewrite(
        run, internal::Table::kPulled, version, [&](Payload& payload) -> Result<void> {
          auto record = *internal::DecodePulledRecordValue(payload);
          if (record.closed_because.empty() || record.closed_because == kNote) {
            record.closed_because = note;
          }
          payload = TRY(internal::EncodePulledRecordValue(record));
          return {};
        });
  }
  static Result<void> Up(internal::StepRun& run) { return Note(run, kThirdVersion, kNote); }
  static Result<void> Down(internal::StepRun& run) { return Note(run, kNewestSchema, ""); }
  static Result<std::vector<std::string>> Losses(const internal::StoreTxn& txn) {
    const auto count = txn.state().digest(internal::Table::kPulled).count;
    if (count == 0) return std::vector<std::string>();
    return std::vector<std::string>{"the notes of " + internal::HowMany(count, "record")};
  }

  static constexpr const char* kNote = "a note of version 3";
  const std::span<const internal::Step> before_ = internal::Steps();
  const std::array<internal::Step, 2> steps_ = {
      {before_[0], {kNewestSchema, kThirdVersion, "notes", Up, Down, Losses}}};
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_THIRD_VERSION_H_
