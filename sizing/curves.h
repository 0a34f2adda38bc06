// All curves of a node's history, as a picture, a table and JSON.

#ifndef WAYBILL_SIZING_CURVES_H_
#define WAYBILL_SIZING_CURVES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sizing/image_disk.h"
#include "sizing/lru.h"
#include "sizing/node_history.h"
#include "store/base/json_value.h"

namespace waybill::sizing {

struct NodeCurves {
  std::string node = {};         // its name, or its trace's
  std::string unpacked_as = {};  // of the disk's bytes
  double days = 0;
  MissCurve records = {};
  std::vector<DiskPoint> disk = {};  // none without the images' bytes
  ImageGc gc = {};
  std::size_t running = 0;
  std::uint64_t kubelet_records = 0;  // that a kubelet's own cache holds; 0: no mark
};

// `all`: not only the image disk's.
NodeCurves CurvesOf(const NodeHistory& history, const ImageGc& gc, std::size_t running, bool all);

// "12.95 GiB": rounded up, so that a disk of so much is large enough.
std::string DiskText(std::uint64_t bytes);

// The smallest disk of the curve from which on no more bytes were pulled again than this part of
// those that were pulled for the first time. nullptr: none.
const DiskPoint* LeastWithAgain(const NodeCurves& curves, double part);

std::string SvgOf(const NodeCurves& curves);
// A line each point: curve, size and what it says; a cell that does not apply is empty.
std::string CsvOf(const NodeCurves& curves);
internal::Json JsonOf(const NodeCurves& curves);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_CURVES_H_
