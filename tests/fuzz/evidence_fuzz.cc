// Values of the tables of evidence, of any bytes: no crash, and what is accepted survives a round
// trip.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::internal;
  // FlatBuffers are read in place, aligned as in the database.
  const std::vector<std::uint8_t> payload(data, data + size);
  if (const auto pull = DecodeUnresolvedPull(payload)) {
    if (DecodeUnresolvedPull(EncodeUnresolvedPull(*pull)) != pull) std::abort();
    if (ViewIntent(payload).image != pull->image) std::abort();
  }
  if (const auto entry = DecodeLedgerEntry(payload)) {
    if (DecodeLedgerEntry(EncodeLedgerEntry(*entry)) != entry) std::abort();
    std::size_t names = 0;
    static_cast<void>(AnyNameOf(payload, [&](std::string_view) { return ++names == 0; }));
    if (names != entry->names.size()) std::abort();
  }
  if (const auto row = DecodeSpelling(payload)) {
    const auto again = DecodeSpelling(EncodeSpelling(*row));
    if (!again || again->image != row->image || again->refs != row->refs) std::abort();
  }
  return 0;
}
