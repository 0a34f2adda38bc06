#include "bindings/cli/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "bindings/cli/hints.h"
#include "waybill/kubelet_format.h"
#include "waybill/node_store.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

// Writes all of `text`; 0, or the errno of the write that failed.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0: these bytes are not UTF-8
};

CodePoint Decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t length = 0;
  std::uint32_t value = 0;
  std::uint32_t least = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2, value = first & 0x1FU, least = 0x80;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3, value = first & 0x0FU, least = 0x800;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4, value = first & 0x07U, least = 0x10000;
  }
  if (length == 0 || text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < least || value > 0x10FFFF || surrogate) return {};
  return {value, length};
}

// C0 and C1 controls, line and paragraph separators, and characters that change the writing
// direction.
bool NeedsEscape(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || (c >= 0x200E && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

std::string ValueText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "-";
  return value.dump();
}

// The columns that Printable `text` takes on a terminal. Wide characters count as one.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

void Complain(std::string_view kind, std::string_view message, std::string_view hint) {
  std::string text = fmt::format("{}: {}\n", kind, Printable(message));
  if (!hint.empty()) text += fmt::format("hint: {}\n", Printable(hint));
  WriteAll(STDERR_FILENO, text);  // a failure can't be reported anywhere
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = Decode(text);
    if (c.length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (!NeedsEscape(c.value)) {
      out += text.substr(0, c.length);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value < 0x80) {
      out += fmt::format("\\x{:02x}", c.value);
    } else {
      out += fmt::format("\\u{:04x}", c.value);
    }
    text.remove_prefix(c.length);
  }
  return out;
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@%+,-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string Counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string RelativeTime(Timestamp time, Timestamp now) {
  // Both lie within the years 1 to 9999, so the difference does not overflow.
  const bool future = time.seconds > now.seconds;
  const std::int64_t seconds = future ? time.seconds - now.seconds : now.seconds - time.seconds;
  struct Unit {
    std::int64_t seconds;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {
      {31536000, "year"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
  for (const Unit& unit : kUnits) {
    const std::int64_t count = seconds / unit.seconds;
    if (count == 0) continue;
    const std::string text = Counted(static_cast<std::uint64_t>(count), unit.name);
    return future ? "in " + text : text + " ago";
  }
  return "now";
}

Output::Output(int fd) : fd_(fd), terminal_(::isatty(fd) == 1) {}

void Output::WriteRaw(std::string_view text) {
  if (failed_) return;
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return;
  // The last Flush returns the error, which stays in failed_.
  (void)Flush();
}

void Output::WriteLine(std::string_view text) { WriteRaw(Printable(text) + "\n"); }

void Output::WriteJson(const Json& value) {
  // In ASCII nothing can steer a terminal. A byte that is not UTF-8 becomes U+FFFD.
  WriteRaw(value.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
}

void Output::WriteFields(const std::vector<Field>& fields) {
  if (json_) return WriteJson(JsonOf(fields));
  std::size_t width = 0;
  for (const Field& field : fields) width = std::max(width, field.label.size());
  for (const Field& field : fields) {
    if (!field.value.is_array()) {
      Line("{:<{}}  {}", field.label, width, ValueText(field.value));
      continue;
    }
    for (const Json& value : field.value) {
      Line("{:<{}}  {}", field.label, width, ValueText(value));
    }
  }
}

void Output::WriteTable(const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> cells = {head};
  for (const auto& row : rows) {
    auto& printable = cells.emplace_back();
    for (const std::string& cell : row) printable.push_back(Printable(cell));
  }
  std::vector<std::size_t> widths(head.size(), 0);
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    WriteLine(line);
  }
}

std::string Output::TimeText(const std::optional<Timestamp>& time) const {
  if (!time) return "never";
  if (terminal_) return RelativeTime(*time, SystemClock());
  return FormatTimestamp({.seconds = time->seconds, .nanoseconds = 0});
}

Result<void> Output::Flush() {
  if (!failed_) {
    if (const int error = WriteAll(fd_, buffer_); error != 0) {
      failed_ = Error{
          ErrorCode::kIo,
          fmt::format("the answer could not be written to standard output: {}", ::strerror(error)),
          "what the command did to the store stands; run it again for the answer"};
    }
  }
  buffer_.clear();
  if (failed_) return *failed_;
  return {};
}

Json JsonOf(const std::vector<Field>& fields) {
  Json object = Json::object();
  for (const Field& field : fields) object[field.key] = field.value;
  return object;
}

void WriteDryRun(bool dry_run, Output& out) {
  if (dry_run && !out.json()) out.Line("dry run: nothing was changed; without --dry-run:");
}

void WriteChange(std::vector<Field> fields, bool dry_run, Output& out) {
  WriteDryRun(dry_run, out);
  if (out.json()) fields.push_back({"dryRun", "", dry_run});
  out.WriteFields(fields);
}

void Warn(std::string_view message, std::string_view hint) { Complain("warning", message, hint); }

void ReportError(const Error& error, Output& out) {
  // Earlier output comes first. If writing it fails, `error` is still the one to report.
  (void)out.Flush();
  const std::string hint(HintOf(error));
  Complain("error", error.message, hint);
  if (!out.json()) return;
  out.WriteJson(
      {{"error",
        {{"code", ErrorCodeName(error.code)}, {"message", error.message}, {"hint", hint}}}});
}

}  // namespace waybill::cli
