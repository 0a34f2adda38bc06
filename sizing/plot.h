// Line charts as SVG.

#ifndef WAYBILL_SIZING_PLOT_H_
#define WAYBILL_SIZING_PLOT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace waybill::sizing {

struct Axis {
  std::string title = {};         // with its unit
  bool log = false;               // values are above 0 then; else it begins at 0, or below
  std::optional<double> to = {};  // else from the data
};

// Its name stands on the right, in its colour. Colours (Okabe and Ito's, which colour-blind
// people can tell apart) and dashes follow from its place.
struct Series {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};  // x ascends
  bool faint = false;                                  // a limit or a reference
};

// A line across the panel at `x`, with its words beside it.
struct Mark {
  double x = 0;
  std::string text = {};
};

struct Panel {
  std::string title = {};
  Axis x = {};
  Axis y = {};
  std::vector<Series> series = {};
  std::vector<Mark> marks = {};
};

// One below the other.
std::string SvgOf(const std::string& title, const std::vector<Panel>& panels);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_PLOT_H_
