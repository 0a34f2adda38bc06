#include "bindings/cli/output.h"

#include <errno.h>
#include <fmt/core.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <sstream>

#include "store/base/go_json.h"
#include "store/base/timestamp.h"
#include "waybill/values.h"

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

std::string ValueText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value == true ? "yes" : "no";
  if (value.is_null()) return "-";
  return TextOf(value);
}

// The columns that Printable `text` takes on a terminal. Wide characters count as one.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string Coloured(std::string_view text, std::string_view colour, bool wanted) {
  return wanted ? fmt::format("{}{}{}", colour, text, kPlain) : std::string(text);
}

// "3 minutes ago", "in 2 hours".
std::string RelativeTime(Timestamp time, Timestamp now) {
  // Both lie within the years 1 to 9999, so the difference does not overflow.
  const bool future = time.seconds > now.seconds;
  const std::int64_t seconds = future ? time.seconds - now.seconds : now.seconds - time.seconds;
  struct Unit {
    std::int64_t seconds;
    std::string_view name;
  };
  constexpr Unit kSpans[] = {
      {31536000, "year"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
  for (const Unit& unit : kSpans) {
    const std::int64_t count = seconds / unit.seconds;
    if (count == 0) continue;
    const std::string text = HowMany(static_cast<std::uint64_t>(count), unit.name);
    return future ? "in " + text : text + " ago";
  }
  return "now";
}

// Whether what goes to `fd` may be coloured: a terminal, unless NO_COLOR or TERM says no.
bool HasColour(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) != "dumb" && ::isatty(fd) == 1;
}

void Complain(std::string_view kind, std::string_view message, std::string_view hint) {
  const std::string_view priority = !JournalReads(STDERR_FILENO) ? ""
                                    : kind == "error"            ? "<3>"
                                    : kind == "warning"          ? "<4>"
                                                                 : "<6>";
  const bool colour = HasColour(STDERR_FILENO);
  const std::string_view its = kind == "error" ? kRed : kind == "warning" ? kYellow : kBold;
  const auto line = [&](std::string_view label, std::string_view how, std::string_view text) {
    return fmt::format("{}{} {}\n", priority, Coloured(fmt::format("{}:", label), how, colour),
                       Printable(text));
  };
  std::string text = line(kind, its, message);
  if (!hint.empty()) text += line("hint", kBold, hint);
  if (kind == "error") {
    const std::string terms = TermsIn(fmt::format("{} {}", message, hint));
    if (!terms.empty()) {
      text += line("see", kBold, fmt::format("waybill man glossary ({})", terms));
    }
  }
  WriteAll(STDERR_FILENO, text);  // a failure can't be reported anywhere
}

// Columns of the terminal; 0: unknown.
std::size_t TerminalWidth(int fd) {
  struct winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Each "sha256:" and 64 digits without the last 52 of them.
std::string WithShortIds(std::string text) {
  constexpr std::string_view kSha256 = "sha256:";
  constexpr std::size_t kDigits = 64;
  constexpr std::size_t kShortDigits = 12;
  for (std::size_t at = text.find(kSha256); at != std::string::npos;
       at = text.find(kSha256, at + 1)) {
    const std::size_t first = at + kSha256.size();
    const std::size_t end =
        std::min(text.find_first_not_of("0123456789abcdef", first), text.size());
    if (end - first == kDigits) text.erase(first + kShortDigits, kDigits - kShortDigits);
  }
  return text;
}

// The first `width` columns of Printable `text`, the last of them "…" if it has more.
std::string CutTo(const std::string& text, std::size_t width) {
  if (Width(text) <= width) return text;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts && ++columns == width) return text.substr(0, i) + "…";
  }
  return text;
}

// Makes the widest columns narrower until they fit: every column but the first, whose names people
// copy.
void Narrow(std::vector<std::size_t>& widths, std::size_t most) {
  constexpr std::size_t kGap = 2;
  constexpr std::size_t kLeast = 8;
  std::size_t total = kGap * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  while (total > most && widths.size() > 1) {
    const auto widest = std::max_element(widths.begin() + 1, widths.end());
    if (*widest <= kLeast) return;
    --*widest;
    --total;
  }
}

}  // namespace

std::vector<std::pair<std::string, Format>> Formats() {
  return {{"table", Format::kTable}, {"json", Format::kJson}};
}

bool JournalReads(int fd) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(fd, &status) != 0) return false;
  return stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

Output::Output(int fd) : fd_(fd), terminal_(::isatty(fd) == 1) {}

void Output::WriteRaw(std::string_view text) {
  if (failed_) return;
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return;
  // The last Flush returns the error, which stays in failed_.
  (void)Flush();
}

void Output::WriteLine(std::string_view text) {
  if (format_ == Format::kTable) WriteRaw(Printable(text) + "\n");
}

void Output::WriteName(std::string_view name) {
  if (names()) WriteRaw(Printable(name) + "\n");
}

void Output::WriteJson(const Json& value) {
  if (json()) WriteData(value);
}

void Output::WriteData(const Json& value) { WriteRaw(internal::AsciiOf(value) + "\n"); }

void Output::WriteFields(const std::vector<Field>& fields) {
  if (json()) return WriteJson(JsonOf(fields));
  std::size_t width = 0;
  for (const Field& field : fields) width = std::max(width, field.label.size());
  for (const Field& field : fields) {
    if (field.label.empty()) continue;
    if (!field.value.is_array()) {
      Line("{:<{}}  {}", field.label, width, ValueText(field.value));
      continue;
    }
    for (const Json& value : field.value) {
      Line("{:<{}}  {}", field.label, width, ValueText(value));
    }
  }
}

std::vector<std::vector<std::string>> Output::Cells(
    const std::vector<std::vector<std::string>>& rows, std::vector<std::size_t>& widths) const {
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) {
    auto& printable = cells.emplace_back();
    for (const std::string& cell : row) {
      std::string text = Printable(cell);
      printable.push_back(no_trunc_ ? std::move(text) : WithShortIds(std::move(text)));
      std::size_t& width = widths[printable.size() - 1];
      width = std::max(width, Width(printable.back()));
    }
  }
  const std::size_t most = terminal_ && !no_trunc_ ? TerminalWidth(fd_) : 0;
  if (most == 0) return cells;
  Narrow(widths, most);
  for (auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = CutTo(row[i], widths[i]);
  }
  return cells;
}

void Output::WriteTable(const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows, Names names) {
  if (json()) return;
  if (format_ == Format::kName) {
    if (names == Names::kNone) return;
    std::set<std::string_view> written;
    for (const auto& row : rows) {
      if (written.insert(row.front()).second) WriteName(row.front());
    }
    return;
  }
  std::vector<std::size_t> widths;
  for (const std::string& title : head) widths.push_back(no_headers_ ? 0 : Width(title));
  const auto cells = Cells(rows, widths);
  const auto line_of = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    return line;
  };
  if (!no_headers_) WriteRaw(Coloured(line_of(head), kBold, HasColour(fd_)) + "\n");
  for (const auto& row : cells) WriteLine(line_of(row));
}

std::string Output::TimeText(const std::optional<Timestamp>& time) const {
  if (!time) return "never";
  if (terminal_) return RelativeTime(*time, SystemClock());
  return FormatTimestamp({.seconds = time->seconds, .nanoseconds = 0});
}

Result<void> Output::Flush() {
  if (!failed_) {
    if (const int error = WriteAll(fd_, buffer_); error != 0) {
      broken_pipe_ = error == EPIPE;
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

std::string LabelOf(std::string_view name) {
  std::string label;
  for (const char c : name) {
    const bool begins_word = c >= 'A' && c <= 'Z';
    if (begins_word) label += ' ';
    label += begins_word ? static_cast<char>(c - 'A' + 'a') : c;
  }
  // Where the word is an abbreviation.
  for (const auto& [word, right] : {std::pair("uuid", "UUID"), {"id ", "ID "}}) {
    const std::size_t at = label.find(word);
    if (at != std::string::npos) label.replace(at, std::string_view(right).size(), right);
  }
  return label;
}

Json JsonOf(const std::vector<Field>& fields) {
  Json object = Json::object();
  for (const Field& field : fields) object[field.key] = field.value;
  return object;
}

void WriteDryRun(bool dry_run, Output& out) {
  if (dry_run) out.Line("dry run: nothing was changed; without --dry-run:");
}

void WriteChange(Json answer, bool dry_run, Output& out) {
  WriteDryRun(dry_run, out);
  answer["dryRun"] = dry_run;
  out.WriteJson(answer);
}

void WriteChange(std::vector<Field> fields, bool dry_run, Output& out) {
  WriteDryRun(dry_run, out);
  fields.push_back({"dryRun", "", dry_run});
  out.WriteFields(fields);
}

void Warn(std::string_view message, std::string_view hint) { Complain("warning", message, hint); }

void Note(std::string_view message) { Complain("note", message, {}); }

void ReportError(const Error& error, Output& out) {
  // Earlier output comes first. If writing it fails, `error` is still the one to report.
  (void)out.Flush();
  const std::string hint(HintOf(error));
  Complain("error", error.message, hint);
  out.WriteJson(
      {{"error",
        {{"code", ErrorCodeName(error.code)}, {"message", error.message}, {"hint", hint}}}});
}

namespace {

// C0 and C1 controls, line and paragraph separators, and characters that change the writing
// direction.
bool NeedsEscape(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || (c >= 0x200E && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

}  // namespace

std::uint32_t CodePointOf(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  std::uint32_t value = sequence.size() == 1 ? first : first & (0x7FU >> sequence.size());
  for (const char c : sequence.substr(1)) {
    value = (value << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return value;
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const std::uint32_t c = CodePointOf(text.substr(0, length));
    if (!NeedsEscape(c)) {
      out += text.substr(0, length);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c < 0x80 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{:04x}", c);
    }
    text.remove_prefix(length);
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

std::string_view CommandsFor(Hint hint) {
  constexpr std::pair<Hint, std::string_view> kCommands[] = {
      {Hint::kRecover, "run `waybill start` to recover the store"},
      {Hint::kVerify,
       "run `waybill verify`; if it finds damage, `waybill start` recovers the store"},
      {Hint::kPullAgain, "pull the image again, or run `waybill start` to recover the store"},
      {Hint::kCreate, "make one with `waybill start`"},
      {Hint::kMigrate,
       "migrate it with `waybill migrate` or `waybill start`; both make a backup first"},
      {Hint::kAcceptLoss,
       "if the loss is acceptable, run `waybill migrate --accept-loss`; a backup is made first"},
      {Hint::kRestore, "put that backup back: `waybill restore BACKUP`"},
      {Hint::kListBackups, "choose another backup: `waybill restore` without a name lists them"},
      {Hint::kAllowUntestedLmdb,
       "use a tested version, or go on at your own risk with `--allow-untested-lmdb`"},
      {Hint::kPruneOrEnlarge,
       "prune records with `waybill prune`, or use a larger map (`--map-size`)"},
      {Hint::kSkipUnreadable,
       "try again; if it fails again, look for disk errors in the kernel's log; `waybill start "
       "--skip-unreadable` goes on without what can't be read"},
      {Hint::kAllowEmpty,
       "list again, since a runtime that starts up lists nothing; if the list is truly empty, add "
       "`--allow-empty`"},
      {Hint::kBeginList, "draw a token with `waybill observe --begin` before you list the images"},
      {Hint::kBeginUsernsCleanup,
       "draw a token with `waybill userns cleanup --begin` before you list the pods"},
      {Hint::kLoadHandlers,
       "`waybill runtimes` shows the known handlers; `waybill runtimes load` loads those that the "
       "runtime serves"},
      {Hint::kFreeRanges,
       "release the ranges of pods that are gone (`waybill userns cleanup`), see which are held "
       "(`waybill userns list`), or enlarge the pool"},
      {Hint::kSettleHeldPods,
       "`waybill userns list` shows the pods; run `waybill userns adopt POD FIRST LENGTH` for each "
       "that lives and `waybill userns release POD` for each that is gone, or `waybill start "
       "--kubelet-dir` for a kubelet's pods; once no other pod lives, `waybill userns release "
       "--lost`"},
      {Hint::kReleasePod,
       "if the other pod is gone, release it first: `waybill userns release POD`"},
      {Hint::kReplaceWitness,
       "name another path; if the file was the witness of a lost store, remove it and run `waybill "
       "start --after-gap --images`, since pulls may be unrecorded"}};
  for (const auto& [of, commands] : kCommands) {
    if (of == hint) return commands;
  }
  return {};
}

std::string_view HintOf(const Error& error) {
  return error.hint_code == Hint::kNone ? std::string_view(error.hint)
                                        : CommandsFor(error.hint_code);
}

namespace {

constexpr std::string_view kPage =
#include "glossary.inc"
    ;

bool HasWord(std::string_view text, std::string_view word) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  // In a flag or a path it is a name.
  const auto is_within = [&](char c) { return is_letter(c) || c == '-' || c == '/'; };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    // "gaps" is the word, too.
    const std::size_t behind = end < text.size() && text[end] == 's' ? end + 1 : end;
    if ((at == 0 || !is_within(text[at - 1])) &&
        (behind >= text.size() || !is_letter(text[behind]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Term> Glossary() {
  constexpr std::string_view kBegins = "- **";
  std::vector<Term> terms;
  bool in_errors = false;  // the second part of the page
  std::istringstream page{std::string(kPage)};
  for (std::string line; std::getline(page, line);) {
    in_errors = in_errors || line.starts_with("## ");
    const std::size_t colon = line.find(": ");
    if (!line.starts_with(kBegins) || colon == std::string::npos) continue;
    std::string words = line.substr(kBegins.size(), colon - kBegins.size());
    std::erase(words, '*');
    terms.push_back({std::move(words), line.substr(colon + 2), in_errors});
  }
  return terms;
}

std::string TermsIn(std::string_view text) {
  std::string found;
  for (const Term& term : Glossary()) {
    std::istringstream words(term.words);
    bool is_there = false;
    for (std::string word; std::getline(words >> std::ws, word, ',');) {
      is_there = is_there || HasWord(text, word);
    }
    if (!term.in_errors || !is_there) continue;
    found += (found.empty() ? "" : ", ") + term.words.substr(0, term.words.find(','));
  }
  return found;
}

}  // namespace waybill::cli
