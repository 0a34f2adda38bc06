// The other platforms that a processor can run (containerd's platforms package, compare.go,
// platformVector).

#ifndef WAYBILL_MIGRATIONS_RUNTIME_FALLBACKS_H_
#define WAYBILL_MIGRATIONS_RUNTIME_FALLBACKS_H_

#include <string>
#include <vector>

#include "waybill/platform.h"

namespace waybill::internal {

struct Processor {
  std::string architecture;
  std::string variant;

  friend bool operator==(const Processor&, const Processor&) = default;
};

// The platform's own processor, then the others, best first. `platform` and the result are
// normalised (NormalisePlatform).
std::vector<Processor> RunnableProcessors(const Platform& platform);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_RUNTIME_FALLBACKS_H_
