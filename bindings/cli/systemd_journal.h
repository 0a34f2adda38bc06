// systemd's journal as the reader of standard error.

#ifndef WAYBILL_BINDINGS_CLI_SYSTEMD_JOURNAL_H_
#define WAYBILL_BINDINGS_CLI_SYSTEMD_JOURNAL_H_

namespace waybill::cli {

// Whether the journal reads `fd`. Lines then begin with their priority, such as <3> (sd-daemon(3)).
// Not if a service's standard error goes elsewhere, though it has JOURNAL_STREAM in its
// environment.
bool JournalReads(int fd);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SYSTEMD_JOURNAL_H_
