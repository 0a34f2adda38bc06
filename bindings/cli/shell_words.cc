#include "bindings/cli/shell_words.h"

#include <algorithm>

namespace waybill::cli {
namespace {

Error Malformed(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message),
          "give one command as it stands in a shell script or a systemd unit"};
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class ShellReader {
 public:
  ShellReader(std::string_view text, ShellRules rules)
      : text_(text),
        shell_(rules != ShellRules::kSystemd),
        assignments_(rules == ShellRules::kAssignments) {}

  Result<std::vector<ShellCommand>> Read() {
    while (at_ < text_.size()) {
      if (auto read = ReadNext(); !read) return read.error();
      if (words_ > kMaxShellWords) {
        return Error{ErrorCode::kLimitExceeded,
                     "the command has more than " + std::to_string(kMaxShellWords) + " words",
                     {}};
      }
    }
    EndCommand();
    if (wants_target_) return Malformed("a redirection has no target");
    return std::move(commands_);
  }

 private:
  Result<void> ReadNext() {
    const char c = text_[at_];
    if (c == '\0') return Malformed("it has a zero byte");
    if (IsBlank(c)) {
      EndWord();
      ++at_;
      return {};
    }
    if (c == '\\') return ReadBackslash();
    if (c == '\'') return ReadSingleQuotes();
    if (c == '"') return ReadDoubleQuotes();
    if (c == '$' || c == '`') return ReadVariable(false);
    if (c == '%' && !shell_) return ReadSpecifier();
    if (c == '\n') {
      ++at_;
      EndCommand();
      return {};
    }
    if (assignments_) {
      if ((c == '#' || c == ';') && !in_word_ && command_.empty()) return ReadCommentLine();
      if (std::string_view("<>&|();").find(c) != std::string_view::npos) {
        return Malformed("it has an operator of a shell outside of quotes");
      }
    } else if (shell_) {
      if (c == '#' && !in_word_) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        return {};
      }
      if (c == '<' || c == '>') return ReadRedirection();
      if (c == '&' && at_ + 1 < text_.size() && text_[at_ + 1] == '>') {
        EndWord();
        ++at_;
        return ReadRedirection();
      }
      if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
        ++at_;
        EndCommand();
        return {};
      }
    }
    Put(c);
    ++at_;
    return {};
  }

  // systemd and shells disagree on whether the line below belongs to it too.
  Result<void> ReadCommentLine() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.ends_with('\\')) return Malformed("a comment ends with a backslash");
    at_ = end;
    return {};
  }

  Result<void> ReadBackslash() {
    if (at_ + 1 >= text_.size()) return Malformed("it ends with a backslash");
    const char next = text_[at_ + 1];
    if (!shell_ && IsName(next)) return Escape(next);
    if (next == '\n') {
      // systemd puts a blank there, a shell nothing.
      if (!shell_) EndWord();
    } else if (next == '\r' && at_ + 2 < text_.size() && text_[at_ + 2] == '\n') {
      if (!shell_) EndWord();
      ++at_;
    } else {
      Put(next);
    }
    at_ += 2;
    return {};
  }

  // systemd makes other characters of these: \x2d and \055 are '-', \s is a blank.
  static Result<void> Escape(char next) {
    return Malformed(std::string("it has the escape \\") + next + ", which is not read");
  }

  // %H, %i: what systemd puts there is not known.
  Result<void> ReadSpecifier() {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (!IsName(next)) {
      Put('%');
      at_ += next == '%' ? 2 : 1;
      return {};
    }
    PutVariable(at_ + 2);
    return {};
  }

  Result<void> ReadSingleQuotes() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return Malformed("a single quote does not end");
    in_word_ = true;
    word_quoted_ = true;
    if (shell_) {
      if (text_.substr(at_, end - at_).find('\0') != std::string_view::npos) {
        return Malformed("it has a zero byte");
      }
      word_.text += text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return {};
    }
    // systemd reads both kinds of quotes alike.
    return ReadQuotes('\'');
  }

  Result<void> ReadDoubleQuotes() {
    in_word_ = true;
    word_quoted_ = true;
    return ReadQuotes('"');
  }

  Result<void> ReadQuotes(char quote) {
    for (++at_; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return {};
      }
      if (c == '\0') return Malformed("it has a zero byte");
      if (c == '$' || (c == '`' && shell_)) {
        if (auto read = ReadVariable(true); !read) return read;
        continue;
      }
      if (c == '%' && !shell_) {
        if (auto read = ReadSpecifier(); !read) return read;
        continue;
      }
      if (c == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[at_ + 1];
        if (!shell_ && IsName(next)) return Escape(next);
        const bool escapes =
            !shell_ || std::string_view("\\\"$`\n").find(next) != std::string_view::npos;
        if (!escapes) Put(c);
        if (next != '\n') Put(next);
        at_ += 2;
        continue;
      }
      Put(c);
      ++at_;
    }
    return Malformed("a quote does not end");
  }

  // What begins with '$' or '`', unreplaced. A dollar sign before anything else is itself.
  Result<void> ReadVariable(bool quoted) {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    std::size_t end = at_ + 1;
    if (text_[at_] == '`') {
      end = text_.find('`', at_ + 1);
      if (end == std::string_view::npos) return Malformed("a backquote does not end");
      ++end;
    } else if (next == '{' || next == '(') {
      int open = 0;
      for (end = at_ + 1; end < text_.size(); ++end) {
        if (text_[end] == next) ++open;
        if (text_[end] == (next == '{' ? '}' : ')') && --open == 0) break;
      }
      if (end >= text_.size()) return Malformed("a substitution does not end");
      ++end;
    } else if (!shell_ && next == '$') {
      Put('$');
      at_ += 2;
      return {};
    } else if (IsName(next)) {
      while (end < text_.size() && IsName(text_[end])) ++end;
    } else if (shell_ && next != '\0' &&
               std::string_view("@*#?-$!").find(next) != std::string_view::npos) {
      ++end;
    } else {
      if (shell_ && !quoted && (next == '\'' || next == '"')) {
        return Malformed("it has a quote behind a dollar sign");
      }
      Put('$');
      ++at_;
      return {};
    }
    const std::string_view variable = text_.substr(at_, end - at_);
    if (variable == "$@" || (next == '{' && variable.find('@') != std::string_view::npos)) {
      word_.has_list = true;
    }
    PutVariable(end);
    return {};
  }

  void PutVariable(std::size_t end) {
    if (!word_.has_variable) {
      word_.begins_with_variable = word_.text.empty();
      word_.variable_at = word_.text.size();
    }
    word_.has_variable = true;
    in_word_ = true;
    word_.text += text_.substr(at_, end - at_);
    at_ = end;
  }

  // ">file", "2>&1", "</dev/null": the operator, and later the next word.
  Result<void> ReadRedirection() {
    // Digits right before it say which stream.
    if (in_word_ && !word_quoted_ && !word_.has_variable &&
        word_.text.find_first_not_of("0123456789") == std::string::npos) {
      DropWord();
    }
    EndWord();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>')) ++at_;
    const std::string_view sign = text_.substr(begin, at_ - begin);
    if (sign.starts_with("<<")) return Malformed("it has a here-document");
    if (sign.size() > 2) return Malformed("it has a redirection that is not known");
    if (at_ < text_.size() && (text_[at_] == '&' || text_[at_] == '|')) ++at_;
    wants_target_ = true;
    return {};
  }

  void Put(char c) {
    in_word_ = true;
    word_.text += c;
  }

  void DropWord() {
    word_ = {};
    in_word_ = word_quoted_ = false;
  }

  void EndWord() {
    if (!in_word_) return;
    if (wants_target_) {
      wants_target_ = false;
    } else {
      command_.push_back(std::move(word_));
    }
    ++words_;
    DropWord();
  }

  void EndCommand() {
    EndWord();
    if (!command_.empty()) commands_.push_back(std::move(command_));
    command_.clear();
  }

  const std::string_view text_;
  const bool shell_;  // quotes, backslashes and variables as a shell has them
  const bool assignments_;
  std::size_t at_ = 0;
  std::vector<ShellCommand> commands_;
  ShellCommand command_;
  CommandWord word_;
  bool in_word_ = false;
  bool word_quoted_ = false;
  bool wants_target_ = false;
  std::size_t words_ = 0;
};

}  // namespace

Result<std::vector<ShellCommand>> ReadShellCommands(std::string_view text, ShellRules rules) {
  if (text.size() > kMaxShellBytes) {
    return Error{ErrorCode::kLimitExceeded,
                 "the command has more than " + std::to_string(kMaxShellBytes) + " bytes",
                 {}};
  }
  return ShellReader(text, rules).Read();
}

}  // namespace waybill::cli
