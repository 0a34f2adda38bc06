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
#include "store/disk/tables.h"
#include "store/images/image_row.h"
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
    run.total = run.txn.state().digest(internal::Table::kImages).count;
    return internal::Rewrite(run, internal::Table::kImages, version,
                             [&](Payload& payload) -> Result<void> {
                               auto row = *internal::DecodeImage(payload);
                               if (!row.pulled) return {};
                               std::string& because = row.pulled->closed_because;
                               if (because.empty() || because == kNote) because = note;
                               payload = TRY(internal::EncodeImage(row));
                               return {};
                             });
  }
  static Result<void> Up(internal::StepRun& run) { return Note(run, kThirdVersion, kNote); }
  static Result<void> Down(internal::StepRun& run) { return Note(run, kNewestSchema, ""); }
  static Result<std::vector<std::string>> Losses(const internal::StoreTxn& txn) {
    const auto count = txn.state().digest(internal::Table::kImages).count;
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
