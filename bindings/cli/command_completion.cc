// waybill completion: scripts by which shells complete its command lines. They ask `waybill
// __complete LINE`, where LINE is the command line up to the cursor.

#include "bindings/cli/command.h"

namespace waybill::cli {
namespace {

// Where a word breaks at ':' or '=', bash wants only what stands behind.
constexpr std::string_view kBash =
    R"sh(# bash completion for waybill: eval "$(waybill completion bash)"
_waybill() {
  local line=${COMP_LINE:0:COMP_POINT} word current answer=()
  mapfile -t answer < <(waybill __complete "$line" 2>/dev/null)
  current=${line##*[[:space:]]}
  COMPREPLY=()
  case ${answer[0]-} in
    files) compopt -o default -o filenames 2>/dev/null ;;
    directories) compopt -o dirnames -o filenames 2>/dev/null ;;
    *)
      local broken=${current%"${current##*[:=@]}"}
      for word in "${answer[@]:1}"; do
        word=${word%%$'\t'*}
        if [[ -n $broken && $COMP_WORDBREAKS == *"${broken: -1}"* ]]; then
          word=${word#"$broken"}
        fi
        COMPREPLY+=("$word")
      done
      ;;
  esac
}
complete -F _waybill waybill
)sh";

constexpr std::string_view kZsh = R"sh(#compdef waybill
# zsh completion for waybill: source <(waybill completion zsh)
_waybill() {
  local -a answer words shown
  local line
  answer=("${(@f)$(waybill __complete "$LBUFFER" 2>/dev/null)}")
  case ${answer[1]} in
    files) _files; return ;;
    directories) _files -/; return ;;
  esac
  for line in "${(@)answer[2,-1]}"; do
    words+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  -- }")
  done
  (( ${#words} )) && compadd -l -d shown -a words
}
if [[ $funcstack[1] == _waybill ]]; then
  _waybill "$@"
else
  compdef _waybill waybill
fi
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion for waybill: waybill completion fish | source
function __waybill_complete
    set -l answer (waybill __complete (commandline -cp) 2>/dev/null)
    switch "$answer[1]"
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $answer[2..-1]
    end
end
complete -c waybill -f -a '(__waybill_complete)'
)sh";

class CompletionCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Choice("SHELL", &script_, {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}}, "which one")
        .Required("write bash, zsh or fish");
  }

  Result<ExitCode> Run(Output& out) override {
    out.WriteRaw(script_);
    return ExitCode::kYes;
  }

 private:
  std::string_view script_;
};

}  // namespace

Command CompletionCommand() {
  return {
      .name = "completion",
      .task = kTaskHelp,
      .summary = "print a shell's completion script",
      .notes =
          R"(The packages install all three. Images, handlers, pulls and pods are completed from the
store.)",
      .examples =
          R"text(eval "$(waybill completion bash)"
source <(waybill completion zsh)
waybill completion fish | source)text",
      .call = New<CompletionCall>};
}

}  // namespace waybill::cli
