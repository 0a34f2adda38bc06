#include "store/opening/salvage.h"

#include <utility>

#include "store/disk/page_walk/page_check.h"

namespace waybill::internal {

namespace {

class Collector final : public PageVisitor {
 public:
  explicit Collector(Salvaged& salvaged) : salvaged_(salvaged) {}

  void OnTable(std::string_view, std::uint64_t) override {}

  void OnValue(std::string_view name, PageKey page_key, Value value) override {
    const Key16 key = Key16::From(page_key);
    if (name.empty() && key < FirstKeyOf(kInMain)) return OnHeaderRecord(key, value);
    for (const TableSpec& spec : kTables) {
      if (name == (LiesInMain(spec.table) ? "" : spec.name)) OnRecord(spec, key, value);
    }
  }

 private:
  void OnHeaderRecord(const Key16& key, Value value) {
    if (key == kIdentityKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kIdentity, Newest().header);
      if (opened.state == EnvelopeState::kSound) {
        salvaged_.identity = DecodeIdentity(opened.payload);
      }
    } else if (key == kTrustKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kTrustJournal, Newest().header);
      if (opened.state != EnvelopeState::kSound) return;
      if (auto journal = DecodeJournal(opened.payload)) salvaged_.journal = std::move(*journal);
    }
  }

  void OnRecord(const TableSpec& spec, const Key16& key, Value value) {
    const Opened opened = OpenEnvelope(key, value, spec.kind, spec.form);
    const std::size_t table = Index(spec.table);
    // Its key does not matter: each value is stored under a new one.
    if (opened.state == EnvelopeState::kSound && spec.key_of(opened.payload, 0)) {
      salvaged_.sound[table].Add(StoredChecksum(value));
      salvaged_.payloads[table].emplace_back(opened.payload.begin(), opened.payload.end());
    } else if (value.size() >= kEnvelopeBytes) {
      salvaged_.damaged_stored[table].Add(StoredChecksum(value));
      salvaged_.damaged_computed[table].Add(ComputedChecksum(key, value));
    }
  }

  Salvaged& salvaged_;
};

}  // namespace

bool Salvaged::Proves(Table table) const {
  if (!state) return false;
  const TableDigest& expected = state->digest(table);
  const auto sum = [&](const TableDigest& damaged) {
    return TableDigest{sound[Index(table)].count + damaged.count,
                       sound[Index(table)].checksum_sum + damaged.checksum_sum};
  };
  if (sum(damaged_stored[Index(table)]) == expected) return true;
  return damaged_stored[Index(table)].count == 1 && sum(damaged_computed[Index(table)]) == expected;
}

Result<Salvaged> Salvage(const Fd& file, int which, const std::optional<State>& state,
                         OnReadError on_error) {
  Salvaged salvaged;
  salvaged.state = state;
  if (which < 0) return salvaged;
  Collector collector(salvaged);
  auto result = SalvageTree(file.get(), which, collector, on_error);
  if (!result && result.error().code == ErrorCode::kIo) return result.error();
  return salvaged;
}

}  // namespace waybill::internal
