// Values of the tables of evidence, of any bytes: no crash, and what is accepted survives a round
// trip.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "store/base/image_spellings.h"
#include "store/images/image_row.h"
#include "store/images/pull_row.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::internal;
  // FlatBuffers are read in place, aligned as in the database.
  const std::vector<std::uint8_t> payload(data, data + size);
  if (const auto pull = DecodeUnresolvedPull(payload)) {
    if (DecodeUnresolvedPull(EncodeUnresolvedPull(*pull)) != pull) std::abort();
    if (ViewIntent(payload).image != pull->image) std::abort();
  }
  if (const auto row = DecodeImage(payload)) {
    const auto encoded = EncodeImage(*row);
    if (!encoded || DecodeImage(*encoded) != row) std::abort();
    const ImageView view(payload);
    if (!view.SubjectIs(row->subject) || view.is_recorded() != row->pulled.has_value())
      std::abort();
    for (const auto& alias : row->aliases) {
      if (!view.HasAlias(waybill::internal::SpellingOf(alias))) std::abort();
    }
    if (!row->pulled) return 0;
    for (const auto& [name, entry] : row->pulled->entries) {
      const auto stored = view.Find(name);
      if (!stored || stored->secret_count() != entry.kubernetes_secrets.size()) std::abort();
      for (std::size_t i = 0; i < stored->secret_count(); ++i) {
        const waybill::ImagePullSecretView asked(entry.kubernetes_secrets[i]);
        if (!stored->IsSecret(i, ProbeSecret(asked))) std::abort();
      }
    }
  }
  return 0;
}
