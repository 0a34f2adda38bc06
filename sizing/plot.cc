#include "sizing/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

namespace waybill::sizing {

namespace {

constexpr double kWidth = 820;
constexpr double kPanelHeight = 360;
constexpr double kTop = 40;  // of the whole, for the title
constexpr double kLeft = 78;
constexpr double kRight = 190;  // for the names of the lines
constexpr double kPanelTop = 40;
constexpr double kPanelBottom = 58;
constexpr double kLine = 16;  // the height of a line of text

struct Style {
  const char* colour;
  const char* dash;
};
constexpr std::array<Style, 7> kStyles = {{{"#0072b2", ""},
                                           {"#d55e00", "7 3"},
                                           {"#009e73", "2 3"},
                                           {"#cc79a7", "9 3 2 3"},
                                           {"#000000", ""},
                                           {"#e69f00", "5 2"},
                                           {"#56b4e9", ""}}};

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    // XML has no control characters.
    const std::string plain(1, static_cast<unsigned char>(c) < ' ' ? '?' : c);
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : plain;
  }
  return out;
}

std::string NumberText(double value) {
  if (std::abs(value) < 1000) return fmt::format("{:g}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t i = digits.size(); i > 3 && digits[i - 4] != '-';) {
    digits.insert(i -= 3, ",");
  }
  return digits;
}

// An axis, from values to places on the paper.
class Ruler {
 public:
  Ruler(const Axis& axis, double least, double most, double begin, double end)
      : axis_(axis), begin_(begin), end_(end) {
    from_ = axis.log ? least : std::min(0.0, least);
    to_ = axis.to.value_or(most);
    if (!(to_ > from_)) to_ = axis.log ? from_ * 10 : from_ + 1;
    if (!axis.log && !axis.to) {
      const double step = Step(kParts);
      to_ = std::ceil(to_ / step - 1e-9) * step;
    }
  }

  double At(double value) const {
    const double clamped = std::clamp(value, from_, to_);
    const double part = axis_.log ? std::log(clamped / from_) / std::log(to_ / from_)
                                  : (clamped - from_) / (to_ - from_);
    return begin_ + (end_ - begin_) * part;
  }

  // Three at least.
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (axis_.log) ticks = LogTicks();
    for (double parts = kParts; ticks.size() < 3; parts *= 2) {
      ticks.clear();
      const double step = Step(parts);
      const double first = std::ceil(from_ / step - 1e-9);
      for (int i = 0; (first + i) * step <= to_ + 1e-9 * step; ++i) {
        ticks.push_back((first + i) * step);
      }
    }
    return ticks;
  }

 private:
  static constexpr double kParts = 6;

  std::vector<double> LogTicks() const {
    std::vector<double> ticks;
    // As many of 1, 2 and 5 as there is room for.
    const double decades = std::log10(to_ / from_);
    const std::vector<double> parts = decades <= 2.5   ? std::vector<double>{1, 2, 5}
                                      : decades <= 4.5 ? std::vector<double>{1, 3}
                                                       : std::vector<double>{1};
    const int last = static_cast<int>(std::floor(std::log10(to_)));
    for (int power = static_cast<int>(std::floor(std::log10(from_))); power <= last; ++power) {
      const double decade = std::pow(10, power);
      for (const double part : parts) {
        const double tick = decade * part;
        if (tick >= from_ * (1 - 1e-9) && tick <= to_ * (1 + 1e-9)) ticks.push_back(tick);
      }
    }
    return ticks;
  }

  // 1, 2 or 5 times a power of ten, so many parts or so in all.
  double Step(double parts) const {
    const double rough = (to_ - from_) / parts;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double digit = rough / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  }

  const Axis& axis_;
  double begin_;
  double end_;
  double from_ = 0;
  double to_ = 1;
};

std::pair<double, double> RangeOf(const Panel& panel, bool of_x) {
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const Series& series : panel.series) {
    for (const auto& [x, y] : series.points) {
      least = std::min(least, of_x ? x : y);
      most = std::max(most, of_x ? x : y);
    }
  }
  return least <= most ? std::pair(least, most) : std::pair(1.0, 2.0);
}

class Drawing {
 public:
  explicit Drawing(std::string& out) : out_(out) {}

  void Draw(const Panel& panel, double top) {
    const double bottom = top + kPanelHeight - kPanelBottom;
    const double right = kWidth - kRight;
    const auto [least_x, most_x] = RangeOf(panel, true);
    const auto [least_y, most_y] = RangeOf(panel, false);
    const Ruler x(panel.x, least_x, most_x, kLeft, right);
    const Ruler y(panel.y, least_y, most_y, bottom, top + kPanelTop);
    Text(kLeft, top + kPanelTop - 16, panel.title, R"(font-weight="bold")");
    for (const double tick : y.Ticks()) {
      const double at = y.At(tick);
      Add(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="#dddddd"/>)", kLeft, at, right);
      Text(kLeft - 8, at + 4, NumberText(tick), R"(text-anchor="end")");
    }
    for (const double tick : x.Ticks()) {
      const double at = x.At(tick);
      Add(R"(<path d="M{:.1f} {:.1f}v5" stroke="#555555"/>)", at, bottom);
      Text(at, bottom + 20, NumberText(tick), R"(text-anchor="middle")");
    }
    Add(R"(<path d="M{:.1f} {:.1f}V{:.1f}H{:.1f}" stroke="#555555" fill="none"/>)", kLeft,
        top + kPanelTop, bottom, right);
    Text((kLeft + right) / 2, bottom + 42, panel.x.title, R"(text-anchor="middle")");
    const double middle = (top + kPanelTop + bottom) / 2;
    Text(18, middle, panel.y.title,
         fmt::format(R"svg(text-anchor="middle" transform="rotate(-90 18 {:.1f})")svg", middle));
    for (std::size_t i = 0; i < panel.series.size(); ++i) Line(panel.series[i], i, x, y);
    Marks(panel, x, top + kPanelTop, bottom);
    Names(panel, top + kPanelTop, right);
  }

  void Text(double x, double y, std::string_view text, std::string_view attributes) {
    Add(R"(<text x="{:.1f}" y="{:.1f}" {}>{}</text>)", x, y, attributes, Escaped(text));
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static const Style& StyleOf(std::size_t place) { return kStyles[place % kStyles.size()]; }

  static std::string StrokeOf(const Series& series, std::size_t place) {
    const Style& style = StyleOf(place);
    return fmt::format(R"(stroke="{}" stroke-width="{}" stroke-dasharray="{}")",
                       series.faint ? "#888888" : style.colour, series.faint ? "1" : "2",
                       series.faint ? "3 3" : style.dash);
  }

  void Line(const Series& series, std::size_t place, const Ruler& x, const Ruler& y) {
    if (series.points.empty()) return;
    std::string path;
    for (const auto& [at, value] : series.points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.At(at), y.At(value));
    }
    Add(R"(<path d="{}" {} fill="none" stroke-linejoin="round"/>)", path, StrokeOf(series, place));
    if (series.faint || series.points.size() > 40) return;
    for (const auto& [at, value] : series.points) {
      Add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>)", x.At(at), y.At(value),
          StyleOf(place).colour);
    }
  }

  // Words stand upright, on the left of their line if there is room.
  void Marks(const Panel& panel, const Ruler& x, double top, double bottom) {
    double before = kLeft;
    for (const Mark& mark : panel.marks) {
      const double at = x.At(mark.x);
      const double beside = at - before < kLine + 4 ? at + kLine - 3 : at - 5;
      before = std::max(at, beside);
      Add(R"(<path d="M{:.1f} {:.1f}V{:.1f}" stroke="#009e73" stroke-dasharray="6 4"/>)", at, top,
          bottom);
      Text(beside, top + 6, mark.text,
           fmt::format(
               R"svg(fill="#006b4f" stroke="#ffffff" stroke-width="4" paint-order="stroke" )svg"
               R"svg(text-anchor="end" transform="rotate(-90 {:.1f} {:.1f})")svg",
               beside, top + 6));
    }
  }

  // On the right, in their order, each with a piece of its line.
  void Names(const Panel& panel, double top, double right) {
    double at = top + 4;
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const Series& series = panel.series[i];
      if (series.points.empty()) continue;
      Add(R"(<path d="M{:.1f} {:.1f}h26" {}/>)", right + 18, at, StrokeOf(series, i));
      Text(right + 50, at + 4.5, series.name,
           fmt::format(R"(fill="{}")", series.faint ? "#666666" : StyleOf(i).colour));
      at += kLine;
    }
  }

  std::string& out_;
};

}  // namespace

std::string SvgOf(const std::string& title, const std::vector<Panel>& panels) {
  const double height = kTop + kPanelHeight * static_cast<double>(panels.size());
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" )"
      R"(height="{1:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" )"
      R"(fill="#222222"><rect width="100%" height="100%" fill="#ffffff"/>)"
      "\n",
      kWidth, height);
  Drawing drawing(out);
  drawing.Text(kLeft, 28, title, R"(font-size="16" font-weight="bold")");
  double top = kTop;
  for (const Panel& panel : panels) {
    drawing.Draw(panel, top);
    top += kPanelHeight;
  }
  return out + "</svg>\n";
}

}  // namespace waybill::sizing
