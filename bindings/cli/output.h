// The output of a command: one set of values, written as text or as JSON. A command says both; what
// is written is what the format asks for. Errors go to standard error.

#ifndef WAYBILL_BINDINGS_CLI_OUTPUT_H_
#define WAYBILL_BINDINGS_CLI_OUTPUT_H_

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/empty_list.h"
#include "store/base/json_value.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// `text` made safe for a terminal: escapes control characters, bytes that are not UTF-8, and
// characters that reorder or break lines (\n, \x1b, \u202e).
std::string Printable(std::string_view text);

// `text` as one word of a POSIX shell.
std::string ShellWord(std::string_view text);

// What `sequence`, one of valid UTF-8, stands for.
std::uint32_t CodePointOf(std::string_view sequence);

using internal::FieldAt;
using internal::Json;
using internal::NumberAt;
using internal::ParseJson;
using internal::TextAt;
using internal::TextOf;

enum class ExitCode : int {
  kYes = 0,       // done, or: no pull is needed
  kNo = 1,        // the answer is no, or: the image must be pulled
  kUsage = 2,     // a flag, or a file that a flag names, is wrong
  kStore = 3,     // the store, or the output, refused
  kNotKnown = 4,  // what has to be seen for the answer can't be
  // `guard` beside a kubelet with waybill inside: waybill-guard.service then stays down. To systemd
  // 4 to 7 have names that mean something else.
  kInside = 8,
};

using internal::HowMany;

// "keptInList" as "kept in list".
std::string LabelOf(std::string_view name);

// A value with its name in JSON and its label in text (empty: only in JSON): a number, string,
// boolean or null, or an array of strings, which takes a line each.
struct Field {
  std::string key;
  std::string label;
  Json value;
};

// How an answer is written (-o).
enum class Format {
  kTable,  // text for people
  kJson,
  kName,  // -q: only names, a line each; nothing if there are none
};

// By their names.
std::vector<std::pair<std::string, Format>> Formats();

// Standard output. After a failed write nothing more is written, and Flush reports the error.
class Output {
 public:
  explicit Output(int fd);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void set_format(Format format) { format_ = format; }
  // Tables without their first line; with whole IDs.
  void set_no_headers(bool no_headers) { no_headers_ = no_headers; }
  void set_no_trunc(bool no_trunc) { no_trunc_ = no_trunc; }

  bool names() const { return format_ == Format::kName; }
  // Whether the answer is one value.
  bool json() const { return format_ == Format::kJson; }

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    WriteLine(fmt::format(format, std::forward<Args>(args)...));
  }
  // One line of text for people, made Printable.
  void WriteLine(std::string_view text);
  // What a script wants by itself, such as a token, where only names are wanted.
  void WriteName(std::string_view name);
  // Text as it is, with its line ends.
  void WriteRaw(std::string_view text);
  // The answer as one value: on one line of its own, in ASCII.
  void WriteJson(const Json& value);
  // The same in every format: for what is data alone.
  void WriteData(const Json& value);

  // A JSON object, or aligned lines.
  void WriteFields(const std::vector<Field>& fields);
  // Aligned columns; without rows only the head line. SHA-256 IDs are cut to 12 digits, and on a
  // terminal what is wider than it.
  enum class Names { kInFirstColumn, kNone };
  void WriteTable(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows,
                  Names names = Names::kInFirstColumn);

  // On a terminal relative to now, elsewhere RFC 3339 in whole seconds; "never" for nullopt.
  std::string TimeText(const std::optional<Timestamp>& time) const;

  // kIo: a write failed.
  Result<void> Flush();
  // Nobody reads it any more.
  bool broken_pipe() const { return broken_pipe_; }

 private:
  // The text of a cell, cut to what fits.
  std::vector<std::vector<std::string>> Cells(const std::vector<std::vector<std::string>>& rows,
                                              std::vector<std::size_t>& widths) const;

  int fd_;
  Format format_ = Format::kTable;
  bool no_headers_ = false;
  bool no_trunc_ = false;
  bool terminal_;
  std::string buffer_;
  std::optional<Error> failed_;
  bool broken_pipe_ = false;
};

Json JsonOf(const std::vector<Field>& fields);

// The first line of the report on a dry run. In JSON the field "dryRun" says so.
void WriteDryRun(bool dry_run, Output& out);
// The answer as one value, with that field; in text that line, before the rest of it.
void WriteChange(Json answer, bool dry_run, Output& out);
// The whole report on a change.
void WriteChange(std::vector<Field> fields, bool dry_run, Output& out);

// Whether systemd's journal reads `fd`. Lines then begin with their priority, such as <3>
// (sd-daemon(3)). Not if a service's standard error goes elsewhere, though it has JOURNAL_STREAM in
// its environment.
bool JournalReads(int fd);

// `warning: message` and `hint: …` on standard error.
void Warn(std::string_view message, std::string_view hint);
// `note: message` there.
void Note(std::string_view message);

// `error: message` and `hint: …` on standard error; with -o json also {"error":{…}} on `out`.
void ReportError(const Error& error, Output& out);

// The library's hint in commands of waybill; empty for kNone.
std::string_view CommandsFor(Hint hint);

// The hint of `error` in words of the command line; empty if it has none. Borrows from `error`.
std::string_view HintOf(const Error& error);

// Of docs/glossary.md, which is inside the command.
struct Term {
  std::string words;  // one, or several with commas between
  std::string meaning;
  bool in_errors = false;  // an error that uses it names the glossary
};

std::vector<Term> Glossary();

// "gap, ledger": the words in `text` that an operator must know to act on it; empty: none.
std::string TermsIn(std::string_view text);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_OUTPUT_H_
