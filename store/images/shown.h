// A row as callers see it.

#ifndef WAYBILL_STORE_IMAGES_SHOWN_H_
#define WAYBILL_STORE_IMAGES_SHOWN_H_

#include "store/disk/clocks.h"
#include "store/images/image_row.h"
#include "waybill/values.h"

namespace waybill::internal {

// `now` by the clock `clock`: a row tells by running time since when it is away, and callers see a
// time by the wall clock that long ago.
// The row has a record.
ImagePulledRecord RecordOf(const ImageRow& row, const Clocks& now, Timestamp clock);
// The row has a preloaded part.
PreloadedImage PreloadedOf(const ImageRow& row, const Clocks& now, Timestamp clock);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_SHOWN_H_
