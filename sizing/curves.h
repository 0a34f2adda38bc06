// All curves of a node's history, as a picture, a table and JSON.

#ifndef WAYBILL_SIZING_CURVES_H_
#define WAYBILL_SIZING_CURVES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "sizing/image_disk.h"
#include "sizing/lru.h"
#include "sizing/node_history.h"
#include "store/base/json_value.h"

namespace waybill::sizing {

struct NodeCurves {
  double days = 0;
  MissCurve records = {};
  std::vector<DiskPoint> disk = {};  // none without the images' bytes
  ImageGc gc = {};
  std::size_t running = 0;
};

// `all`: not only the image disk's.
NodeCurves CurvesOf(const NodeHistory& history, const ImageGc& gc, std::size_t running, bool all);

// The smallest disk of the curve from which on no more bytes were pulled again than this part of
// those that were pulled for the first time. nullptr: none.
const DiskPoint* LeastWithAgain(const NodeCurves& curves, double part);

std::string SvgOf(const NodeCurves& curves);
// A line each point: curve, size and what it says; a cell that does not apply is empty.
std::string CsvOf(const NodeCurves& curves);
internal::Json JsonOf(const NodeCurves& curves);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_CURVES_H_
