// From a look into the store: what Compare found, in one commit with what is known of the files.

#ifndef WAYBILL_GUARD_TAKE_OVER_H_
#define WAYBILL_GUARD_TAKE_OVER_H_

#include <string>
#include <vector>

#include "guard/compare.h"
#include "guard/known_files.h"
#include "guard/life.h"
#include "waybill/result.h"

namespace waybill::guard {

// What one round goes by.
struct Round {
  Life& life;
  KnownFiles& known;
  const internal::StoreContent& content;
  const Known& about;
  const Look& look;
  const Context& context;
};

// Errors are those of the store; nothing was taken over then.
Result<void> TakeOver(const Round& round, const std::vector<Taken>& into);

// Notes what a kubelet may have in memory by what is about to be changed.
Result<void> NoteMayHave(const Round& round, const std::vector<MayHave>& notes);

// Ends the pulls that proved a record before their intents went: with the list, if that has their
// image, as pulls that brought it. `drawn`: when the list's token was.
Result<void> SettleProven(const Round& round, const std::vector<ListedImage>& list,
                          std::int64_t drawn);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_TAKE_OVER_H_
