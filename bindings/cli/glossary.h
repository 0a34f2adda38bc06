// docs/glossary.md, inside the command: its page, and which of its words an error uses.

#ifndef WAYBILL_BINDINGS_CLI_GLOSSARY_H_
#define WAYBILL_BINDINGS_CLI_GLOSSARY_H_

#include <string>
#include <string_view>
#include <vector>

namespace waybill::cli {

struct Term {
  std::string words;  // one, or several with commas between
  std::string meaning;
  bool in_errors = false;  // an error that uses it names the glossary
};

std::vector<Term> Glossary();

// "gap, ledger": the words in `text` that an operator must know to act on it; empty: none.
std::string TermsIn(std::string_view text);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_GLOSSARY_H_
